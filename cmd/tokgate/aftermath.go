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

// supervisedName is set in the environment of a supervised run, to the pid of its
// supervisor. The run's file 3 ends when the supervisor does; to its file 4 it
// says that it ended as it should.
const supervisedName = "TOKGATE_SUPERVISED"

// pid is the process that a user sees and may kill.
func (a *app) pid() int {
	if s, ok := a.getenv(supervisedName); ok {
		if pid, err := strconv.Atoi(s); err == nil {
			return pid
		}
	}
	return os.Getpid()
}

// aftermath follows a run that crashed: it ends the servers that the run left, and
// writes the reports of what was recorded, as errors. It never ends well.
func (a *app) aftermath(ctx context.Context, plans []*plan.Plan, dirs []string, stored []map[string]*metric.Run, o runOptions) error {
	began, err := time.Parse(time.RFC3339Nano, o.crashed)
	if err != nil {
		return usageError("", "--crashed takes a time: %v", err)
	}
	launcher := server.New(server.Options{Clock: clock.NewReal(), State: lease.Dir(a.getenv)})
	say := func(line string) { fmt.Fprintf(a.Err, "tokgate: %s\n", line) }
	if err := launcher.EndLeftovers(ctx, say); err != nil {
		say(err.Error())
	}
	for i, p := range plans {
		run, _, err := record.Read(dirs[i])
		if err != nil || run.Started.Before(began) {
			continue // its run had not begun
		}
		void(run, "tokgate itself crashed during the run")
		out := o.out
		out.dir = dirs[i]
		if _, _, err := a.conclude(p, run, out, assert.Options{Baselines: stored[i]}); err != nil {
			return err
		}
	}
	return measureError(errors.New("tokgate itself crashed: nothing that it measured counts"), "please report it, with the lines above")
}

// void has nothing of a run count, and says why: what it measured is shown, and
// no verdict is given.
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
