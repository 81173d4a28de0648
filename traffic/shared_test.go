package traffic_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/traffic"
)

// A hit rate of 80% on 1024 tokens needs 819.2 shared tokens. This is between the prefixes of 768
// and 896 tokens: 40% of the prompts have the longer one.
func TestForHitRate(t *testing.T) {
	for _, tt := range []struct {
		input int
		rate  float64
		want  traffic.Shared
	}{
		{1024, 0.8, traffic.Shared{Groups: 16, Tokens: 768, More: 128, Longer: 0.4}},
		{1024, 0.75, traffic.Shared{Groups: 16, Tokens: 768}},
		// 64 of the 272 tokens must be unique, so a prefix of 256 tokens is too long.
		{272, 0.7, traffic.Shared{Groups: 16, Tokens: 128, More: 64, Longer: 0.975}},
		{128, 0.4, traffic.Shared{Groups: 16, Tokens: 32, More: 32, Longer: 0.6}},
	} {
		got, err := traffic.ForHitRate(tt.input, tt.rate)
		must.Hold(t, err == nil, "%d tokens, %v: %v", tt.input, tt.rate, err)
		got.Longer = math.Round(got.Longer*1e9) / 1e9
		must.Same(t, fmt.Sprintf("%d tokens, %v", tt.input, tt.rate), tt.want, got)
	}
	for input, want := range map[int]string{
		1024: "prompts of 1024 tokens can share from 2% to 93% of them",
		40:   "prompts of 40 tokens are too short to share any",
	} {
		_, err := traffic.ForHitRate(input, 0.99)
		must.Hold(t, err != nil && err.Error() == want, "%v, want %s", err, want)
	}
}

// In each round of 50 requests, 20 have the longer prefix, or one more or less. Each of the 16
// groups has about 625 of the 10,000 requests, with a standard deviation of 24.
func TestSharedOf(t *testing.T) {
	s := traffic.Shared{Groups: 16, Tokens: 768, More: 128, Longer: 0.4}
	groups := make([]int, s.Groups)
	draw := uint64(1)
	for round := range 200 {
		long := 0
		for order := range 50 {
			draw = draw*6364136223846793005 + 1442695040888963407
			group, tokens := s.Of(draw>>20, uint64(round)*0x9e3779b97f4a7c15>>40, order)
			groups[group]++
			switch tokens {
			case 896:
				long++
			case 768:
			default:
				t.Fatalf("%d tokens", tokens)
			}
		}
		must.Hold(t, long >= 19 && long <= 21, "round %d has %d longer prefixes, want 20", round, long)
	}
	for g, n := range groups {
		must.Hold(t, math.Abs(float64(n)-625) <= 5*24, "group %d has %d requests, want about 625", g, n)
	}
}

func TestQuestion(t *testing.T) {
	for _, tt := range []struct{ row, question, asking, bad string }{
		{row: `{"prompt":"a b"}`, question: "a b", asking: "c"},
		{
			row:      `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null},{"role":"user","content":"b","name":"n"},{"role":"assistant","content":"x"}]}`,
			question: "b",
			asking:   `[{"content":"a","role":"user"},{"content":null,"role":"assistant"},{"content":"c","name":"n","role":"user"},{"content":"x","role":"assistant"}]`,
		},
		{
			row:      `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`,
			question: "b",
			asking:   `[{"content":[{"text":"a","type":"text"},{"text":"c","type":"text"}],"role":"user"}]`,
		},
		{row: `{"messages":[{"role":"system","content":"a"}]}`, bad: "it has no message of a user"},
		{
			row: `{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`,
			bad: "message 2 holds a part that is not text, whose tokens cannot be counted",
		},
		{row: `{"messages":[{"role":"user","content":[7]}]}`, bad: "message 1 holds parts that are no objects"},
	} {
		d, err := parse(t, "a.jsonl", tt.row, "")
		must.Do(t, err)
		row := &d.Rows[0]
		question, err := row.Question()
		if tt.bad != "" {
			must.Hold(t, err != nil && err.Error() == tt.bad, "%s: %v, want %s", tt.row, err, tt.bad)
			continue
		}
		must.Hold(t, err == nil && question == tt.question, "%s asks %q: %v", tt.row, question, err)
		again := row.Asking("c")
		must.Hold(t, again.Prompt+string(again.Messages) == tt.asking, "%s%s, want %s", again.Prompt, again.Messages, tt.asking)
	}
}

// A system prompt stands before the messages of each row, and a row of a prompt becomes a message of the
// user. A row that has one already is refused by its line.
func TestAfterASystemPrompt(t *testing.T) {
	set := must.Get(traffic.Parse(strings.NewReader("{\"prompt\": \"a \\\"b\\\"\", \"max_tokens\": 3}\n{\"messages\": [ {\"role\": \"user\", \"content\": \"c\"} ]}\n"), "x.jsonl", traffic.Options{}))(t)
	out := must.Get(set.After("Be \"brief\"."))(t)
	for i, want := range []string{
		`[{"content":"Be \"brief\".","role":"system"},{"content":"a \"b\"","role":"user"}]`,
		`[{"content":"Be \"brief\".","role":"system"},{"role": "user", "content": "c"} ]`,
	} {
		if got := string(out.Rows[i].Messages); got != want || out.Rows[i].Prompt != "" {
			t.Errorf("row %d is %s, want %s", i, got, want)
		}
	}
	must.Hold(t, out.Rows[0].MaxTokens == 3 && set.Rows[0].Prompt == `a "b"`, "%+v of %+v", out.Rows[0], set.Rows[0])
	if _, err := out.After("Again."); err == nil || err.Error() != "the row x.jsonl:1 has a system message of its own" {
		t.Errorf("a second system prompt: %v", err)
	}
}
