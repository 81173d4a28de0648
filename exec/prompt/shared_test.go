package prompt

import (
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// Prompts of a group share the requested number of tokens. In addition they share at most the
// tokens that a server puts around a prompt. Prompts of different groups share no more than
// unrelated prompts. Every prompt has the requested length.
func TestSharedPrefixes(t *testing.T) {
	for _, tt := range fakes {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.new()
			m := calibrated(t, f, 7)
			if m.perToken > 0 {
				t.Skip("lengths are estimates")
			}
			made := map[Key][]string{}
			for group := range 3 {
				for order := range 20 {
					k := Key{Seed: 1, Workload: "w", Level: "4", Phase: metric.Measured, Order: 3*order + group, Shared: Prefix{Group: group, Tokens: 256, More: 64 * (order % 2)}}
					p := must.Get(m.Make(k, 512))(t)
					got := f.count(p)
					must.Need(t, got == 512, "%d tokens", got)
					want := float64(256+k.Shared.More+m.addedTokens()) / 512
					must.Need(t, p.Shared == want, "%v shared, want %v", p.Shared, want)
					made[k] = f.t(p.Text)
				}
			}
			for a, x := range made {
				for b, y := range made {
					same := 0
					for same < min(len(x), len(y)) && x[same] == y[same] {
						same++
					}
					low, high := 256, 256+mostBehind
					switch {
					case a == b:
						continue
					case a.Shared.Group != b.Shared.Group:
						low, high = 0, 12
					case a.Shared.More == 64 && b.Shared.More == 64:
						low, high = low+64, high+64
					}
					// Two prompts may share one of the two words that encode a prompt's number.
					// Their other words may begin with the same tokens.
					must.Need(t, same >= low-f.around && same <= high+8, "%+v and %+v share %d tokens, want %d to %d", a, b, same, low, high)
				}
			}
		})
	}
}

// If tokens can only be estimated, prompts share the estimated number of bytes.
func TestSharedEstimates(t *testing.T) {
	estimate := func(text string) []string { return make([]string, (len(text)*10+36)/37) } // 3.7 bytes a token
	f := &fake{t: estimate, around: 12}
	m := calibrated(t, f, 7)
	same := func(a, b string) (n int) {
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	near := func(p client.Prompt, err error, want int) string {
		t.Helper()
		got := f.count(p)
		must.Hold(t, err == nil && got >= want*98/100 && got <= want*102/100, "%d tokens counted as %d: %v", want, got, err)
		return p.Text
	}
	of := func(group, order int) string {
		p, err := m.Make(Key{Seed: 1, Workload: "w", Order: order, Shared: Prefix{Group: group, Tokens: 500}}, 1000)
		return near(p, err, 1000)
	}
	parts := func(keys ...uint64) string {
		var list []metric.Piece
		for _, key := range keys {
			list = append(list, metric.Piece{Key: key, Tokens: 300})
		}
		p, err := m.MakeParts(Key{}, list)
		return near(p, err, 300*len(keys))
	}
	// Prompts of a group share 500 tokens: about 1,850 bytes, with the template.
	n := same(of(1, 0), of(1, 1))
	must.Hold(t, n >= 1750 && n <= 1950, "two of a group share %d bytes", n)
	if n := same(of(1, 0), of(2, 1)); n > 40 {
		t.Errorf("two of two groups share %d bytes", n)
	}
	if n := same(parts(1, 2), parts(1, 3)); n < 1000 || n > 1200 { // 300 tokens: 1,110 bytes
		t.Errorf("two that begin with the same part share %d bytes", n)
	}
}

// Prompts of token ids share exactly the requested number of tokens.
func TestSharedIDs(t *testing.T) {
	f := &fake{t: byWord}
	o := f.options(7)
	o.IDs, o.AsIDs = someIDs, true
	m, err := Calibrate(t.Context(), o)
	must.Do(t, err)
	part := func(key uint64) metric.Piece { return metric.Piece{Key: key, Tokens: 50} }
	a, err := m.MakeParts(Key{}, []metric.Piece{part(1), part(2)})
	if err != nil || f.count(a) != 100 {
		t.Fatalf("%d tokens: %v", f.count(a), err)
	}
	b, _ := m.MakeParts(Key{}, []metric.Piece{part(1), part(3)})
	must.Hold(t, slices.Equal(a.IDs[:50], b.IDs[:50]) && !slices.Equal(a.IDs[50:], b.IDs[50:]), "%v and %v do not share their first 50", a.IDs, b.IDs)
	if p, err := m.MakeParts(Key{}, []metric.Piece{{Key: 1, Tokens: 1}}); err != nil || f.count(p) != m.least() {
		t.Errorf("the shortest has %d tokens, want %d: %v", f.count(p), m.least(), err)
	}
	if _, err := m.MakeParts(Key{}, nil); err == nil {
		t.Error("a prompt of nothing was made")
	}
	k := Key{Order: 1, Shared: Prefix{Group: 1, Tokens: 30}}
	c, _ := m.Make(k, 60)
	k.Order = 2
	if d, err := m.Make(k, 60); err != nil || !slices.Equal(c.IDs[:30], d.IDs[:30]) || slices.Equal(c.IDs, d.IDs) {
		t.Errorf("%v and %v do not share their first 30: %v", c.IDs, d.IDs, err)
	}
}

func TestNoRoomForAPrefix(t *testing.T) {
	m := calibrated(t, &fake{t: byWord}, 7)
	_, err := m.Make(Key{Shared: Prefix{Tokens: 64}}, 60)
	must.Hold(t, err != nil && strings.Contains(err.Error(), "no room for a prefix of"), "error %v", err)
}

// A prompt of parts is as long as its parts together. Two prompts share the tokens of their common
// parts, and otherwise at most the tokens that a server puts around a prompt. The same parts have
// other text in each round.
func TestParts(t *testing.T) {
	block := func(key uint64, tokens int) metric.Piece {
		return metric.Piece{Key: key * 0x9e3779b97f4a7c15, Tokens: tokens}
	}
	prompts := [][]metric.Piece{
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
				got := f.count(p)
				must.Need(t, got == want[i][i] && p.Tokens == got, "prompt %d has %d tokens, says %d, want %d", i, got, p.Tokens, want[i][i])
				texts[i] = f.t(p.Text)
				k.Round = 1
				other, err := m.MakeParts(k, parts)
				must.Need(t, err == nil && other.Text != p.Text, "another round: %v", err)
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
			if p, err := m.MakeParts(Key{}, []metric.Piece{block(1, 1)}); err != nil || f.count(p) != m.least() || p.Tokens != m.least() {
				t.Errorf("the shortest has %d tokens, want %d: %v", p.Tokens, m.least(), err)
			}
		})
	}
}
