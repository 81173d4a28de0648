package record_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/record/disk"
)

// In each run, a different disk call fails: it alone, it alone in the middle of its write, or it
// and all later calls. All requests that the writer accepted can still be read. A run that lost its
// end counts as not ended.
func TestDiskFaults(t *testing.T) {
	run := small(3) // with answers
	for _, kind := range []string{"once", "half", "for ever"} {
		at, calls := 0, 0
		// The fault comes at the disk call with the number at. The first run with fewer calls has
		// no fault, and is the last.
		for calls >= at {
			dir := t.TempDir()
			at++
			calls, run.Recording = 0, ""
			undo := disk.Inject(func(c disk.Call) (int, error) {
				if calls++; calls == at || calls > at && kind == "for ever" {
					return map[string]int{"once": 0, "half": c.Size / 2, "for ever": c.Size / 3}[kind], syscall.ENOSPC
				}
				return 0, nil
			})
			taken, err := recordTaken(dir, run)
			undo()
			problem := kept(dir, run, taken, err)
			must.Need(t, problem == "", "call %d, %s: %s", at, kind, problem)
			must.Need(t, err != nil || calls < at, "call %d, %s: the writer said nothing", at, kind)
		}
		if t.Logf("%s: %d calls", kind, at-1); at < 20 {
			t.Error("so few calls are no run")
		}
	}
}

// kept reads back a recorded run, and describes what is missing or wrong. It returns "" if nothing
// is. The map taken holds the requests that the writer accepted, and err is the writer's error.
func kept(dir string, run *metric.Run, taken map[place]bool, err error) string {
	back, problems, unread := record.Read(dir)
	if unread != nil {
		// If no request was accepted, the file may be missing or empty.
		if len(taken) > 0 {
			return fmt.Sprintf("%d requests are lost: %v", len(taken), unread)
		}
		return ""
	}
	for _, l := range back.Levels {
		for _, r := range append(l.Rounds, l.Voided...) {
			for _, s := range r.Samples {
				delete(taken, key(s))
			}
		}
	}
	ended := back.Recording != "" && len(problems) == 0
	switch {
	case len(taken) > 0:
		return fmt.Sprintf("%d requests are lost: %v", len(taken), problems)
	case err == nil && !ended:
		return fmt.Sprintf("the writer said nothing, and the reader %v", problems)
	case run.Recording != "" && !ended:
		return fmt.Sprintf("the run has a recording, and the reader says %v", problems)
	}
	return ""
}

type place struct {
	server, workload, level string
	round                   int
	phase                   metric.Phase
	order                   int
}

func key(s *metric.Sample) place {
	return place{s.Server, s.Workload, s.Level, s.Round, s.Phase, s.Order}
}

// recordTaken records a run as exec does, and goes on after an error. It returns the requests that
// the writer accepted, and the writer's first error.
func recordTaken(dir string, run *metric.Run) (taken map[place]bool, first error) {
	w, err := record.Create(dir)
	if err != nil {
		return nil, err
	}
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	taken = map[place]bool{}
	note(w.Observe(metric.RunStarted{Run: run}))
	for _, s := range run.Servers {
		note(w.Observe(metric.ServerReady{Server: s}))
		for _, l := range run.Levels {
			if l.Server != s.Address || l.Skipped != "" {
				continue
			}
			note(w.Observe(metric.LevelStarted{Level: l, Due: l.Due()}))
			for _, r := range l.Rounds {
				for _, s := range r.Samples {
					if err := w.Observe(metric.SampleDone{Sample: s}); err != nil {
						note(err)
					} else {
						taken[key(s)] = true
					}
				}
				note(w.Observe(metric.RoundDone{Level: l, Round: r}))
			}
			note(w.Observe(metric.LevelDone{Level: l}))
		}
		note(w.Observe(metric.ServerDone{Server: s}))
	}
	note(w.Observe(metric.RunDone{Run: run}))
	note(w.Close())
	return taken, first
}
