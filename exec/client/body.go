package client

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	switch r.API {
	case engine.Messages:
		err = apart(members)
	case engine.Responses:
		err = itemized(members)
	}
	if err != nil {
		return nil, err
	}
	own := map[string]any{}
	r.addOwn(d, own)
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

// addOwn adds the fields of the body that go-openai's types do not have: those of the engine, and the
// temperature.
func (r *Request) addOwn(d engine.Dialect, own map[string]any) {
	forced := !r.Natural && !r.API.Embeds() && d.Forces(r.API)
	if r.Output > 0 && forced && d.MinTokens {
		own["min_tokens"] = r.Output
	}
	if forced && d.IgnoreEOS {
		own["ignore_eos"] = true
	}
	if d.Timings && (r.API == engine.Chat || r.API == engine.Completions) {
		own["timings_per_token"] = true
	}
	// Send a temperature of 0 too. go-openai would leave it out, and the server would use its
	// default.
	if r.Temperature != nil && !r.API.Embeds() {
		own["temperature"] = *r.Temperature
	}
}

// typed returns the request as a type of go-openai, without the prompt. The prompt is added later,
// because a long prompt should be encoded only once.
func (r *Request) typed(d engine.Dialect) any {
	type options struct {
		openai.StreamOptions
		ContinuousUsage bool `json:"continuous_usage_stats,omitempty"`
	}
	stream := options{openai.StreamOptions{IncludeUsage: true}, d.ContinuousUsage}
	switch r.API {
	case engine.Embeddings:
		return openai.EmbeddingRequest{Model: openai.EmbeddingModel(r.Model)}
	case engine.Responses:
		return responsesRequest{Model: r.Model, MaxOutputTokens: r.Output, Stop: r.Stop, Stream: true}
	case engine.Messages:
		return messagesRequest{Model: r.Model, MaxTokens: cmp.Or(r.Output, r.Context, leastMessage), StopSequences: r.Stop, Stream: true}
	case engine.Completions:
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

// responsesRequest is a request of OpenAI's Responses, which go-openai does not have. The response is
// not stored on the server.
type responsesRequest struct {
	Model           string   `json:"model"`
	MaxOutputTokens int      `json:"max_output_tokens,omitempty"`
	Stop            []string `json:"stop,omitempty"` // vLLM's and SGLang's
	Stream          bool     `json:"stream"`
	Store           bool     `json:"store"`
}

// messagesRequest is a request of Anthropic's Messages. It must limit the answer, so a request without
// a limit gets leastMessage if the server's context is not known.
type messagesRequest struct {
	Model         string   `json:"model"`
	MaxTokens     int      `json:"max_tokens"`
	StopSequences []string `json:"stop_sequences,omitempty"`
	Stream        bool     `json:"stream"`
}

const (
	leastMessage    = 4096
	messagesVersion = "2023-06-01" // of Messages; its only version
)

// itemized turns the messages of a request of Responses into its items, in which an answer of the model
// is a list of parts. llama.cpp takes nothing else.
func itemized(members map[string]json.RawMessage) error {
	if !bytes.Contains(members["input"], []byte(`"assistant"`)) {
		return nil
	}
	var items []map[string]any
	if err := json.Unmarshal(members["input"], &items); err != nil {
		return err
	}
	for _, m := range items {
		if text, ok := m["content"].(string); ok && m["role"] == "assistant" {
			m["type"] = "message"
			m["content"] = []any{map[string]any{"type": "output_text", "text": text}}
		}
	}
	var err error
	members["input"], err = json.Marshal(items)
	return err
}

// apart takes the system messages out of a request of Messages, which has a member for them.
func apart(members map[string]json.RawMessage) error {
	if !bytes.Contains(members["messages"], []byte(`"system"`)) {
		return nil
	}
	var all []map[string]json.RawMessage
	if err := json.Unmarshal(members["messages"], &all); err != nil {
		return err
	}
	var system []string
	rest := slices.DeleteFunc(slices.Clone(all), func(m map[string]json.RawMessage) bool {
		var text string
		if string(m["role"]) != `"system"` || json.Unmarshal(m["content"], &text) != nil {
			return false
		}
		system = append(system, text)
		return true
	})
	if len(system) == 0 {
		return nil
	}
	var err error
	if members["system"], err = json.Marshal(strings.Join(system, "\n\n")); err != nil {
		return err
	}
	members["messages"], err = json.Marshal(rest)
	return err
}

// inputs returns the number of texts of a request for embeddings.
func (p *Prompt) inputs() int { return 1 + len(p.More) }

func (r *Request) prompt(d engine.Dialect) (name string, value json.RawMessage, err error) {
	ids := len(r.Prompt.IDs) > 0
	name = "messages"
	if r.API == engine.Responses || r.API == engine.Embeddings {
		name = "input"
	}
	switch {
	case r.API != engine.Completions && ids:
		return "", nil, fmt.Errorf("a %s request takes text, not token ids", r.API)
	case r.API.Embeds() && len(r.Prompt.More) > 0:
		value, err = json.Marshal(append([]string{r.Prompt.Text}, r.Prompt.More...))
		return name, value, err
	case r.API.Embeds():
		value, err = json.Marshal(r.Prompt.Text)
		return name, value, err
	case r.API.Chats() && r.Prompt.Messages != nil:
		return name, r.Prompt.Messages, nil
	case r.API.Chats():
		value, err = messages(r.Prompt.Text)
		return name, value, err
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
