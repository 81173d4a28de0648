package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// started starts a server. It reserves what the server takes of this machine, such as its GPUs and its
// port, until the server has ended.
func (l *Launcher) started(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
	if _, diags := plan.CommandLine(s.Engine, s.Flags, s.Args); diags.HasErrors() {
		return nil, diags
	}
	h, err := l.hold(ctx, s, state)
	if err != nil {
		return nil, err
	}
	log, err := newLog(l.LogDir, s.Address(), l.redactor)
	if err != nil {
		h.release()
		return nil, err
	}
	started, key := l.Clock.Now(), startKey(s)
	facts := &logFacts{read: engine.Of(s.Engine).Facts}
	log.watch = facts.line
	found := metric.Fingerprint{}
	x, err := l.begun(ctx, s, h, log, found, state)
	var t *exec.Target
	if err == nil {
		t, err = l.await(ctx, s, l.starting(state, facts, l.took(key)), x, h, log, func(f metric.Fingerprint) {
			log.unwatch()
			for key, value := range found {
				f[key] = value
			}
			if s.Local() {
				describe(s, h.gpus, h.inventory, l.redactor, f)
			}
			facts.add(f)
			put(f, "leftover", strings.Join(h.others, "; "))
			took := l.Clock.Now() - started
			l.State.Remember(lease.Starts, key, took)
			f["load_time"] = took.Round(100 * time.Millisecond).String()
		})
	}
	if err == nil {
		if s.Local() { // else it may have started on any machine
			t.Start.Kind = l.kind(key)
		}
		t.Start.Pull, t.Start.Mounted = h.pulled, s.Container != nil && len(s.Container.Volumes) > 0
		return t, nil
	}
	if x != nil {
		if e := x.end(); e != nil {
			err = &exec.ServerError{Err: fmt.Errorf("%w; and %w", err, e), Log: log.String()}
			h.left = true
		}
	}
	log.close()
	h.release()
	return nil, err
}

// begun starts the program of a server, wherever it runs. If it returns a running server and an error, the
// caller must end it.
func (l *Launcher) begun(
	ctx context.Context, s *plan.Server, h *held, log *tail, found metric.Fingerprint, state func(string),
) (running, error) {
	switch {
	case s.Stack != nil:
		return l.stack(ctx, s, h, log, state)
	case s.Pod != nil:
		return l.pod(ctx, s, h, log, found, state)
	case s.Container != nil:
		return l.container(ctx, s, h, log, found, state)
	}
	return l.process(ctx, s, h, log, state)
}

// Servers with the same engine, model and command line have the same key.
func startKey(s *plan.Server) string {
	words, _ := plan.CommandLine(s.Engine, s.Flags, s.Args)
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%q\n", s.Engine, s.Model, words)
	if s.Process != nil {
		fmt.Fprintf(h, "%q", s.Process.Command)
	}
	if s.Container != nil {
		fmt.Fprintf(h, "%q %q", s.Container.Image, s.Container.Command)
	}
	if s.Pod != nil {
		fmt.Fprintf(h, "%q %q", s.Pod.Image, s.Pod.Command)
	}
	if s.Stack != nil {
		fmt.Fprintf(h, "%q %q", s.Stack.Up, s.Stack.Dir)
	}
	return "start-" + hex.EncodeToString(h.Sum(nil)[:12])
}

// kind returns the kind of a start that has ended, and remembers it until the machine boots again.
func (l *Launcher) kind(key string) metric.StartKind {
	if boot() == "" {
		return ""
	}
	key, warm := boot()+" "+key, false
	if l.State.Recall(lease.Starts, key, &warm) && warm {
		return metric.StartWarm
	}
	l.State.Remember(lease.Starts, key, true)
	return metric.StartCold
}

func (l *Launcher) took(key string) (took time.Duration) {
	if !l.State.Recall(lease.Starts, key, &took) {
		return 0
	}
	return max(took, 0)
}

// shortStart is the duration from which the display mentions how long the last start took. If a
// start takes less, nobody wonders when it ends.
const shortStart = 5 * time.Second

func (l *Launcher) starting(state func(string), facts *logFacts, took time.Duration) func(string) {
	last := ""
	if took >= shortStart {
		last = " (the last start took " + took.Round(time.Second).String() + ")"
	}
	return func(words string) {
		if phase := facts.phase(); phase != "" {
			words = phase + last + ": " + words
		} else if last != "" {
			words += last
		}
		state(words)
	}
}

func (l *Launcher) await(
	ctx context.Context, s *plan.Server, state func(string), x running, h *held, log *tail, facts func(metric.Fingerprint),
) (*exec.Target, error) {
	r, err := l.reach(s, state, client.Config{BaseURL: h.url, APIKey: s.APIKey(), Engine: engine.Of(s.Engine)})
	if err != nil {
		return nil, err
	}
	r.program, r.log, r.facts = x, log, facts
	if s.GPUs() != nil || len(h.gpus) > 0 {
		r.given = []string{}
		for _, g := range h.gpus {
			r.given = append(r.given, g.ID)
		}
	}
	r.cleanup = func() error {
		err := x.end()
		if err != nil {
			h.left = true
		}
		log.close()
		h.release()
		return err
	}
	t, err := r.target(ctx)
	if err != nil {
		return nil, err
	}
	x.settled()
	t.Reset = r.reset
	return t, nil
}
