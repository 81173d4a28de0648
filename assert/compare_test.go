package assert

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// duel describes a comparison between two servers for a test.
type duel struct {
	rounds, perRound int
	// control and candidate return the TTFT of request i of a round, in seconds. If they are nil,
	// every request has a TTFT of 1 s.
	control, candidate func(round, i int) float64
	// controlFails and candidateFails report whether request i of a round fails; nil: no request
	// fails.
	controlFails, candidateFails func(round, i int) bool
	change                       [2]func(*metric.Sample) // of the control's and of the candidate's requests; nil: none
	restart                      plan.Restart
	policy                       plan.Policy
	claims                       []*plan.Claim
	changed                      []string
	controlIs, candidateIs       metric.ServerRun
}

func (d duel) make() (*plan.Plan, *metric.Run) {
	side := func(address string, ttft func(int, int) float64, failed func(int, int) bool, change func(*metric.Sample)) *metric.Level {
		l := shape{lean: true, rounds: d.rounds, perRound: d.perRound, ttft: ttft, failed: failed, change: change}.level()
		l.Server = address
		for i, r := range l.Rounds {
			r.Leg = &metric.Leg{Slot: 2*i + map[bool]int{true: 1}[(address == "b") == (i%2 == 0)], Start: i}
			for _, s := range r.Samples {
				s.Server = address
			}
		}
		return l
	}
	a, b := side("a", d.control, d.controlFails, d.change[0]), side("b", d.candidate, d.candidateFails, d.change[1])
	p, run := gate(b)
	if d.policy == (plan.Policy{}) {
		d.policy = p.Gate.Policy
	}
	w := p.Workloads[0]
	control, candidate := &plan.Server{Name: "a"}, &plan.Server{Name: "b"}
	p.Servers = []*plan.Server{control, candidate}
	w.Servers, w.Policy = p.Servers, d.policy
	for _, c := range d.claims {
		c.Workloads, c.At = []*plan.Workload{w}, []string{"4"}
		if c.Severity == "" {
			c.Severity = plan.SeverityError
		}
	}
	if d.restart == "" {
		d.restart = plan.RestartLeg
	}
	p.Compares = []*plan.Compare{{Name: "ab", Control: plan.Control{Server: control}, Candidate: candidate, Rounds: d.rounds,
		Restart: d.restart, Changed: d.changed, Claims: d.claims, Policy: d.policy}}
	run.Levels = []*metric.Level{a, b}
	d.controlIs.Address, d.candidateIs.Address = "a", "b"
	run.Servers = []*metric.ServerRun{&d.controlIs, &d.candidateIs}
	run.Comparisons = []*metric.Comparison{{Name: "ab", Control: "a", Candidate: "b", Restart: string(d.restart)}}
	return p, run
}

// tolerate returns a claim that tolerates changes such as "ttft p95 +10%". improve returns a claim
// that requires such changes.
func tolerate(changes ...string) *plan.Claim { return claimOf(false, changes) }
func improve(changes ...string) *plan.Claim  { return claimOf(true, changes) }

func claimOf(better bool, changes []string) *plan.Claim {
	c := &plan.Claim{Improve: better}
	for _, text := range changes {
		words := strings.Fields(text)
		ch := &plan.ChangeBound{Metric: metric.MustLookup(words[0]), Text: text}
		last := words[len(words)-1]
		if len(words) == 3 {
			ch.Stat, _ = metric.ParseStat(words[1])
		}
		digits, points := strings.CutSuffix(last, "pp")
		ch.Points = points
		if _, err := fmt.Sscanf(strings.TrimSuffix(digits, "%"), "%f", &ch.Limit); err != nil {
			panic(err)
		}
		ch.Limit /= 100
		c.Changes = append(c.Changes, ch)
	}
	return c
}

// noisy returns random TTFTs. Their median is the parameter factor, in seconds. They vary by 20 %
// from request to request; the parameter rounds is their variation from round to round, as a share.
func noisy(seed uint64, factor, rounds float64) func(round, i int) float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	shift, last := 0.0, -1
	return func(round, _ int) float64 {
		if round != last {
			shift, last = rounds*r.NormFloat64(), round
		}
		return factor * math.Exp(shift+0.2*r.NormFloat64())
	}
}

func every(n int) func(round, i int) bool { return func(_, i int) bool { return i%n == n-1 } }

func TestCompare(t *testing.T) {
	constant := func(x float64) func(int, int) float64 { return func(int, int) float64 { return x } }
	steps := func(xs ...float64) func(int, int) float64 {
		return func(round, _ int) float64 { return xs[round%len(xs)] }
	}
	for _, row := range []struct {
		name string
		duel
		want    verdict.Outcome // of the first requirement
		overall verdict.Outcome
		says    string // text in the verdict's message, needs or notes
	}{
		{"the same", duel{rounds: 8, perRound: 40, claims: []*plan.Claim{tolerate("ttft p95 +10%")}}, verdict.Pass, verdict.Pass, "ttft p95 1 s → 1 s, +0.00%"},
		{"a little slower", duel{rounds: 8, perRound: 40, candidate: constant(1.05), claims: []*plan.Claim{tolerate("ttft mean +10%")}}, verdict.Pass, verdict.Pass, "+5.0%"},
		{"exactly as much slower as is tolerated", duel{rounds: 8, perRound: 40, control: constant(1), candidate: steps(1.08, 1.12), claims: []*plan.Claim{tolerate("ttft mean +10%")}}, verdict.Inconclusive, verdict.Inconclusive, "too near to its limit"},
		{"too slow", duel{rounds: 8, perRound: 40, candidate: constant(1.2), claims: []*plan.Claim{tolerate("ttft p95 +10%")}}, verdict.Fail, verdict.Fail, "the smallest tolerance that these rounds certify is +20%"},
		// The control's logarithms are 0, and the candidate's alternate between ln 1.3 and ln 0.9, with the
		// mean 0.0785 and squares of 7·0.1966² = 0.2706 about it, of which a drift explains next to none. With 13 degrees of freedom the interval
		// is 0.0785 ± 1.771·√(0.2706/13)·√(2/8), about ± 0.128.
		{"noisy", duel{rounds: 8, perRound: 40, candidate: steps(1.3, 0.9), claims: []*plan.Claim{tolerate("ttft p95 +10%")}}, verdict.Inconclusive, verdict.Inconclusive, "+8.2% (95% bounds -4.8% to +23%)"},
		{"higher is better: slower", duel{rounds: 8, perRound: 40, candidate: constant(1.3), claims: []*plan.Claim{tolerate("throughput -5%")}}, verdict.Fail, verdict.Fail, "tolerated -5.0%"},
		{"higher is better: the same", duel{rounds: 8, perRound: 40, claims: []*plan.Claim{tolerate("throughput -5%")}}, verdict.Pass, verdict.Pass, "throughput"},
		{"improved", duel{rounds: 8, perRound: 40, candidate: constant(0.7), claims: []*plan.Claim{improve("ttft mean -20%")}}, verdict.Pass, verdict.Pass, "-30%"},
		{"not improved enough", duel{rounds: 8, perRound: 40, candidate: constant(0.9), claims: []*plan.Claim{improve("ttft mean -20%")}}, verdict.Fail, verdict.Fail, "asked for -20%"},
		{"improved at all", duel{rounds: 8, perRound: 40, candidate: constant(0.99), claims: []*plan.Claim{improve("ttft mean -0%")}}, verdict.Pass, verdict.Pass, ""},
		{"as good is no improvement", duel{rounds: 8, perRound: 40, candidate: steps(1.01, 0.99), claims: []*plan.Claim{improve("ttft mean -0%")}}, verdict.Inconclusive, verdict.Inconclusive, ""},
		{"only a warning", duel{rounds: 8, perRound: 40, candidate: constant(1.2), claims: []*plan.Claim{{Severity: plan.SeverityWarn, Changes: tolerate("ttft p95 +10%").Changes}}}, verdict.Fail, verdict.Pass, ""},
		// No request fails on either side. 320 requests per side are enough to exclude a loss of
		// one percentage point; 64 are not.
		{"no failures, enough requests", duel{rounds: 8, perRound: 40, claims: []*plan.Claim{tolerate("success rate -1pp")}}, verdict.Pass, verdict.Pass, "+0.00pp"},
		{"no failures, too few requests", duel{rounds: 8, perRound: 8, claims: []*plan.Claim{tolerate("success rate -1pp")}}, verdict.Inconclusive, verdict.Inconclusive, "certify is -4.1pp"},
		{"one request in ten fails", duel{rounds: 8, perRound: 40, candidateFails: every(10), claims: []*plan.Claim{tolerate("success rate -1pp")}}, verdict.Fail, verdict.Fail, "-10pp"},
		{"both fail alike", duel{rounds: 8, perRound: 200, controlFails: every(100), candidateFails: every(100), claims: []*plan.Claim{tolerate("success rate -2pp")}}, verdict.Pass, verdict.Pass, ""},
		{"a mean leaves failures out", duel{rounds: 8, perRound: 40, candidateFails: every(10), claims: []*plan.Claim{tolerate("ttft mean +10%")}}, verdict.Fail, verdict.Fail, "but the candidate fails more requests"},
		{"failures that are tolerated", duel{rounds: 8, perRound: 40, candidateFails: every(10), claims: []*plan.Claim{tolerate("ttft mean +10%", "success rate -15pp")}}, verdict.Pass, verdict.Pass, ""},
		{"the control fails more", duel{rounds: 8, perRound: 40, controlFails: every(10), claims: []*plan.Claim{tolerate("ttft mean +10%")}}, verdict.Pass, verdict.Pass, ""},
		// A failed request decides the candidate's p95 in all 8 rounds, so all 8 rounds are worse.
		// By chance that happens with probability 1/256.
		{"failed requests rank last", duel{rounds: 8, perRound: 40, candidateFails: every(10), claims: []*plan.Claim{tolerate("ttft p95 +10%")}}, verdict.Fail, verdict.Fail, "only the sign"},
		// In half of the rounds, a failed request makes the candidate's p95 worse. Four of eight
		// rounds decide nothing.
		{"failed requests in half of the rounds", duel{rounds: 8, perRound: 40, candidateFails: func(r, i int) bool { return r%2 == 0 && i%10 == 9 }, claims: []*plan.Claim{tolerate("ttft p95 +10%")}}, verdict.Inconclusive, verdict.Inconclusive, "fewer requests fail"},
		{"undecided may pass where the plan says so", duel{rounds: 8, perRound: 40, candidate: steps(1.3, 0.9), policy: plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Warn}, claims: []*plan.Claim{tolerate("ttft p95 +10%")}}, verdict.Inconclusive, verdict.Pass, ""},
		{"point estimates", duel{rounds: 8, perRound: 40, candidate: steps(1.3, 0.9), policy: plan.Policy{Confidence: 0.95, Decide: plan.Estimate, OnInconclusive: plan.Stop}, claims: []*plan.Claim{tolerate("ttft p95 +10%")}}, verdict.Pass, verdict.Pass, "not certified"},
		{"what differs is allowed", duel{rounds: 8, perRound: 40, changed: []string{"flags"}, claims: []*plan.Claim{tolerate("ttft p95 +10%")},
			controlIs:   metric.ServerRun{Declared: metric.Fingerprint{"engine": "vllm"}, Fingerprint: metric.Fingerprint{"version": "1"}},
			candidateIs: metric.ServerRun{Declared: metric.Fingerprint{"engine": "vllm", "flags.x": "--x"}, Fingerprint: metric.Fingerprint{"version": "1", "gpu": "2"}}}, verdict.Pass, verdict.Pass, ""},
		{"what differs is not allowed", duel{rounds: 8, perRound: 40, changed: []string{"flags"}, claims: []*plan.Claim{tolerate("ttft p95 +10%")},
			controlIs:   metric.ServerRun{Fingerprint: metric.Fingerprint{"version": "1"}},
			candidateIs: metric.ServerRun{Fingerprint: metric.Fingerprint{"version": "2"}}}, verdict.Skipped, verdict.Error, "the servers differ in version, but `changed` does not list it"},
		{"what follows from what is allowed", duel{rounds: 8, perRound: 40, changed: []string{"image"}, claims: []*plan.Claim{tolerate("ttft p95 +10%")},
			controlIs:   metric.ServerRun{Declared: metric.Fingerprint{"image": "a"}, Fingerprint: metric.Fingerprint{"version": "1", "load_time": "10s", "gpu": "unknown"}},
			candidateIs: metric.ServerRun{Declared: metric.Fingerprint{"image": "b"}, Fingerprint: metric.Fingerprint{"version": "2", "load_time": "20s", "gpu": "1 x H100"}}}, verdict.Pass, verdict.Pass, ""},
		{"another driver", duel{rounds: 8, perRound: 40, changed: []string{"image"}, claims: []*plan.Claim{tolerate("ttft p95 +10%")},
			controlIs:   metric.ServerRun{Fingerprint: metric.Fingerprint{"gpu_driver": "1"}},
			candidateIs: metric.ServerRun{Fingerprint: metric.Fingerprint{"gpu_driver": "2"}}}, verdict.Skipped, verdict.Error, "gpu_driver"},
		{"the record ends before the control", duel{rounds: 8, perRound: 40, claims: []*plan.Claim{tolerate("ttft p95 +10%")}, controlIs: metric.ServerRun{Unended: true}}, verdict.Skipped, verdict.Error, "the recording ends before the control was stopped"},
		{"the control died", duel{rounds: 8, perRound: 40, claims: []*plan.Claim{tolerate("ttft p95 +10%")}, controlIs: metric.ServerRun{Error: "it died"}}, verdict.Skipped, verdict.Error, "the control could not be measured: it died"},
		{"one round has no spread", duel{rounds: 1, perRound: 40, claims: []*plan.Claim{tolerate("ttft p95 +10%")}}, verdict.Inconclusive, verdict.Inconclusive, "too few rounds"},
		// The control has no value of prefill_speed. The change is required, so this is an error.
		{"a metric that both sides lack", duel{rounds: 8, perRound: 40, claims: []*plan.Claim{tolerate("prefill_speed -5%", "ttft p95 +10%")}}, verdict.Error, verdict.Error, "the control has no value of prefill_speed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, run := row.make()
			v := Judge(p, run, Options{})
			var first verdict.Verdict
			for _, x := range v.List {
				if x.Kind == verdict.KindCompare && strings.Count(x.Name, ".") > 1 {
					first = x
					break
				}
			}
			if first.Outcome != row.want || v.Outcome != row.overall {
				t.Errorf("%v, the run %v (%s)\n%s", first.Outcome, v.Outcome, v.Why, strings.Join(names(v), "\n"))
			}
			text := strings.Join(append(append(names(v), first.Needs), first.NotesOf()...), "\n")
			must.Hold(t, strings.Contains(text, row.says), "nothing says %q:\n%s", row.says, text)
		})
	}
}

// A missing part of the record is an error, never a pass.
func TestCompareFailsClosed(t *testing.T) {
	for _, row := range []struct {
		name   string
		break_ func(*plan.Plan, *metric.Run)
		says   string
	}{
		{"no comparison", func(_ *plan.Plan, r *metric.Run) { r.Comparisons = nil }, "the run did not make this comparison"},
		{"it was not made", func(_ *plan.Plan, r *metric.Run) { r.Comparisons[0].Skipped = "the budget was spent" }, "not compared: the budget was spent"},
		{"no control", func(_ *plan.Plan, r *metric.Run) { r.Levels = r.Levels[1:] }, "the measurement of the control is not valid"},
		{"no server", func(_ *plan.Plan, r *metric.Run) { r.Servers = r.Servers[1:] }, "there is no record of the control"},
		{"a round is missing", func(_ *plan.Plan, r *metric.Run) {
			r.Levels[0].Rounds = r.Levels[0].Rounds[:7]
		}, "the measurement of the control is not valid"},
		{"no legs", func(_ *plan.Plan, r *metric.Run) { r.Levels[0].Rounds[3].Leg = nil }, "did not take turns"},
		{"other seeds", func(_ *plan.Plan, r *metric.Run) { r.Levels[0].Rounds[3].Seed = 99 }, "the record pairs the control's round 4 (seed 99) with the candidate's round 4 (seed 3)"},
		{"another load", func(_ *plan.Plan, r *metric.Run) {
			r.Levels[0].Asked, r.Levels[1].Asked = &metric.Asked{Input: 1}, &metric.Asked{Input: 2}
		}, "of another workload"},
		{"a look without its rounds", func(_ *plan.Plan, r *metric.Run) {
			r.Comparisons[0].Looks = []metric.ComparisonLook{{Rounds: 16, Planned: 2}}
		}, "the record holds only 8 of 16 rounds"},
		{"no stored control", func(p *plan.Plan, _ *metric.Run) {
			p.Compares[0].Control = plan.Control{Baseline: "perf/old"}
		}, "the recorded run of the control could not be read"},
		{"nothing but a skipped comparison", func(p *plan.Plan, _ *metric.Run) { p.Compares[0].Skip = "no --base was given" }, "no --base was given"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, run := duel{rounds: 8, perRound: 40, claims: []*plan.Claim{tolerate("ttft p95 +10%")}}.make()
			row.break_(p, run)
			v := Judge(p, run, Options{})
			text := strings.Join(names(v), "\n")
			must.Hold(t, v.Outcome == verdict.Error && strings.Contains(text, row.says), "%v (%s), want an error that says %q:\n%s", v.Outcome, v.Why, row.says, text)
		})
	}
}

// A comparison shows the same values of both servers as the tables of their levels: values over all
// requests.
func TestCompareShowsTheLevels(t *testing.T) {
	p, run := duel{rounds: 8, perRound: 40, control: func(round, i int) float64 { return 1 + float64(round*i)/100 }, claims: []*plan.Claim{tolerate("ttft p95 +10%", "throughput -5%", "success rate -2pp")}}.make()
	for _, c := range Judge(p, run, Options{}).Comparisons[0].Changes {
		want := run.Levels[0].Value(c.Metric.Name, metric.Steady, nil, nil)
		if c.Metric.Scope != metric.PerLevel {
			d := metric.Of(c.Metric, run.Levels[0].MeasuredSamples())
			x, ok := d.Stat(c.Stat)
			want = metric.Value{V: x, OK: ok}
		}
		must.Hold(t, c.Control.OK && c.Control.V == want.V, "%s: %v, and %v in the table of the level", c.Name(), c.Control, want)
	}
}

// A round in which the generator was late is measured again, and the disturbed pair is left out. A
// disturbed round that remains must not decide the verdict.
func TestCompareDisturbed(t *testing.T) {
	const ms = time.Millisecond
	estimate := plan.Policy{Confidence: 0.95, Decide: plan.Estimate, OnInconclusive: plan.Stop}
	constant := func(x float64) func(int, int) float64 { return func(int, int) float64 { return x } }
	from := func(k int, x float64) func(int, int) float64 {
		return func(round, _ int) float64 {
			if round >= k {
				return x
			}
			return 1
		}
	}
	stall := func(levels ...int) func(*metric.Run) {
		return func(r *metric.Run) {
			for _, i := range levels {
				r.Levels[i].Rounds[7].Health.Stall = 500 * ms
			}
		}
	}
	idling := func(level int) func(*metric.Run) {
		return func(r *metric.Run) { r.Levels[level].Rounds[7].Busy = 0.9 }
	}
	again := func(r *metric.Run) {
		for i, l := range r.Levels {
			void := *l.Rounds[7]
			l.Rounds[7].Index, void.Leg = 8, &metric.Leg{Slot: 14 + i}
			if i == 0 {
				void.Health.Stall = 500 * ms
			}
			l.Voided = []*metric.Round{&void}
		}
	}
	for _, row := range []struct {
		name   string
		duel   duel
		change func(*metric.Run)
		want   verdict.Outcome
		says   string
	}{
		{"a pass that a slow control need not explain", duel{}, stall(0), verdict.Pass, "the generator stood still for 500 ms in round 8 on server a"},
		// Without round 8 the candidate is 10 % slower.
		{"a pass that a slow control may explain", duel{control: from(7, 3), candidate: constant(1.1), policy: estimate}, stall(0), verdict.Error, "generator: the generator stood still for 500 ms in round 8 on server a. The generator, and not the servers, may have decided the verdict"},
		{"the same, late on the candidate", duel{control: from(7, 3), candidate: constant(1.1), policy: estimate}, stall(1), verdict.Pass, ""},
		{"a failure that a slow candidate need not explain", duel{candidate: constant(1.2)}, stall(1), verdict.Fail, ""},
		{"a failure that a slow candidate may explain", duel{candidate: from(7, 1.6), policy: estimate}, stall(1), verdict.Error, "may have decided the verdict"},
		{"a pass that slots which idled need not explain", duel{}, idling(1), verdict.Pass, "the slots were busy for 90% of the window (required 95%) in round 8 on server b"},
		// Without round 8 the candidate is 10 % slower.
		{"a pass that they may explain", duel{control: constant(1), candidate: func(round, _ int) float64 { return 1.1 - 0.7*float64(round/7) }, policy: estimate}, idling(1), verdict.Error, "generator: the slots were busy for 90%"},
		{"a failure that they may explain", duel{control: func(round, _ int) float64 { return 1 - 0.5*float64(round/7) }, candidate: constant(1), policy: estimate}, idling(0), verdict.Error, "generator: the slots were busy for 90%"},
		{"undecided", duel{candidate: from(5, 1.2)}, stall(0, 1), verdict.Inconclusive, "the generator, and not the servers, may be why the verdict is undecided"},
		{"a pair that was measured again", duel{}, again, verdict.Pass, "1 round of chat at 4 had to be measured again on both servers"},
		{"a pair that nothing had disturbed", duel{}, func(r *metric.Run) {
			again(r)
			r.Levels[0].Voided[0].Health.Stall = 0
		}, verdict.Error, "round 8 was left out, although nothing had disturbed it"},
		{"one leg of a pair alone", duel{}, func(r *metric.Run) {
			again(r)
			r.Levels[1].Voided, r.Levels[1].Rounds[7].Index = nil, 7
		}, verdict.Error, "the record pairs the control's round 9 (seed 7) with the candidate's round 8 (seed 7)"},
		{"too many of them", duel{}, func(r *metric.Run) {
			again(r)
			for _, l := range r.Levels {
				l.Voided = append(l.Voided, l.Voided[0], l.Voided[0])
			}
		}, verdict.Error, "3 of 11 rounds were left out, but at most 2 may be left out"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.duel.rounds, row.duel.perRound = 8, 40
			row.duel.claims = []*plan.Claim{tolerate("ttft mean +5%")}
			p, run := row.duel.make()
			row.change(run)
			v := Judge(p, run, Options{})
			text := names(v)
			for _, x := range v.List {
				text = append(text, x.NotesOf()...)
			}
			said := strings.Join(text, "\n")
			must.Hold(t, v.Outcome == row.want && strings.Contains(said, row.says), "%v (%s), want %v that says %q:\n%s", v.Outcome, v.Why, row.want, row.says, said)
		})
	}
}

// A comparison in which no server changed does not fail.
func TestCompareNothingChanged(t *testing.T) {
	p, _ := duel{rounds: 8, perRound: 40, claims: []*plan.Claim{tolerate("ttft p95 +10%")}}.make()
	p.Servers = p.Servers[1:]
	p.Workloads[0].Servers = p.Servers
	c := p.Compares[0]
	c.Control, c.Unchanged, c.Skip = plan.Control{Base: true}, true, "nothing changed: server.b is the same on the base branch"
	v := Judge(p, &metric.Run{}, Options{})
	must.Hold(t, v.Outcome == verdict.Pass && strings.Contains(strings.Join(names(v), "\n"), c.Skip), "%v (%s): %q", v.Outcome, v.Why, names(v))
	c.Claims[0].Improve = true
	if v := Judge(p, &metric.Run{}, Options{}); v.Outcome != verdict.Fail {
		t.Errorf("nothing improved: %v: %q", v.Outcome, names(v))
	}
}

// In recordings of versions that did not list their looks, the looks divide the error. Two looks give
// a wider interval than one: its half width has the factor t(13, 97.5%) instead of t(13, 95%).
func TestCompareLooks(t *testing.T) {
	p, run := duel{rounds: 8, perRound: 40, candidate: noisy(5, 1, 0.05), control: noisy(6, 1, 0.05), claims: []*plan.Claim{tolerate("ttft mean +10%")}}.make()
	width := func() float64 {
		c := Judge(p, run, Options{}).Comparisons[0].Changes[0]
		return math.Log1p(c.High.V) - math.Log1p(c.Change.V)
	}
	one := width()
	run.Comparisons[0].Looks = []metric.ComparisonLook{{Rounds: 8, Planned: 2}}
	two := width()
	must.Hold(t, math.Abs(two/one-2.1604/1.7709) <= 1e-3, "%v and %v, their ratio is that of t(13): 2.1604/1.7709", one, two)
	outcome, _ := JudgeComparison(p, p.Compares[0], run)
	must.Hold(t, outcome == verdict.Pass || outcome == verdict.Inconclusive, "%v", outcome)
}

// Rounds of a stored control have no partners among the candidate's rounds. A note says so.
func TestCompareStored(t *testing.T) {
	p, run := duel{rounds: 8, perRound: 100, control: noisy(1, 1, 0.01), candidate: noisy(2, 1, 0.01), claims: []*plan.Claim{tolerate("ttft p95 +10%")}}.make()
	stored := &metric.Run{ID: "old", Servers: run.Servers[:1], Levels: run.Levels[:1]}
	p.Servers, p.Workloads[0].Servers = p.Servers[1:], p.Servers[1:]
	p.Compares[0].Control = plan.Control{Baseline: "perf/old"}
	run.Servers, run.Levels, run.Comparisons = run.Servers[1:], run.Levels[1:], nil
	v := Judge(p, run, Options{Baselines: map[string]*metric.Run{"ab": stored}})
	c := v.Comparisons[0]
	if v.Outcome != verdict.Pass || c.Paired || !strings.Contains(strings.Join(c.Notes, "\n"), "unpaired: drift not excluded") {
		t.Errorf("%v: %q %+v", v.Outcome, names(v), c.Notes)
	}
	run.ID = "old"
	if v := Judge(p, run, Options{Baselines: map[string]*metric.Run{"ab": stored}}); v.Outcome != verdict.Error || !strings.Contains(strings.Join(names(v), "\n"), "holds the candidate's own run") {
		t.Errorf("against itself: %v: %q", v.Outcome, names(v))
	}
	run.ID = "new"
	stored.Levels[0].Rounds = stored.Levels[0].Rounds[:4]
	if v := Judge(p, run, Options{Baselines: map[string]*metric.Run{"ab": stored}}); v.Outcome != verdict.Error {
		t.Errorf("four rounds: %v: %q", v.Outcome, names(v))
	}
	p.Compares[0].Control.BaselineServer = "nobody"
	if v := Judge(p, run, Options{Baselines: map[string]*metric.Run{"ab": stored}}); v.Outcome != verdict.Error || !strings.Contains(names(v)[len(v.List)-2], "has no server nobody") {
		t.Errorf("no such server: %v: %q", v.Outcome, names(v))
	}
}

// If a failed request decides a percentile in a round of the stored control, the percentile has no
// mean over the rounds. Then each round is compared with one of the candidate, and a sign test
// decides.
func TestCompareStoredFailures(t *testing.T) {
	every := func(n int) func(int, int) bool { return func(_, i int) bool { return i%n == n-1 } }
	in := func(rounds int, fails func(int, int) bool) func(int, int) bool {
		return func(r, i int) bool { return r < rounds && fails(r, i) }
	}
	for _, row := range []struct {
		name               string
		control, candidate func(int, int) bool
		want               verdict.Outcome
		message, needs     string
	}{
		// A failed request makes a percentile worse. So the candidate is worse in all 8 pairs,
		// which happens by chance with probability 1/256.
		{"the candidate fails in every round", nil, every(10), verdict.Fail, "the percentile falls on a failed request", ""},
		{"the control fails in every round", every(10), nil, verdict.Pass, "the percentile falls on a failed request", ""},
		// In all other pairs the candidate takes 0.99 to 1.01 times as long as the control. The
		// limit is 1.1.
		{"the control failed in one", in(1, every(10)), nil, verdict.Pass, "the percentile falls on a failed request", ""},
		// The candidate is within its limit in 5 of 8 pairs. By chance at least 5 pairs are within
		// it with probability 36 %.
		{"the candidate fails in three", nil, in(3, every(10)), verdict.Inconclusive, "the percentile falls on a failed request", "needs rounds in which fewer requests fail"},
		// A failed request decides the percentile on both sides, so it is unknown which side is
		// worse.
		{"both fail", every(10), every(10), verdict.Inconclusive, "the percentile falls on a failed request", "needs a new recording of the control"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, run := duel{rounds: 8, perRound: 100, control: noisy(1, 1, 0.01), candidate: noisy(2, 1, 0.01), controlFails: row.control, candidateFails: row.candidate,
				claims: []*plan.Claim{tolerate("ttft p95 +10%")}}.make()
			stored := &metric.Run{ID: "old", Servers: run.Servers[:1], Levels: run.Levels[:1]}
			p.Servers, p.Workloads[0].Servers = p.Servers[1:], p.Servers[1:]
			p.Compares[0].Control = plan.Control{Baseline: "perf/old"}
			run.Servers, run.Levels, run.Comparisons = run.Servers[1:], run.Levels[1:], nil
			v := verdictOf(t, Judge(p, run, Options{Baselines: map[string]*metric.Run{"ab": stored}}), "compare.ab.tolerate.ttft.p95 at 4")
			if v.Outcome != row.want || !strings.Contains(v.Message, row.message) || !strings.Contains(v.Needs, row.needs) {
				t.Errorf("%v: %s (%s), %q", v.Outcome, v.Message, v.Needs, v.Notes)
			}
		})
	}
}

// If the control passes at no level, the candidate cannot lose capacity. It can only gain some.
func TestCompareCapacityFromNothing(t *testing.T) {
	for _, row := range []struct {
		name                     string
		change                   float64
		improve                  bool
		controlFail, pass, fails int
		want                     verdict.Outcome
		says                     string
	}{
		{"improved from nothing", 0.1, true, 1, 3, 4, verdict.Pass, "the control passed at no load that was tried (<1); the candidate is certified to hold 3, fails at 4"},
		{"still nothing", 0.1, true, 1, 0, 1, verdict.Fail, "certified to hold 0, fails at 1"},
		// The control fails at 4, so it holds at most 3 requests in flight. If it holds 3, the
		// candidate must hold 10 % more: 3.3, rounded up to 4. The candidate fails at 4, but the
		// control may hold fewer than 3.
		{"both below the first level", 0.1, true, 4, 0, 4, verdict.Inconclusive, "certified to hold 0"},
		{"more than the control can hold", 0.1, true, 4, 4, 8, verdict.Pass, "certified to hold 4"},
		{"less than is asked for", 1, true, 4, 4, 8, verdict.Inconclusive, "certified to hold 4"},
		{"nothing lost", -0.1, false, 1, 2, 3, verdict.Pass, "certified to hold 2"},
		// The control holds at most 10 requests in flight. The candidate may lose 10 %, so it must
		// hold 9.
		{"as much as is tolerated", -0.1, false, 11, 9, 12, verdict.Pass, "certified to hold 9, fails at 12"},
		// If the control's capacity is 0, the candidate cannot lose capacity. So the claim is an
		// error.
		{"nothing to lose", -0.1, false, 1, 0, 1, verdict.Error, "the control passed at no load"},
	} {
		t.Run(row.name, func(t *testing.T) {
			claim := &plan.Claim{Improve: row.improve, Changes: []*plan.ChangeBound{{Metric: metric.Def{Name: "capacity", Unit: metric.Requests, Better: metric.HigherIsBetter}, Limit: row.change}}}
			p, run := duel{rounds: 8, perRound: 40, claims: []*plan.Claim{claim}}.make()
			w := p.Workloads[0]
			w.Capacity = &plan.Capacity{}
			run.Capacities = []*metric.Capacity{
				{Server: "a", Workload: w.Address(), Bracket: metric.Bracket{Kind: metric.CapacityBelow, Fail: row.controlFail}, Line: fmt.Sprintf("<%d", row.controlFail)},
				{Server: "b", Workload: w.Address(), Bracket: metric.Bracket{Pass: row.pass, Fail: row.fails}},
			}
			kind := map[bool]string{true: "improve", false: "tolerate"}[row.improve]
			verdicts := Judge(p, run, Options{})
			v := verdictOf(t, verdicts, "compare.ab."+kind+".capacity")
			must.Hold(t, v.Outcome == row.want && strings.Contains(v.Message, row.says), "%v: %s (%s)", v.Outcome, v.Message, v.Needs)
			changes := verdicts.Comparisons[0].Changes
			i := slices.IndexFunc(changes, func(c compare.Change) bool { return c.Level == "capacity" })
			if better := changes[i].Direction == compare.Better; better != (row.pass >= row.controlFail) {
				t.Errorf("%s, certified to %d, where the control fails at %d", changes[i].Direction, row.pass, row.controlFail)
			}
		})
	}
}

// If the user excludes a comparison, it is skipped, and the verdict on the run is partial.
func TestComparePartial(t *testing.T) {
	p, run := duel{rounds: 8, perRound: 40, claims: []*plan.Claim{tolerate("ttft p95 +10%")}}.make()
	for i, l := range run.Levels {
		run.Levels[i] = &metric.Level{Server: l.Server, Workload: l.Workload, Name: l.Name, Kind: l.Kind, N: l.N, Skipped: metric.SkippedOnly}
	}
	v := Judge(p, run, Options{})
	x := verdictOf(t, v, "compare.ab.tolerate.ttft.p95 at 4")
	must.Hold(t, x.Outcome == verdict.Skipped && v.Partial && v.Outcome != verdict.Pass, "%v %v, %q", x.Outcome, v.Outcome, names(v))
}

// The thresholds of the plan apply to the candidate only.
func TestCompareJudgesTheCandidate(t *testing.T) {
	p, run := duel{rounds: 8, perRound: 40, control: func(int, int) float64 { return 5 }, claims: []*plan.Claim{tolerate("ttft p95 +10%")}}.make()
	p.Workloads[0].SLAs = []*plan.SLA{{At: []string{"4"}, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{threshold("ttft", "p95 < 2s")}}}
	v := Judge(p, run, Options{})
	var on []string
	for _, x := range v.List {
		if x.Kind == verdict.KindSLA {
			on = append(on, x.Server+" "+x.Outcome.String())
		}
	}
	must.Hold(t, slices.Equal(on, []string{"b pass", "b pass"}) && v.Outcome == verdict.Pass, "%q, %v", on, names(v))
}

// If a plan tests many facts at once, each needs stronger evidence. So a change that would fail
// alone may be undecided. A change that repeats a fact, holds by far or only warns does not count
// as a further fact.
func TestCompareCorrects(t *testing.T) {
	// The change is slightly above its limit, with a p-value of about 0.03.
	claims := func(more ...string) []*plan.Claim {
		return []*plan.Claim{tolerate(append([]string{"ttft mean +10%"}, more...)...)}
	}
	d := duel{rounds: 8, perRound: 40, candidate: func(r, _ int) float64 { return []float64{1.12, 1.2, 1.07, 1.16, 1.2, 1.09, 1.18, 1.1}[r] }, claims: claims()}
	warns := tolerate("success rate -1pp", "speed mean -1%", "ttft p50 +1%")
	warns.Severity = plan.SeverityWarn
	for _, c := range []struct {
		name   string
		claims []*plan.Claim
		want   verdict.Outcome
	}{
		{"alone", claims(), verdict.Fail},
		{"one fact", claims("ttft p50 +50%", "e2e mean +50%", "ttft p95 +50%"), verdict.Fail},
		{"two facts", claims("success rate -0.5pp"), verdict.Inconclusive},
		{"beside warnings", append(claims(), warns), verdict.Fail},
	} {
		d.claims = c.claims
		p, run := d.make()
		v := Judge(p, run, Options{})
		x := verdictOf(t, v, "compare.ab.tolerate.ttft.mean at 4")
		if x.Outcome != c.want || v.Outcome != c.want || strings.Contains(strings.Join(x.NotesOf(), " "), "(2 independent facts)") != (c.want == verdict.Inconclusive) {
			t.Errorf("%s: %v of %v %q", c.name, x.Outcome, v.Outcome, x.Notes)
		}
		// The verdict on the whole comparison must agree with the verdicts on its changes.
		if whole := verdictOf(t, v, "compare.ab"); whole.Outcome != c.want || c.want == verdict.Fail && !strings.Contains(whole.Message, "no for") {
			t.Errorf("%s: the whole %v: %s", c.name, whole.Outcome, whole.Message)
		}
	}
}

// The table of decisions shows for which workloads the candidate is better.
func TestCompareDecides(t *testing.T) {
	d := duel{rounds: 8, perRound: 40, control: noisy(3, 1, 0.01)}
	for _, row := range []struct {
		candidate func(int, int) float64
		claims    []string
		answer    string
		line      string
	}{
		{noisy(4, 0.5, 0.01), []string{"ttft p95 +50%"}, compare.AnswerYes, "ab: yes for chat"},
		{noisy(4, 1.4, 0.01), []string{"ttft p95 +50%"}, compare.AnswerNo, "ab: no for chat"},
		{noisy(4, 1, 0.01), []string{"ttft p95 +50%"}, compare.AnswerNone, "ab: no meaningful difference for chat"},
		// The candidate is worse, but by less than the plan tolerates.
		{noisy(4, 1.1, 0.01), []string{"e2e mean +30%", "throughput -30%", "ttft p95 +50%"}, compare.AnswerNone, "ab: no meaningful difference for chat"},
		{noisy(4, 1.4, 0.01), []string{"e2e mean +5%"}, compare.AnswerNo, "ab: no for chat"},
	} {
		d.candidate, d.claims = row.candidate, []*plan.Claim{tolerate(row.claims...)}
		p, run := d.make()
		c := Judge(p, run, Options{}).Comparisons[0]
		must.Hold(t, len(c.Decisions) == 1 && c.Decisions[0].Answer == row.answer && strings.HasPrefix(c.Line, row.line), "%+v, %q", c.Decisions, c.Line)
	}
	// A change that only warns is not required. So the metric e2e, the time of a whole request,
	// decides whether the candidate is better.
	d.candidate, d.claims = noisy(4, 0.5, 0.01), []*plan.Claim{tolerate("throughput -5%"), improve("ttft p95 -90%")}
	d.claims[1].Severity = plan.SeverityWarn
	p, run := d.make()
	v := Judge(p, run, Options{})
	if c := v.Comparisons[0]; c.Decisions[0].Answer != compare.AnswerYes || v.Outcome != verdict.Pass || verdictOf(t, v, "compare.ab.improve.ttft.p95 at 4").Outcome != verdict.Fail {
		t.Errorf("%+v, %s", c.Decisions, v.Outcome)
	}
}

// A round whose change is far from the changes in all other rounds gets a note, but still counts.
func TestCompareOutliers(t *testing.T) {
	d := duel{rounds: 8, perRound: 40, control: noisy(3, 1, 0.01), claims: []*plan.Claim{tolerate("ttft mean +10%")}}
	candidate := noisy(4, 1, 0.01)
	d.candidate = func(round, i int) float64 {
		if round == 3 && i == 0 {
			return 30
		}
		return candidate(round, i)
	}
	p, run := d.make()
	c := Judge(p, run, Options{}).Comparisons[0]
	var notes []string
	for _, pair := range c.Changes[0].Pairs {
		if pair.Note != "" {
			notes = append(notes, fmt.Sprint(pair.Round, " ", pair.Note))
		}
	}
	must.Hold(t, len(notes) == 1 && strings.HasPrefix(notes[0], "3 stands out: the first request on the candidate had a ttft of 30 s"), "%q", notes)
	if c.Changes[0].Outcome == verdict.Pass || !strings.Contains(strings.Join(c.Notes, "\n"), "the ttft of the first measured request was more than 3 times") {
		t.Errorf("%v: it was dropped\n%q", c.Changes[0].Outcome, c.Notes)
	}
}

// The report states the TTFT of the first request after a start separately.
func TestCompareCold(t *testing.T) {
	p, run := duel{rounds: 8, perRound: 40, claims: []*plan.Claim{tolerate("ttft mean +10%")},
		controlIs:   metric.ServerRun{Starts: []metric.Start{{Cold: 100 * time.Millisecond}, {Cold: 120 * time.Millisecond}, {Cold: 300 * time.Millisecond}}},
		candidateIs: metric.ServerRun{Starts: []metric.Start{{Cold: 2 * time.Second}}}}.make()
	want := "cold: the first request after a start got its first token after 120 ms (median of 3 starts) on the control and 2 s (median of 1 start) on the candidate; no metric includes this request"
	c := Judge(p, run, Options{}).Comparisons[0]
	must.Hold(t, slices.Contains(c.Notes, want), "%q", c.Notes)
}

func TestCapacityTarget(t *testing.T) {
	for _, row := range []struct {
		control int
		change  float64
		want    int
	}{{20, -0.15, 17}, {39, -0.15, 34}, {1, -0.15, 1}, {10, 0.1, 11}, {3, -0.5, 2}} {
		must.Same(t, fmt.Sprintf("%d %+.2f", row.control, row.change), row.want, compare.CapacityTarget(row.control, row.change))
	}
}

// Server metrics are compared round by round. If one side reports none, the
// comparison does not pass.
func TestCompareTold(t *testing.T) {
	tell := func(l *metric.Level, queue []float64, preempted float64) {
		for _, r := range l.Rounds {
			r.Telemetry = &metric.Telemetry{
				Histograms: map[string]metric.Histogram{"queue_wait": histogram(queue...)},
				Added:      map[string]float64{metric.Preempted: preempted},
			}
		}
	}
	for _, row := range []struct {
		name  string
		claim *plan.Claim
		tell  func(control, candidate *metric.Level)
		want  verdict.Outcome
		says  string
	}{
		{"the same", tolerate("queue_wait mean +10%"), func(a, b *metric.Level) { tell(a, []float64{0.2, 0.4}, 0); tell(b, []float64{0.2, 0.4}, 0) }, verdict.Pass, "300 ms → 300 ms"},
		// The candidate's mean of (0.4 + 0.8)/2 s is twice the control's mean of (0.2 + 0.4)/2 s.
		{"twice as long", tolerate("queue_wait mean +10%"), func(a, b *metric.Level) { tell(a, []float64{0.2, 0.4}, 0); tell(b, []float64{0.4, 0.8}, 0) }, verdict.Fail, "+100%"},
		{"a percentile of buckets", tolerate("queue_wait p95 +10%"), func(a, b *metric.Level) { tell(a, []float64{0.2}, 0); tell(b, []float64{0.2}, 0) }, verdict.Error, "only its mean can be compared"},
		{"the candidate tells nothing", tolerate("queue_wait mean +10%"), func(a, _ *metric.Level) { tell(a, []float64{0.2}, 0) }, verdict.Error, "the candidate has no value of queue_wait mean"},
		{"the control tells nothing", tolerate("queue_wait mean +10%"), func(_, b *metric.Level) { tell(b, []float64{0.2}, 0) }, verdict.Error, "the control has no value of queue_wait mean"},
		{"neither tells anything", tolerate("queue_wait mean +10%"), func(_, _ *metric.Level) {}, verdict.Error, "the control has no value of queue_wait mean"},
		{"none on either side", tolerate("preemptions +10%"), func(a, b *metric.Level) { tell(a, nil, 0); tell(b, nil, 0) }, verdict.Pass, "0 → 0"},
		{"some on the candidate", tolerate("preemptions +10%"), func(a, b *metric.Level) { tell(a, nil, 0); tell(b, nil, 3) }, verdict.Fail, ""},
		{"none on the candidate", tolerate("preemptions +10%"), func(a, b *metric.Level) { tell(a, nil, 3); tell(b, nil, 0) }, verdict.Pass, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			// The plan also requires a second change, which always passes.
			p, run := duel{rounds: 8, perRound: 40, claims: []*plan.Claim{row.claim, tolerate("ttft p95 +10%")}}.make()
			row.tell(run.Levels[0], run.Levels[1])
			v := Judge(p, run, Options{})
			text := strings.Join(names(v), "\n")
			must.Hold(t, v.Outcome == row.want && strings.Contains(text, row.says), "%v, want %v and %q\n%s", v.Outcome, row.want, row.says, text)
		})
	}
}

// simulateTogether simulates a comparison with both servers at the same time, on two sets of GPUs.
// All times on the second set are multiplied by the parameter cards.
func simulateTogether(rounds int, cards, candidate float64) (*plan.Plan, *metric.Run) {
	on := func(side int) func(int, int) float64 {
		return func(round, i int) float64 {
			x := (1 + 0.01*float64(i%7)) * (1 + 0.002*float64((round/2)%3)*float64(side))
			if (round+side)%2 == 1 {
				x *= cards
			}
			if side == 1 {
				x *= candidate
			}
			return x
		}
	}
	p, run := duel{rounds: rounds, perRound: 40, control: on(0), candidate: on(1), claims: []*plan.Claim{tolerate("ttft mean +5%")}}.make()
	p.Compares[0].SideBySide, run.Comparisons[0].SideBySide = true, true
	for k, l := range run.Levels {
		for i, r := range l.Rounds {
			r.Leg.Slot = i
			run.Servers[k].Starts = append(run.Servers[k].Starts, metric.Start{GPUs: []string{fmt.Sprint((i + k) % 2)}})
		}
	}
	return p, run
}

// One GPU may be 10 % slower than the other. This must not look like a regression, and must not
// hide one.
func TestCardsCancel(t *testing.T) {
	for _, row := range []struct {
		name             string
		cards, candidate float64
		want             verdict.Outcome
	}{
		{"the same cards, unchanged", 1, 1, verdict.Pass},
		{"one slower by 10 %, unchanged", 1.1, 1, verdict.Pass},
		{"one faster by 10 %, unchanged", 1 / 1.1, 1, verdict.Pass},
		{"one slower by 10 %, 10 % worse", 1.1, 1.1, verdict.Fail},
		{"one faster by 10 %, 10 % worse", 1 / 1.1, 1.1, verdict.Fail},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, run := simulateTogether(10, row.cards, row.candidate)
			x := Judge(p, run, Options{}).Comparisons[0]
			if x.Outcome != row.want || !x.SideBySide || x.Units != 5 || x.Rounds != 10 {
				t.Errorf("%v, %d rounds, %d units, side by side %v: %+v", x.Outcome, x.Rounds, x.Units, x.SideBySide, x.Changes)
			}
			// Each server uses each set of GPUs in turn. So over two rounds the difference between
			// the GPUs cancels, and the candidate's own change remains.
			for _, c := range x.Changes {
				must.Hold(t, c.Metric.Name != "ttft" || !c.Limit.OK || math.Abs(c.Change.V-(row.candidate-1)) <= 0.006, "%s changes by %v", c.Name(), c.Change.V)
			}
		})
	}
	// Servers that swap GPUs between rounds are compared in pairs of rounds. So ten rounds give
	// five units, even when the plan no longer asks for the swap.
	p, run := simulateTogether(10, 1.1, 1)
	p.Compares[0].SideBySide = false
	x := Judge(p, run, Options{}).Comparisons[0]
	must.Hold(t, x.Outcome == verdict.Pass && x.Units == 5, "%v, %d units", x.Outcome, x.Units)
}

// A comparison on two sets of GPUs is an error unless its record shows that the servers swapped
// them after each round.
func TestCardsThatDoNotCancel(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*plan.Plan, *metric.Run)
		says   string
	}{
		{"never swapped", func(_ *plan.Plan, run *metric.Run) {
			for k, s := range run.Servers {
				for i := range s.Starts {
					s.Starts[i].GPUs = []string{fmt.Sprint(k)}
				}
			}
		}, "swapped their GPUs for round 2"},
		{"once not swapped", func(_ *plan.Plan, run *metric.Run) {
			run.Servers[0].Starts[5].GPUs, run.Servers[1].Starts[5].GPUs = run.Servers[1].Starts[5].GPUs, run.Servers[0].Starts[5].GPUs
		}, "swapped their GPUs for round 6"},
		{"on the same GPUs", func(_ *plan.Plan, run *metric.Run) { run.Servers[0].Starts[2].GPUs = run.Servers[1].Starts[2].GPUs }, "for round 3"},
		{"nothing is known of the GPUs", func(_ *plan.Plan, run *metric.Run) { run.Servers[1].Starts = nil }, "for round 1"},
		{"one after the other", func(_ *plan.Plan, run *metric.Run) { run.Levels[0].Rounds[3].Leg.Slot = 9 }, "round 4 did not run side by side"},
		{"in turns, by a plan that was edited since", func(_ *plan.Plan, run *metric.Run) {
			run.Comparisons[0].SideBySide = false
			for k, l := range run.Levels {
				for i, r := range l.Rounds {
					r.Leg.Slot = 2*i + k
				}
			}
		}, "round 1 did not run side by side"},
		{"half a pair", func(_ *plan.Plan, run *metric.Run) {
			for _, l := range run.Levels {
				l.Rounds = l.Rounds[:9]
			}
			run.Comparisons[0].Looks = []metric.ComparisonLook{{Rounds: 9, Planned: 1}}
		}, "the last round has no partner on swapped GPUs"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, run := simulateTogether(10, 1.1, 1)
			row.change(p, run)
			x := Judge(p, run, Options{}).Comparisons[0]
			said := x.Skipped
			for _, c := range x.Changes {
				said += "; " + c.Message
			}
			must.Hold(t, x.Outcome == verdict.Error && strings.Contains(said, row.says), "%v: %s", x.Outcome, said)
		})
	}
}
