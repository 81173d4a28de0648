package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/plan"
)

// errLeftover means that a server was not started, because a killed run left a server behind. The
// flag --reap removes the server that was left behind.
var errLeftover = errors.New("a killed run left a server behind")

type leftover struct {
	lease.Server
	unknown error // why it is not known whether it still runs; it then hinders no server
}

func (o leftover) String() string {
	what := fmt.Sprintf("process group %d", o.Group)
	switch {
	case o.Stack != nil:
		return fmt.Sprintf("the stack at %s, of %v", o.Stack.URL, o.Holder)
	case o.Container != "":
		what = o.Runtime + " container " + o.Container
	}
	if o.Runtime == kubernetes {
		return fmt.Sprintf("pod %s, of %v", o.Container, o.Holder)
	}
	return fmt.Sprintf("%s on port %d, of %v", what, o.Port, o.Holder)
}

func (o leftover) mayRun() string { return fmt.Sprintf("%v may still run: %v", o, o.unknown) }

// conflicts returns an error if the server s cannot be measured while the leftover runs. It returns
// nil only if their GPUs are known and different, and their ports differ.
func (o leftover) conflicts(s lease.Server) error {
	apart := len(o.GPUs) > 0 && len(s.GPUs) > 0 && o.Port != s.Port &&
		!slices.ContainsFunc(o.GPUs, func(key string) bool { return slices.Contains(s.GPUs, key) })
	if apart || o.unknown != nil {
		return nil
	}
	return fmt.Errorf("%w that still runs: %v; end it, or run with --reap", errLeftover, o)
}

// EndLeftovers ends the servers of runs that were killed or crashed, as the next
// start of a server would.
func (l *Launcher) EndLeftovers(ctx context.Context, state func(string)) error {
	_, err := l.leftovers(ctx, &plan.Server{}, state)
	return err
}

// leftovers finds servers that killed runs left behind. It removes a server if its run is certainly
// dead, or if the user asked for the removal. It returns the servers that still run.
func (l *Launcher) leftovers(ctx context.Context, s *plan.Server, state func(string)) ([]leftover, error) {
	if l.State == "" {
		return nil, nil
	}
	notes, err := l.State.Leftovers()
	if err != nil {
		return nil, fmt.Errorf("could not look for servers of killed runs: %w", err)
	}
	var found []leftover
	known := map[string]bool{}
	for _, n := range notes {
		o := leftover{Server: n.Server}
		known[o.Container] = true
		if o.Runtime == kubernetes && s.Started() && s.Pod == nil {
			n.Leave() // a pod takes nothing of this machine; the next run that starts one looks for it
			continue
		}
		runs, err := l.runs(ctx, o)
		switch {
		case err != nil:
			// The server may still be running. Keep the note on it, so that a later run checks
			// again.
			state(fmt.Sprintf("could not look for %v: %v", o, err))
			n.Leave()
		case !runs:
			n.Done()
		case !l.Reap && l.doubt:
			state(fmt.Sprintf("still running: %v", o))
			found = append(found, o)
			n.Leave()
		default:
			state(fmt.Sprintf("removing what a killed run left behind: %v", o))
			if err := l.removeNoted(ctx, n, &o, state); err != nil {
				return nil, fmt.Errorf("could not remove %v: %w", o, err)
			}
			if o.unknown != nil {
				found = append(found, o)
			}
		}
	}
	if s.Container == nil {
		return found, nil
	}
	labelled, err := l.labelled(ctx, s, known, state)
	if err != nil {
		return nil, err
	}
	return append(found, labelled...), nil
}

// removeNoted removes a leftover and the note on it. What this run cannot end keeps its note.
func (l *Launcher) removeNoted(ctx context.Context, n lease.Leftover, o *leftover, state func(string)) error {
	err := l.remove(ctx, *o)
	why, cannot := errors.AsType[beyond](err)
	switch {
	case cannot:
		o.unknown = why
		state(o.mayRun())
		if !l.Reap {
			n.Leave()
			return nil
		}
	case err != nil:
		n.Leave()
		return err
	}
	n.Done()
	return nil
}

// labelled finds containers that killed runs left behind, by their labels. A note on a container
// may be lost, or be in a different folder. known holds the containers that have a note.
func (l *Launcher) labelled(ctx context.Context, s *plan.Server, known map[string]bool, state func(string)) (found []leftover, err error) {
	c, err := findRuntime(l.Clock, s.Container.Runtime)
	if err != nil {
		return nil, nil // no container runtime; starting the container will report that
	}
	labelled, err := c.labelled(ctx)
	if err != nil {
		return nil, nil // likewise
	}
	for _, server := range labelled {
		o := leftover{Server: server}
		if known[o.Container] || o.Holder.Run == l.Holder.Run {
			continue
		}
		if l.Reap {
			state(fmt.Sprintf("removing %v", o))
			if err := l.remove(ctx, o); err != nil {
				return nil, fmt.Errorf("could not remove %v: %w", o, err)
			}
			continue
		}
		state(fmt.Sprintf("still running: %v", o))
		found = append(found, o)
	}
	return found, nil
}

// runs reports whether a recorded server still exists. For a container it asks the runtime. It
// finds a process by the pid and the start time, or by a mark in the environment. The children of a
// process have the same mark.
func (l *Launcher) runs(ctx context.Context, o leftover) (bool, error) {
	if o.Runtime == kubernetes {
		return l.podRuns(ctx, o)
	}
	if o.Container != "" {
		c, err := findRuntime(l.Clock, o.Runtime)
		if err != nil {
			return false, err
		}
		return c.exists(ctx, o.Container)
	}
	return o.Stack != nil || o.leads() || len(family(0, o.Mark)) > 0, nil
}

func (o leftover) leads() bool { return o.Group > 1 && o.Start != "" && startOf(o.Group) == o.Start }

func (l *Launcher) remove(ctx context.Context, o leftover) error {
	if o.Runtime == kubernetes {
		return l.removePod(ctx, o)
	}
	if o.Container != "" {
		c, err := findRuntime(l.Clock, o.Runtime)
		if err != nil {
			return err
		}
		return c.remove(ctx, o.Container)
	}
	if o.leads() {
		if err := endGroup(l.Clock, o.Group, o.Mark, constant(leftoverGrace)); err != nil {
			return err
		}
	} else if !killAll(l.Clock, 0, o.Mark) {
		// Only the mark was used, and not the process group. The group's leader has ended, so the number
		// of the group may be reused.
		return errors.New("it did not end")
	}
	if o.Stack != nil {
		return l.endStack(ctx, o)
	}
	return nil
}

// beyond is why this run cannot end what another left. It is told, and hinders no server.
type beyond string

func (b beyond) Error() string { return string(b) }

// errUndeclared means that the plan of this run does not declare the command that ends a stack.
const errUndeclared = beyond("no server of this plan has the same `down`, so it was not run. End the stack by hand, then run with --reap to forget it")

// endStack runs the command that ends a stack, if a plan of this run declares it.
func (l *Launcher) endStack(ctx context.Context, o leftover) error {
	i := slices.IndexFunc(l.Stacks, func(x *plan.Stack) bool { return lease.Digest(x.Down) == o.Stack.Down })
	if i < 0 {
		return errUndeclared
	}
	own := &held{server: lease.Server{Holder: l.Holder, Mark: o.Mark}}
	x := &stack{Launcher: l, of: l.Stacks[i], held: own, log: &tail{redactor: l.redactor}}
	return x.end()
}

// leftoverGrace is how long a leftover may take to end by itself.
const leftoverGrace = 5 * time.Second
