package client

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
)

// Each engine gets exactly these bytes. The fields of engine.Dialect say why.
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
		"min_tokens":           10,            // replaces or adds the field
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
		// TensorRT-LLM refuses a chat with both max_tokens and max_completion_tokens.
		{"trtllm", "chat", chat, `{"model":"m",` + messages + `,"max_completion_tokens":200,"min_tokens":200,"ignore_eos":true,` + each + `}`},
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
		got, err := tt.r.Body(engine.Of(tt.engine).Dialect)
		var members map[string]json.RawMessage
		if err := errors.Join(err, json.Unmarshal([]byte(tt.want), &members)); err != nil {
			t.Fatalf("%s, %s: %v", tt.engine, tt.name, err)
		}
		// All fields of the request are sent, sorted by name as json.Marshal sorts a map.
		want, _ := json.Marshal(members)
		must.Hold(t, string(got) == string(want), "%s, %s:\ngot  %s\nwant %s", tt.engine, tt.name, got, want)
	}
	for name, r := range map[string]*Request{
		"ids to chat":        {API: "chat", Prompt: Prompt{IDs: []int{1}}},
		"ids to any engine":  {API: "completions", Prompt: Prompt{IDs: []int{1}}},
		"a field of no type": {API: "chat", Extra: map[string]any{"f": func() {}}},
	} {
		b, err := r.Body(engine.Of("openai").Dialect)
		must.Hold(t, err != nil, "%s: %s", name, b)
	}
}

func BenchmarkBody(b *testing.B) {
	r := &Request{API: "chat", Model: "m", Prompt: Prompt{Text: strings.Repeat(" word", 32*1024)}, Output: 200}
	d := engine.Of("vllm").Dialect
	b.SetBytes(int64(len(r.Prompt.Text)))
	b.ReportAllocs()
	for b.Loop() {
		must.Get(r.Body(d))(b)
	}
}
