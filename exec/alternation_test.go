package exec_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// duel is a plan that compares servers by one workload. Its log holds the starts, legs and ends of
// the servers. A leg is one round on one server.
type duel struct {
	*plan.Plan
	restart plan.Restart
	rounds  int
	log     []string // events such as "start a" and "leg a 0"
	legs    map[string]int
	ended   []string // ended rounds, with the reason if they do not count: "a 0 the generator …"
	// observed is called with each request after it has ended; nil means no call.
	observed func(*metric.Sample)
	prompts  map[string][]string
	// launch is called at the start of a server. It may return an error or change the fingerprint;
	// nil changes nothing.
	launch func(address string, start int) (metric.Fingerprint, error)
	itl    map[string]time.Duration // of a server; 0: 100 ms
}

func newDuel(rounds int, restart plan.Restart, names ...string) *duel {
	w := &plan.Workload{Name: "chat", API: plan.Chat, Input: 100, Output: plan.Output{Mean: 2},
		Loads: []*plan.Load{{Kind: metric.ClosedLoop, Seeds: []int64{1, 2, 3}, Warmup: plan.WarmupAuto, Stagger: plan.StaggerAuto,
			Levels: []plan.Level{{Name: "2", N: 2, Requests: 4 * rounds, Rounds: rounds}}}}}
	p := &plan.Plan{Workloads: []*plan.Workload{w}}
	for _, name := range names {
		p.Servers = append(p.Servers, &plan.Server{Name: name})
	}
	w.Servers = p.Servers
	for _, s := range p.Servers[1:] {
		p.Compares = append(p.Compares, &plan.Compare{Name: s.Name, Control: plan.Control{Server: p.Servers[0]}, Candidate: s, Rounds: rounds, Restart: restart})
	}
	return &duel{Plan: p, restart: restart, rounds: rounds, prompts: map[string][]string{}, legs: map[string]int{}}
}

// run runs the duel in virtual time.
func (d *duel) run(t *testing.T, change func(*exec.Config)) *metric.Run {
	t.Helper()
	return d.runOn(t, clock.NewVirtual(), change)
}

func (d *duel) runOn(t *testing.T, c clock.Clock, change func(*exec.Config)) *metric.Run {
	t.Helper()
	b := newBench(t, c, d.Plan, nil)
	starts := map[string]int{}
	b.Launch = func(_ context.Context, s *plan.Server, _ func(string)) (*exec.Target, error) {
		address := s.Address()
		start := starts[address]
		starts[address]++
		found := metric.Fingerprint{"model": "fake"}
		if d.launch != nil {
			f, err := d.launch(address, start)
			if err != nil {
				return nil, err
			}
			if f != nil {
				found = f
			}
		}
		d.log = append(d.log, "start "+address)
		return &exec.Target{
			Model: "fake", Fingerprint: found, Start: metric.Start{Cold: 3 * time.Second, ColdEnd: 4 * time.Second},
			Transport: &transport{clock: c, tick: 100 * time.Millisecond, script: func(_ int, r *client.Request) reply {
				d.prompts[address] = append(d.prompts[address], r.Prompt.Text)
				return reply{ttft: time.Second, itl: max(d.itl[address], 100*time.Millisecond), text: "word "}
			}},
			Prompts: func(_ context.Context, w *plan.Workload, _ uint64) (exec.Prompts, error) {
				return prompts{w.Address()}, nil
			},
			Close: func() error { d.log = append(d.log, "end "+address); return nil },
		}, nil
	}
	b.Observer = d.heard(b.Observer)
	if change != nil {
		change(&b.Config)
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	return run
}

// heard returns an observer that also notes the ends of legs and rounds. A round ends when all its legs have.
func (d *duel) heard(next exec.Observer) exec.Observer {
	return func(e metric.Event) error {
		switch e := e.(type) {
		case metric.SampleDone:
			if d.observed != nil {
				d.observed(e.Sample)
			}
		case metric.LevelDone:
			if e.Level.Skipped == "" {
				d.log = append(d.log, fmt.Sprintf("leg %s %d", e.Level.Server, d.legs[e.Level.Server]))
				d.legs[e.Level.Server]++
			}
		case metric.RoundDone:
			d.ended = append(d.ended, fmt.Sprintf("%s %d %s", e.Level.Server, e.Round.Index, e.Round.Void))
		case metric.ComparisonDone:
			d.log = append(d.log, "compared "+e.Comparison.Name)
		}
		return next(e)
	}
}

// story returns the log in short form. In "a{0} b{0 1}" each start of a server is followed by the
// numbers of its legs.
func (d *duel) story() string {
	open := map[string]string{}
	var order []string
	for _, line := range d.log {
		f := strings.Fields(line)
		switch f[0] {
		case "start":
			open[f[1]] = f[1] + "{"
		case "leg":
			open[f[1]] += f[2] + " "
		case "end":
			order = append(order, strings.TrimSpace(open[f[1]])+"}")
		}
	}
	return strings.Join(order, " ")
}

func TestTurns(t *testing.T) {
	for _, row := range []struct {
		restart plan.Restart
		rounds  int
		names   []string
		want    string
	}{
		{plan.RestartLeg, 4, []string{"a", "b"}, "a{0} b{0} b{1} a{1} a{2} b{2} b{3} a{3}"},
		{plan.RestartNever, 3, []string{"a", "b"}, "a{0 1 2} b{0 1 2}"},
		{plan.RestartLeg, 2, []string{"a", "b", "c"}, "a{0} b{0} c{0} c{1} b{1} a{1}"},
	} {
		d := newDuel(row.rounds, row.restart, row.names...)
		run := d.run(t, nil)
		must.Same(t, string(row.restart), row.want, d.story())
		for _, name := range row.names[1:] {
			must.Hold(t, slices.Equal(d.prompts[name], d.prompts["a"]), "%s: %s was sent other prompts than a", row.restart, name)
		}
		// The field Slot of a leg is its place in the order of all legs. Every second round has the
		// servers in reverse order.
		for _, l := range run.Levels {
			must.Need(t, len(l.Rounds) == row.rounds, "%s: %d rounds on %s", row.restart, len(l.Rounds), l.Server)
			for i, r := range l.Rounds {
				turn := slices.Index(row.names, l.Server)
				if i%2 == 1 {
					turn = len(row.names) - 1 - turn
				}
				if r.Index != i || r.Leg == nil || r.Leg.Slot != len(row.names)*i+turn || !r.Complete {
					t.Errorf("%s: round %d on %s: %+v %+v", row.restart, i, l.Server, r, r.Leg)
				}
			}
		}
		if len(run.Comparisons) != len(row.names)-1 || run.Comparisons[0].Skipped != "" || run.Servers[0].Starts[0].Cold != 3*time.Second {
			t.Errorf("%s: %+v, %+v", row.restart, run.Comparisons, run.Servers[0])
		}
		must.Hold(t, len(run.Servers) == len(row.names), "%s: %d servers", row.restart, len(run.Servers))
	}
}

// If one leg of a round was disturbed, both legs are measured again at once. The new legs send new
// prompts, which are the same on both servers.
func TestTurnsDisturbed(t *testing.T) {
	late := func(legs ...int) func(*exec.Config) {
		return func(c *exec.Config) {
			n := -1
			c.Meter = func() func() metric.Health {
				n++
				h := metric.Health{CPU: .5}
				if slices.Contains(legs, n) {
					h.Delay = time.Second
				}
				return func() metric.Health { return h }
			}
		}
	}
	const words, its = "the load generator may have read and sent up to 1 s late", "its pair on b: the load generator may have read and sent up to 1 s late"
	for _, row := range []struct {
		restart plan.Restart
		names   []string
		rounds  int
		late    []int // numbers of the legs that are late, in order of time, from 0
		story   string
		voided  map[int]string // for rounds of server a that do not count: the expected reason
		of      int            // number of rounds on each server that were measured but do not count
	}{
		{plan.RestartLeg, []string{"a", "b"}, 4, []int{1}, "a{0} b{0} a{1} b{1} b{2} a{2} a{3} b{3} b{4} a{4}", map[int]string{0: its}, 1},
		{plan.RestartLeg, []string{"a", "b"}, 4, []int{3}, "a{0} b{0} b{1} a{1} b{2} a{2} a{3} b{3} b{4} a{4}", map[int]string{1: words}, 1},
		{plan.RestartNever, []string{"a", "b"}, 3, []int{5}, "a{0 1 2 3} b{0 1 2 3}", map[int]string{2: its}, 1},
		// If the leg of one candidate is disturbed, all servers of the round repeat their legs.
		{plan.RestartLeg, []string{"a", "b", "c"}, 2, []int{1}, "a{0} b{0} c{0} a{1} b{1} c{1} c{2} b{2} a{2}", map[int]string{0: its}, 1},
		// All rounds are disturbed, but only a third of the rounds may be measured again.
		{plan.RestartNever, []string{"a", "b"}, 9, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "a{0 1 2 3 4 5 6 7 8 9 10 11} b{0 1 2 3 4 5 6 7 8 9 10 11}", map[int]string{0: words, 1: words, 2: words}, 3},
	} {
		t.Run(fmt.Sprintf("%s %v", row.restart, row.late), func(t *testing.T) {
			d := newDuel(row.rounds, row.restart, row.names...)
			run := d.run(t, late(row.late...))
			must.Same(t, "", row.story, d.story())
			a := run.Levels[0]
			for _, l := range run.Levels {
				if len(l.Rounds) != row.rounds || len(l.Voided) != row.of {
					t.Fatalf("%s: %d rounds and %d voided, want %d and %d", l.Server, len(l.Rounds), len(l.Voided), row.rounds, row.of)
				}
				for i, r := range l.Rounds {
					if r.Index != a.Rounds[i].Index || r.Seed != a.Rounds[i].Seed || r.Due != 4 {
						t.Errorf("round %d of %s has index %d, seed %d and %d requests; on a %d and %d", i, l.Server, r.Index, r.Seed, r.Due, a.Rounds[i].Index, a.Rounds[i].Seed)
					}
				}
				must.Hold(t, slices.Equal(d.prompts[l.Server], d.prompts["a"]), "%s was sent other prompts than a", l.Server)
			}
			for _, r := range a.Voided {
				must.Hold(t, r.Void == row.voided[r.Index], "round %d is voided for %q, want %q", r.Index, r.Void, row.voided[r.Index])
			}
			// Every round is recorded once, with its outcome.
			want := len(row.names) * (row.rounds + row.of)
			must.Hold(t, len(d.ended) == want, "%d rounds were recorded, want %d: %q", len(d.ended), want, d.ended)
			c := run.Comparisons[0]
			must.Hold(t, c.Skipped == "", "%v", c.Skipped)
		})
	}
}

// A recording shows which legs, the turns of one server, were measured again. So judging the
// recording uses the same rounds as the run did.
func TestTurnsDisturbedRecorded(t *testing.T) {
	dir := t.TempDir()
	w, err := record.Create(dir)
	must.Do(t, err)
	legs := 0
	d := newDuel(4, plan.RestartLeg, "a", "b")
	run := d.run(t, func(c *exec.Config) {
		c.Observer = w.Observe
		c.Meter = func() func() metric.Health {
			legs++
			late := legs == 2 // the candidate's first leg
			return func() metric.Health {
				return metric.Health{CPU: .5, Delay: map[bool]time.Duration{true: time.Second}[late]}
			}
		}
	})
	must.Do(t, w.Close())
	got, problems, err := record.Read(dir)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	must.Same(t, "-run +recording", run, got, cmpopts.EquateEmpty())
	for _, l := range got.Levels {
		if len(l.Rounds) != 4 || len(l.Voided) != 1 || l.Voided[0].Index != 0 || len(l.Voided[0].Samples) == 0 {
			t.Errorf("%s: %d rounds, voided %v", l.Server, len(l.Rounds), l.Voided)
		}
	}
}

// A candidate's leg ends after three times the control's longest leg, times one plus the tolerated
// loss. The comparison goes on.
func TestTurnsLimit(t *testing.T) {
	for _, row := range []struct {
		tolerated float64
		limit     time.Duration // 0: the leg ends by itself
		canceled  int
	}{
		// The control answers 4 requests in two waves of 1.1 s, its second slot 0.55 s behind the first:
		// 2.75 s. The candidate takes 6 s for a wave, so its last answer comes after more than 12 s.
		{0, 8250 * time.Millisecond, 2},
		{0.5, 12375 * time.Millisecond, 1},
		{1, 0, 0},
	} {
		d := newDuel(2, plan.RestartLeg, "a", "b")
		d.itl = map[string]time.Duration{"b": 5 * time.Second}
		d.Compares[0].Claims = []*plan.Claim{{Changes: []*plan.ChangeBound{{Metric: metric.MustLookup("e2e"), Limit: row.tolerated}}}}
		run := d.run(t, nil)
		if got, want := d.story(), "a{0} b{0} b{1} a{1}"; got != want || run.Comparisons[0].Skipped != "" {
			t.Errorf("%v: %s, want %s: %q", row.tolerated, got, want, run.Comparisons[0].Skipped)
		}
		for _, r := range run.Levels[0].Rounds {
			must.Hold(t, r.Limit == 0 && r.Complete, "%v: the control's leg was ended after %v", row.tolerated, r.Limit)
		}
		for _, r := range run.Levels[1].Rounds {
			canceled := 0
			for _, x := range r.MeasuredSamples() {
				if x.Canceled() {
					canceled++
				}
			}
			if r.Limit != row.limit || r.Complete != (row.limit == 0) || canceled != row.canceled || r.Due != 4 {
				t.Errorf("%v: the candidate's leg: limit %v, want %v; %d cancelled, want %d; complete %v", row.tolerated, r.Limit, row.limit, canceled, row.canceled, r.Complete)
			}
		}
	}
}

// The generator's process freezes during one leg of a comparison, as by SIGSTOP. Whichever leg it
// was, both legs of the pair are measured again.
func TestTurnsFrozen(t *testing.T) {
	for _, still := range []time.Duration{300 * time.Millisecond, 2 * time.Second, 8 * time.Second} {
		for _, side := range []string{"a", "b"} {
			synctest.Test(t, func(t *testing.T) {
				d := newDuel(6, plan.RestartLeg, "a", "b")
				run := d.runOn(t, clock.NewReal(), func(c *exec.Config) {
					c.Meter = func() func() metric.Health { return func() metric.Health { return metric.Health{CPU: .5} } }
					d.observed = func(x *metric.Sample) {
						if x.Server == side && x.Round == 2 && x.Phase == metric.Measured && x.Order == 1 {
							time.Sleep(still)
						}
					}
				})
				for _, l := range run.Levels {
					if len(l.Rounds) != 6 || len(l.Voided) != 1 || l.Voided[0].Index != 2 {
						t.Fatalf("%v on %s: %d rounds and %d voided on %s", still, side, len(l.Rounds), len(l.Voided), l.Server)
					}
					own := l.Voided[0].Health.Stall >= still-100*time.Millisecond
					if said := l.Voided[0].Void; own != (l.Server == side) || !strings.Contains(said, "the generator stood still for") {
						t.Errorf("%v on %s: on %s a stall of %v, %q", still, side, l.Server, l.Voided[0].Health.Stall, said)
					}
					for _, r := range l.Rounds {
						must.Hold(t, r.Health.Stall <= 0, "%v on %s: round %d of %s is judged, with a stall of %v", still, side, r.Index+1, l.Server, r.Health.Stall)
					}
				}
			})
		}
	}
}

// A run must notice differences between servers that the plan does not allow. If the servers keep
// running, it notices them before any leg. If each leg starts a fresh server, it notices them after
// the first leg.
func TestTurnsOfServersThatDiffer(t *testing.T) {
	for _, row := range []struct {
		restart plan.Restart
		changed []string
		want    string
	}{
		{plan.RestartNever, nil, "start a, start b, end a, end b, compared b"},
		{plan.RestartLeg, nil, "start a, leg a 0, end a, start b, end b, compared b"},
		{plan.RestartLeg, []string{"image"}, ""}, // an image may bring its own version
	} {
		d := newDuel(4, row.restart, "a", "b")
		d.Compares[0].Changed = row.changed
		d.launch = func(address string, _ int) (metric.Fingerprint, error) {
			return metric.Fingerprint{"version": "of " + address}, nil
		}
		run := d.run(t, nil)
		skipped := run.Comparisons[0].Skipped
		if row.want == "" {
			if skipped != "" || len(run.Levels[1].Rounds) != 4 {
				t.Errorf("%s: %q after %d rounds", row.restart, skipped, len(run.Levels[1].Rounds))
			}
			continue
		}
		if got := strings.Join(d.log, ", "); got != row.want || !strings.Contains(skipped, "the servers differ in version, but `changed` does not list it") {
			t.Errorf("%s: %s, want %s; %q", row.restart, got, row.want, skipped)
		}
	}
}

// A comparison that ends early gives the reason, and leaves nothing running.
func TestTurnsThatEnd(t *testing.T) {
	for _, row := range []struct {
		name   string
		launch func(string, int) (metric.Fingerprint, error)
		says   string // of the comparison
		server string // of b
	}{
		{"a start fails", func(address string, start int) (metric.Fingerprint, error) {
			if address == "b" && start == 2 {
				return nil, errors.New("CUDA out of memory")
			}
			return nil, nil
		}, "b could not be measured: CUDA out of memory", "CUDA out of memory"},
		{"it comes back as another one", func(address string, start int) (metric.Fingerprint, error) {
			return metric.Fingerprint{"version": map[bool]string{true: "2", false: "1"}[address == "b" && start == 3]}, nil
		}, "start 4 found another server", `start 4 found another server: version was "1" and is now "2"`},
		{"it comes back as another one after a start that did not tell", func(address string, start int) (metric.Fingerprint, error) {
			return map[bool]metric.Fingerprint{true: {"model": "fake"}, false: {"version": map[bool]string{true: "2", false: "1"}[address == "b" && start == 2]}}[start == 1], nil
		}, "start 3 found another server", `start 3 found another server: version was "1" and is now "2"`},
		{"the first start fails", func(address string, start int) (metric.Fingerprint, error) {
			return nil, map[bool]error{true: errors.New("no such image")}[address == "b"]
		}, "b could not be measured: no such image", "no such image"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDuel(8, plan.RestartLeg, "a", "b")
			d.launch = row.launch
			run := d.run(t, nil)
			c := run.Comparisons[0]
			must.Hold(t, strings.Contains(c.Skipped, row.says), "%+v", c)
			i := slices.IndexFunc(run.Servers, func(s *metric.ServerRun) bool { return s.Address == "b" })
			must.Hold(t, i >= 0 && run.Servers[i].Error == row.server, "%+v", run.Servers)
			started, ended := 0, 0
			for _, line := range d.log {
				started += map[bool]int{true: 1}[strings.HasPrefix(line, "start")]
				ended += map[bool]int{true: 1}[strings.HasPrefix(line, "end")]
			}
			must.Hold(t, started == ended, "%d starts, %d ends", started, ended)
			must.Hold(t, len(run.Levels) == 2, "%d levels: every case is listed", len(run.Levels))
		})
	}
}

// If no request completes at a level, the comparison ends and says why.
func TestTurnsInWhichNothingCompletes(t *testing.T) {
	d := newDuel(8, plan.RestartLeg, "a", "b")
	run := d.run(t, func(c *exec.Config) {
		launch := c.Launch
		c.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
			target, err := launch(ctx, s, state)
			if err == nil && s.Name == "b" {
				target.Transport = &transport{clock: c.Clock, tick: 100 * time.Millisecond, script: func(int, *client.Request) reply { return reply{status: errBusy} }}
			}
			return target, err
		}
	})
	c := run.Comparisons[0]
	must.Hold(t, strings.Contains(c.Skipped, "round 1 of chat at 2 on b was cut short") && strings.Contains(c.Skipped, "CUDA out of memory"), "%q", c.Skipped)
}

// A comparison is judged after each round from its first look on, and ends when it is decided. A short
// budget leaves out the last looks before the first was made.
func TestTurnsInStages(t *testing.T) {
	whole := newDuel(8, plan.RestartLeg, "a", "b").run(t, nil)
	each := whole.End / 8
	must.Need(t, each > 0, "%v", whole.End)
	// decides returns a judge that decides at the look after the given number of rounds.
	decides := func(at int) exec.JudgeComparison {
		return func(_ *plan.Compare, run *metric.Run) (metric.Outcome, bool) {
			c := run.Comparisons[0]
			if n := c.Looks[len(c.Looks)-1].Rounds; n < at {
				return metric.Inconclusive, false
			}
			return metric.Pass, true
		}
	}
	for _, row := range []struct {
		name                string
		rounds, least, most int
		budget              time.Duration
		judge               exec.JudgeComparison
		want                int
		planned, looks      string
		note                string
	}{
		{"decided at the first look", 6, 3, 0, -1, decides(3), 3, "[3 4 5 6]", "[{3 0 pass}]", ""},
		{"decided at the third", 6, 3, 0, -1, decides(5), 5, "[3 4 5 6]", "[{3 0 inconclusive} {4 0 inconclusive} {5 0 pass}]", ""},
		{"never decided", 5, 3, 0, -1, decides(99), 5, "[3 4 5]", "[{3 0 inconclusive} {4 0 inconclusive} {5 0 inconclusive}]", ""},
		{"extended", 4, 3, 6, -1, decides(99), 6, "[3 4 5 6]", "[{3 0 inconclusive} {4 0 inconclusive} {5 0 inconclusive} {6 0 inconclusive}]", ""},
		{"time for five", 12, 3, 0, 5*each + each/2, decides(99), 5, "[3 4 5]", "[{3 0 inconclusive} {4 0 inconclusive} {5 0 inconclusive}]", "the budget leaves time for at most 5 of 12 rounds"},
		{"time for the first look alone", 12, 3, 0, 3*each + each/2, decides(99), 3, "[3]", "[{3 0 pending}]", "at most 3 of 12 rounds"},
		{"judged once, time for six", 8, 0, 0, 6*each + each/2, decides(99), 6, "[6]", "[{6 0 pending}]", "the budget left time for 6 of 8 rounds"},
		{"nobody judges", 8, 3, 0, -1, nil, 8, "[8]", "[{8 0 pending}]", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDuel(row.rounds, plan.RestartLeg, "a", "b")
			d.Compares[0].LeastRounds, d.Compares[0].MostRounds = row.least, row.most
			run := d.run(t, func(c *exec.Config) { c.Budget, c.JudgeComparison = row.budget, row.judge })
			c := run.Comparisons[0]
			if n := len(run.Levels[1].Rounds); n != row.want || fmt.Sprint(c.Planned) != row.planned || fmt.Sprint(c.Looks) != row.looks || c.Skipped != "" {
				t.Errorf("%d rounds, planned %v, looks %v, skipped %q; want %d, %s, %s", n, c.Planned, c.Looks, c.Skipped, row.want, row.planned, row.looks)
			}
			notes := strings.Join(c.Notes, "; ")
			must.Hold(t, strings.Contains(notes, row.note) && (row.note == "") == (notes == ""), "notes %q", notes)
		})
	}
	// Without time for the first look, a comparison is skipped.
	d := newDuel(12, plan.RestartLeg, "a", "b")
	d.Compares[0].LeastRounds = 3
	run := d.run(t, func(c *exec.Config) { c.Budget, c.JudgeComparison = 2*each, decides(3) })
	c := run.Comparisons[0]
	must.Hold(t, c.Skipped != "" && len(c.Looks) <= 0 && run.Stopped == exec.StoppedBudget, "%+v, stopped %q", c, run.Stopped)
}

// All rounds of a comparison ask for answers of the same lengths, in the same order and whatever their
// seeds are. So what differs between them is the servers. Without a comparison each round draws lengths.
func TestTurnsAskForTheSame(t *testing.T) {
	for _, compared := range []bool{true, false} {
		d := newDuel(6, plan.RestartLeg, "a", "b")
		d.Workloads[0].Output = plan.Output{Mean: 10, Jitter: 0.5}
		if !compared {
			d.Compares = nil
		}
		asked := map[string]bool{}
		for _, l := range d.run(t, nil).Levels {
			for _, r := range l.Rounds {
				lengths := ""
				for _, s := range r.MeasuredSamples() {
					lengths += fmt.Sprint(s.Order, ":", s.OutputAsked, " ")
				}
				asked[lengths] = true
			}
		}
		must.Hold(t, (len(asked) == 1) == compared && !asked[""], "compared %v: %v", compared, asked)
	}
}

// A candidate that is decided runs no more, while the control goes on beside the others.
func TestTurnsOfADecidedCandidate(t *testing.T) {
	d := newDuel(5, plan.RestartLeg, "a", "b", "c")
	for _, c := range d.Compares {
		c.LeastRounds = 3
	}
	run := d.run(t, func(c *exec.Config) {
		c.JudgeComparison = func(c *plan.Compare, _ *metric.Run) (metric.Outcome, bool) {
			return metric.Pass, c.Name == "b"
		}
	})
	got, want := d.story(), "a{0} b{0} c{0} c{1} b{1} a{1} a{2} b{2} c{2} c{3} a{3} a{4} c{4}"
	must.Hold(t, got == want, "%s, want %s", got, want)
	for i, looks := range []int{1, 3} {
		c := run.Comparisons[i]
		must.Hold(t, len(c.Looks) == looks && c.Skipped == "", "%s: looks %v, skipped %q; want %d looks", c.Name, c.Looks, c.Skipped, looks)
	}
}

// With side_by_side a pair of rounds is one observation, so the looks are two rounds apart.
func TestSideBySideInStages(t *testing.T) {
	d := newParallelDuel(12)
	d.Compares[0].LeastRounds = 6
	run := d.run(t, func(c *exec.Config) {
		c.JudgeComparison = func(*plan.Compare, *metric.Run) (metric.Outcome, bool) {
			return metric.Inconclusive, false
		}
	})
	if c := run.Comparisons[0]; fmt.Sprint(c.Planned) != "[6 8 10 12]" || len(c.Looks) != 4 || len(run.Levels[0].Rounds) != 12 {
		t.Errorf("planned %v, looks %v, %d rounds", c.Planned, c.Looks, len(run.Levels[0].Rounds))
	}
}

// A case that the user did not select is not measured. A simulator must have new noise at each
// start.
func TestTurnsOfSome(t *testing.T) {
	d := newDuel(5, plan.RestartLeg, "a", "b")
	run := d.run(t, func(c *exec.Config) { c.Only = func(exec.Case) bool { return false } })
	c := run.Comparisons[0]
	must.Hold(t, c.Skipped == metric.SkippedOnly && len(d.log) == 1 && len(run.Levels) == 2, "%+v, %q", c, d.log)
	d = newDuel(5, plan.RestartLeg, "a", "b")
	seeds := map[int64]bool{}
	for _, s := range d.Servers {
		s.Simulator = &plan.Simulator{Seed: 1}
	}
	d.run(t, func(c *exec.Config) {
		launch := c.Launch
		c.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
			seeds[s.Simulator.Seed] = true
			return launch(ctx, s, state)
		}
	})
	legs := 0
	for _, c := range exec.Cases(d.Plan) {
		n, _ := exec.Legs(d.Plan, c)
		legs += n
	}
	must.Hold(t, len(seeds) == 10 && legs == 10, "%d seeds, %d legs", len(seeds), legs)
}

// newParallelDuel returns a duel of two servers that run side by side, each on its own GPU.
func newParallelDuel(rounds int) *duel {
	d := newDuel(rounds, plan.RestartLeg, "a", "b")
	for i, s := range d.Servers {
		s.Process = &plan.Process{GPUs: &plan.GPUs{IDs: []string{fmt.Sprint(i)}}}
	}
	d.Compares[0].SideBySide, d.Compares[0].Changed = true, []string{"gpus"}
	return d
}

// Side by side, control and candidate run at the same time and get the same prompts. They swap
// their GPUs after every round.
func TestSideBySide(t *testing.T) {
	d := newParallelDuel(4)
	gpus := map[string][]string{}
	run := d.run(t, func(c *exec.Config) {
		launch := c.Launch
		c.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
			gpus[s.Name] = append(gpus[s.Name], s.GPUs().IDs...)
			return launch(ctx, s, state)
		}
	})
	var starts []string
	for _, line := range d.log {
		if strings.HasPrefix(line, "start") {
			starts = append(starts, line[len("start "):])
		}
	}
	must.Same(t, "starts", "a b b a a b b a", strings.Join(starts, " "))
	a, b := fmt.Sprint(gpus["a"]), fmt.Sprint(gpus["b"])
	must.Hold(t, a == "[0 1 0 1]" && b == "[1 0 1 0]", "a on %s, b on %s", a, b)
	must.Hold(t, slices.Equal(d.prompts["a"], d.prompts["b"]) && len(d.prompts["a"]) != 0, "the two were sent different prompts")
	for i := range 4 {
		a, b := run.Levels[0].Rounds[i], run.Levels[1].Rounds[i]
		must.Need(t, a.Complete && b.Complete && a.Leg.Slot == i && b.Leg.Slot == i && a.Leg.Start == i && b.Leg.Start == i, "round %d: %+v %+v", i, a, b)
		// The legs of a and b take equally long, so they begin and end together.
		must.Hold(t, a.Start == b.Start && a.End == b.End && a.End > a.Start, "round %d: a from %v to %v, b from %v to %v", i, a.Start, a.End, b.Start, b.End)
		for j, s := range run.Servers {
			want := fmt.Sprintf("[%d]", (i+j)%2)
			must.Hold(t, fmt.Sprint(s.Starts[i].GPUs) == want, "start %d of %s is recorded on %v, not on %s", i, s.Address, s.Starts[i].GPUs, want)
		}
	}
	c := run.Comparisons[0]
	must.Hold(t, c.SideBySide && c.Skipped == "", "%+v", c)
	// In turns, a run takes twice as long as side by side.
	apart := newDuel(4, plan.RestartLeg, "a", "b").run(t, nil)
	must.Hold(t, 2*run.End <= apart.End+time.Second, "%v side by side, %v in turns", run.End, apart.End)
}

// In turns, all pods of a comparison start on the node of its first start. Side by side the second takes
// another node, and both swap them after every round, as the record says for the judge.
func TestPodsOnNodes(t *testing.T) {
	for _, tt := range []struct {
		d              *duel
		a, b           string
		swapsA, swapsB string
	}{
		{newDuel(4, plan.RestartLeg, "a", "b"), "[any n1 n1 n1]", "[n1 n1 n1 n1]", "[[] [] [] []]", "[[] [] [] []]"},
		{newParallelDuel(4), "[any n2 n1 n2]", "[not n1 n1 n2 n1]", "[[n1] [n2] [n1] [n2]]", "[[n2] [n1] [n2] [n1]]"},
	} {
		places, nodes := map[string][]string{}, 0
		run := tt.d.run(t, func(c *exec.Config) {
			for _, s := range c.Plan.Servers {
				s.Process, s.Endpoint, s.Pod = nil, nil, &plan.Pod{}
			}
			launch := c.Launch
			c.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
				target, err := launch(ctx, s, state)
				at, node := s.Pod.Place, s.Pod.Place.Node
				switch {
				case node == "":
					node = "any"
				case at.Away:
					node = "not " + node
				}
				places[s.Name] = append(places[s.Name], node)
				if err == nil {
					target.Fingerprint = maps.Clone(target.Fingerprint)
					if target.Fingerprint["node"] = at.Node; at.Away || at.Node == "" {
						nodes++
						target.Fingerprint["node"] = fmt.Sprintf("n%d", nodes)
					}
				}
				return target, err
			}
		})
		a, b := fmt.Sprint(places["a"]), fmt.Sprint(places["b"])
		must.Hold(t, a == tt.a && b == tt.b, "a on %s, b on %s; want %s, %s", a, b, tt.a, tt.b)
		swaps := map[string][][]string{}
		for _, s := range run.Servers {
			for _, start := range s.Starts {
				swaps[s.Address] = append(swaps[s.Address], start.GPUs)
			}
		}
		must.Same(t, "a swaps", tt.swapsA, fmt.Sprint(swaps["a"]))
		must.Same(t, "b swaps", tt.swapsB, fmt.Sprint(swaps["b"]))
	}
}

// A round takes as long as the slower side needs. This does not change what the faster side
// measures.
func TestSideBySideOneIsSlower(t *testing.T) {
	d := newParallelDuel(4)
	run := d.run(t, func(c *exec.Config) {
		launch := c.Launch
		c.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
			target, err := launch(ctx, s, state)
			if err == nil && s.Name == "b" {
				target.Transport.(*transport).script = func(int, *client.Request) reply { return reply{ttft: 3 * time.Second, itl: 100 * time.Millisecond} }
			}
			return target, err
		}
	})
	for i := range 4 {
		a, b := run.Levels[0].Rounds[i], run.Levels[1].Rounds[i]
		if !a.Complete || !b.Complete || a.End >= b.End {
			t.Errorf("round %d: a from %v to %v, b from %v to %v: %q %q", i, a.Start, a.End, b.Start, b.End, a.Stopped, b.Stopped)
		}
	}
	// Beside a slower server, a server measures the same as in turns.
	alone := newDuel(4, plan.RestartLeg, "a", "b").run(t, nil)
	for i, r := range alone.Levels[0].Rounds {
		if beside := run.Levels[0].Rounds[i]; beside.End-beside.Start != r.End-r.Start || len(beside.Samples) != len(r.Samples) {
			t.Errorf("round %d: %d requests in %v beside a slower server, %d in %v alone", i, len(beside.Samples), beside.End-beside.Start, len(r.Samples), r.End-r.Start)
		}
	}
}

// If one server fails, the other server's leg ends too, and nothing keeps running.
func TestSideBySideThatEnds(t *testing.T) {
	type config = exec.Config
	for _, row := range []struct {
		name    string
		launch  func(string, int) (metric.Fingerprint, error)
		change  func(*config)
		says    string
		stopped string
		rounds  int // begun on a
	}{
		{"the second of a round does not start", func(address string, start int) (metric.Fingerprint, error) {
			return nil, map[bool]error{true: errors.New("CUDA out of memory")}[address == "b" && start == 2]
		}, nil, "b could not be measured: CUDA out of memory", "", 2},
		{"the first of a round does not start", func(address string, start int) (metric.Fingerprint, error) {
			return nil, map[bool]error{true: errors.New("CUDA out of memory")}[address == "b" && start == 1]
		}, nil, "b could not be measured: CUDA out of memory", "", 1},
		{"another version on the swapped GPU", func(address string, start int) (metric.Fingerprint, error) {
			return metric.Fingerprint{"version": map[bool]string{true: "2", false: "1"}[address == "b" && start == 1]}, nil
		}, nil, `start 2 found another server: version was "1" and is now "2"`, "", 1},
		{"another GPU on the second turn of the same set", func(address string, start int) (metric.Fingerprint, error) {
			return metric.Fingerprint{"gpu": map[bool]string{true: "1 x H200", false: "1 x H100"}[address == "a" && start == 2]}, nil
		}, nil, `start 3 found another server: gpu was "1 x H100" and is now "1 x H200"`, "", 2},
		{"another version after a start that did not tell", func(address string, start int) (metric.Fingerprint, error) {
			return map[bool]metric.Fingerprint{true: {"model": "fake"}, false: {"version": map[bool]string{true: "2", false: "1"}[address == "b" && start == 3]}}[start == 1], nil
		}, nil, `start 4 found another server: version was "1" and is now "2"`, "", 3},
		{"nothing completes on one", nil, func(c *config) {
			launch := c.Launch
			c.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
				target, err := launch(ctx, s, state)
				if err == nil && s.Name == "b" {
					target.Transport.(*transport).script = func(int, *client.Request) reply { return reply{status: errBusy} }
				}
				return target, err
			}
		}, "was cut short", "", 1},
		{"the budget is spent", nil, func(c *config) { c.Budget = 10 * time.Second }, "budget", exec.StoppedBudget, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newParallelDuel(8)
			d.launch = row.launch
			run := d.run(t, row.change)
			if c := run.Comparisons[0]; !strings.Contains(c.Skipped, row.says) || run.Stopped != row.stopped {
				t.Errorf("skipped %q, stopped %q", c.Skipped, run.Stopped)
			}
			started, ended := 0, 0
			for _, line := range d.log {
				started += map[bool]int{true: 1}[strings.HasPrefix(line, "start")]
				ended += map[bool]int{true: 1}[strings.HasPrefix(line, "end")]
			}
			must.Hold(t, started == ended && started != 0, "%d starts, %d ends", started, ended)
			for _, l := range run.Levels {
				must.Hold(t, l.Server != "a" || len(l.Rounds) == row.rounds, "%d rounds on a, want %d", len(l.Rounds), row.rounds)
			}
		})
	}
	// The servers swap two GPUs of different kinds after each round. This does not count as a
	// difference between the servers.
	d := newParallelDuel(4)
	d.launch = func(address string, start int) (metric.Fingerprint, error) {
		return metric.Fingerprint{"gpu": map[bool]string{true: "1 x H200", false: "1 x H100"}[(address == "a") == (start%2 == 0)]}, nil
	}
	c := d.run(t, nil).Comparisons[0]
	must.Hold(t, c.Skipped == "", "%q", c.Skipped)
}

// After an interrupt in the middle of a round, nothing more starts. The requests in flight on both
// sides may end. A second interrupt cancels them.
func TestSideBySideInterrupted(t *testing.T) {
	for _, hard := range []bool{false, true} {
		d := newParallelDuel(8)
		drain, soft := context.WithCancel(t.Context())
		defer soft()
		run := d.run(t, func(c *exec.Config) {
			c.Drain = drain
			flights := 0
			launch := c.Launch
			c.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
				target, err := launch(ctx, s, state)
				if err == nil && s.Name == "b" {
					target.Transport.(*transport).script = func(n int, _ *client.Request) reply {
						if flights++; n == 4 {
							soft()
							if hard {
								return reply{} // the request hangs until it is cancelled
							}
						}
						return reply{ttft: time.Second, itl: 100 * time.Millisecond}
					}
				}
				return target, err
			}
		})
		if run.Stopped != exec.StoppedInterrupted || run.Comparisons[0].Skipped == "" {
			t.Errorf("stopped %q, skipped %q", run.Stopped, run.Comparisons[0].Skipped)
		}
		must.Hold(t, d.log[len(d.log)-1] == "compared b" && slices.Contains(d.log, "end a") && slices.Contains(d.log, "end b"), "%q", d.log)
		for _, l := range run.Levels {
			must.Hold(t, len(l.Rounds) == 1 && len(l.Rounds[0].Samples) != 0, "%d rounds on %s", len(l.Rounds), l.Server)
		}
	}
}

// Servers that run for the whole comparison start at the same time. Each start takes 10 s. If two
// servers share a GPU, one starts after the other.
func TestStayingServersStartSideBySide(t *testing.T) {
	gpus := func(ids ...string) *plan.GPUs { return &plan.GPUs{IDs: ids} }
	for _, tt := range []struct {
		name string
		gpus [2]*plan.GPUs
		want string
	}{
		{"on GPUs of their own", [2]*plan.GPUs{gpus("0"), gpus("1")}, "begin old, begin new, ready old 10s, ready new 10s"},
		{"any GPU that is free", [2]*plan.GPUs{{Count: 1}, {Count: 2}}, "begin old, begin new, ready old 10s, ready new 10s"},
		{"without GPUs", [2]*plan.GPUs{{}, {}}, "begin old, begin new, ready old 10s, ready new 10s"},
		{"on one GPU", [2]*plan.GPUs{gpus("0"), gpus("1", "0")}, "begin old, ready old 10s, begin new, ready new 20s"},
		{"nobody says on which", [2]*plan.GPUs{nil, nil}, "begin old, ready old 10s, begin new, ready new 20s"},
		{"one takes all", [2]*plan.GPUs{{All: true}, {Count: 1}}, "begin old, ready old 10s, begin new, ready new 20s"},
	} {
		d := newDuel(5, plan.RestartNever, "old", "new")
		for i, s := range d.Servers {
			s.Process = &plan.Process{GPUs: tt.gpus[i]}
		}
		d.Compares[0].Changed = []string{"gpus"}
		var log []string
		run := d.run(t, func(c *exec.Config) {
			shared := &clock.Shared{Clock: c.Clock}
			launch := c.Launch
			c.Clock = shared
			c.Launch = func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
				log = append(log, "begin "+s.Address())
				if err := clock.Sleep(ctx, shared, 10*time.Second); err != nil {
					return nil, err
				}
				log = append(log, fmt.Sprintf("ready %s %v", s.Address(), shared.Now().Round(time.Second)))
				return launch(ctx, s, state)
			}
		})
		must.Same(t, tt.name, tt.want, strings.Join(log, ", "))
		for _, s := range run.Servers {
			took := s.Starts[0].Ready - s.Starts[0].At
			must.Hold(t, took.Round(time.Second) == 10*time.Second, "%s: %s took %v", tt.name, s.Address, took)
		}
		must.Hold(t, len(run.Levels) == 2 && len(run.Levels[0].Rounds) == 5, "%s: %d levels", tt.name, len(run.Levels))
	}
}
