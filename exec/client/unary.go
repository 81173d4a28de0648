package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// complete sends the request r over t and waits for the end of the answer. It is for requests whose
// timing does not matter, such as those for calibration. If the request did not complete, the error
// is an *Error. The sample is never nil.
func complete(ctx context.Context, t Transport, r *Request) (*metric.Sample, error) {
	s := &metric.Sample{InputAsked: r.Input, OutputAsked: r.Output}
	done := make(chan struct{})
	t.Send(ctx, r, NewAnswer(s, func(*metric.Sample) { close(done) }))
	<-done
	if s.Failure != nil {
		return s, &Error{Kind: s.Failure.Kind, Status: s.Status, Message: s.Failure.Message}
	}
	return s, nil
}

// complete sends the request r with h; see the function complete.
func (h *HTTP) Complete(ctx context.Context, r *Request) (*metric.Sample, error) {
	return complete(ctx, h, r)
}

// Model is one model that a server offers: the fields of OpenAI's API, and the model's context.
// Root is the model that was loaded; "" if the server does not report it.
type Model struct {
	openai.Model
	Context int `json:"max_model_len"` // tokens; 0: not told
}

// Models lists the models that the server offers, in the server's order. It leaves out "unknown", by
// which SGLang's router lists a model whose name it does not know, and which no server behind it serves.
func (h *HTTP) Models(ctx context.Context) ([]Model, error) {
	var list struct {
		Data []Model `json:"data"`
	}
	err := h.ask(ctx, http.MethodGet, h.base+"/models", nil, &list)
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); mistyped && len(list.Data) > 0 {
		// Ignore a field of the wrong type: gateways write dates and owners in many forms.
		err = nil
	}
	return slices.DeleteFunc(list.Data, func(m Model) bool { return m.ID == "unknown" }), err
}

// Health requests the engine's health page. It returns nil if the server is healthy, or else an
// *Error with the HTTP status.
func (h *HTTP) Health(ctx context.Context) error {
	return h.ask(ctx, http.MethodGet, h.root+h.config.Engine.Pages.Health, nil, nil)
}

// Version returns the version of the server. It returns an error if none of the engine's pages
// reports a version.
func (h *HTTP) Version(ctx context.Context) (string, error) {
	pages := h.config.Engine.Pages
	err := error(&Error{Kind: metric.FailProtocol, Message: "no page reports the version"})
	for _, path := range pages.Version {
		var told map[string]any
		if err = h.ask(ctx, http.MethodGet, h.root+path, nil, &told); err != nil {
			continue
		}
		if version, _ := told[pages.VersionKey].(string); version != "" {
			return version, nil
		}
		err = &Error{Kind: metric.FailProtocol, Message: path + " tells no version"}
	}
	return "", err
}

// StartTime reads the start time of the server's process from the server's page of metrics. It is
// the number of seconds since 1970, as text. A page without it is an error.
func (h *HTTP) StartTime(ctx context.Context) (string, error) {
	path := h.config.Engine.Pages.Metrics
	page, err := h.Text(ctx, path, maxUnary)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(page)) {
		if at, ok := strings.CutPrefix(line, "process_start_time_seconds "); ok {
			return strings.TrimSpace(at), nil
		}
	}
	return "", &Error{Kind: metric.FailProtocol, Message: path + " tells no start"}
}

// ErrNoTokenizer means that the server has no tokenizer page, or none that the client can use.
var ErrNoTokenizer = errors.New("the server has no tokenizer to ask")

// TokenizeRequest asks a server for the token ids of a text. The server tokenizes the text as it
// would in a prompt.
type TokenizeRequest struct {
	Model string
	// API names the kind of request whose tokens are counted. An API of conversations adds the chat
	// template to the text. Any other adds the server's prefix for a prompt. "" adds nothing.
	API  engine.API
	Text string
	// Messages are the messages of a chat. They are nil if the chat has one message, the user's,
	// with the text Text.
	Messages json.RawMessage
	// Extra holds further fields of the request. The tokenizer gets only those that change the chat
	// template.
	Extra map[string]any
}

// Tokens is a list of token ids as a server wrote it. Count counts them without parsing.
type Tokens struct{ list string }

// UnmarshalJSON keeps an array of numbers in the form in which the server wrote it.
func (t *Tokens) UnmarshalJSON(raw []byte) error {
	list, ok := strings.CutSuffix(strings.TrimPrefix(string(raw), "["), "]")
	// Reject JSON that is no list of numbers: text, objects, lists in the list, true, false and
	// null.
	if !ok || strings.ContainsAny(list, `"{[tfn`) {
		return errors.New("tokens are a list of numbers")
	}
	t.list = strings.TrimSpace(list)
	return nil
}

// Count returns the number of tokens.
func (t Tokens) Count() int {
	if t.list == "" {
		return 0
	}
	return 1 + strings.Count(t.list, ",")
}

// IDs are the tokens.
func (t Tokens) IDs() ([]int, error) {
	ids := make([]int, 0, t.Count())
	return ids, json.Unmarshal([]byte("["+t.list+"]"), &ids)
}

// Tokenize returns the server's tokens for r. The error is ErrNoTokenizer if the server has no
// tokenizer, or none with a chat template.
func (h *HTTP) Tokenize(ctx context.Context, r TokenizeRequest) (Tokens, error) {
	form := h.config.Engine.Dialect.Tokenizer
	if form != engine.AnyTokenizer {
		return h.tokenize(ctx, form, r)
	}
	if known, ok := h.forms.Load(r.API); ok {
		return h.tokenize(ctx, known.(engine.Tokenizer), r)
	}
	for _, form := range []engine.Tokenizer{engine.VLLMTokenizer, engine.LlamaTokenizer} {
		tokens, err := h.tokenize(ctx, form, r)
		if err == nil && tokens.Count() > 0 {
			h.forms.Store(r.API, form)
			return tokens, nil
		}
		if e, ok := errors.AsType[*Error](err); ok && e.Status == 0 && e.Kind != metric.FailProtocol {
			// The request did not reach the server, so the server may still accept this form.
			return Tokens{}, err
		}
	}
	h.forms.Store(r.API, engine.NoTokenizer)
	return Tokens{}, ErrNoTokenizer
}

func (r *TokenizeRequest) messages() (json.RawMessage, error) {
	if r.Messages != nil {
		return r.Messages, nil
	}
	return messages(r.Text)
}

// templateFields are the request fields that change the chat template.
var templateFields = []string{"chat_template", "chat_template_kwargs", "tools"}

func (h *HTTP) tokenize(ctx context.Context, form engine.Tokenizer, r TokenizeRequest) (Tokens, error) {
	ask := map[string]any{"model": r.Model}
	switch form {
	case engine.VLLMTokenizer, engine.SGLangTokenizer:
		if !r.API.Chats() {
			ask["prompt"] = r.Text
			ask["add_special_tokens"] = r.API != ""
			break
		}
		if form == engine.SGLangTokenizer {
			return Tokens{}, ErrNoTokenizer
		}
		asked, err := r.messages()
		if err != nil {
			return Tokens{}, err
		}
		ask["messages"] = asked
		ask["add_generation_prompt"] = true
		take(ask, r.Extra)
	case engine.LlamaTokenizer:
		text := r.Text
		if r.API.Chats() {
			asked, err := r.messages()
			if err != nil {
				return Tokens{}, err
			}
			template := map[string]any{"messages": asked}
			take(template, r.Extra)
			var told struct {
				Prompt string `json:"prompt"`
			}
			if err := h.ask(ctx, http.MethodPost, h.root+h.config.Engine.Pages.Template, template, &told); err != nil {
				return Tokens{}, absent(err)
			}
			text = told.Prompt
		}
		ask = map[string]any{"content": text, "add_special": r.API != "", "parse_special": r.API != ""}
	default:
		return Tokens{}, ErrNoTokenizer
	}
	var told struct {
		Tokens Tokens `json:"tokens"`
	}
	// A token id with its comma takes at most eight bytes, and the text of a token at least one
	// byte. The constant maxAnswer leaves room for the tokens of the template.
	most := int64(8*(len(r.Text)+len(r.Messages))) + maxAnswer
	if err := h.askWithin(ctx, http.MethodPost, h.root+h.config.Engine.Pages.Tokenize, ask, &told, most); err != nil {
		return Tokens{}, absent(err)
	}
	return told.Tokens, nil
}

func take(to, from map[string]any) {
	for _, name := range templateFields {
		if v, ok := from[name]; ok {
			to[name] = v
		}
	}
}

// absent returns ErrNoTokenizer if err means that the server has no tokenizer page. Otherwise it
// returns err.
func absent(err error) error {
	lacking := []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}
	if e, ok := errors.AsType[*Error](err); ok && slices.Contains(lacking, e.Status) {
		return ErrNoTokenizer
	}
	return err
}

// ask sends a unary request and decodes its answer into out. If out is nil, the answer is ignored.
// An error is an *Error with the server's own words.
func (h *HTTP) ask(ctx context.Context, method, url string, in, out any) error {
	return h.askWithin(ctx, method, url, in, out, maxAnswer)
}

// askWithin is like the method ask, but with a limit for the size of the answer, in bytes.
func (h *HTTP) askWithin(ctx context.Context, method, url string, in, out any, most int64) error {
	raw, err := h.exchange(ctx, method, url, in, most, patience)
	if err != nil || out == nil {
		return err
	}
	return h.decoded(raw, url, out)
}

// askPatiently is like askWithin, but with a longer time limit. It is for requests that may have to
// wait in the server's queue behind the load.
func (h *HTTP) askPatiently(ctx context.Context, url string, in, out any, most int64) error {
	raw, err := h.exchange(ctx, http.MethodPost, url, in, most, scorePatient)
	if err != nil {
		return err
	}
	return h.decoded(raw, url, out)
}

func (h *HTTP) decoded(raw []byte, url string, out any) error {
	if err := json.Unmarshal(raw, out); err != nil {
		path := url[len(h.host):]
		return &Error{Kind: metric.FailProtocol, Message: bounded(fmt.Sprintf("%s did not answer with the expected JSON: %v", path, err)), Err: err}
	}
	return nil
}

// Text requests a page of text of at most the given number of bytes. The path begins at the
// server's root, such as /metrics; "" is the base URL itself. Every error is an *Error in the
// server's own words.
func (h *HTTP) Text(ctx context.Context, path string, most int64) ([]byte, error) {
	if path == "" {
		return h.exchange(ctx, http.MethodGet, h.config.BaseURL, nil, most, patience)
	}
	return h.exchange(ctx, http.MethodGet, h.root+path, nil, most, patience)
}

// These limits apply to requests outside the load, because a server may do anything. patience is
// the time limit, and maxAnswer is the default limit of the size, in bytes.
const (
	patience  = 10 * time.Second
	maxAnswer = 4 << 20 // enough for a list of several thousand models
)

// exchange sends a unary request and returns the body of its answer. The body has at most the
// number of bytes given as most, and must be complete within the given time.
func (h *HTTP) exchange(ctx context.Context, method, url string, in any, most int64, within time.Duration) ([]byte, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
		// With this header net/http sends the request again if a kept-alive connection turns out to
		// be dead. That is safe, because the request changes nothing on the server.
		r.Header["Idempotency-Key"] = []string{}
	}
	resp, err := doer{h}.Do(r)
	if err != nil {
		if e := gaveUp(caller, ctx, r, within); e != nil {
			return nil, e
		}
		if e, ok := errors.AsType[*Error](err); ok {
			return nil, e
		}
		return nil, unreached(err, 0)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		if e := gaveUp(caller, ctx, r, within); e != nil {
			return nil, e
		}
		return nil, &Error{Kind: metric.FailTruncated, Message: bounded(err.Error())}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, refusal(resp.StatusCode, resp.Status, errorMessage(raw))
	}
	if int64(len(raw)) == most {
		return nil, &Error{Kind: metric.FailProtocol, Message: fmt.Sprintf("the answer is longer than %d bytes", most)}
	}
	return raw, nil
}

// gaveUp returns an error if the caller canceled the request or its time limit passed; else nil.
func gaveUp(caller, ctx context.Context, r *http.Request, within time.Duration) *Error {
	switch {
	case caller.Err() != nil:
		return &Error{Kind: metric.FailCanceled, Message: caller.Err().Error()}
	case ctx.Err() != nil:
		return &Error{Kind: metric.FailTimeout, Message: fmt.Sprintf("no whole answer to %s within %v", r.URL.Path, within)}
	}
	return nil
}

// ErrNoReset means that the server has no way to empty its caches.
var ErrNoReset = errors.New("the server has no request that empties its caches")

// ResetCaches empties the server's prefix cache. It returns ErrNoReset if the engine has no request
// for that.
func (h *HTTP) ResetCaches(ctx context.Context) error {
	path := h.config.Engine.Pages.Reset
	if path == "" {
		return ErrNoReset
	}
	err := h.ask(ctx, http.MethodPost, h.root+path, nil, nil)
	if e, ok := errors.AsType[*Error](err); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
		return ErrNoReset
	}
	return err
}
