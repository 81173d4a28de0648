package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/plan"
)

type child struct {
	Clock   clock.Clock
	cmd     *osexec.Cmd // the server's keeper if there is one, else the server
	log     *tail
	mark    string
	died    []string // words of the server's log that report its end; see engine.Engine
	port    int
	exited  chan struct{} // closed when the process ended
	how     string        // how it ended; read it only after the channel exited is closed
	output  *os.File      // of the server's processes
	read    chan struct{} // closed when the whole output was read
	grace   func() time.Duration
	closing bool          // set when tokgate has asked the server to end
	waited  bool          // set when the rest of the output was waited for
	first   string        // sockets that listened when the server became ready; "" if not known
	since   time.Duration // when the server became ready, on the run's clock
	spent   time.Duration // time spent on finding out which process listens on the port
	before  int           // length of the log when the server became ready, in bytes
}

func (l *Launcher) process(ctx context.Context, s *plan.Server, h *held, log *tail, state func(string)) (running, error) {
	words := s.Launch("127.0.0.1", strconv.Itoa(h.port))
	c, err := l.child(ctx, words, s.Process.Dir, h, log, engine.Of(s.Engine).Launch.Env, s.Process.Env, h.environment(s))
	if c == nil {
		return nil, err
	}
	c.died, c.port = engine.Of(s.Engine).Died, h.port
	if err == nil {
		state(fmt.Sprintf("started %s on port %d", words[0], h.port))
	}
	return c, err
}

// child starts a program with the mark of a server, and notes it. Later environments win. If it
// returns a child and an error, the caller must end the child.
func (l *Launcher) child(
	ctx context.Context, words []string, dir string, h *held, log *tail, environments ...map[string]string,
) (*child, error) {
	c := &child{Clock: l.Clock, grace: l.patience, log: log, mark: h.server.Mark, exited: make(chan struct{}), read: make(chan struct{})}
	c.cmd = osexec.Command(words[0], words[1:]...)
	c.cmd.Dir = cmp.Or(dir, l.Dir)
	if strings.ContainsRune(words[0], filepath.Separator) && !filepath.IsAbs(words[0]) {
		// A relative path would depend on the working directory.
		path, err := filepath.Abs(filepath.Join(c.cmd.Dir, words[0]))
		if err != nil {
			return nil, err
		}
		c.cmd.Path, c.cmd.Err = path, nil
	}
	c.cmd.Env = os.Environ()
	for _, env := range append(environments, map[string]string{markName: c.mark}) {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			c.cmd.Env = append(c.cmd.Env, name+"="+env[name])
		}
	}
	ownGroup(c.cmd)
	if err := c.start(ctx); err != nil {
		return nil, fmt.Errorf("could not start %s: %w", words[0], err)
	}
	h.server.Group, h.server.Start = c.cmd.Process.Pid, startOf(c.cmd.Process.Pid)
	if err := h.update(); err != nil {
		// Give up, because without the note a later run could not find the server.
		return c, fmt.Errorf("could not note the server: %w", err)
	}
	return c, nil
}

func (c *child) start(ctx context.Context) error {
	output, written, err := os.Pipe()
	if err != nil {
		return err
	}
	c.cmd.Stdout, c.cmd.Stderr, c.output = written, written, output
	ended, err := clock.Await(ctx, c.Clock, func(context.Context) (func() string, error) { return start(c.cmd) })
	written.Close()
	if err != nil {
		output.Close()
		return err
	}
	go func() {
		c.how = ended()
		close(c.exited)
	}()
	go func() {
		_, _ = io.Copy(c.log, output)
		close(c.read)
	}()
	return nil
}

func (c *child) gone() error {
	if c.closing {
		return nil
	}
	if !c.ended() && !c.replaced() {
		return nil
	}
	if c.ended() && !c.waited {
		// The rest of the output may come a moment later. A process that the server left behind may
		// keep it open.
		c.waited = true
		within(c.Clock, constant(reaped), func() bool { return closed(c.read) })
	}
	log := c.log.since(c.before)
	if c.ended() {
		return endOf("the server's process ended by itself: "+c.how, log, c.died)
	}
	if _, err := c.listens(context.Background()); err != nil {
		return &exec.ServerError{Err: err, Log: log}
	}
	if len(listening(c.port)) > 0 {
		return &exec.ServerError{Err: errors.New("the server was restarted under the load, so there is no verdict"), Log: log}
	}
	return endOf("the server no longer listens, and its process does not end", log, c.died)
}

func (c *child) ended() bool { return closed(c.exited) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Bounds on the time for finding out which process listens on the server's port. Finding out takes
// longer if there are more connections. The total time is at most lookFirst, plus 1/lookShare of
// the time since the server became ready. If another process listens, the server has probably
// ended, and the check waits up to lookOn for its end.
const (
	lookFirst = 200 * time.Millisecond
	lookShare = 20
	lookOn    = time.Second
)

func (c *child) replaced() bool {
	now := c.Clock.Now()
	if c.first == "" || c.spent > lookFirst+(now-c.since)/lookShare {
		return false
	}
	who := c.instance(context.Background())
	c.spent += c.Clock.Now() - now
	if who == c.first {
		return false
	}
	// Nothing listens on the port, so the server is about to end. vLLM takes seconds for this after
	// its engine died.
	if who == "" {
		within(c.Clock, c.grace, func() bool { return c.ended() || len(listening(c.port)) > 0 })
	}
	within(c.Clock, constant(lookOn), c.ended)
	return c.ended() || c.instance(context.Background()) != c.first
}

// instance implements running. The listening sockets identify the server. The process does not,
// because it may be a supervisor that restarts the server.
func (c *child) instance(context.Context) string { return strings.Join(listening(c.port), " ") }

func (c *child) listens(context.Context) (fact string, err error) {
	found, err := sockets(c.port, family(c.cmd.Process.Pid, c.mark))
	if err != nil {
		return "not known: " + err.Error(), nil
	}
	return whose(c.port, found)
}

func (c *child) settled() {
	c.first, c.since, c.before = c.instance(context.Background()), c.Clock.Now(), c.log.length()
}

// end implements running. It asks the server's processes to end, and kills them if necessary. That
// includes those that left the process group, because they may outlive their parent and keep memory
// of the GPU.
func (c *child) end() error {
	if c.closing {
		return nil
	}
	c.closing = true
	group := c.cmd.Process.Pid
	if err := endGroup(c.Clock, group, c.mark, c.grace); err != nil {
		return err
	}
	late := within(c.Clock, constant(2*reaped), c.ended)
	within(c.Clock, constant(reaped), func() bool { return closed(c.read) })
	c.output.Close()
	if late {
		return fmt.Errorf("process %d could not be waited for", group)
	}
	return nil
}

// endGroup ends the processes of a server: those of its process group, those that have its mark in
// their environment, and what a keeper finds below them. Processes that do not end in time are
// killed.
func endGroup(c clock.Clock, group int, mark string, grace func() time.Duration) error {
	terminate(group, mark)
	within(c, grace, func() bool { return len(family(group, mark)) == 0 })
	if killAll(c, group, mark) {
		return nil
	}
	return fmt.Errorf("process group %d could not be killed: end it by hand", group)
}

func killAll(c clock.Clock, group int, mark string) bool {
	return !within(c, constant(reaped), func() bool {
		left := family(group, mark)
		for _, pid := range left {
			kill(pid)
		}
		return len(left) == 0
	})
}
