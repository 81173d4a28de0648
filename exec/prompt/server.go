package prompt

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
)

// Target is the server that gets the prompts, and how a workload sends requests to it.
type Target struct {
	HTTP    *client.HTTP
	API     engine.API
	Model   string
	Headers map[string]string // more headers of every request
	Extra   map[string]any    // more fields of every request body; some change the chat template
	// Timeout is the time limit of one request that counts tokens; 0 for none.
	Timeout time.Duration
}

// Options returns options with two ways to count a prompt's tokens. One is the server's tokenizer.
// The other is the usage that the answer to a request for one token reports.
func (t Target) Options(salt uint64) Options {
	return Options{Salt: salt, Tokenizer: t.tokenizer(), Usage: t.usage, IDs: t.ids}
}

// tokenizer returns a counter that uses the server's tokenizer. It counts the chat template if the
// server applies it. Otherwise the usage shows the template's tokens.
func (t Target) tokenizer() Counter {
	var bare atomic.Bool
	return func(ctx context.Context, p client.Prompt) (int, error) {
		ctx, cancel := t.within(ctx)
		defer cancel()
		fields := (&client.Request{Prompt: p, Extra: t.Extra}).Further() // such as tools, which change the template
		r := client.TokenizeRequest{Model: t.Model, API: t.API, Text: p.Text, Messages: p.Messages, Extra: fields}
		if bare.Load() && p.Messages == nil {
			r.API = ""
		}
		tokens, err := t.HTTP.Tokenize(ctx, r)
		if errors.Is(err, client.ErrNoTokenizer) && r.API.Chats() && p.Messages == nil {
			bare.Store(true)
			r.API = ""
			tokens, err = t.HTTP.Tokenize(ctx, r)
		}
		return tokens.Count(), err
	}
}

func (t Target) ids(ctx context.Context, text string) ([]int, error) {
	ctx, cancel := t.within(ctx)
	defer cancel()
	tokens, err := t.HTTP.Tokenize(ctx, client.TokenizeRequest{Model: t.Model, Text: text})
	if err != nil {
		return nil, err
	}
	return tokens.IDs()
}

// usage returns the prompt tokens in the server's usage of a request for one token.
func (t Target) usage(ctx context.Context, p client.Prompt) (int, error) {
	s, err := t.HTTP.Complete(ctx, &client.Request{
		API: t.API, Model: t.Model, Prompt: p, Output: 1, Extra: t.Extra, Headers: t.Headers, Timeout: t.Timeout,
	})
	// The only token of an answer may be half a character, so the answer may have no text. Its
	// usage is still valid.
	if err != nil && (s.Failure.Kind != metric.FailEmpty || s.Usage == nil) {
		return 0, err
	}
	if s.Usage == nil || s.Usage.Input == 0 {
		return 0, errors.New("the server reports no usage")
	}
	return s.Usage.Input, nil
}

func (t Target) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, t.Timeout)
}
