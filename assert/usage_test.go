package assert

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// A server may count what it never sent. Each row is twenty answers.
func TestBelievable(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		chunks, tokens, text int
		odd                  int // answers like this; the others are honest
		want                 string
	}{
		{"honest", 8, 8, 40, 20, ""},
		{"several tokens a chunk", 2, 8, 40, 20, ""},
		{"two letters for eight tokens", 2, 8, 2, 20, "0.25 bytes of text for each token"},
		{"half of the answers have little text", 2, 8, 2, 9, ""}, // the median is an honest one
		{"a byte for each token", 8, 8, 8, 20, ""},
		{"text is not recorded", 2, 8, 0, 20, ""},
		{"more chunks than tokens", 80, 8, 400, 20, "in more chunks than they have tokens by the server's count, such as 80 chunks and 8 tokens"},
		{"one chunk more, and a tenth", 10, 8, 40, 20, ""}, // 1.1 × 8 + 2 = 10.8
		{"one answer in twenty", 80, 8, 400, 1, ""},
		{"two in twenty", 80, 8, 400, 2, "2 of 20 answers"},
	} {
		var samples []*metric.Sample
		for i := range 20 {
			s := &metric.Sample{Chunks: 8, Text: 40, Usage: &metric.Usage{Output: 8}}
			if i < tt.odd {
				s = &metric.Sample{Chunks: tt.chunks, Text: tt.text, Usage: &metric.Usage{Output: tt.tokens}}
			}
			samples = append(samples, s)
		}
		var said []string
		believable(samples, func(_ verdict.Cause, format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
		got := strings.Join(said, "; ")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
