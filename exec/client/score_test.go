package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
)

// scored asks a server how likely it finds "b c" as the answer to the request r.
func scored(h *HTTP, r *Request) ([]float64, error) {
	type result struct {
		values []float64
		err    error
	}
	got := make(chan result, 1)
	h.Score(context.Background(), r, "b c", "salt 7", func(values []float64, err error) { got <- result{values, err} })
	out := <-got
	return out.values, out.err
}

func TestScore(t *testing.T) {
	ids := map[string]string{"a": "[1,2]", "b c": "[3,4]"}
	for _, tt := range []struct {
		name, engine string
		path, answer string
		asked        string // expected body of the request for scores, without its ids
		want         []float64
		err          string // a part of the error
	}{
		{name: "vLLM", engine: "vllm", path: "/v1/completions",
			answer: `{"choices":[{"prompt_logprobs":[null,{"2":{"logprob":-9}},{"3":{"logprob":-0.5,"rank":1}},{"4":{"logprob":-2.25}}]}]}`,
			asked:  `{"cache_salt":"salt 7","max_tokens":1,"model":"m","prompt":[1,2,3,4],"prompt_logprobs":0,"temperature":0}`, want: []float64{-0.5, -2.25}},
		{name: "SGLang", engine: "sglang", path: "/generate",
			answer: `{"text":"x","meta_info":{"input_token_logprobs":[[null,1,null],[-9,2,null],[-0.5,3,null],[-2.25,4,null]]}}`,
			asked:  `{"input_ids":[1,2,3,4],"logprob_start_len":0,"model":"m","return_logprob":true,"sampling_params":{"max_new_tokens":1,"temperature":0}}`, want: []float64{-0.5, -2.25}},
		{name: "echo, with the token that was made", engine: "openai", path: "/v1/completions",
			answer: `{"choices":[{"logprobs":{"token_logprobs":[null,-9,-0.5,-2.25,-1]}}]}`,
			asked:  `{"echo":true,"logprobs":1,"max_tokens":1,"model":"m","prompt":[1,2,3,4],"temperature":0}`, want: []float64{-0.5, -2.25}},
		{name: "vLLM behind a plain endpoint", engine: "openai", path: "/v1/completions",
			answer: `{"choices":[{"prompt_logprobs":[null,{"2":{"logprob":-9}},{"3":{"logprob":-0.5,"rank":1}},{"4":{"logprob":-2.25}}]}]}`,
			asked:  `{"cache_salt":"salt 7","max_tokens":1,"model":"m","prompt":[1,2,3,4],"prompt_logprobs":0,"temperature":0}`, want: []float64{-0.5, -2.25}},
		{name: "no form is understood", engine: "openai", path: "/nowhere", err: "does not report how likely"},
		{name: "echo that is not understood", engine: "openai", path: "/v1/completions", answer: `{"choices":[{"logprobs":{"token_logprobs":[-1]}}]}`, err: "1 values for 4 tokens"},
		{name: "no values", engine: "vllm", path: "/v1/completions", answer: `{"choices":[{"prompt_logprobs":null}]}`, err: "no list"},
		{name: "no choice", engine: "vllm", path: "/v1/completions", answer: `{"choices":[]}`, err: "has no choices[0]"},
		{name: "a token without a value", engine: "vllm", path: "/v1/completions",
			answer: `{"choices":[{"prompt_logprobs":[null,{"2":{"logprob":-9}},null,{"4":{"logprob":-2}}]}]}`, err: "no value for token 0"},
		{name: "two tokens at one place", engine: "vllm", path: "/v1/completions",
			answer: `{"choices":[{"prompt_logprobs":[null,{"2":{"logprob":-9}},{"3":{"logprob":-1},"9":{"logprob":-2}},{"4":{"logprob":-2}}]}]}`, err: "no token's log-probability"},
		{name: "llama.cpp", engine: "llama.cpp", err: "returns no log-probabilities"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked string
			h := serve(t, Config{Engine: engine.Of(tt.engine)}, func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				var text struct{ Prompt string }
				if r.URL.Path == "/tokenize" && json.Unmarshal(raw, &text) == nil {
					_, _ = io.WriteString(w, `{"tokens":`+ids[text.Prompt]+`}`)
					return
				}
				if r.URL.Path != tt.path {
					http.NotFound(w, r)
					return
				}
				asked = string(raw)
				_, _ = io.WriteString(w, tt.answer)
			})
			got, err := scored(h, &Request{API: "completions", Model: "m", Prompt: Prompt{Text: "a"}})
			d := cmp.Diff(tt.want, got)
			must.Hold(t, d == "" && (err == nil) == (tt.err == "") && (err == nil || strings.Contains(err.Error(), tt.err)), "%v (-want +got):\n%s", err, d)
			must.Hold(t, tt.asked == "" || asked == tt.asked, "asked %s", asked)
			must.Hold(t, tt.engine != "llama.cpp" || errors.Is(err, ErrNoScores), "%v is no reason to ask no more", err)
		})
	}
}

// If no page of the server turns text into tokens, the client asks for no scores.
func TestScoreWithoutTokenizer(t *testing.T) {
	h, asked := servePages(t, Config{Engine: engine.Of("sglang")}, nil)
	_, err := scored(h, &Request{API: "chat", Model: "m", Prompt: Prompt{Text: "a"}})
	must.Hold(t, errors.Is(err, ErrNoScores), "%v, asked %v", err, asked)
}

func FuzzLogprobs(f *testing.F) {
	f.Add([]byte(`{"choices":[{"prompt_logprobs":[null,{"2":{"logprob":-9}}]}]}`))
	f.Add([]byte(`{"choices":[{"prompt_logprobs":[[null,1],[-1,2],-3]}]}`))
	f.Add([]byte(`{"choices":[[]]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, path := range []string{"choices[0].prompt_logprobs", "meta_info.input_token_logprobs"} {
			values, err := logprobsAt(raw, path)
			must.Hold(t, err != nil || json.Valid(raw), "%d values of what is no JSON", len(values))
		}
	})
}
