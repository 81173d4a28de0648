package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// stack is a server that commands of the plan start and end. Nothing is known of it but its URL.
type stack struct {
	*Launcher
	of       *plan.Stack
	held     *held
	log      *tail
	commands []*child // that were started; they may have left processes
	closing  bool
}

// stack starts a server by its command. If it returns a stack and an error, the caller must end it.
func (l *Launcher) stack(ctx context.Context, s *plan.Server, h *held, log *tail, state func(string)) (running, error) {
	x := &stack{Launcher: l, of: s.Stack, held: h, log: log}
	r, err := l.reach(s, state, client.Config{BaseURL: s.Stack.URL, APIKey: s.Stack.APIKey, Engine: engine.Of(s.Engine)})
	if err != nil {
		return nil, err
	}
	defer r.close()
	// What answers now would be taken for the new server while `up` replaces it.
	what := r.answering(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if what != "" {
		state(fmt.Sprintf("running down, because %s already answers: %s", s.Stack.URL, what))
		if err := x.down(ctx); err != nil {
			return nil, err
		}
		for since := l.Clock.Now(); what != ""; what = r.answering(ctx) {
			if wait := min(quiet, s.Stack.Timeout); l.Clock.Now()-since > wait {
				return nil, fmt.Errorf("%s still answers %v after down (%s), so up was not run: end what answers there, or choose another url", s.Stack.URL, wait, what)
			}
			if err := clock.Sleep(ctx, l.Clock, again); err != nil {
				return nil, err
			}
		}
	}
	state("running up: " + l.words(s.Stack.Up))
	if err := x.run(ctx, "up", s.Stack.Up, constant(s.Stack.Timeout)); err != nil {
		return x, and(err, x.endCommands()) // before down, which must not meet it
	}
	if len(s.Stack.Logs) > 0 {
		if _, err := x.command(ctx, s.Stack.Logs); err != nil {
			return x, err
		}
	}
	return x, nil
}

// quiet is how long a server may go on to answer after `down`, within the time of a command.
const quiet = 30 * time.Second

// words returns a command for messages.
func (l *Launcher) words(command []string) string {
	return l.redactor.Text(shorten(strings.Join(command, " "), lastSize))
}

func (x *stack) command(ctx context.Context, words []string) (*child, error) {
	c, err := x.child(ctx, words, x.of.Dir, x.held, x.log, x.of.Env)
	if c != nil {
		x.commands = append(x.commands, c)
	}
	return c, err
}

// run runs a command to its end, but waits for at most the time that the function most returns.
func (x *stack) run(ctx context.Context, name string, words []string, most func() time.Duration) error {
	before := x.log.length()
	c, err := x.command(ctx, words)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	late := within(x.Clock, most, func() bool { return c.ended() || ctx.Err() != nil })
	switch {
	case c.ended() && c.how == succeeded:
		return nil
	case c.ended():
		within(x.Clock, constant(time.Second), func() bool { return closed(c.read) })
		err = fmt.Errorf("%s failed: %s (%s)", name, c.how, x.words(words))
	case late:
		err = fmt.Errorf("%s did not end within %v (%s)", name, most(), x.words(words))
	default:
		err = context.Cause(ctx)
	}
	return &exec.ServerError{Err: err, Log: x.log.since(before)}
}

// succeeded is how a command has ended that did what it was asked.
const succeeded = "exit status 0"

// down ends the server. An error says what may be left.
func (x *stack) down(ctx context.Context) error {
	err := x.run(ctx, "down", x.of.Down, func() time.Duration {
		if x.hurried() {
			return x.patience()
		}
		return x.of.Timeout
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w, so what up started for %s may still run: look for it, and end it by hand", err, x.of.URL)
}

// hurried reports whether tokgate itself may soon be killed.
func (x *stack) hurried() bool { return x.patience() < Grace }

// end implements running. What the commands left running on this machine ends too, but for a `down`
// that had too little time: it goes on.
func (x *stack) end() error {
	if x.closing {
		return nil
	}
	x.closing = true
	err := x.down(context.Background())
	if err != nil && x.hurried() {
		return err
	}
	return and(err, x.endCommands())
}

func (x *stack) endCommands() (err error) {
	for _, c := range slices.Backward(x.commands) {
		err = and(err, c.end())
	}
	return err
}

// and joins two errors in one line.
func and(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return fmt.Errorf("%w; and %w", a, b)
}

func (*stack) gone() error                             { return nil }
func (*stack) instance(context.Context) string         { return "" }
func (*stack) listens(context.Context) (string, error) { return "", nil }
func (*stack) settled()                                {}

// answering says what answers at the server's URL; "" if nothing does. A gateway without a server
// behind it does not count.
func (r *reached) answering(ctx context.Context) (what string) {
	for range looks {
		what, _ = clock.Await(ctx, r.Clock, func(ctx context.Context) (string, error) { return r.answer(ctx), nil })
		if what != "" {
			return what
		}
	}
	return ""
}

func (r *reached) answer(ctx context.Context) string {
	c := r.config
	c.OnFresh = nil
	h, err := client.New(c)
	if err != nil {
		return err.Error()
	}
	defer h.Close()
	connected := false
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
	models, err := h.Models(httptrace.WithClientTrace(ctx, trace))
	if err == nil {
		return "it lists the models " + strings.Join(ids(models), ", ")
	}
	e, ok := errors.AsType[*client.Error](err)
	if ok && unlists(e) { // a server without a list may answer requests all the same
		name := cmp.Or(r.servedAs, r.server.Model, "model")
		if _, err = h.Complete(ctx, &client.Request{API: plan.Chat, Model: name, Prompt: client.Prompt{Text: "Hello"}, Output: 1}); err == nil {
			return "it answers requests"
		}
		e, ok = errors.AsType[*client.Error](err)
	}
	switch {
	case ctx.Err() != nil && connected:
		return "it takes connections, but does not answer"
	case ctx.Err() != nil, ok && e.Kind == metric.FailConnect, ok && slices.Contains(emptyGateway, e.Status):
		return ""
	}
	return err.Error()
}

// answerTime is how long the answer may take of what should not be there. A network may take three
// seconds to find out that it has no such host.
const answerTime = 5 * time.Second

// emptyGateway lists what a gateway answers that has no server behind it.
var emptyGateway = []int{http.StatusNotFound, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
