package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A small server is ready almost at once, so checks whether it is ready come quickly at first. The
// interval between them grows from the constant soon to the constant again.
const (
	again = 500 * time.Millisecond
	soon  = 50 * time.Millisecond
)

func (r *reached) ready(ctx context.Context) (identity, error) {
	caller := ctx
	timeout := r.server.Ready.Timeout
	if timeout > 0 {
		var cancel func()
		ctx, cancel = clock.WithTimeout(ctx, r.Clock, timeout)
		defer cancel()
	}
	var last error
	wait := again
	if r.program != nil {
		wait = soon
	}
	for {
		r.state(r.awaited(last))
		id, err := clock.Await(ctx, r.Clock, r.try)
		switch {
		case err == nil:
			return id, nil
		case caller.Err() != nil:
			return identity{}, context.Cause(caller)
		case r.program != nil && r.program.gone() != nil:
			return identity{}, r.program.gone()
		case ctx.Err() != nil:
			if last == nil {
				last = errors.New("its first completion did not end")
			}
			return identity{}, r.failed(fmt.Errorf("%s was not ready after %v: %w", r.url, timeout, last))
		case hopeless(err):
			return identity{}, r.failed(fmt.Errorf("%s cannot be used: %w%s", r.url, err, r.hint(err)))
		}
		last = err
		// Ignore the error: if the context has ended, the next check reports it.
		_ = clock.Sleep(ctx, r.Clock, wait)
		wait = min(2*wait, again)
	}
}

func (r *reached) awaited(last error) string {
	what := "one completion"
	if last != nil {
		what = last.Error()
	}
	if r.log != nil {
		if words := r.log.lastLine(); words != "" {
			what = words
		}
	}
	return fmt.Sprintf("waiting for %s: %s", r.url, what)
}

// hopeless reports whether a repeated request would get the same error.
func hopeless(err error) bool {
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return true
	}
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Final() || errors.Is(err, errModel)
}

func (r *reached) hint(err error) string {
	e, ok := errors.AsType[*client.Error](err)
	if r.servedAs != "" && len(r.listed) > 0 && !slices.Contains(r.listed, r.servedAs) {
		return fmt.Sprintf(" (served_as is %q; the server lists %s)", r.servedAs, strings.Join(r.listed, ", "))
	}
	if ok && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
		return baseHint(r.url, r.api.Base())
	}
	if !ok || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity || !r.config.Engine.Dialect.IgnoreEOS {
		return ""
	}
	return fmt.Sprintf(" (it was sent %s's own request fields; engine = \"openai\" sends none)", r.config.Engine.Name)
}

// apiPaths are the pages that people copy from examples of requests, and that url must not name.
var apiPaths = []string{"/chat/completions", "/completions", "/responses", "/models", "/embeddings", "/metrics", "/health"}

// baseHint suggests the base URL if the plan's URL has a path, below which the server has no API. It
// returns "" if there is no path, or only the version of the API. asked is the URL below which tokgate
// asked.
func baseHint(given, asked string) string {
	u, err := url.Parse(given)
	if err != nil {
		return ""
	}
	named := strings.TrimRight(u.Path, "/")
	for _, page := range apiPaths {
		if base, ok := strings.CutSuffix(named, page); ok {
			u.Path = base
			return fmt.Sprintf(" (it was asked below %s; url is the server's base URL, without a page: %s)", asked, u)
		}
	}
	if named == "" || named == "/v1" {
		return ""
	}
	u.Path = ""
	return fmt.Sprintf(" (it was asked below %s; url is the server's base URL: is it %s?)", asked, u)
}

// It asks for the server's models, and then for an answer of one token.
func (r *reached) try(ctx context.Context) (identity, error) {
	id, err := r.identify(ctx)
	if err != nil {
		return id, err
	}
	first := errors.New("")
	for i, api := range []plan.API{plan.Chat, plan.Completions, plan.Embeddings} {
		s, err := r.api.Complete(ctx, &client.Request{
			API: api, Model: id.model.ID, Prompt: client.Prompt{Text: "Hello"}, Output: 1,
		})
		// The answer may have no text, because its only token may be a part of a character.
		if err == nil || s.Failure.Kind == metric.FailEmpty && s.Usage != nil {
			id.cold = s
			return id, nil
		}
		if i == 0 {
			first = err
		}
		// Try the next API if the error is final, such as a model without a chat template, or one of embeddings.
		if !hopeless(err) {
			return id, err
		}
	}
	return id, first
}
