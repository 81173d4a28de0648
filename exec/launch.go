package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// launch starts a server and removes the plan's secrets from its fingerprint. While the first
// program starts, launch also measures the generator. If the start failed, the Target is nil and
// found holds the reason.
func (r *runner) launch(s *plan.Server, found *metric.ServerRun) (t *Target, ready time.Duration) {
	var err error
	start := func() {
		t, err = r.Launch(r.starting, s, func(state string) { r.Observer.ServerStarting(found.Address, r.secrets.Text(state)) })
		ready = r.Clock.Now()
	}
	if r.yield == nil && r.Calibrate != nil && started(s) {
		r.sideBySide(start, r.calibrate)
	} else {
		start()
	}
	if err != nil {
		if !r.check() {
			err = unready(r.why(), err)
		}
		r.lost(found, nil, err)
		r.observe(r.Observer.ServerDone(found))
		return nil, ready
	}
	t.Fingerprint = r.redacted(t.Fingerprint)
	return t, ready
}

// started reports whether tokgate starts the program of a server. This takes longer than a
// calibration. Other servers are ready at once.
func started(s *plan.Server) bool { return s.Process != nil || s.Container != nil }

// calibrate measures the generator, once.
func (r *runner) calibrate() {
	measure := r.Calibrate
	if r.Calibrate = nil; measure == nil || !r.check() {
		return
	}
	// If the calibration failed, the report says that it is missing.
	if c, err := measure(r.starting); err == nil {
		r.run.Calibration = c
	}
}

// unready returns an error that says why a server did not become ready. A cancelled start is only
// the consequence, so the error of the cancellation is left out.
func unready(why string, err error) error {
	if err == context.Canceled {
		return errors.New(why + " before it was ready")
	}
	return fmt.Errorf("%s before it was ready: %w", why, err)
}

// takeDown checks a server a last time and ends it.
func (r *runner) takeDown(t *Target, found *metric.ServerRun) {
	if t.Check != nil && found.Error == "" && r.err == nil && r.ctx.Err() == nil {
		// Use the run's context, because the context flying ends with the budget. A spent
		// budget says nothing about the server.
		if err := t.Check(r.ctx); errors.Is(err, ErrIdentityUnknown) {
			found.EndUnknown = err.Error()
		} else if err != nil && r.ctx.Err() == nil {
			r.lost(found, t, err)
		}
	}
	if t.Detour != nil && !r.run.Simulated {
		if found.Path = metric.PathOwn; t.Detour() != "" {
			found.Path = "net/http: " + t.Detour()
		}
	}
	if t.Close != nil {
		if err := t.Close(); err != nil && found.Error == "" {
			r.lost(found, t, err)
		}
	}
	r.observe(r.Observer.ServerDone(found))
}

// lost records why a server could not be measured.
func (r *runner) lost(found *metric.ServerRun, t *Target, err error) {
	if t != nil && t.Err != nil {
		// If the server's process has ended, that explains err. The end may have been noticed after
		// err.
		if e := t.Err(); e != nil {
			err = e
		}
	}
	found.Error = err.Error()
	if e, ok := errors.AsType[*ServerError](err); ok {
		found.Log = e.Log
	}
	if found.Log == "" && t != nil && t.Log != nil {
		found.Log = t.Log()
	}
	found.Error, found.Log = r.secrets.Text(found.Error), r.secrets.Text(found.Log)
}

// another returns a fingerprint key whose change between two starts shows a different server; "" if
// there is none.
func another(before, after metric.Fingerprint) string {
	for _, key := range before.Keys() {
		if is, ok := after[key]; ok && metric.Differs(key, before[key], is) {
			return key
		}
	}
	return ""
}

// redacted returns a copy of a fingerprint without the plan's secrets. Names of flags and
// variables may contain secrets too. If names become equal without their secrets, their values
// are joined.
func (r *runner) redacted(f metric.Fingerprint) metric.Fingerprint {
	out := metric.Fingerprint{}
	for _, key := range f.Keys() {
		value := r.secrets.Text(f[key])
		if kind, name, ok := strings.Cut(key, "."); ok {
			key = kind + "." + r.secrets.Text(name)
		}
		if before, ok := out[key]; ok {
			value = before + ", " + value
		}
		out[key] = value
	}
	return out
}
