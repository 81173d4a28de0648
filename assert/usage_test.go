package assert

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// A server may report more tokens than it sent. Each test has twenty answers.
func TestBelievable(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		chunks, tokens, text int
		odd                  int // number of answers with the row's counts; the rest of the twenty have correct counts
		hidden               int // number of reasoning tokens that were not sent
		want                 string
	}{
		{"honest", 8, 8, 40, 20, 0, ""},
		{"several tokens a chunk", 2, 8, 40, 20, 0, ""},
		{"two letters for eight tokens", 2, 8, 2, 20, 0, "0.25 bytes of text for each token"},
		{"half of the answers have little text", 2, 8, 2, 9, 0, ""}, // the median answer has enough text
		{"a byte for each token", 8, 8, 8, 20, 0, ""},
		{"text is not recorded", 2, 8, 0, 20, 0, ""},
		{"more chunks than tokens", 80, 8, 400, 20, 0, "have more chunks than tokens that were sent, such as 80 chunks but 8 tokens"},
		{"one chunk more, and a tenth", 10, 8, 40, 20, 0, ""}, // 10.8 are allowed: 1.1 × 8 + 2
		{"one answer in twenty", 80, 8, 400, 1, 0, ""},
		{"two in twenty", 80, 8, 400, 2, 0, "2 of 20 answers"},
		{"reasoning that was kept back, and told", 2, 100, 8, 20, 98, ""}, // the 2 sent tokens have 8 bytes of text
		{"reasoning that was kept back", 2, 100, 8, 20, 0, "must send its reasoning, or report it as reasoning_tokens"},
		{"more chunks than tokens that were sent", 80, 100, 400, 20, 92, "80 chunks but 8 tokens"},
	} {
		var samples []*metric.Sample
		for i := range 20 {
			s := &metric.Sample{Chunks: 8, Text: 40, Usage: &metric.Usage{Output: 8}}
			if i < tt.odd {
				s = &metric.Sample{Chunks: tt.chunks, Text: tt.text, Usage: &metric.Usage{Output: tt.tokens, Hidden: tt.hidden}}
			}
			samples = append(samples, s)
		}
		var said []string
		believable(samples, func(_ verdict.Cause, format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
		got := strings.Join(said, "; ")
		must.Hold(t, (got == "") == (tt.want == "") && strings.Contains(got, tt.want), "%s: %q, want %q", tt.name, got, tt.want)
	}
}

// Reasoning tokens that were not sent are reported as a share of the output tokens. In this test
// one answer has 3 such tokens of 4, and another answer has none of 4. 3 of 8 is 37.5 %, or 38 %.
func TestKeptBack(t *testing.T) {
	samples := []*metric.Sample{{Usage: &metric.Usage{Output: 4, Hidden: 3}}, {Usage: &metric.Usage{Output: 4}}, {}, {Failure: &metric.Failure{}, Usage: &metric.Usage{Output: 9, Hidden: 9}}}
	got := strings.Join(keptBack(samples), "; ")
	must.Hold(t, strings.Contains(got, "reasoning: the server counted 38% of the output tokens as reasoning and did not send them (1 answer)"), "%v", got)
	if got := keptBack(samples[1:]); len(got) > 0 {
		t.Errorf("%q, and nothing was kept back", got)
	}
}

// TestOddities checks the notes on a server that asks clients to wait, and on counters that
// decrease.
func TestOddities(t *testing.T) {
	waits := []*metric.Sample{{RetryAfter: time.Second}, {RetryAfter: 30 * time.Second}, {Reconnects: 2}}
	l := &metric.Level{Answers: &metric.Answers{Note: "the tokens could not be counted"}, Rounds: []*metric.Round{{}, {Telemetry: &metric.Telemetry{Restarted: true}}}}
	got := strings.Join(oddities(l, waits), "; ")
	for _, want := range []string{"a reused connection died before the first byte: 2", "the server refused 2 requests with Retry-After, and the slots of these requests waited for up to 30s", "counters went backwards", "the tokens could not be counted"} {
		must.Hold(t, strings.Contains(got, want), "%q, want %q", got, want)
	}
	if got := oddities(&metric.Level{Rounds: []*metric.Round{{Telemetry: &metric.Telemetry{}}}}, []*metric.Sample{{}}); len(got) > 0 {
		t.Errorf("%q of nothing odd", got)
	}
}

// Each row has the whole finding on answers whose tokens were counted again.
func TestGenerated(t *testing.T) {
	ms := func(of ...int) (out []time.Duration) {
		for _, x := range of {
			out = append(out, time.Duration(x)*time.Millisecond)
		}
		return out
	}
	cached := func(first, fresh int, again ...int) *metric.Answers {
		return &metric.Answers{Cache: &metric.CacheTest{First: ms(first)[0], Fresh: ms(fresh)[0], Again: ms(again...)}}
	}
	counted := func(n, claimed, tokens int) (out []metric.Recount) {
		for i := range n {
			out = append(out, metric.Recount{Order: i, Claimed: claimed, Tokens: tokens})
		}
		return out
	}
	for _, tt := range []struct {
		name string
		a    *metric.Answers
		want string
	}{
		{"none looked at", nil, ""},
		{"nothing found", &metric.Answers{Note: "not counted again"}, ""},
		{"as counted", &metric.Answers{Recounts: counted(12, 100, 100)}, ""},
		{"cut in two", &metric.Answers{Recounts: counted(12, 100, 160)}, ""},
		{"ends of turns", &metric.Answers{Recounts: counted(12, 100, 60)}, ""},
		{"twice as many told", &metric.Answers{Recounts: counted(12, 100, 50)}, "counted 1200 tokens for 12 answers, but its own tokenizer makes 600"},
		{"half of the answers are short", &metric.Answers{Recounts: append(counted(6, 100, 100), counted(6, 100, 10)...)}, "makes 660 tokens of"}, // 0.55
		{"much more text", &metric.Answers{Recounts: counted(12, 100, 201)}, "makes 2412"},
		{"too few to say", &metric.Answers{Recounts: counted(2, 100, 10)}, ""},
		{"the same text", &metric.Answers{Compared: 12, Alike: 6}, "6 of 12 answers to different prompts"},
		{"some of the same text", &metric.Answers{Compared: 12, Alike: 5}, ""},
		{"two of four of the same text", &metric.Answers{Compared: 4, Alike: 2}, ""},
		{"nine of the same text", &metric.Answers{Compared: 9, Alike: 9}, ""},
		{"five of ten", &metric.Answers{Compared: 10, Alike: 5}, "5 of 10 answers to different prompts"},
		{"no test for a cache", &metric.Answers{Cache: nil}, ""},
		{"generated again", cached(500, 500, 480, 51), ""},
		{"from a cache", cached(500, 480, 48, 1), "within 48ms, but the server took 500ms to write the first answer, and 480ms to write the answer to the next new prompt"},
		{"too fast to tell", cached(49, 500, 0, 0), ""},
		{"the first answer in one piece", cached(0, 500, 1, 1), ""},
		{"a hiccup in the first answer", cached(1393, 42, 42, 42), ""},
		{"a slow server that became fast", cached(1058, 75, 75, 70), ""},
		{"the fresh answer in one piece", cached(500, 0, 1, 1), ""},
		{"not confirmed", cached(500, 500, 1), ""},
	} {
		var said []string
		generated(tt.a, func(_ verdict.Cause, format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
		got := strings.Join(said, "; ")
		must.Hold(t, (got == "") == (tt.want == "") && strings.Contains(got, tt.want), "%s: %q, want %q", tt.name, got, tt.want)
	}
}
