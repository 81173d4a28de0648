package exec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
)

// Answers to different prompts are told apart as far as they can be: long ones, of
// more than a few words.
func TestAlike(t *testing.T) {
	long := func(from int) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, " w%d", from+i)
		}
		return b.String()
	}
	for _, tt := range []struct {
		name           string
		claimed        int
		texts          []string
		compared, same int
	}{
		{"none", 64, nil, 0, 0},
		{"different", 64, []string{long(0), long(1), long(2)}, 3, 0},
		{"one pair", 64, []string{long(0), long(1), long(0)}, 3, 2},
		{"cut to other lengths", 64, []string{long(0), long(0)[:60], long(0)[:80]}, 3, 3},
		{"the same beginning", 64, []string{long(0), long(0)[:60] + long(9)}, 2, 0},
		{"short answers", 31, []string{long(0), long(0)}, 0, 0},
		{"a tiny model", 64, []string{strings.Repeat("a b c d e f g ", 9), strings.Repeat("a b c d e f g ", 9)}, 0, 0}, // 7 words
	} {
		var kept []keptAnswer
		for _, text := range tt.texts {
			kept = append(kept, keptAnswer{claimed: tt.claimed, text: text})
		}
		if compared, same := alike(kept); compared != tt.compared || same != tt.same {
			t.Errorf("%s: %d of %d, want %d of %d", tt.name, same, compared, tt.same, tt.compared)
		}
	}
}

// What is counted again is what was sent: of ten tokens, four were reasoning that was kept
// back. An answer of nothing else has nothing to be counted.
func TestKeepsWhatWasSent(t *testing.T) {
	for _, tt := range []struct{ output, hidden, want int }{{10, 0, 10}, {10, 4, 6}, {10, 10, 0}} {
		rd := &round{kept: &kept{}, out: &metric.Round{}}
		rd.keep(&flight{sample: &metric.Sample{Usage: &metric.Usage{Output: tt.output, Hidden: tt.hidden}}}, client.Said{Whole: "some words"})
		got := 0
		for _, k := range rd.kept.texts {
			got += k.claimed
		}
		if got != tt.want {
			t.Errorf("%+v: %d tokens are to be counted again", tt, got)
		}
	}
}
