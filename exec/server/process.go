package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/plan"
)

// grace is how long a process may take to end itself once it is asked to,
// reaped how long the system may take to be rid of one that was killed.
const (
	grace  = 15 * time.Second
	reaped = 5 * time.Second
)

// child is a server that runs as a process of ours, in a group of its own.
type child struct {
	clock   clock.Clock
	cmd     *osexec.Cmd
	log     *tail
	file    io.Closer     // of the log; nil: none
	exited  chan struct{} // closed when the process ended
	err     error         // of Wait; read after exited
	grace   time.Duration
	closing bool // it was asked to end
}

// process starts a server as a child.
func (l *Launcher) process(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
	words, port, err := command(s)
	if err != nil {
		return nil, err
	}
	c, err := l.start(s, words)
	if err != nil {
		return nil, err
	}
	state(fmt.Sprintf("started %s on port %d", words[0], port))
	r, err := l.reach(s, state, client.Config{
		BaseURL: "http://127.0.0.1:" + strconv.Itoa(port), Dialect: client.DialectOf(s.Engine),
	})
	if err == nil {
		r.gone, r.log, r.cleanup = c.gone, c.log.String, c.end
		var t *exec.Target
		if t, err = r.target(ctx); err == nil {
			t.Reset = r.reset
			return t, nil
		}
	}
	if e := c.end(); e != nil {
		err = fmt.Errorf("%w; and %w", err, e)
	}
	return nil, err
}

// command is the command line of a process, and its port.
func command(s *plan.Server) ([]string, int, error) {
	if _, diags := plan.CommandLine(s.Engine, s.Flags, s.Args); diags.HasErrors() {
		return nil, 0, diags
	}
	port := s.Process.Port
	if n, ok := s.FlagNumber("port"); ok && port == 0 {
		port = n
	}
	if port == 0 {
		var err error
		if port, err = freePort(); err != nil {
			return nil, 0, fmt.Errorf("could not find a free port: %w", err)
		}
	}
	return s.Launch("127.0.0.1", strconv.Itoa(port)), port, nil
}

// freePort finds a port that nobody listens on now. That another program takes
// it before the server does cannot be ruled out; the server then says so.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// start starts the process.
func (l *Launcher) start(s *plan.Server, words []string) (*child, error) {
	c := &child{clock: l.Clock, grace: l.grace, log: &tail{redactor: l.redactor}, exited: make(chan struct{})}
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
	for name, value := range s.Process.Env {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	// What the process leaves behind may hold its output open.
	c.cmd.WaitDelay = reaped
	ownGroup(c.cmd)
	if l.LogDir != "" {
		path := filepath.Join(l.LogDir, logName(s.Address()))
		file, err := os.Create(path)
		if err != nil {
			return nil, fmt.Errorf("could not begin the server's log: %w", err)
		}
		c.log.file, c.file = file, file
	}
	if err := c.cmd.Start(); err != nil {
		c.closeLog()
		return nil, fmt.Errorf("could not start %s: %w", words[0], err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.exited)
	}()
	return c, nil
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

// gone is why the process is no longer there, unless it was asked to go.
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
	return &exec.ServerError{Err: fmt.Errorf("the server's process ended by itself: %s", how), Log: c.log.String()}
}

// end ends the process and all that it started: first politely, then not. It
// returns an error when something is left.
func (c *child) end() error {
	if c.closing {
		return nil
	}
	c.closing = true
	defer c.closeLog()
	group := c.cmd.Process.Pid
	terminate(group)
	// The children may outlive their parent, with what they hold of the GPU.
	if c.within(c.grace, func() bool { return !alive(group) }) {
		kill(group)
	}
	late := c.within(reaped, func() bool { return !alive(group) })
	ctx, cancel := clock.WithTimeout(context.Background(), c.clock, 2*reaped)
	defer cancel()
	_, err := clock.Await(ctx, c.clock, func(ctx context.Context) (struct{}, error) {
		select {
		case <-c.exited:
			return struct{}{}, nil
		case <-ctx.Done():
			return struct{}{}, errors.New("it did not end")
		}
	})
	if late || err != nil {
		return fmt.Errorf("process group %d could not be killed: it has to be ended by hand", group)
	}
	return nil
}

// within waits until done, and says whether that took too long.
func (c *child) within(d time.Duration, done func() bool) (late bool) {
	until := c.clock.Now() + d
	for !done() {
		if c.clock.Now() >= until || clock.Sleep(context.Background(), c.clock, 20*time.Millisecond) != nil {
			return true
		}
	}
	return false
}

func (c *child) closeLog() {
	c.log.finish()
	if c.file != nil {
		c.file.Close()
	}
}
