package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tokgate/tokgate/internal/must"
)

// TestLanguage checks what the servers of one model answer. All servers give the same answer to a
// prompt, and rate it as likely. An answer that takes the second of two equally likely words is
// also likely. Any other answer is unlikely.
func TestLanguage(t *testing.T) {
	mean := func(l language, tokens []string) float64 {
		sum := 0.0
		for _, cost := range l.costs(tokens) {
			sum += cost
		}
		return sum / float64(len(tokens))
	}
	p := DefaultProfile()
	for key := range uint64(50) {
		want := &wanted{model: "m", key: key, draw: rng(key)}
		own := newLanguage("m", key, "", 1)
		said := own.say(64, 0)
		again := newLanguage("m", key, "", 1).say(64, 0)
		must.Need(t, slices.Equal(said, again), "two servers of a model do not say the same")
		got := mean(own, said)
		must.Hold(t, got <= 0.5, "its own answer costs %v nats a token", got)
		parted := own.say(64, 5)
		if got := mean(own, parted); slices.Equal(said, parted) || got > 0.5 || !slices.Equal(said[:5], parted[:5]) {
			t.Errorf("an answer that parts costs %v nats a token: %q", got, parted)
		}
		if got := mean(own, newLanguage("m", key+1000, "", 1).say(64, 0)); got < 6 {
			t.Errorf("an answer to another prompt costs %v nats a token", got)
		}
		if got := mean(own, newLanguage("other", key, "", 1).say(64, 0)); got < 6 {
			t.Errorf("another model's answer costs %v nats a token", got)
		}
		a := answer{seed: rng(key), written: slices.Clone(said)}
		a.garble(64)
		if got := mean(own, a.written); got < 4 || got > 7 {
			t.Errorf("an answer that is garbled from its middle costs %v nats a token", got)
		}
		// A sampled answer takes the second most likely word now and then, and rarely another. So it
		// costs more than the most likely answer, but far less than a wrong one.
		sample := effect(nil).sampled(want, 64, rng(key))
		if got := mean(own, sample); slices.Equal(sample, said) || got < 0.3 || got > 2 {
			t.Errorf("a sampled answer costs %v nats a token", got)
		}
		if again := effect(nil).sampled(want, 64, rng(key+1)); slices.Equal(sample, again) {
			t.Error("two draws give the same answer")
		}
		if got := p.greedily(want, effect{{Fault: "other-answer"}}); slices.Equal(got, p.greedily(want, nil)) {
			t.Error("an answer to another prompt is the same")
		}
	}
	l := newLanguage("m", 1, "", 1)
	got := mean(l, []string{"junk"})
	must.Hold(t, got >= 8, "an answer that begins with junk costs %v nats", got)
}

// TestPromptLogprobs lets a server rate another server's answer to a prompt. The server returns
// over HTTP how likely its model finds the answer.
func TestPromptLogprobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := newWorld(t, Options{Seed: 3}), newWorld(t, Options{Seed: 4})
		decode := func(text string, into any) {
			must.Do(t, json.Unmarshal([]byte(text), into))
		}
		var texts [2]string
		for i, w := range []*world{one, other} {
			var told struct {
				Choices []struct{ Message struct{ Content string } }
			}
			decode(w.must(pathChat, `{"messages":[{"role":"user","content":"Tell me of the sea."}],"temperature":0,"max_tokens":40}`), &told)
			texts[i] = told.Choices[0].Message.Content
		}
		if texts[0] == "" || texts[0] != texts[1] {
			t.Fatalf("two servers of a model say %q and %q at temperature 0", texts[0], texts[1])
		}
		prompt := tokenizeChat(nil, []message{{"user", "Tell me of the sea."}}, true)
		for _, tt := range []struct {
			name, text  string
			least, most float64
		}{{"its own answer", texts[0], 0, 0.5}, {"another one", strings.Repeat(" win yes not", 12), 5, 12}} {
			ids := Tokenize(slices.Clone(prompt), tt.text)
			raw, _ := json.Marshal(ids)
			var told struct {
				Choices []struct {
					Values []map[string]struct{ Logprob float64 } `json:"prompt_logprobs"`
				}
			}
			decode(other.must(pathCompletions, fmt.Sprintf(`{"prompt":%s,"max_tokens":1,"prompt_logprobs":0}`, raw)), &told)
			values := told.Choices[0].Values
			if len(values) != len(ids) || values[0] != nil {
				t.Fatalf("%d values of %d tokens, the first %v", len(values), len(ids), values[0])
			}
			loss := 0.0
			for _, v := range values[len(prompt):] {
				for _, x := range v {
					loss -= x.Logprob
				}
			}
			if loss /= float64(len(ids) - len(prompt)); loss < tt.least || loss > tt.most {
				t.Errorf("%s costs %v nats a token", tt.name, loss)
			}
		}
		r, text, _ := other.do(pathCompletions, `{"prompt":"x","stream":true,"prompt_logprobs":0}`)
		must.Hold(t, r.StatusCode == 400, "of a stream: %d %s", r.StatusCode, text)
	})
}
