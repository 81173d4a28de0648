package exec_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// reader is a fake server that scores answers, each in 100 ms. All tokens have the same
// log-probability. The function fail decides which calls fail.
type reader struct {
	clock clock.Clock
	costs float64
	read  []string // calls of Score so far, each as "prompt: answer"
	fail  func(n int) error
}

func (r *reader) Score(_ context.Context, q *client.Request, said, salt string, done func([]float64, error)) {
	n := len(r.read)
	r.read = append(r.read, q.Prompt.Text+": "+said)
	r.clock.Timer(r.clock.Now()+100*time.Millisecond, func() {
		if r.fail != nil {
			if err := r.fail(n); err != nil {
				done(nil, err)
				return
			}
		}
		done([]float64{-r.costs, -r.costs}, nil)
	})
}

func TestAnswering(t *testing.T) {
	for _, tt := range []struct {
		name    string
		engine  string // of both
		restart plan.Restart
		rounds  int
		fail    func(n int) error
		starts  int // of the control
		pairs   int
		scored  int // number of the candidate's answers that were scored
		again   int
		weighed int // number of the candidate's answers that both servers scored
		why     string
	}{
		// The candidate scores its own answers to these 15 of the 53 prompts: 0, 2, 5, 10, 13, 18,
		// 23, 26, 31, 34, 36, 39, 44, 47 and 52. The control answers the same prompts a second
		// time, except those of the last round. With 5 rounds (11 + 11 + 11 + 10 + 10 prompts) it
		// begins at prompt 43, so 12 are repeated. With 6 rounds it begins at 45, so 13 are.
		//
		// If the candidate has the last leg (turn), the control starts once more to score.
		{name: "each leg", restart: plan.RestartLeg, rounds: 5, starts: 6, pairs: 53, scored: 53, again: 12, weighed: 15},
		{name: "the last leg is the control's", restart: plan.RestartLeg, rounds: 6, starts: 6, pairs: 53, scored: 53, again: 13, weighed: 15},
		{name: "both stay", restart: plan.RestartNever, rounds: 5, starts: 1, pairs: 53, scored: 53, again: 12, weighed: 15},
		{name: "a failure is tried again", restart: plan.RestartLeg, rounds: 5, starts: 6, pairs: 53, scored: 53, again: 12, weighed: 15, fail: func(n int) error {
			if n%7 == 3 && n < 60 {
				return errors.New("HTTP 503")
			}
			return nil
		}},
		{name: "it cannot read, as was known", engine: "llama.cpp", restart: plan.RestartLeg, rounds: 5, starts: 5, pairs: 53, again: 12, why: "no values", fail: func(int) error {
			return fmt.Errorf("%w: no values", client.ErrNoScores)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDuel(tt.rounds, tt.restart, "a", "b")
			d.Compares[0].Answers = &plan.Answering{Prompts: 53, MaxTokens: 2}
			d.Servers[0].Engine, d.Servers[1].Engine = tt.engine, tt.engine
			c := clock.NewVirtual()
			readers := map[string]*reader{}
			run := d.runOn(t, c, func(config *exec.Config) {
				launch := config.Launch
				config.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
					target, err := launch(ctx, s, state)
					if readers[s.Address()] == nil {
						readers[s.Address()] = &reader{clock: c, fail: tt.fail, costs: 1}
					}
					if s.Address() == "b" {
						readers["b"].costs = 1.25
					}
					target.Scorer = readers[s.Address()]
					return target, err
				}
			})
			got := run.Comparisons[0].Answers
			scored, again, weighed := 0, 0, 0
			for _, p := range got.Pairs {
				if p.Candidate != nil && p.Candidate.Scored == 2 && p.Candidate.Loss == 2 && p.Control.Scored == 2 {
					scored++
				}
				if p.Again != nil {
					again++
				}
				if p.Candidate != nil && p.Candidate.Weighed == 2 && p.Candidate.Gap == 0.5 && p.Control.Weighed == 0 {
					weighed++
				}
			}
			// Each round has 4 measured requests on each server, fewer than are read.
			sampled, candidates := 0, 0
			for _, x := range got.Sampled {
				if x.Candidate {
					candidates++
				}
				if x.Scored == 2 && x.Worst == 1 {
					sampled++
				}
			}
			if n := 4 * tt.rounds; len(got.Sampled) != 2*n || candidates != n || tt.why == "" && sampled != 2*n {
				t.Errorf("%d measured answers, %d of the candidate, %d read, want %d of each", len(got.Sampled), candidates, sampled, n)
			}
			must.Hold(t, weighed == tt.weighed, "%d of the candidate's answers were read by both, want %d", weighed, tt.weighed)
			if len(got.Pairs) != tt.pairs || got.Due != 53 || scored != tt.scored || again != tt.again || got.Again != tt.again || !strings.Contains(got.Unscored, tt.why) {
				t.Errorf("%d pairs of %d, %d read, %d again of %d, unread because %q", len(got.Pairs), got.Due, scored, again, got.Again, got.Unscored)
			}
			n := strings.Count(strings.Join(d.log, " "), "start a")
			must.Hold(t, n == tt.starts, "the control was started %d times, want %d", n, tt.starts)
			if n := exec.Starts(d.Plan, d.Servers[0]); n != tt.starts && tt.why == "" {
				t.Errorf("%d starts of the control were planned, want %d", n, tt.starts)
			}
			if n := len(readers["b"].read); tt.fail == nil && n != tt.weighed {
				t.Errorf("the candidate read %d answers", n)
			}
			if prompts, again := exec.Asks(d.Compares[0]); prompts != 53 || again != tt.again {
				t.Errorf("planned: %d prompts, %d again", prompts, again)
			}
			// Both servers answered each prompt once, and the control some of them twice.
			var asked [2][]string
			for i, name := range []string{"a", "b"} {
				for _, p := range d.prompts[name] {
					if strings.Contains(p, "Phase:"+string(exec.Answered)) {
						asked[i] = append(asked[i], p)
					}
				}
				slices.Sort(asked[i])
			}
			if len(asked[0]) != 53+tt.again || len(asked[1]) != 53 || !slices.Equal(slices.Compact(asked[0]), asked[1]) {
				t.Errorf("asked of %d and %d prompts", len(asked[0]), len(asked[1]))
			}
			for _, l := range run.Levels {
				for _, r := range l.Rounds {
					must.Hold(t, len(r.MeasuredSamples()) == 4, "%d measured samples in a round of 4", len(r.MeasuredSamples()))
				}
			}
		})
	}
}

// TestAnsweringCutShort: a prompt without an answer counts as missing, and reports say how many are
// missing.
func TestAnsweringCutShort(t *testing.T) {
	d := newDuel(5, plan.RestartLeg, "a", "b")
	d.Compares[0].Answers = &plan.Answering{Prompts: 50, MaxTokens: 2}
	c := clock.NewVirtual()
	ctx, interrupt := context.WithCancel(t.Context())
	legs := 0
	d.observed = func(s *metric.Sample) {
		if legs++; legs == 60 {
			interrupt()
		}
	}
	run := d.runOn(t, c, func(config *exec.Config) {
		config.Drain = ctx
		launch := config.Launch
		config.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
			target, err := launch(ctx, s, state)
			target.Scorer = &reader{clock: c}
			return target, err
		}
	})
	rec := run.Comparisons[0]
	if rec.Skipped == "" || rec.Answers.Due != 50 || len(rec.Answers.Pairs) == 0 || len(rec.Answers.Pairs) >= 50 {
		t.Errorf("skipped %q, %d of %d pairs", rec.Skipped, len(rec.Answers.Pairs), rec.Answers.Due)
	}
}

// TestAnsweringUnread: if the control cannot score answers, the comparison ends after the first
// turn of a server (its first leg).
func TestAnsweringUnread(t *testing.T) {
	d := newDuel(5, plan.RestartLeg, "a", "b")
	d.Compares[0].Answers = &plan.Answering{Prompts: 50, MaxTokens: 2}
	c := clock.NewVirtual()
	run := d.runOn(t, c, func(config *exec.Config) {
		launch := config.Launch
		config.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
			target, err := launch(ctx, s, state)
			target.Scorer = &reader{clock: c, fail: func(int) error { return fmt.Errorf("%w: no values", client.ErrNoScores) }}
			return target, err
		}
	})
	got := run.Comparisons[0]
	must.Hold(t, strings.Contains(got.Skipped, "cannot be asked how likely an answer is") && strings.Contains(got.Skipped, "no values"), "skipped %q", got.Skipped)
	n := strings.Count(strings.Join(d.log, " "), "start")
	must.Hold(t, n == 1, "%d starts: %q", n, d.log)
}

// TestAnsweringWithholds: a workload that records only hashes of answers, or nothing, keeps their
// texts out of the comparison too. The record then says only how far the two answers of a pair
// agree.
func TestAnsweringWithholds(t *testing.T) {
	for store, kept := range map[plan.Store]bool{"": true, plan.StoreText: true, plan.StoreHash: false, plan.StoreNone: false} {
		d := newDuel(5, plan.RestartLeg, "a", "b")
		d.Compares[0].Answers = &plan.Answering{Prompts: 10, MaxTokens: 2}
		d.Servers[0].Engine, d.Servers[1].Engine = "llama.cpp", "llama.cpp"
		d.Workloads[0].Answers.Store = store
		for _, p := range d.run(t, nil).Comparisons[0].Answers.Pairs {
			if (p.Control.Text != "") != kept || (p.Candidate.Text != "") != kept || p.Candidate.Agrees == 0 {
				t.Fatalf("store %q: %+v, %+v", store, p.Control, p.Candidate)
			}
		}
	}
}

// TestAnsweringSheds: the prompts of a round do not count as missing if the budget leaves no time
// for the round.
func TestAnsweringSheds(t *testing.T) {
	run := func(budget time.Duration) *metric.Run {
		d := newDuel(8, plan.RestartLeg, "a", "b")
		d.Compares[0].Answers = &plan.Answering{Prompts: 80, MaxTokens: 2}
		d.Servers[0].Engine, d.Servers[1].Engine = "llama.cpp", "llama.cpp" // which read nothing
		return d.run(t, func(c *exec.Config) { c.Budget = budget })
	}
	got := run(run(-1).End / 8 * 13 / 2).Comparisons[0]
	n := len(got.Looks)
	must.Need(t, n == 1 && got.Looks[0].Rounds < 8 && got.Skipped == "", "looks %v, skipped %q", got.Looks, got.Skipped)
	// Count the prompts that the control answered twice. The last round has none.
	again := 0
	for _, p := range got.Answers.Pairs {
		if p.Again != nil {
			again++
		}
	}
	if due := 10 * got.Looks[0].Rounds; got.Answers.Due != due || len(got.Answers.Pairs) != due || got.Answers.Again != again {
		t.Errorf("%d pairs of %d, want %d; %d again of %d", len(got.Answers.Pairs), got.Answers.Due, due, again, got.Answers.Again)
	}
}
