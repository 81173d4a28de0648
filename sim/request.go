package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/engine"
)

// maxBody is the largest size of a request's body, in bytes. A million token ids need about 6 MB.
const maxBody = 64 << 20

type body struct {
	Model               string          `json:"model"`
	Messages            []wireMessage   `json:"messages"`
	Prompt              json.RawMessage `json:"prompt"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	MinTokens           int             `json:"min_tokens"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	Stop                oneOrMany       `json:"stop"`
	N                   *int            `json:"n"`
	Temperature         *float64        `json:"temperature"`
	Stream              bool            `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	ResponseFormat any `json:"response_format"`
	Tools          any `json:"tools"`
	// PromptLogprobs asks for the log-probability of each prompt token, as vLLM's field does.
	PromptLogprobs *int `json:"prompt_logprobs"`

	Input           json.RawMessage `json:"input"` // of Responses and embeddings
	MaxOutputTokens *int            `json:"max_output_tokens"`
	System          textContent     `json:"system"` // of Messages
	StopSequences   oneOrMany       `json:"stop_sequences"`
	EncodingFormat  string          `json:"encoding_format"`
}

// openAI lists the fields of OpenAI's API that the type body does not have. A strict server accepts
// only OpenAI's fields, so it refuses MinTokens and IgnoreEOS.
var openAI = map[string]bool{
	"frequency_penalty": true, "presence_penalty": true, "top_p": true, "seed": true, "user": true, "logprobs": true,
	"top_logprobs": true, "logit_bias": true, "response_format": true, "tools": true, "tool_choice": true, "echo": true,
	"best_of": true, "suffix": true, "reasoning_effort": true, "store": true, "metadata": true, "parallel_tool_calls": true,
}

func init() {
	t := reflect.TypeFor[body]()
	for i := range t.NumField() {
		openAI[t.Field(i).Tag.Get("json")] = true
	}
	for _, own := range []string{"min_tokens", "ignore_eos", "prompt_logprobs"} {
		delete(openAI, own)
	}
}

// Its content is a string, null, or a list of text parts.
type wireMessage struct {
	Role    string      `json:"role"`
	Content textContent `json:"content"`
}

type textContent string

func (t *textContent) UnmarshalJSON(src []byte) error {
	if string(src) == "null" {
		return nil
	}
	if src[0] == '"' {
		return json.Unmarshal(src, (*string)(t))
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(src, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if !strings.HasSuffix(p.Type, "text") || p.Text == nil {
			return fmt.Errorf("content part of type %q is not supported, only text is", p.Type)
		}
		*t += textContent(*p.Text)
	}
	return nil
}

type oneOrMany []string

func (o *oneOrMany) UnmarshalJSON(src []byte) error {
	if src[0] == '"' {
		*o = make(oneOrMany, 1)
		return json.Unmarshal(src, &(*o)[0])
	}
	return json.Unmarshal(src, (*[]string)(o))
}

func answerError(w http.ResponseWriter, err error) {
	var bad *badRequest
	if errors.As(err, &bad) {
		writeError(w, bad.status, bad.param, bad.message)
		return
	}
	writeError(w, http.StatusBadRequest, "", err.Error())
}

func readJSON(w http.ResponseWriter, r *http.Request, v any) ([]byte, error) {
	src, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("could not read the request: %w", err)
	}
	if err := json.Unmarshal(src, v); err != nil {
		return nil, fmt.Errorf("the request is not valid: %w", err)
	}
	return src, nil
}

type order struct {
	body
	Call
	scored []int // token ids of the prompt if the request asks for their log-probabilities; else nil
}

func (s *Server) read(w http.ResponseWriter, r *http.Request, api engine.API, fx effect) (*order, error) {
	o := &order{Call: Call{api: api, fx: fx}}
	src, err := readJSON(w, r, &o.body)
	if err != nil {
		return nil, err
	}
	if fx.is("reject-unknown") {
		if err := onlyOpenAI(src); err != nil {
			return nil, err
		}
	}
	if err := o.refused(s.model); err != nil {
		return nil, err
	}
	if api.Embeds() {
		return o, s.readInputs(o)
	}
	if err := o.adopt(); err != nil {
		return nil, err
	}
	ids, err := o.promptIDs()
	if err != nil {
		return nil, err
	}
	if n := fx.of("truncate-prompt").Tokens; n > 0 {
		ids = ids[:min(n, len(ids))]
	}
	o.input = len(ids)
	switch {
	case o.PromptLogprobs != nil:
		o.scored = ids // such a request bypasses the cache, which holds no log-probabilities
	case s.profile.PrefixCache != nil:
		o.prefix = func() []uint64 {
			said := o.reply.text.append(nil, 0, o.reply.output)
			return prefixHashes(Tokenize(ids, string(said)), s.profile.PrefixCache.BlockTokens)
		}
	}
	hash := rng(s.options.Seed)
	for _, id := range ids {
		hash = rng(hash.next() ^ uint64(id))
	}
	o.reply, err = s.profile.reply(s.wants(o, ids), hash, fx)
	return o, err
}

func (o *order) refused(model string) error {
	switch {
	case o.Model != "" && o.Model != model:
		return &badRequest{http.StatusNotFound, "model", fmt.Sprintf("The model `%s` does not exist.", o.Model)}
	case o.N != nil && *o.N != 1:
		return refuse("n", "n must be 1")
	case o.Temperature != nil && !(*o.Temperature >= 0):
		return refuse("temperature", "temperature must not be negative")
	case o.PromptLogprobs != nil && o.Stream:
		return refuse("prompt_logprobs", "`prompt_logprobs` are not available when `stream=True`.")
	case o.StreamOptions != nil && !o.Stream:
		return refuse("stream_options", "Stream options can only be defined when `stream=True`.")
	}
	return nil
}

func (o *order) promptIDs() ([]int, error) {
	if o.api.Chats() {
		return chatTokens(o.Messages, true)
	}
	return promptTokens(o.Prompt)
}

func (s *Server) wants(o *order, ids []int) wanted {
	want := wanted{api: o.api, input: o.input, min: o.MinTokens, ignoreEOS: o.IgnoreEOS, stop: o.Stop}
	if !o.IgnoreEOS {
		want.model, want.key = s.model, keyOf(ids)
	}
	if want.greedy = !o.IgnoreEOS && o.Temperature != nil && *o.Temperature == 0; want.greedy {
		want.draw = rng(s.options.Seed)<<20 ^ rng(s.ids.Load())
	}
	want.text = o.lastText()
	want.ask, _ = answers.Read(map[string]any{"response_format": o.ResponseFormat, "tools": o.Tools})
	if o.MaxTokens != nil {
		want.max, want.param = *o.MaxTokens, "max_tokens"
	}
	if o.MaxCompletionTokens != nil {
		want.max, want.param = *o.MaxCompletionTokens, "max_completion_tokens"
	}
	return want
}

func (b *body) lastText() string {
	var text string
	if n := len(b.Messages); n > 0 {
		return string(b.Messages[n-1].Content)
	}
	_ = json.Unmarshal(b.Prompt, &text) // a prompt of token ids has no text
	return text
}

func onlyOpenAI(src []byte) error {
	fields := map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(src))
	if err := d.Decode(&fields); err != nil {
		return err
	}
	first := ""
	for name := range fields {
		if !openAI[name] && (first == "" || name < first) {
			first = name
		}
	}
	if first != "" {
		return &badRequest{http.StatusUnprocessableEntity, first, fmt.Sprintf("Extra inputs are not permitted: %q", first)}
	}
	return nil
}

func chatTokens(messages []wireMessage, ask bool) ([]int, error) {
	if len(messages) == 0 {
		return nil, refuse("messages", "messages must not be empty")
	}
	list := make([]message, len(messages))
	for i, m := range messages {
		if m.Role == "" {
			return nil, refuse("messages", "message %d has no role", i)
		}
		list[i] = message{m.Role, string(m.Content)}
	}
	return tokenizeChat(nil, list, ask), nil
}

// promptTokens reads the prompt of the completions API. A prompt is a text, a list of token ids, or
// a list that holds one such prompt.
func promptTokens(raw json.RawMessage) ([]int, error) {
	var text string
	var ids []int
	var texts []string
	var lists [][]int
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, refuse("prompt", "prompt is required")
	case json.Unmarshal(raw, &text) == nil:
		return Tokenize(nil, text), nil
	case json.Unmarshal(raw, &ids) == nil:
	case json.Unmarshal(raw, &texts) == nil && len(texts) == 1:
		return Tokenize(nil, texts[0]), nil
	case json.Unmarshal(raw, &lists) == nil && len(lists) == 1:
		ids = lists[0]
	default:
		return nil, refuse("prompt", "prompt must be one text or one list of token ids")
	}
	for i, id := range ids {
		if id < 0 || id >= vocabularySize {
			return nil, refuse("prompt", "Token id %d at position %d is out of vocabulary", id, i)
		}
	}
	return ids, nil
}

// readInputs reads the inputs of a request for embeddings: one text or a list of texts.
func (s *Server) readInputs(o *order) error {
	var one string
	var several []string
	switch {
	case json.Unmarshal(o.Input, &one) == nil:
		several = []string{one}
	case json.Unmarshal(o.Input, &several) != nil:
		return refuse("input", "input must be a text or a list of texts")
	}
	for _, text := range several {
		ids := Tokenize(nil, text)
		if t := o.fx.of("truncate-prompt").Tokens; t > 0 && len(ids) > t {
			ids = ids[:t]
		}
		o.keys = append(o.keys, keyOf(ids))
		o.input += len(ids)
	}
	return s.profile.embeddable(&o.Call)
}

// adopt turns a request of Responses or Messages into one of a chat. As vLLM does, it ignores
// ignore_eos and min_tokens in a request of Messages, and min_tokens in one of Responses.
func (o *order) adopt() error {
	switch o.api {
	case engine.Responses:
		var text textContent
		if len(o.Input) == 0 {
			return refuse("input", "input is required")
		}
		if json.Unmarshal(o.Input, &text) == nil && o.Input[0] == '"' {
			o.Messages = []wireMessage{{"user", text}}
		} else if err := json.Unmarshal(o.Input, &o.Messages); err != nil {
			return refuse("input", "input must be a text or a list of messages: %v", err)
		}
		o.MaxTokens, o.MinTokens = o.MaxOutputTokens, 0
	case engine.Messages:
		if o.MaxTokens == nil {
			return refuse("max_tokens", "max_tokens is required")
		}
		if o.System != "" {
			o.Messages = append([]wireMessage{{"system", o.System}}, o.Messages...)
		}
		o.Stop, o.MinTokens, o.IgnoreEOS = o.StopSequences, 0, false
	default:
		return nil
	}
	if !o.Stream {
		return refuse("stream", "this server only streams the answers of this API")
	}
	return nil
}
