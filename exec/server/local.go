package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Grace is how long a server may take to end itself once it is asked to,
// reaped how long the system may take to be rid of one that was killed.
const (
	Grace  = 15 * time.Second
	reaped = 5 * time.Second
)

// Teardown is the most that ending a server takes; what a run with a budget
// holds back for it.
const Teardown = Grace + reaped

// tick is how often is looked whether a server has ended.
const tick = 20 * time.Millisecond

// running is a server that tokgate started on this machine, outside itself.
type running interface {
	// gone is why it is no longer there, unless it was asked to go.
	gone() error
	// instance tells it from a later one in its place; "": not known.
	instance(context.Context) string
	// settled says that it is ready: what listens from now on is it.
	settled()
	// end ends it with everything it started, and is an error when something
	// is left. To end it twice does nothing.
	end() error
}

// local starts a process or container and holds what it uses until it has
// ended.
func (l *Launcher) local(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
	if _, diags := plan.CommandLine(s.Engine, s.Flags, s.Args); diags.HasErrors() {
		return nil, diags
	}
	h, err := l.hold(ctx, s, state)
	if err != nil {
		return nil, err
	}
	log, err := l.newLog(s)
	if err != nil {
		h.release()
		return nil, err
	}
	started := l.Clock.Now()
	facts := &logFacts{engine: engine.Of(s.Engine)}
	log.watch = facts.line
	var x running
	found := metric.Fingerprint{}
	if s.Container != nil {
		x, err = l.container(ctx, s, h, log, found, state)
	} else {
		x, err = l.process(s, h, log, state)
	}
	var t *exec.Target
	if err == nil {
		t, err = l.await(ctx, s, state, x, h, log, func(f metric.Fingerprint) {
			log.unwatch()
			for key, value := range found {
				f[key] = value
			}
			l.describe(s, h, f)
			facts.add(f)
			f["load_time"] = (l.Clock.Now() - started).Round(100 * time.Millisecond).String()
		})
	}
	if err == nil {
		return t, nil
	}
	if x != nil {
		if e := x.end(); e != nil {
			err = &exec.ServerError{Err: fmt.Errorf("%w; and %w", err, e), Log: log.String()}
			h.leave()
		}
	}
	log.close()
	h.release()
	return nil, err
}

// await makes a target of a started server once it is ready.
func (l *Launcher) await(ctx context.Context, s *plan.Server, state func(string), x running, h *held, log *tail, facts func(metric.Fingerprint)) (*exec.Target, error) {
	r, err := l.reach(s, state, client.Config{
		BaseURL: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(h.port)), Engine: engine.Of(s.Engine),
	})
	if err != nil {
		return nil, err
	}
	r.gone, r.log, r.facts, r.instance = x.gone, log.String, facts, x.instance
	r.lastWords = log.lastLine
	if s.GPUs() != nil || len(h.gpus) > 0 {
		r.given = []string{}
		for _, g := range h.gpus {
			r.given = append(r.given, g.ID)
		}
	}
	r.cleanup = func() error {
		err := x.end()
		if err != nil {
			h.leave()
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

// newLog begins the log of a server.
func (l *Launcher) newLog(s *plan.Server) (*tail, error) {
	log := &tail{redactor: l.redactor}
	if l.LogDir == "" {
		return log, nil
	}
	file, err := os.Create(filepath.Join(l.LogDir, logName(s.Address())))
	if err != nil {
		return nil, fmt.Errorf("could not begin the server's log: %w", err)
	}
	log.file, log.closer = file, file
	return log, nil
}

// logName is the name of a server's log file.
func logName(address string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		case r == '"', r == ']':
			return -1
		}
		return '-'
	}, address)
	return "server-" + safe + ".log"
}

// patience is how long the server may take to end itself, as of now: an
// interrupt shortens it.
func (l *Launcher) patience() time.Duration {
	if l.Grace != nil {
		return l.Grace()
	}
	return Grace
}

// within waits until done, and says whether that took longer than d says by
// then.
func within(c clock.Clock, d func() time.Duration, done func() bool) (late bool) {
	since := c.Now()
	for !done() {
		if c.Now() >= since+d() || clock.Sleep(context.Background(), c, tick) != nil {
			return true
		}
	}
	return false
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// outOfMemory are words by which engines say that memory ran out.
var outOfMemory = []string{"out of memory", "OutOfMemoryError", "cudaMalloc failed", "not enough memory", "Cannot allocate memory"}

// cause adds to how a server ended what its log says of the reason.
func cause(how, log string) string {
	for line := range strings.Lines(log[max(len(log)-tailSize/4, 0):]) {
		for _, words := range outOfMemory {
			if strings.Contains(line, words) {
				return how + "; it ran out of memory: " + shorten(strings.TrimSpace(line), 200)
			}
		}
	}
	return how
}

// shorten cuts text to n bytes at a character.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

var errEnded = errors.New("it did not end")

var _ io.Writer = (*tail)(nil)
