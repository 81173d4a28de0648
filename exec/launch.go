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
// program starts, it also measures the load generator. If the start fails, the Target is nil, and
// found has the reason.
func (r *runner) launch(s *plan.Server, found *metric.ServerRun) (t *Target, ready time.Duration) {
	var err error
	start := func() {
		t, err = r.Launch(r.starting, s, func(state string) {
			r.observe(metric.ServerStarting{Server: found.Address, State: r.secrets.Text(state)})
		})
		ready = r.Clock.Now()
	}
	if r.yield == nil && r.Calibrate != nil && s.Started() { // other servers are ready at once
		r.sideBySide(start, r.calibrate)
	} else {
		start()
	}
	if err != nil {
		if !r.check() {
			err = unready(r.why(), err)
		}
		r.lost(found, nil, err)
		r.observe(metric.ServerDone{Server: found})
		return nil, ready
	}
	t.Fingerprint = r.redacted(t.Fingerprint)
	return t, ready
}

// started returns the record of the target's start.
func (t *Target) started(at, ready time.Duration) metric.Start {
	s := t.Start
	s.At, s.Ready = at, ready
	return s
}

func (r *runner) calibrate() {
	measure := r.Calibrate
	if r.Calibrate = nil; measure == nil || !r.check() {
		return
	}
	// The report shows a missing calibration, so a failure needs no error here.
	if c, err := measure(r.starting); err == nil {
		r.run.Calibration = c
	}
}

// unready returns an error that says why a server did not become ready. If the start was canceled,
// it leaves out err, which only says so.
func unready(why string, err error) error {
	if err == context.Canceled {
		return errors.New(why + " before it was ready")
	}
	return fmt.Errorf("%s before it was ready: %w", why, err)
}

func (r *runner) takeDown(t *Target, found *metric.ServerRun) {
	if t.Check != nil && found.Error == "" && r.err == nil && r.ctx.Err() == nil {
		// Use r.ctx, the context of the run. The budget may have ended r.flying, which says nothing
		// about the server.
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
		} else if err != nil {
			found.Error += "; and " + r.secrets.Text(err.Error())
		}
	}
	r.observe(metric.ServerDone{Server: found})
}

// lost records why a server could not be measured. The reason is the end of its process if it has
// ended, and otherwise the error err.
func (r *runner) lost(found *metric.ServerRun, t *Target, err error) {
	if t != nil && t.Err != nil {
		// The end of the server's process explains err, even if it was noticed after err.
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

// compareStarts compares the fingerprints of two starts of a server. It returns a key whose change
// shows that the second start was another server; "" if there is none.
func compareStarts(before, after metric.Fingerprint) string {
	for _, key := range before.Keys() {
		if is, ok := after[key]; ok && metric.Differs(key, before[key], is) {
			return key
		}
	}
	return ""
}

// redacted returns a copy of a fingerprint without the plan's secrets. Keys may contain secrets
// too. If keys become equal without them, their values are joined.
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
