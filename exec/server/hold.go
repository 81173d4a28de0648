package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server/gpu"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/plan"
)

// held lists what a server under test occupies on this machine. No other run of tokgate may use it
// at the same time.
type held struct {
	server    lease.Server
	gpus      []gpu.GPU // GPUs that the server may use
	inventory gpu.Inventory
	port      int
	url       string // base URL of the server
	locks     []*lease.Note
	note      *lease.Note // note on the server; nil if there is none
	left      bool        // the server could not be ended
	pulled    time.Duration
	others    []string // what killed runs may have left
}

func (l *Launcher) hold(ctx context.Context, s *plan.Server, state func(string)) (*held, error) {
	h := &held{server: lease.Server{Holder: l.Holder, Mark: l.Holder.Run + "/" + s.Address()}}
	h.server.Holder.Server = s.Address()
	if l.Holder.Run == "" {
		h.server.Mark = "" // without the ID of a run the mark would not be unique
	}
	if x := s.Stack; x != nil {
		h.server.Stack = &lease.Stack{URL: l.redactor.Text(x.URL), Down: lease.Digest(x.Down)}
	}
	left, err := l.leftovers(ctx, s, state)
	if err != nil {
		return nil, err
	}
	if err := l.occupy(ctx, h, s, left); err != nil {
		h.release()
		return nil, err
	}
	for _, o := range left {
		if err := o.conflicts(h.server); err != nil {
			h.release()
			return nil, err
		}
		if o.unknown != nil {
			h.others = append(h.others, o.mayRun())
		}
	}
	if l.State != "" {
		if h.note, err = l.State.Begin(h.server); err != nil {
			h.release()
			return nil, err
		}
	}
	return h, nil
}

// occupy reserves what the server takes of this machine: GPUs and a port, or its URL.
func (l *Launcher) occupy(ctx context.Context, h *held, s *plan.Server, left []leftover) (err error) {
	if s.Stack != nil {
		h.url = s.Stack.URL
		return l.lock(h, "the URL "+l.redactor.Text(h.url))
	}
	if s.Pod != nil {
		return nil // nothing yet: a port may be forwarded when the pod runs
	}
	g := s.GPUs()
	if g == nil || g.All || g.Count > 0 || len(g.IDs) > 0 {
		if h.inventory, err = clock.Await(ctx, l.Clock, func(ctx context.Context) (gpu.Inventory, error) {
			return inventory(ctx), ctx.Err()
		}); err != nil {
			return err
		}
	}
	if err := l.takeGPUs(h, g, left); err != nil {
		return err
	}
	if g != nil && len(h.gpus) > 0 {
		for _, g := range h.gpus {
			h.server.GPUs = append(h.server.GPUs, g.Key())
		}
	}
	err = l.takePort(h, s)
	h.server.Port, h.url = h.port, local(h.port)
	return err
}

func local(port int) string { return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// It prefers GPUs on which no other process holds memory.
func (l *Launcher) takeGPUs(h *held, g *plan.GPUs, left []leftover) error {
	n, among, err := gpu.Choose(g, h.inventory)
	if err != nil {
		return err
	}
	var taken []string
	for _, g := range among {
		if len(h.gpus) == n {
			break
		}
		if n < len(among) && slices.ContainsFunc(left, func(o leftover) bool { return slices.Contains(o.GPUs, g.Key()) }) {
			taken = append(taken, g.Key()+" is held by a server that was left over")
			continue
		}
		if l.State != "" {
			note, err := l.State.Take(g.Key(), h.server.Holder)
			if busy, ok := errors.AsType[*lease.Busy](err); ok {
				taken = append(taken, busy.Error())
				continue
			}
			if err != nil {
				return fmt.Errorf("could not lock %s: %w", g.Key(), err)
			}
			h.locks = append(h.locks, note)
		}
		h.gpus = append(h.gpus, g)
	}
	if len(h.gpus) < n {
		return fmt.Errorf("too few free GPUs: %d of %d usable GPUs are free, and %d needed: %s", len(h.gpus), len(among), n, strings.Join(taken, "; "))
	}
	return nil
}

func (l *Launcher) takePort(h *held, s *plan.Server) error {
	fixed := s.FixedPort()
	if fixed != 0 {
		if err := l.lockPort(h, fixed); err != nil {
			return err
		}
		// Check that the port is free. Otherwise tokgate could measure another program.
		if err := bindable(fixed); err != nil {
			return fmt.Errorf("port %d is not free: %w; leave port out for a free one", fixed, err)
		}
		h.port = fixed
		return nil
	}
	for {
		port, err := freePort()
		if err != nil {
			return fmt.Errorf("could not find a free port: %w", err)
		}
		err = l.lockPort(h, port)
		if _, busy := errors.AsType[*lease.Busy](err); busy {
			continue // another run has locked this port
		}
		h.port = port
		return err
	}
}

func (l *Launcher) lockPort(h *held, port int) error { return l.lock(h, "port "+strconv.Itoa(port)) }

func (l *Launcher) lock(h *held, name string) error {
	if l.State == "" {
		return nil
	}
	note, err := l.State.Take(name, h.server.Holder)
	if err != nil {
		return err
	}
	h.locks = append(h.locks, note)
	return nil
}

// If a program takes the port before the server does, the server reports that.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func bindable(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

func (h *held) environment(s *plan.Server) map[string]string {
	if s.GPUs() == nil {
		return nil
	}
	return gpu.Confine(h.gpus)
}

func (h *held) update() error {
	if h.note == nil {
		return nil
	}
	return h.note.Update(h.server)
}

func (h *held) release() {
	for _, n := range h.locks {
		n.Done()
	}
	h.locks = nil
	if h.note != nil {
		if h.left {
			h.note.Leave()
		} else {
			h.note.Done()
		}
		h.note = nil
	}
}
