package server

import (
	"context"
	"fmt"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/plan"
)

// markName is a variable in the environment of a process and so of all that it
// starts, by which they are known wherever they go.
const markName = "TOKGATE_SERVER"

// child is a server that runs as a process of ours, in a group of its own.
type child struct {
	clock   clock.Clock
	cmd     *osexec.Cmd
	log     *tail
	mark    string
	port    int
	exited  chan struct{} // closed when the process ended
	err     error         // of Wait; read after exited
	grace   func() time.Duration
	closing bool // it was asked to end
}

// process starts a server as a child.
func (l *Launcher) process(s *plan.Server, h *held, log *tail, state func(string)) (running, error) {
	words := s.Launch("127.0.0.1", strconv.Itoa(h.port))
	c := &child{clock: l.Clock, grace: l.patience, log: log, mark: h.server.Mark, port: h.port, exited: make(chan struct{})}
	c.cmd = osexec.Command(words[0], words[1:]...)
	c.cmd.Dir = s.Process.Dir
	if c.cmd.Dir == "" {
		c.cmd.Dir = l.Dir
	}
	if strings.ContainsRune(words[0], filepath.Separator) && !filepath.IsAbs(words[0]) {
		// Where a relative program is looked for would depend on where tokgate
		// was started.
		path, err := filepath.Abs(filepath.Join(c.cmd.Dir, words[0]))
		if err != nil {
			return nil, err
		}
		c.cmd.Path, c.cmd.Err = path, nil
	}
	c.cmd.Env = os.Environ()
	for _, env := range []map[string]string{plan.EngineOf(s.Engine).Env, s.Process.Env, h.environment(s), {markName: c.mark}} {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			c.cmd.Env = append(c.cmd.Env, name+"="+env[name])
		}
	}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	// What the process leaves behind may hold its output open.
	c.cmd.WaitDelay = reaped
	ownGroup(c.cmd)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("could not start %s: %w", words[0], err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.exited)
	}()
	h.server.Group, h.server.Start = c.cmd.Process.Pid, startOf(c.cmd.Process.Pid)
	if err := h.update(); err != nil {
		// A server that the next run could not find is not begun.
		return c, fmt.Errorf("could not note the server: %w", err)
	}
	state(fmt.Sprintf("started %s on port %d", words[0], h.port))
	return c, nil
}

// gone implements running.
func (c *child) gone() error {
	if c.closing {
		return nil
	}
	select {
	case <-c.exited:
	default:
		return nil
	}
	how := "exit status 0"
	if c.err != nil {
		how = c.err.Error()
	}
	log := c.log.String()
	return &exec.ServerError{Err: fmt.Errorf("the server's process ended by itself: %s", cause(how, log)), Log: log}
}

// instance implements running: a process may be one that starts the server
// again when it dies.
func (c *child) instance(context.Context) string { return listener(c.port) }

// end implements running: the group is asked to end, then killed, and so is
// what left it. The children may outlive their parent, with what they hold of
// the GPU.
func (c *child) end() error {
	if c.closing {
		return nil
	}
	c.closing = true
	group := c.cmd.Process.Pid
	if err := endGroup(c.clock, group, c.mark, c.grace); err != nil {
		return err
	}
	late := within(c.clock, always(2*reaped), func() bool {
		select {
		case <-c.exited:
			return true
		default:
			return false
		}
	})
	if late {
		return fmt.Errorf("process %d could not be waited for", group)
	}
	return nil
}

// endGroup ends a process group, and what carries its mark elsewhere.
func endGroup(c clock.Clock, group int, mark string, grace func() time.Duration) error {
	gone := func() bool { return !alive(group) && len(marked(mark)) == 0 }
	terminate(group)
	if within(c, grace, gone) {
		kill(group)
		for _, pid := range marked(mark) {
			killOne(pid)
		}
	}
	if within(c, always(reaped), gone) {
		return fmt.Errorf("process group %d could not be killed: it has to be ended by hand", group)
	}
	return nil
}
