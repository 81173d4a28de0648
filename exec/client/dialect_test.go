package client

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/engine"
)

// The exact bytes that each engine is sent: see Dialect for the reasons.
func TestBody(t *testing.T) {
	zero, half := 0.0, 0.5
	chat := Request{API: "chat", Model: "m", Prompt: Prompt{Text: `say "hi"`}, Output: 200}
	natural := chat
	natural.Natural = true
	natural.Temperature = &zero
	natural.Stop = []string{"END", "<x>"}
	text := Request{API: "completions", Model: "m", Prompt: Prompt{Text: "hi"}, Output: 200, Temperature: &half}
	ids := text
	ids.Prompt.IDs = []int{5, 0, 128000}
	extra := chat
	extra.Extra = map[string]any{
		"top_k":                20,
		"chat_template_kwargs": map[string]any{"enable_thinking": false, "a": 1},
		"max_tokens":           nil,           // taken out
		"min_tokens":           10,            // replaced where it is, else added
		"cache_salt":           "it's <mine>", // added
		"never":                nil,
	}
	const (
		messages = `"messages":[{"role":"user","content":"say \"hi\""}]`
		usage    = `"stream":true,"stream_options":{"include_usage":true}`
		each     = `"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`
	)
	for _, tt := range []struct {
		engine, name string
		r            Request
		want         string
	}{
		{"vllm", "chat", chat, `{"model":"m",` + messages + `,"max_completion_tokens":200,"max_tokens":200,"min_tokens":200,"ignore_eos":true,` + each + `}`},
		{"sglang", "chat", chat, `{"model":"m",` + messages + `,"max_completion_tokens":200,"max_tokens":200,"min_tokens":200,"ignore_eos":true,` + each + `}`},
		{"llama.cpp", "chat", chat, `{"model":"m",` + messages + `,"max_completion_tokens":200,"max_tokens":200,"ignore_eos":true,` + usage + `,"timings_per_token":true}`},
		{"openai", "chat", chat, `{"model":"m",` + messages + `,"max_completion_tokens":200,"max_tokens":200,` + usage + `}`},
		{"something", "chat", chat, `{"model":"m",` + messages + `,"max_completion_tokens":200,"max_tokens":200,` + usage + `}`},
		{"vllm", "natural", natural, `{"model":"m",` + messages + `,"max_completion_tokens":200,"max_tokens":200,"temperature":0,"stop":["END","\u003cx\u003e"],` + each + `}`},
		{"openai", "natural", natural, `{"model":"m",` + messages + `,"max_completion_tokens":200,"max_tokens":200,"temperature":0,"stop":["END","\u003cx\u003e"],` + usage + `}`},
		{"vllm", "completions", text, `{"model":"m","prompt":"hi","max_tokens":200,"min_tokens":200,"ignore_eos":true,"temperature":0.5,` + each + `}`},
		{"llama.cpp", "completions", text, `{"model":"m","prompt":"hi","max_tokens":200,"ignore_eos":true,"temperature":0.5,` + usage + `,"timings_per_token":true}`},
		{"openai", "completions", text, `{"model":"m","prompt":"hi","max_tokens":200,"temperature":0.5,` + usage + `}`},
		{"vllm", "ids", ids, `{"model":"m","prompt":[5,0,128000],"max_tokens":200,"min_tokens":200,"ignore_eos":true,"temperature":0.5,` + each + `}`},
		{"vllm", "extra", extra, `{"model":"m",` + messages + `,"max_completion_tokens":200,"min_tokens":10,"ignore_eos":true,` + each + `,"cache_salt":"it's \u003cmine\u003e","chat_template_kwargs":{"a":1,"enable_thinking":false},"top_k":20}`},
		{"openai", "extra", extra, `{"model":"m",` + messages + `,"max_completion_tokens":200,` + usage + `,"cache_salt":"it's \u003cmine\u003e","chat_template_kwargs":{"a":1,"enable_thinking":false},"min_tokens":10,"top_k":20}`},
		{"openai", "no limit", Request{API: "completions", Prompt: Prompt{Text: "hi"}}, `{"model":"","prompt":"hi",` + usage + `}`},
	} {
		got, err := tt.r.body(engine.Of(tt.engine).Dialect)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s, %s: %v\ngot  %s\nwant %s", tt.engine, tt.name, err, got, tt.want)
		}
		if !json.Valid(got) {
			t.Errorf("%s, %s: not JSON", tt.engine, tt.name)
		}
	}
	for name, r := range map[string]*Request{
		"ids to chat":        {API: "chat", Prompt: Prompt{IDs: []int{1}}},
		"ids to any engine":  {API: "completions", Prompt: Prompt{IDs: []int{1}}},
		"a field of no type": {API: "chat", Extra: map[string]any{"f": func() {}}},
	} {
		if b, err := r.body(engine.Of("openai").Dialect); err == nil {
			t.Errorf("%s: %s", name, b)
		}
	}
}

// appendString writes what encoding/json reads back.
func TestAppendString(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	alphabet := []string{"a", "plain text ", `"`, `\`, "\n", "\x00", "\x1f", "\x7f", "é", "\u2028", "😀", "\xff", "\xed\xa0\x80", "<", "\ufffd"}
	for range 2000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		var got string
		raw := appendString(nil, b.String())
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%q: %s: %v", b.String(), raw, err)
		}
		// Each byte that is no UTF-8 becomes one replacement, as in encoding/json.
		if want := string([]rune(b.String())); got != want {
			t.Fatalf("%q: got %q, want %q", b.String(), got, want)
		}
	}
}

func BenchmarkBody(b *testing.B) {
	r := &Request{API: "chat", Model: "m", Prompt: Prompt{Text: strings.Repeat(" word", 32*1024)}, Output: 200}
	d := engine.Of("vllm").Dialect
	b.SetBytes(int64(len(r.Prompt.Text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.body(d); err != nil {
			b.Fatal(err)
		}
	}
}
