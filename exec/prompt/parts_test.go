package prompt

import (
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/traffic"
)

// A prompt of parts is as long as its parts together. Two prompts share the tokens of their common
// parts, and otherwise at most the tokens that a server puts around a prompt. The same parts have
// other text in each round.
func TestParts(t *testing.T) {
	block := func(key uint64, tokens int) traffic.Part {
		return traffic.Part{Key: key * 0x9e3779b97f4a7c15, Tokens: tokens}
	}
	prompts := [][]traffic.Part{
		{block(1, 64), block(2, 64), block(3, 30)},
		{block(1, 64), block(2, 64), block(4, 64), block(5, 7)}, // shares 128
		{block(1, 64), block(6, 64), block(3, 30)},              // 64
		{block(7, 64), block(2, 64), block(3, 30)},              // none
		{block(1, 64), block(2, 64), block(3, 21)},              // shares all 149 tokens
	}
	want := [][]int{{158, 128, 64, 0, 149}, {0, 199, 64, 0, 128}, {0, 0, 158, 0, 64}, {0, 0, 0, 158, 0}, {0, 0, 0, 0, 149}}
	for _, tt := range fakes {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.new()
			m := calibrated(t, f, 7)
			if m.perToken > 0 {
				t.Skip("lengths are estimates")
			}
			texts := make([][]string, len(prompts))
			for i, parts := range prompts {
				k := Key{Seed: 1, Workload: "w", Level: "trace"}
				p := must.Get(m.MakeParts(k, parts))(t)
				if got := f.count(p); got != want[i][i] || p.Tokens != got {
					t.Fatalf("prompt %d has %d tokens, says %d, want %d", i, got, p.Tokens, want[i][i])
				}
				texts[i] = f.t(p.Text)
				k.Round = 1
				if other, err := m.MakeParts(k, parts); err != nil || other.Text == p.Text {
					t.Fatalf("another round: %v", err)
				}
			}
			for i := range texts {
				for j := i + 1; j < len(texts); j++ {
					same := 0
					for same < min(len(texts[i]), len(texts[j])) && texts[i][same] == texts[j][same] {
						same++
					}
					// Two prompts may share words by chance. If words have several tokens, cut
					// parts may also end in the same words, which were chosen to fit the length.
					if low := want[i][j] - f.around - m.costs; same < low || same > want[i][j]+mostBehind+12 {
						t.Errorf("prompts %d and %d share %d tokens, want about %d", i, j, same, want[i][j])
					}
				}
			}
			if p, err := m.MakeParts(Key{}, []traffic.Part{block(1, 1)}); err != nil || f.count(p) != m.Least() || p.Tokens != m.Least() {
				t.Errorf("the shortest has %d tokens, want %d: %v", p.Tokens, m.Least(), err)
			}
		})
	}
}
