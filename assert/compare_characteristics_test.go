package assert

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// duels describes simulated comparisons of two servers with a known difference. The servers take
// turns, called legs. Request times are log-normal, and the value of a leg is a statistic of them.
// Each start of a server changes its speed, and the speed drifts from leg to leg.
type duels struct {
	rounds, perRound int
	stat             metric.Stat
	requests         float64 // standard deviation of the logarithm of a request time
	starts           float64 // standard deviation of the logarithm of a start's speed
	drift            float64 // standard deviation of the random step from one turn to the next
	trend            float64 // constant change from one turn to the next
	blocks           bool    // the servers do not alternate: all turns of the control come first
	restart          plan.Restart
	cards            float64 // slowdown of one server's GPUs, as a share of their speed
	beside           bool
}

// usual is an ordinary comparison. tokgate assumes the same values when it computes the chances of
// a comparison.
var usual = duels{rounds: 8, perRound: 200, stat: metric.Stat{Kind: metric.Percentile, P: 95}, requests: 0.3, starts: 0.01, restart: plan.RestartLeg}

// draw simulates one comparison in which the candidate takes exp(effect) times as long as the
// control. It returns one measured change for each independent unit, such as a pair of rounds.
func (d duels) draw(r *rand.Rand, effect float64) []float64 {
	var units []float64
	logs := [2][]float64{make([]float64, d.rounds), make([]float64, d.rounds)}
	speed := [2]float64{d.starts * r.NormFloat64(), d.starts * r.NormFloat64()}
	walk, slot := 0.0, 0
	leg := func(round, side int) {
		fresh := d.restart == plan.RestartLeg
		if fresh {
			speed[side] = d.starts * r.NormFloat64()
		}
		x := make([]float64, d.perRound)
		for i := range x {
			x[i] = math.Exp(d.requests * r.NormFloat64())
		}
		v, _ := metric.NewDistribution(x, 0, metric.LowerIsBetter).Stat(d.stat)
		logs[side][round] = math.Log(v) + speed[side] + walk + d.trend*float64(slot) + effect*float64(side)
		if onSlower := side == 1; d.cards != 0 && onSlower != (d.beside && round%2 == 1) {
			logs[side][round] += d.cards
		}
		walk += d.drift * r.NormFloat64()
		slot++
	}
	switch {
	case d.blocks:
		for side := range 2 {
			for round := range d.rounds {
				leg(round, side)
			}
		}
	default:
		for round := range d.rounds {
			for k := range 2 {
				leg(round, (k+round)%2)
			}
		}
	}
	block := 1
	if d.beside {
		block = 2
	}
	for i := 0; i+block <= d.rounds; i += block {
		unit := 0.0
		for k := i; k < i+block; k++ {
			unit += (logs[1][k] - logs[0][k]) / float64(block)
		}
		units = append(units, unit)
	}
	return units
}

// outcomes counts the outcomes of comparisons.
type outcomes struct{ n, pass, fail, better, worse, point int }

func (o outcomes) share(k int) float64 { return float64(k) / float64(max(o.n, 1)) }

// judgeAll judges n simulated comparisons against a tolerance, with the code that judges measured
// comparisons.
func (d duels) judgeAll(n int, seed uint64, effect, tolerance float64) outcomes {
	r := rand.New(rand.NewPCG(seed, 7))
	o := outcomes{n: n}
	bound := &plan.ChangeBound{Metric: metric.MustLookup("ttft"), Stat: d.stat, Limit: tolerance}
	claim := &plan.Claim{Severity: plan.SeverityError}
	for range n {
		c := compare.OfUnits(d.draw(r, effect), bound, claim, plan.Policy{Decide: plan.Certified})
		switch c.Outcome {
		case verdict.Pass:
			o.pass++
		case verdict.Fail:
			o.fail++
		}
		if c.Direction == compare.Better {
			o.better++
		}
		if c.Direction == compare.Worse {
			o.worse++
		}
		if c.Change.V <= tolerance {
			o.point++
		}
	}
	return o
}

// compareCharacteristics measures how often the verdicts of comparisons are wrong.
func compareCharacteristics(t *testing.T, out *strings.Builder) {
	n := max(*gates/2, 1)
	most := 0.05 + 3*math.Sqrt(0.05*0.95/float64(n))
	pct := func(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
	with := func(change func(*duels)) duels { d := usual; change(&d); return d }
	type job struct {
		d                 duels
		effect, tolerance float64
		seed              uint64
		n                 int
		got               *outcomes
	}
	var jobs []job
	ask := func(n int, d duels, effect, tolerance float64) *outcomes {
		got := &outcomes{}
		jobs = append(jobs, job{d, effect, tolerance, uint64(10_000 + len(jobs)), n, got})
		return got
	}
	p50, p95, p99 := metric.Stat{Kind: metric.Percentile, P: 50}, usual.stat, metric.Stat{Kind: metric.Percentile, P: 99}
	mean := metric.Stat{Kind: metric.Mean}

	type row struct {
		name                   string
		promised               bool
		none, at, beyond, half *outcomes
	}
	var rows []row
	add := func(name string, promised bool, d duels) {
		tol := math.Log1p(0.10)
		rows = append(rows, row{name, promised, ask(n, d, 0, 0.10), ask(n, d, tol, 0.10), ask(n, d, math.Log1p(0.20), 0.10), ask(n, d, math.Log1p(0.05), 0.10)})
	}
	for _, k := range []struct {
		name     string
		promised bool
		d        duels
	}{
		{"requests alone", true, with(func(d *duels) { d.starts = 0 })},
		{"starts differ by 1 %", true, usual},
		{"starts differ by 3 %", true, with(func(d *duels) { d.starts = 0.03 })},
		{"drift: a walk of 3 % a leg", true, with(func(d *duels) { d.drift = 0.03 })},
		{"drift: 1 % slower with every leg", true, with(func(d *duels) { d.trend = 0.01 })},
		{"the same walk, control first, then candidate", false, with(func(d *duels) { d.drift, d.blocks = 0.03, true })},
		{"1 % slower with every leg, control first, then candidate", false, with(func(d *duels) { d.trend, d.blocks = 0.01, true })},
		{"restart = \"never\", starts differ by 1 %", false, with(func(d *duels) { d.restart = plan.RestartNever })},
		{"restart = \"never\", starts differ by 3 %", false, with(func(d *duels) { d.restart, d.starts = plan.RestartNever, 0.03 })},
	} {
		add(k.name, k.promised, k.d)
	}
	type power struct {
		name string
		cell []*outcomes
	}
	shapes := []struct{ rounds, requests int }{{5, 50}, {5, 200}, {5, 600}, {8, 50}, {8, 200}, {8, 600}, {12, 200}, {16, 200}, {16, 600}}
	var powers []power
	for _, k := range []struct {
		name      string
		stat      metric.Stat
		tolerance float64
	}{{"mean, throughput: 5 %", mean, 0.05}, {"p50: 5 %", p50, 0.05}, {"p95: 10 %", p95, 0.10}, {"p95: 20 %", p95, 0.20}, {"p99: 20 %", p99, 0.20}} {
		p := power{name: k.name}
		for _, s := range shapes {
			p.cell = append(p.cell, ask(max(n/3, 1), with(func(d *duels) { d.rounds, d.perRound, d.stat = s.rounds, s.requests, k.stat }), 0, k.tolerance))
		}
		powers = append(powers, p)
	}
	add("side_by_side, 16 rounds, one GPU 10 % slower", true, with(func(d *duels) { d.beside, d.rounds, d.cards = true, 16, 0.10 }))
	add("the same, were the GPUs not swapped", false, with(func(d *duels) { d.rounds, d.cards = 16, 0.10 }))
	var todo []func()
	for _, j := range jobs {
		todo = append(todo, func() { *j.got = j.d.judgeAll(j.n, j.seed, j.effect, j.tolerance) })
	}
	twoAtATime(todo)

	out.WriteString("**Comparison: p95 +10 % tolerated, 8 rounds of 200 requests on each server**\n\n| what varies | unchanged: pass | fail | 5 % worse: pass | at the tolerance: pass | fail | 20 % worse: pass | fail | point estimate at the tolerance: passes |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.name, pct(r.none.share(r.none.pass)), pct(r.none.share(r.none.fail)), pct(r.half.share(r.half.pass)),
			pct(r.at.share(r.at.pass)), pct(r.at.share(r.at.fail)), pct(r.beyond.share(r.beyond.pass)), pct(r.beyond.share(r.beyond.fail)), pct(r.at.share(r.at.point)))
		if r.promised && (r.none.share(r.none.fail) > most || r.at.share(r.at.pass) > most || r.at.share(r.at.fail) > most || r.beyond.share(r.beyond.pass) > most) {
			t.Errorf("%s: unchanged fails %.3f, at the tolerance passes %.3f and fails %.3f, beyond passes %.3f; at most %.3f", r.name,
				r.none.share(r.none.fail), r.at.share(r.at.pass), r.at.share(r.at.fail), r.beyond.share(r.beyond.pass), most)
		}
	}
	out.WriteString("\n**Power: shares of unchanged candidates that pass, by rounds × requests in each; requests ±30 %, starts ±1 %**\n\n| tolerated |")
	for _, s := range shapes {
		fmt.Fprintf(out, " %d × %d |", s.rounds, s.requests)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(shapes)) + "\n")
	for _, p := range powers {
		fmt.Fprintf(out, "| %s |", p.name)
		for _, c := range p.cell {
			fmt.Fprintf(out, " %.0f%% |", 100*c.share(c.pass))
		}
		out.WriteString("\n")
	}
	out.WriteString("\n")
	wholeComparisons(t, out)
}

// wholeComparisons judges simulated runs with several changes each. It uses the complete code:
// blocks, Holm's correction, shares, and means of completed requests.
func wholeComparisons(t *testing.T, out *strings.Builder) {
	n := max(*gates/4, 1)
	most := 0.05 + 3*math.Sqrt(0.05*0.95/float64(n))
	out.WriteString("**Whole comparisons, 8 rounds of 60: ttft mean +10 %, ttft p95 +25 %, e2e mean +5 %, success -2 points**\n\n| candidate | all pass | one fails | undecided | some difference is seen |\n|---|---|---|---|---|\n")
	for i, c := range []struct {
		name             string
		factor           float64
		fails, candidate float64 // share of failing requests
		whole            bool    // whole rounds fail
		promise          string
	}{
		{"unchanged", 1, 0, 0, false, "no fail"}, {"unchanged, 2 % of requests fail on both", 1, 0.02, 0.02, false, "no fail"},
		{"30 % slower", 1.3, 0, 0, false, "no pass"}, {"fails 4 points more", 1, 0.01, 0.05, false, "no pass"},
		{"fails 4 points more, a whole round at a time", 1, 0, 0.04, true, ""}, // in 0.96^8 = 72 % of the runs none of the 8 rounds fails
	} {
		r := rand.New(rand.NewPCG(uint64(20_000+i), 9))
		var pass, fail, seen int
		for range n {
			side := func(factor float64) func(int, int) float64 {
				shift, last := 0.0, -1
				return func(round, _ int) float64 {
					if round != last {
						shift, last = 0.01*r.NormFloat64(), round
					}
					return factor * math.Exp(shift+0.3*r.NormFloat64())
				}
			}
			failing := func(share float64) func(int, int) bool {
				last, fails := -1, false
				return func(round, _ int) bool {
					if !c.whole || round != last {
						last, fails = round, share > 0 && r.Float64() < share
					}
					return fails
				}
			}
			p, run := duel{rounds: 8, perRound: 60, control: side(1), candidate: side(c.factor), controlFails: failing(c.fails), candidateFails: failing(c.candidate),
				claims: []*plan.Claim{tolerate("ttft mean +10%", "ttft p95 +25%", "e2e mean +5%", "success rate -2pp")}}.make()
			v := Judge(p, run, Options{})
			switch v.Outcome {
			case verdict.Pass:
				pass++
			case verdict.Fail:
				fail++
			case verdict.Error:
				if c.whole {
					break // a round in which no request completed has no mean
				}
				t.Fatalf("%s: %v %q", c.name, v.Why, names(v))
			}
			if a := v.Comparisons[0].Decisions[0].Answer; a != compare.AnswerNone && a != compare.AnswerUnknown {
				seen++
			}
		}
		share := func(k int) float64 { return float64(k) / float64(n) }
		fmt.Fprintf(out, "| %s | %.1f%% | %.1f%% | %.1f%% | %.1f%% |\n", c.name, 100*share(pass), 100*share(fail), 100*share(n-pass-fail), 100*share(seen))
		if c.promise == "no fail" && (share(fail) > most || share(seen) > most) || c.promise == "no pass" && share(pass) > most {
			t.Errorf("%s: pass %.3f, fail %.3f, seen %.3f; at most %.3f", c.name, share(pass), share(fail), share(seen), most)
		}
	}
	out.WriteString("\n")
}

// oneFact judges comparisons with a tight tolerance, on three metrics that measure nearly the same.
// Request times vary by chance and from prompt to prompt. The differences between prompts cancel
// out, because both servers get the same prompts.
func oneFact(t *testing.T, out *strings.Builder) {
	n := max(*gates/4, 1)
	most := 0.05 + 3*math.Sqrt(0.05*0.95/float64(n))
	out.WriteString("**One fact in three changes: ttft mean, throughput and e2e mean, 5 % tolerated of each, 8 rounds of 100, which differ by 3 %**\n\n| requests vary by | unchanged: pass | fail | 5 % worse: pass | fail | 10 % worse: pass | fail |\n|---|---|---|---|---|---|---|\n")
	for i, c := range []struct {
		name string
		// The fields are standard deviations of the logarithm of a request's time: by chance, and
		// from prompt to prompt.
		chance, own float64
	}{{"±10 %", .10, 0}, {"±20 %", .20, 0}, {"±30 %", .30, 0}, {"±30 %, of their own", 0, .30}, {"±30 %, nine tenths of the variance their own", .095, .285}} {
		fmt.Fprintf(out, "| %s |", c.name)
		for k, factor := range []float64{1, 1.05, 1.10} {
			r := rand.New(rand.NewPCG(uint64(21_000+10*i+k), 9))
			var pass, fail float64
			for run := range n {
				side := func(factor float64) func(int, int) float64 {
					shift, last := 0.0, -1
					prompts := rand.New(rand.NewPCG(uint64(run), uint64(i)))
					return func(round, _ int) float64 {
						if round != last {
							shift, last = 0.03*r.NormFloat64(), round
						}
						return factor * math.Exp(shift+c.chance*r.NormFloat64()+c.own*prompts.NormFloat64())
					}
				}
				p, run := duel{rounds: 8, perRound: 100, control: side(1), candidate: side(factor),
					claims: []*plan.Claim{tolerate("ttft mean +5%", "throughput -5%", "e2e mean +5%")}}.make()
				switch Judge(p, run, Options{}).Outcome {
				case verdict.Pass:
					pass += 1 / float64(n)
				case verdict.Fail:
					fail += 1 / float64(n)
				}
			}
			fmt.Fprintf(out, " %.1f%% | %.1f%% |", 100*pass, 100*fail)
			// Check the promised power only if requests vary by at most ±10 % by chance. At ±30 %
			// no test reaches this power. Even with a known variance, a test would pass only 74 %
			// of unchanged servers.
			if least := []float64{0.80, 0, 0.65}[k]; c.chance <= 0.1 && n >= 50 && []float64{pass, 1, fail}[k] < least-3*math.Sqrt(least*(1-least)/float64(n)) {
				t.Errorf("one fact, requests %s, %.2f times: pass %.3f, fail %.3f; at least %v was promised", c.name, factor, pass, fail, least)
			}
			wrong := [][2]float64{{0, fail}, {pass, fail}, {pass, 0}}[k]
			if wrong[0] > most || wrong[1] > most {
				t.Errorf("one fact, requests %s, %.2f times: pass %.3f, fail %.3f; at most %.3f", c.name, factor, pass, fail, most)
			}
		}
		out.WriteString("\n")
	}
	out.WriteString("\n")
}
