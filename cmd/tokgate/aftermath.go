package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// supervisedName is the environment variable that tells a run the pid of its supervisor.
//
// A supervised run also gets two file descriptors. Descriptor 3 reaches its end when the supervisor
// ends. Through descriptor 4 the run reports that it ended normally.
const supervisedName = "TOKGATE_SUPERVISED"

// pid returns the process id that users see and may kill. It is the supervisor's, if there is a
// supervisor.
func (a *app) pid() int {
	if s, ok := a.getenv(supervisedName); ok {
		if pid, err := strconv.Atoi(s); err == nil {
			return pid
		}
	}
	return os.Getpid()
}

// endLeftovers ends the servers of a run that has crashed. Of a stack it ends what a plan declares.
func (a *app) endLeftovers(ctx context.Context, plans []*plan.Plan) {
	launcher := server.New(server.Options{Clock: clock.NewReal(), State: lease.Dir(a.getenv), Stacks: stacks(plans...)})
	say := func(line string) { fmt.Fprintf(a.Err, "tokgate: %s\n", line) }
	if err := launcher.EndLeftovers(ctx, say); err != nil {
		say(err.Error())
	}
}

func stacks(plans ...*plan.Plan) (out []*plan.Stack) {
	for _, p := range plans {
		for _, s := range p.Servers {
			if s.Stack != nil {
				out = append(out, s.Stack)
			}
		}
	}
	return out
}

// aftermath writes reports of what a crashed run recorded. The outcome of each report is error, and
// the exit code is never 0.
func (a *app) aftermath(ctx context.Context, plans []*plan.Plan, dirs []string, stored []map[string]*metric.Run, o runOptions) error {
	began, err := time.Parse(time.RFC3339Nano, o.crashed)
	if err != nil {
		return usageError("", "--crashed takes a time: %v", err)
	}
	for i, p := range plans {
		run, _, err := record.Read(dirs[i])
		if err != nil || run.Started.Before(began) {
			continue // an older recording: the crash came before this plan's run
		}
		void(run, "tokgate itself crashed during the run")
		out := o.out
		out.dir = dirs[i]
		if _, _, err := a.conclude(p, run, out, assert.Options{Baselines: stored[i]}); err != nil {
			return err
		}
	}
	return measureError(errors.New("tokgate crashed, so the run has no verdict"), "this is a bug in tokgate: please report it with the lines above")
}

// void invalidates a run, for the given reason: its measurements are shown, but get no verdict.
func void(run *metric.Run, why string) {
	if run == nil {
		return
	}
	for _, s := range run.Servers {
		if s.Error == "" {
			s.Error = why
		}
	}
}
