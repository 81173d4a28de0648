package prompt

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
)

// Target is the server that prompts are for, and the way a workload will send
// requests to it.
type Target struct {
	HTTP  *client.HTTP
	API   string // "chat" or "completions"
	Model string
	Extra map[string]any // further fields of the requests; some change the chat template
	// Timeout of one question; 0 for none.
	Timeout time.Duration
}

// Options returns options that count tokens by asking t's server: its tokenizer, if it
// has one, and the usage that it reports for one-token requests.
func (t Target) Options(salt uint64) Options {
	return Options{Salt: salt, Tokenizer: t.tokenizer(), Usage: t.usage, IDs: t.ids}
}

// tokenizer counts with the server's tokenizer. It includes the chat template if the
// server applies it. Otherwise the template's part is learnt from usage.
func (t Target) tokenizer() Counter {
	var bare atomic.Bool
	return func(ctx context.Context, p client.Prompt) (int, error) {
		ctx, cancel := t.within(ctx)
		defer cancel()
		r := client.TokenizeRequest{Model: t.Model, API: t.API, Text: p.Text, Messages: p.Messages, Extra: t.with(p)}
		if bare.Load() && p.Messages == nil {
			r.API = ""
		}
		tokens, err := t.HTTP.Tokenize(ctx, r)
		if errors.Is(err, client.ErrNoTokenizer) && r.API == "chat" && p.Messages == nil {
			bare.Store(true)
			r.API = ""
			tokens, err = t.HTTP.Tokenize(ctx, r)
		}
		return tokens.Count(), err
	}
}

// with returns the fields of a request with p, including tools, which are part of a
// template.
func (t Target) with(p client.Prompt) map[string]any {
	if p.Fields == nil {
		return t.Extra
	}
	out := maps.Clone(t.Extra)
	if out == nil {
		out = map[string]any{}
	}
	for name, v := range p.Fields {
		out[name] = v
	}
	return out
}

// ids returns the token ids of bare text.
func (t Target) ids(ctx context.Context, text string) ([]int, error) {
	ctx, cancel := t.within(ctx)
	defer cancel()
	tokens, err := t.HTTP.Tokenize(ctx, client.TokenizeRequest{Model: t.Model, Text: text})
	if err != nil {
		return nil, err
	}
	return tokens.IDs()
}

// usage returns the server's count for a request for one token.
func (t Target) usage(ctx context.Context, p client.Prompt) (int, error) {
	s, err := t.HTTP.Complete(ctx, &client.Request{
		API: t.API, Model: t.Model, Prompt: p, Output: 1, Extra: t.Extra, Timeout: t.Timeout,
	})
	// An answer of one token may have no text, such as half a character. Its count is
	// still valid.
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
