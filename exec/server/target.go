package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/prompt"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func (r *reached) target(ctx context.Context) (*exec.Target, error) {
	id, err := r.ready(ctx)
	if err != nil {
		r.close()
		return nil, err
	}
	found := r.fingerprint(id)
	first := r.incarnation(ctx, len(r.replicas) == 0)
	if err := r.identified(ctx, found, id.model); err != nil {
		r.close()
		return nil, err
	}
	if why := r.api.Detour(); why != "" {
		r.state("streams are read by way of net/http: " + why)
	}
	makers := map[string]*prompt.Maker{}
	inside, leave := r.openWatch(id.model.ID)
	t := &exec.Target{
		Transport:   r.api,
		Model:       id.model.ID,
		Context:     id.model.Context,
		Fingerprint: found,
		Prompts: func(ctx context.Context, w *plan.Workload, salt uint64) (exec.Prompts, error) {
			return r.prompts(ctx, w, salt, id.model, found, makers)
		},
		Tokens: r.tokens,
		Scorer: r.api,
		Detour: r.api.Detour,
		Check:  func(ctx context.Context) error { return r.sameAll(ctx, found, first) },
		Inside: inside,
		Close: func() error {
			leave()
			r.close()
			if r.cleanup != nil {
				return r.cleanup()
			}
			return nil
		},
	}
	if r.program != nil {
		t.Err, t.Log = r.program.gone, r.log.String
	}
	if r.server.Unseen() {
		t.Same = func(ctx context.Context) error {
			ctx, cancel := clock.WithTimeout(ctx, r.Clock, lookTime)
			defer cancel()
			return r.alike(ctx, found, 1)
		}
	}
	if len(r.fronts) > 0 {
		t.Transport = client.NewFronts(append([]*client.HTTP{r.api}, r.fronts...))
	}
	if alike := t.Same; len(r.replicas) > 0 {
		t.Err = r.restarted
		t.Same = func(ctx context.Context) error { return cmp.Or(r.unchanged(ctx), alike(ctx)) }
	}
	t.Start.Cold, t.Start.ColdEnd = cold(id.cold)
	return t, nil
}

// identified returns an error if what answers is another program than the started one, several
// servers that differ, or not the declared server. It adds what it learns to the fingerprint.
func (r *reached) identified(ctx context.Context, found metric.Fingerprint, model client.Model) error {
	if err := r.listening(ctx, found); err != nil {
		return r.failed(err)
	}
	if err := r.meetFronts(ctx, found); err != nil {
		return err
	}
	if err := r.meet(ctx, found); err != nil {
		return err
	}
	if err := r.alike(ctx, found, looks); err != nil {
		return err
	}
	r.labels(ctx, found)
	if r.facts != nil {
		r.facts(found)
	}
	if err := declared(r.server, found, model); err != nil {
		return r.failed(err)
	}
	return nil
}

// listening returns an error if another program than the started server listens on its port. It adds
// a fact to the fingerprint if that is not known.
func (r *reached) listening(ctx context.Context, to metric.Fingerprint) error {
	if r.program == nil {
		return nil
	}
	fact, err := clock.Await(ctx, r.Clock, r.program.listens)
	put(to, "listener", fact)
	return err
}

// tokens counts the tokens of a text with the server's tokenizer.
func (r *reached) tokens(ctx context.Context, model, text string) (int, error) {
	return clock.Await(ctx, r.Clock, func(ctx context.Context) (int, error) {
		tokens, err := r.api.Tokenize(ctx, client.TokenizeRequest{Model: model, Text: text})
		return tokens.Count(), err
	})
}

// cold returns the TTFT and the latency of a server's first completion. They are 0 if unknown.
func cold(s *metric.Sample) (first, end time.Duration) {
	if s == nil || s.First == 0 {
		return 0, 0
	}
	return s.First - s.Sent, s.End - s.Sent
}

// A server may need a moment to drop the last request after its client has left. Until then it
// refuses to clear its caches.
const (
	settling = 10 * time.Second
	settle   = 250 * time.Millisecond
)

// reset waits until the server has dropped earlier requests, and clears its caches, if it can. It
// is only for servers that tokgate started: one that was already running has other users.
func (r *reached) reset(ctx context.Context) error {
	ctx, cancel := clock.WithTimeout(ctx, r.Clock, settling)
	defer cancel()
	for {
		_, err := clock.Await(ctx, r.Clock, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, r.api.ResetCaches(ctx)
		})
		switch {
		case err == nil, errors.Is(err, client.ErrNoReset):
			return nil
		case clock.Sleep(ctx, r.Clock, settle) != nil:
			return err
		}
	}
}
