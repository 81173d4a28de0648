package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"github.com/tokgate/tokgate/engine"
)

// Body returns the JSON body of the request for an engine. It consists of OpenAI's request, the
// engine's own fields and r.Extra. A later field replaces an earlier one of the same name, and a
// null in r.Extra removes the field. Fields are sorted by name, so that equal requests have equal
// bytes. Body fails if the engine does not support the request.
func (r *Request) Body(d engine.Dialect) ([]byte, error) {
	prompt, text, err := r.prompt(d)
	if err != nil {
		return nil, err
	}
	typed, err := json.Marshal(r.typed(d))
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(typed, &members); err != nil {
		return nil, err
	}
	members[prompt] = text
	own := map[string]any{}
	if r.Output > 0 && !r.Natural && d.MinTokens {
		own["min_tokens"] = r.Output
	}
	if !r.Natural && d.IgnoreEOS {
		own["ignore_eos"] = true
	}
	if d.Timings {
		own["timings_per_token"] = true
	}
	// Send a temperature of 0 too. go-openai would leave it out, and the server would use its
	// default.
	if r.Temperature != nil {
		own["temperature"] = *r.Temperature
	}
	maps.Copy(own, r.Extra)
	for name, v := range r.Prompt.Fields {
		own[name] = v
	}
	for name, v := range own {
		if v == nil {
			delete(members, name)
		} else if members[name], err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("request field %q: %w", name, err)
		}
	}
	b := append(make([]byte, 0, len(text)+1024), '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b = append(b, ',')
		}
		quoted, _ := json.Marshal(name) // a string never fails
		b = append(append(append(b, quoted...), ':'), members[name]...)
	}
	return append(b, '}'), nil
}

// typed returns the request as a type of go-openai, without the prompt. The prompt is added later,
// because a long prompt should be encoded only once.
func (r *Request) typed(d engine.Dialect) any {
	type options struct {
		openai.StreamOptions
		ContinuousUsage bool `json:"continuous_usage_stats,omitempty"`
	}
	stream := options{openai.StreamOptions{IncludeUsage: true}, d.ContinuousUsage}
	if r.API != "chat" {
		return struct {
			openai.CompletionRequest
			StreamOptions options `json:"stream_options"`
		}{openai.CompletionRequest{Model: r.Model, MaxTokens: r.Output, Stop: r.Stop, Stream: true}, stream}
	}
	chat := openai.ChatCompletionRequest{Model: r.Model, MaxCompletionTokens: r.Output, Stop: r.Stop, Stream: true}
	if d.BothLimits {
		chat.MaxTokens = r.Output //lint:ignore SA1019 some servers know nothing newer
	}
	return struct {
		openai.ChatCompletionRequest
		StreamOptions options `json:"stream_options"`
	}{chat, stream}
}

func (r *Request) prompt(d engine.Dialect) (name string, value json.RawMessage, err error) {
	ids := len(r.Prompt.IDs) > 0
	switch {
	case r.API == "chat" && ids:
		return "", nil, errors.New("a chat request takes text, not token ids")
	case r.API == "chat" && r.Prompt.Messages != nil:
		return "messages", r.Prompt.Messages, nil
	case r.API == "chat":
		value, err = messages(r.Prompt.Text)
		return "messages", value, err
	case ids && !d.PromptIDs:
		return "", nil, errors.New("the engine takes no prompt of token ids")
	case ids:
		value, err = json.Marshal(r.Prompt.IDs)
	default:
		value, err = json.Marshal(r.Prompt.Text)
	}
	return "prompt", value, err
}

func messages(text string) (json.RawMessage, error) {
	if text == "" { // go-openai would omit an empty content
		return json.RawMessage(`[{"role":"user","content":""}]`), nil
	}
	message, err := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text}.MarshalJSON()
	return append(append([]byte{'['}, message...), ']'), err
}
