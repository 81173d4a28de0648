package strength

import (
	"runtime"
	"slices"
	"sync"

	"github.com/tokgate/tokgate/assert/verdict"
)

// Tally counts the outcomes of a gate's runs.
type Tally struct {
	Passed    int
	Undecided int // inconclusive: the gate neither passed nor failed
	Failed    int // runs in which a requirement failed or the measurement was invalid
}

// Runs returns the number of runs.
func (t Tally) Runs() int { return t.Passed + t.Undecided + t.Failed }

// Fails is the share of runs that failed, in [0, 1]; 0 without runs.
func (t Tally) Fails() float64 {
	if t.Runs() == 0 {
		return 0
	}
	return float64(t.Failed) / float64(t.Runs())
}

// Passes is the share of runs that passed.
func (t Tally) Passes() float64 {
	if t.Runs() == 0 {
		return 0
	}
	return float64(t.Passed) / float64(t.Runs())
}

// Finding holds the outcomes of a gate's runs under one regression.
type Finding struct {
	Regression
	Tally
	// Absent is set if the regression changes nothing. For example, a server without a prefix cache
	// has none to lose.
	Absent bool
}

// Result holds how often a gate fails: with an unchanged server, and with each regression.
type Result struct {
	// Recorded is set if the results are from a recorded run and Stretch, and not from simulated
	// runs.
	Recorded  bool
	Unchanged Tally
	Findings  []Finding
}

// Runs returns the number of runs that were judged in all.
func (r *Result) Runs() int {
	n := r.Unchanged.Runs()
	for _, f := range r.Findings {
		n += f.Runs()
	}
	return n
}

// Try runs a plan with a planted regression, and judges the run. r == nil means no regression.
// Seeds begin at 0. planted is false if the regression changes nothing. Several goroutines call it.
type Try func(r *Regression, seed int) (outcome verdict.Outcome, planted bool, err error)

// Measure tries each regression, and also the unchanged server, in the given number of runs. It
// stops at the first error.
func Measure(list []Regression, runs int, try Try) (*Result, error) {
	out := &Result{}
	for _, r := range list {
		out.Findings = append(out.Findings, Finding{Regression: r})
	}
	type job struct{ finding, seed int } // finding -1: unchanged
	jobs := make(chan job)
	var mu sync.Mutex
	var first error
	done := func(j job, o verdict.Outcome, planted bool, err error) {
		mu.Lock()
		defer mu.Unlock()
		tally := &out.Unchanged
		if j.finding >= 0 {
			tally = &out.Findings[j.finding].Tally
		}
		switch {
		case err != nil && first == nil:
			first = err
		case err != nil || j.finding >= 0 && !planted:
		default:
			tally.Add(o)
		}
	}
	stop := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return first != nil
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range jobs {
				var r *Regression
				if j.finding >= 0 {
					r = &out.Findings[j.finding].Regression
				}
				if !stop() {
					o, planted, err := try(r, j.seed)
					done(j, o, planted, err)
				}
			}
		})
	}
	for seed := range runs {
		for i := -1; i < len(list); i++ {
			jobs <- job{i, seed}
		}
	}
	close(jobs)
	workers.Wait()
	for i := range out.Findings {
		f := &out.Findings[i]
		f.Absent = first == nil && f.Runs() == 0
	}
	return out, first
}

// Add counts the result of a run.
func (t *Tally) Add(o verdict.Outcome) {
	switch o {
	case verdict.Pass:
		t.Passed++
	case verdict.Inconclusive:
		t.Undecided++
	default: // an error or a skipped run does not pass
		t.Failed++
	}
}

// Noticed reports whether at least the given share of the runs fail.
func (f *Finding) Noticed(share float64) bool { return !f.Absent && f.Runs() > 0 && f.Fails() >= share }

// Unnoticed returns the findings on the given regressions that the gate would miss. With each of
// them, fewer than 95% of the runs fail.
func (r *Result) Unnoticed(demanded []Regression) []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if slices.Contains(demanded, f.Regression) && !f.Noticed(Sure) {
			out = append(out, f)
		}
	}
	return out
}

// Sure is the share of runs that must fail for a regression to count as noticed.
const Sure = 0.95
