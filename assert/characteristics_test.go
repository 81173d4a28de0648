package assert

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

var (
	gates = flag.Int("gates", 16, "simulated gates of each operating characteristic")
	only  = flag.String("only", "", "measure the operating characteristics alone whose title has this in it")
	table = flag.String("table", "", "write the operating characteristics to this file, as Markdown")
)

// characteristic counts the outcomes of simulated gates of one kind.
type characteristic struct {
	process  process
	n        int
	pass     int
	fail     int
	covered  int // number of gates whose bounds include the true value
	estimate int // number of gates whose point estimate would pass
}

func (c characteristic) share(k int) float64 { return float64(k) / float64(max(c.n, 1)) }

// ceiling returns the highest share of gates that agrees with a true share of alpha. It lies three
// standard errors above alpha.
func (c characteristic) ceiling(alpha float64) float64 {
	return alpha + 3*math.Sqrt(alpha*(1-alpha)/float64(max(c.n, 1)))
}

// simulate simulates n gates of a process. It judges each gate by its statistical test, and again
// by its point estimate.
func simulate(p process, n int, seed uint64, clusters plan.Clusters, t *plan.Threshold, truth float64, draw func(*rand.Rand) *metric.Level) characteristic {
	c := characteristic{process: p, n: n}
	r := rand.New(rand.NewPCG(seed, 1))
	w := &plan.Workload{Good: []*plan.Threshold{threshold("ttft", "every < 2s")}}
	for range n {
		s := subject{evidence: gather(draw(r)), workload: w, alpha: 0.05, policy: plan.Policy{Clusters: clusters}}
		v := s.judge(t)
		switch v.Outcome {
		case verdict.Pass:
			c.pass++
		case verdict.Fail:
			c.fail++
		}
		if v.Low.V <= truth && truth <= v.High.V {
			c.covered++
		}
		s.policy.Decide = plan.Estimate
		if s.judge(t).Outcome == verdict.Pass {
			c.estimate++
		}
	}
	return c
}

// twoAtATime runs independent jobs, at most two at a time.
func twoAtATime(jobs []func()) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2)
	for _, job := range jobs {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			job()
		})
	}
	wait.Wait()
}

// failing turns every request above the limit into a failed request.
func failing(l *metric.Level) *metric.Level {
	for _, r := range l.Rounds {
		for _, x := range r.Samples {
			if v, ok := x.Value("ttft"); ok && v >= 2 {
				fail(x)
			}
		}
	}
	return l
}

// TestLongCharacteristics measures the error rates that tokgate promises. A server exactly at its
// limit wrongly passes at most 5% of the time, and fails at most 5% of the time. Its requests may
// depend on each other.
func TestLongCharacteristics(t *testing.T) {
	var out strings.Builder
	pct := func(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

	type kind struct {
		title     string
		threshold *plan.Threshold
		truth     float64 // true value of the threshold's metric
		processes []process
		rounds    int
		perRound  int
		draw      func(p process, r *rand.Rand, score float64, rounds, perRound int) *metric.Level
		share     float64 // true share of requests over the limit
		promised  bool
		clusters  plan.Clusters
	}
	normal := chosen(func(p process) bool { return !p.heavy && !p.own }) // with a known mean
	at := func(p process, r *rand.Rand, score float64, rounds, perRound int) *metric.Level {
		return p.level(r, rounds, perRound, score, 1)
	}
	fail := func(p process, r *rand.Rand, score float64, rounds, perRound int) *metric.Level {
		return failing(p.level(r, rounds, perRound, score, 1))
	}
	kinds := []kind{
		{"p95 at its limit, 10 rounds of 20 requests", threshold("ttft", "p95 < 2s"), 2, processes, 10, 20, at, 0.05, true, ""},
		{"p95 at its limit, 5 rounds of 60 requests", threshold("ttft", "p95 < 2s"), 2, processes, 5, 60, at, 0.05, true, ""},
		{"mean at its limit, 10 rounds of 20 requests", threshold("ttft", "mean < 2s"), 2, normal, 10, 20,
			func(p process, r *rand.Rand, _ float64, rounds, perRound int) *metric.Level {
				// The mean of a log-normal value is e^(spread²/2). Divide by it, so that the mean
				// is exactly at the limit of 2 s.
				return p.level(r, rounds, perRound, 0, math.Exp(-spread*spread/2))
			}, 0, true, ""},
		{"goodput share at its limit of 95%, clusters = \"round\", 60 rounds of 8 requests", threshold("goodput", "share >= 95%"), 0.95, processes, 60, 8, at, 0.05, true, plan.ClustersRound},
		{"the same, missed by failures alone", threshold("goodput", "share >= 95%"), 0.95, clusters(0.05, commonFailures...), 60, 8, fail, 0.05, true, plan.ClustersRound},
		{"success at its limit of 98%, clusters = \"round\", 10 rounds of 30 requests", threshold("success", "rate >= 98%"), 0.98, slices.Concat(processes, clusters(0.02, commonFailures...)), 10, 30, fail, 0.02, true, plan.ClustersRound},
		{"success at its limit of 98%, clusters = \"round\", 150 rounds of 8 requests", threshold("success", "rate >= 98%"), 0.98, slices.Concat(processes, clusters(0.02, commonFailures...)), 150, 8, fail, 0.02, true, plan.ClustersRound},
		{"success at its limit of 95%, clusters = \"wave\" (the default), 10 rounds of 120 requests", threshold("success", "rate >= 95%"), 0.95, slices.Concat(inWaves(0.05), chosen(func(p process) bool { return longer(p) && !hides(p) })), 10, 120, fail, 0.05, true, plan.ClustersWave},
		{"success at its limit of 98%, clusters = \"wave\", 10 rounds of 30 requests", threshold("success", "rate >= 98%"), 0.98, inWaves(0.02), 10, 30, fail, 0.02, true, plan.ClustersWave},
		{"goodput share at its limit of 95%, clusters = \"wave\", 10 rounds of 120 requests", threshold("goodput", "share >= 95%"), 0.95, processes, 10, 120, at, 0.05, true, plan.ClustersWave},
		{"success at its limit of 95%, clusters = \"none\", 10 rounds of 60 requests", threshold("success", "rate >= 95%"), 0.95, processes[:2], 10, 60, fail, 0.05, true, plan.ClustersNone},
		{"Beyond the assumption: success at its limit of 95%, clusters = \"wave\", 10 rounds of 120 requests", threshold("success", "rate >= 95%"), 0.95, slices.Concat(chosen(hides), clusters(0.05, commonFailures[1])), 10, 120, fail, 0.05, false, plan.ClustersWave},
		{"Beyond the assumption: success at its limit of 95%, clusters = \"none\", 10 rounds of 60 requests", threshold("success", "rate >= 95%"), 0.95, slices.Concat(processes[2:], clusters(0.05, commonFailures...)), 10, 60, fail, 0.05, false, plan.ClustersNone},
		{"Beyond the promise: p95 at its limit, 10 rounds of 20 requests", threshold("ttft", "p95 < 2s"), 2, hidden, 10, 20, at, 0.05, false, ""},
	}
	results := make([][]characteristic, len(kinds))
	var jobs []func()
	for i, k := range kinds {
		if !strings.Contains(k.title, *only) {
			continue
		}
		results[i] = make([]characteristic, len(k.processes))
		for at, p := range k.processes {
			jobs = append(jobs, func() {
				score := 0.0
				if k.share > 0 {
					score = p.score(k.share)
				}
				// Simulate fewer gates if they are large, because one large gate takes as long as
				// several small ones.
				n := max(*gates*300/max(300, k.rounds*k.perRound), min(*gates, 25))
				results[i][at] = simulate(p, n, uint64(100*i+at), k.clusters, k.threshold, k.truth, func(r *rand.Rand) *metric.Level {
					return k.draw(p, r, score, k.rounds, k.perRound)
				})
			})
		}
	}
	twoAtATime(jobs)
	for i, k := range kinds {
		if results[i] == nil {
			continue
		}
		fmt.Fprintf(&out, "**%s**\n\n| requests | false pass | false fail | undecided | within both bounds | point estimate: passes | fails |\n|---|---|---|---|---|---|---|\n", k.title)
		for _, c := range results[i] {
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s |\n", c.process.name, pct(c.share(c.pass)), pct(c.share(c.fail)),
				pct(1-c.share(c.pass)-c.share(c.fail)), pct(c.share(c.covered)), pct(c.share(c.estimate)), pct(1-c.share(c.estimate)))
			if i == 0 && c.n >= 500 && c.process.name == "independent" && c.share(c.pass) < 0.02-3*math.Sqrt(0.02*0.98/float64(c.n)) {
				t.Errorf("%s, independent: %.3f pass, which is more care than was promised", k.title, c.share(c.pass))
			}
			if k.promised && (c.share(c.pass) > c.ceiling(0.05) || c.share(c.fail) > c.ceiling(0.05)) {
				t.Errorf("%s, %s: pass %.3f, fail %.3f, at most %.3f", k.title, c.process.name, c.share(c.pass), c.share(c.fail), c.ceiling(0.05))
			}
		}
		out.WriteString("\n")
	}
	for _, part := range []struct {
		title   string
		measure func(*testing.T, *strings.Builder)
	}{
		{"More rounds", rounds}, {"Power: success", healthy}, {"three planned looks", looks}, {"Looks on the way", onTheWay},
		{"Power: p95", power}, {"Comparison", compareCharacteristics}, {"One fact", oneFact},
	} {
		if strings.Contains(part.title, *only) {
			part.measure(t, &out)
		}
	}
	t.Log("\n" + out.String())
	if *table != "" {
		must.Do(t, os.WriteFile(*table, []byte(out.String()), 0o644))
	}
}

// rounds writes a table of false passes when bad requests come together. With more rounds there are
// fewer false passes.
func rounds(t *testing.T, out *strings.Builder) {
	plans := []struct{ rounds, perRound int }{{10, 30}, {60, 30}, {150, 10}}
	out.WriteString("**More rounds: false pass at the limit, where what is bad comes together**\n\n| threshold | requests |")
	for _, d := range plans {
		fmt.Fprintf(out, " %d rounds of %d |", d.rounds, d.perRound)
	}
	out.WriteString("\n|---|---|" + strings.Repeat("---|", len(plans)) + "\n")
	type row struct {
		process process
		share   float64
		th      *plan.Threshold
		draw    func(*metric.Level) *metric.Level
	}
	var rows []row
	for _, p := range hidden {
		rows = append(rows, row{p, 0.05, threshold("ttft", "p95 < 2s"), func(l *metric.Level) *metric.Level { return l }})
	}
	for _, p := range clusters(0.05, commonFailures...) {
		rows = append(rows, row{p, 0.05, threshold("ttft", "p95 < 2s"), failing})
	}
	n := max(*gates/6, 1)
	results := make([][]characteristic, len(rows))
	var jobs []func()
	for i, w := range rows {
		results[i] = make([]characteristic, len(plans))
		jobs = append(jobs, func() {
			score := w.process.score(w.share)
			for k, d := range plans {
				results[i][k] = simulate(w.process, n, uint64(2000+10*i+k), "", w.th, w.th.Limit, func(r *rand.Rand) *metric.Level {
					return w.draw(w.process.level(r, d.rounds, d.perRound, score, 1))
				})
			}
		})
	}
	twoAtATime(jobs)
	for i, w := range rows {
		fmt.Fprintf(out, "| %s | %s |", w.th.Metric.Name+" "+w.th.Text, w.process.name)
		for _, c := range results[i] {
			fmt.Fprintf(out, " %.1f%% |", 100*c.share(c.pass))
		}
		out.WriteString("\n")
		// 150 rounds suffice even if each counts as only one request: the exact test needs 59
		// independent ones.
		if c := results[i][len(plans)-1]; c.share(c.pass) > c.ceiling(0.05) || c.share(c.fail) > c.ceiling(0.05) {
			t.Errorf("%s in 150 rounds: pass %.3f, fail %.3f", w.process.name, c.share(c.pass), c.share(c.fail))
		}
	}
	out.WriteString("\n")
}

// chosen returns the elements of processes for which kind returns true.
func chosen(kind func(process) bool) []process {
	return slices.DeleteFunc(slices.Clone(processes), func(p process) bool { return !kind(p) })
}

// inWaves returns simulated processes whose requests depend on each other only within a wave:
// requests that run at the same time. The argument share is the share of requests that fail.
func inWaves(share float64) []process {
	return slices.Concat(chosen(func(p process) bool { return !longer(p) }), clusters(share, commonFailures[0]), clusters(share, spells...))
}

// hides reports whether ten rounds are often too few to show how much rounds differ. Rare events
// that affect all requests of a round are not seen in most rounds.
func hides(p process) bool { return p.round > 0.5 || p.heavy }

// longer reports whether requests depend on each other beyond one wave. A wave is four requests
// that run at the same time.
func longer(p process) bool { return p.round > 0 || p.rho > 0.8 }

// healthy writes a table of how often a server passes if only few of its requests fail.
func healthy(t *testing.T, out *strings.Builder) {
	type server struct {
		name  string
		share float64 // share of requests that fail
		as    process // simulated process that decides which requests fail together
	}
	servers := []server{
		{name: "none fails"}, {"1 request in 1000 fails", 0.001, process{}}, {"1 round in 1000 fails", 0.001, process{slowRounds: 0.001}},
		{"1 request in 200 fails", 0.005, process{}}, {"1 request in 50 fails", 0.02, process{}},
	}
	plans := []struct {
		text             string
		clusters         plan.Clusters
		rounds, perRound int
	}{
		{"rate >= 95%", plan.ClustersWave, 10, 48}, {"rate >= 95%", plan.ClustersWave, 10, 80}, {"rate >= 95%", plan.ClustersWave, 10, 120},
		{"rate >= 98%", plan.ClustersWave, 10, 120}, {"rate >= 98%", plan.ClustersWave, 10, 200}, {"rate >= 99%", plan.ClustersWave, 10, 240}, {"rate >= 99%", plan.ClustersWave, 10, 320},
		{"rate >= 95%", plan.ClustersNone, 10, 20}, {"rate >= 95%", plan.ClustersRound, 80, 8}, {"rate >= 98%", plan.ClustersRound, 200, 8},
	}
	out.WriteString("**Power: success, 8 in flight; shares of gates that pass**\n\n| server |")
	for _, d := range plans {
		fmt.Fprintf(out, " %s, %s, %d × %d |", strings.TrimPrefix(d.text, "rate "), d.clusters, d.rounds, d.perRound)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(plans)) + "\n")
	n := max(*gates/10, 1)
	for i, srv := range servers {
		fmt.Fprintf(out, "| %s |", srv.name)
		score := math.Inf(1)
		if srv.share > 0 {
			score = srv.as.score(srv.share)
		}
		for k, d := range plans {
			th := threshold("success", d.text)
			c := simulate(srv.as, n, uint64(3000+10*i+k), d.clusters, th, 1-srv.share, func(r *rand.Rand) *metric.Level {
				g := srv.as.scores(r)
				return shape{lean: true, n: 8, rounds: d.rounds, perRound: d.perRound, failed: func(round, i int) bool { return g(round, i) > score }}.level()
			})
			fmt.Fprintf(out, " %.0f%% |", 100*c.share(c.pass))
			if srv.share == 0 && c.pass < n || c.fail > 0 && srv.share < 1-th.Limit-1e-9 {
				t.Errorf("%s, %s by %s in %d rounds: %d of %d pass, %d fail", srv.name, d.text, d.clusters, d.rounds, c.pass, n, c.fail)
			}
			must.Hold(t, srv.share != 0.02 || k != 2 || n < 50 || c.share(c.pass) >= 0.8, "98 %% of requests succeed, %s: %d of %d pass", d.text, c.pass, n)
		}
		out.WriteString("\n")
	}
	out.WriteString("\n")
}

// looks writes a table of levels that are judged after 200, 400 and 800 requests. These three looks
// share the allowed error.
func looks(t *testing.T, out *strings.Builder) {
	fmt.Fprintf(out, "**p95 at its limit, three planned looks at 200, 400 and 800 requests**\n\n| requests | false pass | false fail | undecided |\n|---|---|---|---|\n")
	n := max(*gates/2, 1)
	for i, p := range []process{processes[0], {name: "AR(1) 0.9", rho: 0.9}, {name: "rounds shifted, half the variance", round: 0.5}} {
		c := characteristic{process: p, n: n}
		r := rand.New(rand.NewPCG(uint64(700+i), 1))
		score := p.score(0.05)
		th := threshold("ttft", "p95 < 2s")
		for range n {
			// A round has 20 requests, so the looks are after 10, 20 and 40 rounds.
			l := p.level(r, 40, 20, score, 1)
			pl, _ := gate(l, th)
			for _, k := range []int{200, 400, 800} {
				switch JudgeLook(pl, pl.Workloads[0], l, metric.Look{Requests: k, Planned: 3}).Outcome {
				case verdict.Pass:
					c.pass++
				case verdict.Fail:
					c.fail++
				default:
					continue
				}
				break
			}
		}
		fmt.Fprintf(out, "| %s | %.1f%% | %.1f%% | %.1f%% |\n", p.name, 100*c.share(c.pass), 100*c.share(c.fail), 100*(1-c.share(c.pass)-c.share(c.fail)))
		if c.share(c.pass) > c.ceiling(0.05) || c.share(c.fail) > c.ceiling(0.05) {
			t.Errorf("looks, %s: pass %.3f, fail %.3f", p.name, c.share(c.pass), c.share(c.fail))
		}
	}
	out.WriteString("\n")
}

// looked judges a level at each of its looks (planned early judgements) until one decides. The
// result share is the share of the level's requests that the last look used.
func looked(l *metric.Level, th *plan.Threshold) (outcome verdict.Outcome, share float64) {
	p, _ := gate(l, th)
	w := p.Workloads[0]
	for _, at := range p.Looks(w, w.Loads[0], w.Loads[0].Levels[0]) {
		look := metric.Look{Requests: at.Requests, Planned: at.Planned, Spent: at.Spent}
		outcome, share = JudgeLook(p, w, l, look).Outcome, float64(at.Requests)/float64(l.Due())
		if outcome == verdict.Fail || outcome == verdict.Pass && at.Spent > 0 {
			break
		}
		l.Looks = append(l.Looks, look)
	}
	return outcome, share
}

// ended holds the results of gates that ended early, at a look.
type ended struct {
	pass, passHalf float64 // shares of gates that passed, at any time and after half the requests
	fail, failHalf float64
	spent          float64 // share of the requests that were used
}

// onTheWay writes a table of gates that may end at half or seven tenths of their rounds. It counts
// wrong outcomes and the requests that an early end saves.
func onTheWay(t *testing.T, out *strings.Builder) {
	th := threshold("ttft", "p95 < 2s")
	n := max(*gates/2, 1)
	most := characteristic{n: n}.ceiling(0.05)
	// least returns the lowest share of gates that agrees with a promised share. It lies three
	// standard errors below the promise.
	least := func(share float64) float64 { return share - 3*math.Sqrt(share*(1-share)/float64(n)) }
	row := func(name string, seed uint64, kept func(ended) bool, draw func(r *rand.Rand) *metric.Level) {
		r := rand.New(rand.NewPCG(seed, 1))
		var e ended
		for range n {
			outcome, share := looked(draw(r), th)
			e.spent += share / float64(n)
			all, half := &e.pass, &e.passHalf
			switch outcome {
			case verdict.Fail:
				all, half = &e.fail, &e.failHalf
			case verdict.Inconclusive:
				continue
			}
			if *all += 1 / float64(n); share <= 0.5 {
				*half += 1 / float64(n)
			}
		}
		fmt.Fprintf(out, "| %s | %.1f%% (%.0f%%) | %.1f%% (%.0f%%) | %.0f%% |\n", name, 100*e.pass, 100*e.passHalf, 100*e.fail, 100*e.failHalf, 100*e.spent)
		must.Hold(t, n < 100 || kept(e), "on the way, %s: %+v", name, e)
	}
	out.WriteString("**Looks on the way: p95, 10 rounds of 20 requests**\n\n| server | passes (half-way) | fails (half-way) | requests it takes |\n|---|---|---|---|\n")
	for i, p := range processes {
		score := p.score(0.05)
		row("at its limit, "+p.name, uint64(4000+i), func(e ended) bool { return e.pass <= most && e.fail <= most }, func(r *rand.Rand) *metric.Level {
			return p.level(r, 10, 20, score, 1)
		})
	}
	for i, c := range []struct {
		rounds float64
		spent  float64 // largest mean share of the requests that a gate may need
		power  [2]float64
	}{{0, 0.6, [2]float64{0.90, 0.40}}, {0.05, 0.7, [2]float64{0.75, 0.28}}} {
		for k, m := range []float64{0.5, 0.8, 0.9, 1.2} {
			kept := []func(ended) bool{
				func(e ended) bool { return e.pass >= 0.9 && e.spent <= c.spent },
				func(e ended) bool { return e.pass >= least(c.power[0]) },
				func(e ended) bool { return e.pass >= least(c.power[1]) },
				func(e ended) bool { return e.pass <= most && e.failHalf >= least(0.45) },
			}[k]
			row(fmt.Sprintf("p95 at %.0f%%, times ±30%%, rounds ±%.0f%%", 100*m, 100*c.rounds), uint64(4100+10*i+k), kept, func(r *rand.Rand) *metric.Level {
				shift, last, z := 0.0, -1, stat.NormalQuantile(0.95)
				return shape{lean: true, n: 8, rounds: 10, perRound: 20, ttft: func(round, _ int) float64 {
					if round != last {
						shift, last = c.rounds*r.NormFloat64(), round
					}
					return 2 * m * math.Exp(shift+0.3*r.NormFloat64()-z*math.Hypot(0.3, c.rounds))
				}}.level()
			})
		}
	}
	out.WriteString("\n")
}

// power writes a table of how often gates pass or fail better and worse servers.
func power(t *testing.T, out *strings.Builder) {
	type server struct {
		name          string
		sigma, rounds float64 // standard deviations of ln(time), within and between rounds
	}
	servers := []server{{"steady: times ±20%, rounds ±1%", 0.2, 0.01}, {"usual: times ±30%, rounds ±5%", 0.3, 0.05}, {"noisy: times ±40%, rounds ±15%", 0.4, 0.15}}
	margins := []float64{0.5, 0.7, 0.8, 0.9, 1.1, 1.3}
	fmt.Fprintf(out, "**Power: p95 < limit with the default requests; shares of gates that pass / fail (point estimate: pass)**\n\n| server | level, requests |")
	for _, m := range margins {
		fmt.Fprintf(out, " p95 at %.0f%% |", 100*m)
	}
	out.WriteString("\n|---|---|" + strings.Repeat("---|", len(margins)) + "\n")
	n := max(*gates/3, 1)
	for i, srv := range servers {
		for _, d := range []struct{ n, rounds, perRound int }{{8, 10, 20}, {30, 5, 60}, {30, 10, 30}} {
			fmt.Fprintf(out, "| %s | %d, %d in %d rounds |", srv.name, d.n, d.rounds*d.perRound, d.rounds)
			for k, m := range margins {
				whole := math.Hypot(srv.sigma, srv.rounds)
				z := stat.NormalQuantile(0.95)
				c := simulate(process{}, n, uint64(900+100*i+10*k+d.n), "", threshold("ttft", "p95 < 2s"), 2*m, func(r *rand.Rand) *metric.Level {
					shift, last := 0.0, -1
					return shape{lean: true, n: d.n, rounds: d.rounds, perRound: d.perRound, ttft: func(round, _ int) float64 {
						if round != last {
							shift, last = srv.rounds*r.NormFloat64(), round
						}
						return 2 * m * math.Exp(shift+srv.sigma*r.NormFloat64()-z*whole)
					}}.level()
				})
				fmt.Fprintf(out, " %.0f / %.0f (%.0f) |", 100*c.share(c.pass), 100*c.share(c.fail), 100*c.share(c.estimate))
				if n >= 100 && i == 0 && m <= 0.8 && c.share(c.pass) < 0.9 || m > 1 && c.share(c.pass) > c.ceiling(0.05) || m < 1 && c.share(c.fail) > c.ceiling(0.05) {
					t.Errorf("%s at %.1f: pass %.3f, fail %.3f", srv.name, m, c.share(c.pass), c.share(c.fail))
				}
			}
			out.WriteString("\n")
		}
	}
	out.WriteString("\n")
}
