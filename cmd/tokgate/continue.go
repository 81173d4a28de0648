package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/record/history"
)

// A comparison that ended undecided goes on in a later run: --continue. Its looks share one error, so
// the two runs together err as often as one. Any other rerun rolls the dice again, and says so.

// mostPause is the longest time between the end of a run and its continuation. Drivers, clocks and
// neighbours change in a longer time.
const mostPause = 24 * time.Hour

// continued returns the run in a folder whose comparison o continues; nil if it continues none. It
// returns an error if the run cannot be continued.
func (a *app) continued(plans []*plan.Plan, o runOptions, stored []map[string]*metric.Run) (*metric.Run, error) {
	if o.goOn == "" {
		return nil, nil
	}
	if len(plans) != 1 {
		return nil, usageError("name one plan", "--continue goes on with the run of one plan")
	}
	p := plans[0]
	if why := exec.Continuable(p); why != "" {
		return nil, usageError("run it without --continue", "--continue: %s", why)
	}
	run, err := a.readRun(o.goOn)
	if err != nil {
		return nil, err
	}
	if err := a.needProtected(run, o.goOn, false); err != nil {
		return nil, err
	}
	why := cmp.Or(otherRun(run, a.newRun(p, o, time.Now())), undecided(p, run, stored[0]))
	if why != "" {
		return nil, usageError("run the plan without --continue; it then counts as another attempt", "%s cannot be continued: %s", o.goOn, why)
	}
	for i, l := range run.Levels {
		run.Levels[i] = l.InMemory() // the recording may be replaced by the one that continues it
	}
	return run, nil
}

// otherRun explains why the run now is not the one before; "" if it may continue it.
func otherRun(before *metric.Run, now metric.Run) string {
	for _, x := range []struct{ name, was, is string }{
		{"the plan, or a variable of it,", before.PlanHash, now.PlanHash},
		{"the version of tokgate", before.Tool, now.Tool},
		{"the commit", before.Commit, now.Commit},
		{"the machine", before.Host, now.Host},
		{"simulated", strconv.FormatBool(before.Simulated), strconv.FormatBool(now.Simulated)},
	} {
		if x.was != x.is {
			return fmt.Sprintf("%s is another: %q then, %q now", x.name, x.was, x.is)
		}
	}
	if now.Simulated && before.Salt != now.Salt {
		return fmt.Sprintf("it has another salt: --salt %d", before.Salt)
	}
	if pause := now.Started.Sub(before.Started.Add(before.End)); !now.Simulated && (pause > mostPause || pause < 0) {
		return fmt.Sprintf("it ended %s ago, more than %s", plan.PlainDuration(pause.Round(time.Minute)), plan.PlainDuration(mostPause))
	}
	return ""
}

// undecided explains why no comparison of the run has a look to come; "" if one has.
func undecided(p *plan.Plan, run *metric.Run, stored map[string]*metric.Run) string {
	v := assert.Judge(p, run, assert.Options{Baselines: stored})
	if v.Outcome != verdict.Inconclusive {
		return fmt.Sprintf("it is decided (%s)", v.Outcome)
	}
	last := false
	for _, c := range v.Comparisons {
		if s := c.Stage; s != nil && c.Outcome == verdict.Inconclusive {
			if s.Rounds < slices.Max(s.Planned) {
				return ""
			}
			last = true
		}
	}
	if last {
		return "its comparison was looked at for the last time"
	}
	return "no comparison of it is undecided"
}

// newRun returns what is known of a run before it starts.
func (a *app) newRun(p *plan.Plan, o runOptions, started time.Time) metric.Run {
	run := metric.Run{Tool: buildInfo().Version, Plan: p.Path, PlanHash: p.Hash, Simulated: o.simulate}
	if o.simulate {
		// A simulated run depends only on the plan and this program. It uses no other run, no date
		// and no random id.
		run.ID, run.Salt = simulatedID(p, o.salt), o.salt
		return run
	}
	run.ID, run.Salt, run.Started = runID(started), a.salt(), started
	run.Host, _ = os.Hostname()
	if job := ciJob(a.getenv); job != nil {
		run.Commit = job.Commit
	}
	return run
}

// heed lets a plan learn from the starts in the results of its last run.
func heed(p *plan.Plan, dir string) {
	if doc := resultsAt(filepath.Join(dir, "results.json")); doc != nil && !doc.Run.Simulated {
		compare.Heed(p, doc.Comparisons)
	}
}

// begins returns what is known of a run before it starts, and its clock. A run that continues another
// has the clock of that run.
func (a *app) begins(p *plan.Plan, o runOptions, dir string) (metric.Run, *clock.Real) {
	run := a.newRun(p, o, time.Now())
	before := o.before
	if before == nil {
		run.Attempt = a.attempt(p, run, dir)
		return run, clock.NewReal()
	}
	run.Salt, run.Started, run.Attempt = before.Salt, before.Started, before.Attempt
	return run, clock.NewRealSince(cmp.Or(before.Started, time.Now()))
}

// attempt returns the number of a run among those of the same plan and commit that are known: from the
// CI system, from the results that it replaces, and from the history of the plan.
func (a *app) attempt(p *plan.Plan, run metric.Run, dir string) int {
	n := 1
	if run.Simulated {
		return n
	}
	if text, ok := a.getenv("GITHUB_RUN_ATTEMPT"); ok {
		if k, err := strconv.Atoi(text); err == nil {
			n = max(n, k)
		}
	}
	if run.Commit == "" {
		return n
	}
	if doc := resultsAt(filepath.Join(dir, "results.json")); doc != nil && !doc.Run.Simulated {
		if before := doc.Run; before.PlanHash == run.PlanHash && before.Commit == run.Commit {
			n = max(n, max(before.Attempt, 1)+1)
		}
	}
	if p.History != nil {
		nights, _, _ := history.Read(p.History.Folder) // what cannot be read is not known
		known := 1
		for _, x := range nights.Nights {
			if x.Plan == strings.TrimSuffix(filepath.Base(p.Path), ".hcl") && x.Job != nil && x.Job.Commit == run.Commit {
				known++
			}
		}
		n = max(n, known)
	}
	return n
}

// recorder records the earlier session of a run, if there is one, before this one.
func recorder(w *record.Writer, before *metric.Run) exec.Observer {
	return func(e metric.Event) error {
		err := w.Observe(e)
		if _, started := e.(metric.RunStarted); started && before != nil && err == nil {
			return w.Continue(before)
		}
		return err
	}
}

// pauseOf moves a virtual clock past the end of the run that is continued, by an hour: what a step
// between two sessions does must show in a simulation too.
func pauseOf(ctx context.Context, c *clock.Virtual, before *metric.Run) error {
	if before == nil {
		return nil
	}
	return clock.Sleep(ctx, c, before.End+time.Hour)
}

// runID is unique and sorts by start time.
func runID(started time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return started.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}

// salt returns a random number that makes the prompts of this run unlike those of other runs.
func (a *app) salt() uint64 {
	if a.salts != nil {
		return a.salts()
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
