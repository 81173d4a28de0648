package assert

import (
	"flag"
	"fmt"
	"math"
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
	windows     = flag.Int("windows", 6, "simulated gates of each server, for windows of batches")
	windowSizes = flag.String("window-levels", "32", "requests in flight of these gates, separated by commas")
	windowTable = flag.String("windows-table", "", "write the characteristics of windows to this file, as Markdown")
	windowOnly  = flag.String("windows-only", "", "measure only the servers whose name has this in it")
)

// truth has the true values of an engine, from a long window.
type truth struct{ p95, p99, mean, speed, throughput float64 }

// truths computes them once for each engine and level.
func (e engine) truths(n, requests int) truth {
	e.random = true
	var ttft []float64
	var e2e, tokens, seconds, made, took float64
	for seed := range 12 {
		c := e.loop(n, uint64(9_000_000+seed))
		c.chunks = true
		all := c.run(requests/12 + 50*n)
		from, to := all[20*n].sent, all[len(all)-2*n].sent
		for _, q := range all[20*n : len(all)-2*n] {
			ttft = append(ttft, (q.first-q.sent)/1000)
			e2e += (q.end - q.sent) / 1000
			tokens, seconds = tokens+float64(q.out-1), seconds+(q.end-q.first)/1000
		}
		for _, q := range all {
			for _, t := range q.chunks {
				if t > from && t <= to {
					made++
				}
			}
		}
		took += (to - from) / 1000
	}
	slices.Sort(ttft)
	m := float64(len(ttft))
	return truth{ttft[int(0.95*m)], ttft[int(0.99*m)], e2e / m, tokens / seconds, made / took}
}

// claim is a threshold at some distance from its true value.
type claim struct {
	name   string
	at     float64 // limit divided by the true value, or the reverse where more is better. The first is 1
	metric string
	stat   string
	value  func(truth) float64
	up     bool
}

func (c claim) threshold(x truth) *plan.Threshold {
	s, err := metric.ParseStat(c.stat)
	if err != nil {
		panic(err)
	}
	t := &plan.Threshold{Metric: metric.MustLookup(c.metric), Stat: s, Text: c.stat, Op: plan.Less, Limit: c.at * c.value(x)}
	if c.up {
		t.Op, t.Limit = plan.Greater, c.value(x)/c.at
	}
	return t
}

// claims lists what the gates of a window promise, by the kind of threshold and its distance.
func claims() []claim {
	var out []claim
	add := func(metric, stat string, up bool, value func(truth) float64, at ...float64) {
		for _, x := range at {
			out = append(out, claim{strings.TrimSpace(metric + " " + stat), x, metric, stat, value, up})
		}
	}
	add("ttft", "p95", false, func(x truth) float64 { return x.p95 }, 1, 1.1, 1.25, 2)
	add("e2e", "mean", false, func(x truth) float64 { return x.mean }, 1, 1.02, 1.05, 1.25, 2)
	add("ttft", "p99", false, func(x truth) float64 { return x.p99 }, 1, 2)
	add("speed", "mean", true, func(x truth) float64 { return x.speed }, 1, 1.05)
	add("throughput", "", true, func(x truth) float64 { return x.throughput }, 1, 1.05)
	return out
}

// tally counts the gates of one claim, by a window and by rounds of the same server.
type tally struct {
	pass, fail int
	waves      float64 // requests sent, in waves
}

// gateOf judges a level at its looks until one decides. It returns how many requests were sent by
// then, besides the level's own order of start.
func gateOf(l *metric.Level, ths ...*plan.Threshold) (verdict.Outcome, int) {
	return gateOfPlanned(l, len(l.Rounds), ths...)
}

// gateOfPlanned is gateOf if only so many of the level's rounds were planned, and the rest extends it.
func gateOfPlanned(l *metric.Level, rounds int, ths ...*plan.Threshold) (verdict.Outcome, int) {
	p, _ := gate(l, ths...)
	w := p.Workloads[0]
	level := &w.Loads[0].Levels[0]
	level.Batches = l.Batches
	if rounds < level.Rounds {
		level.Rounds, level.Requests = rounds, level.Requests*rounds/level.Rounds
		w.Policy.OnInconclusive = plan.Extend
	}
	done := *l
	for _, at := range p.Looks(w, w.Loads[0], *level) {
		look := metric.Look{Requests: at.Requests, Planned: at.Planned, Spent: at.Spent}
		outcome := JudgeLook(p, w, &done, look).Outcome
		if outcome == verdict.Fail || outcome == verdict.Pass && at.Spent > 0 {
			return outcome, at.Requests
		}
		done.Looks = append(done.Looks, look)
	}
	return verdict.Inconclusive, l.Due()
}

// sentBy returns how many requests a window had sent when the first n measured ones had ended.
func sentBy(all []*request, n int) int {
	end, seen := 0.0, 0
	for _, q := range all {
		if q.phase == metric.Measured && seen < n {
			seen++
			end = max(end, q.end)
		}
	}
	sent, _ := slices.BinarySearchFunc(all, end, func(q *request, end float64) int {
		if q.sent <= end {
			return -1
		}
		return 1
	})
	return sent
}

// TestLongWindows counts how often gates on a window of batches are wrong, on servers that are not
// the built-in one. Each row is one server and one threshold, at its limit or below it.
func TestLongWindows(t *testing.T) {
	var out strings.Builder
	for _, size := range strings.Split(*windowSizes, ",") {
		n := 0
		must.Get(fmt.Sscan(size, &n))(t)
		windowsAt(t, &out, n)
	}
	t.Log("\n" + out.String())
	if *windowTable != "" {
		must.Do(t, os.WriteFile(*windowTable, []byte(out.String()), 0o644))
	}
}

func windowsAt(t *testing.T, out *strings.Builder, n int) {
	list, servers := claims(), slices.DeleteFunc(engines(n), func(e engine) bool { return !strings.Contains(e.name, *windowOnly) })
	got, rounds := make([][]tally, len(servers)), make([][]tally, len(servers))
	bias := make([]float64, len(servers))
	var jobs []func()
	for i, e := range servers {
		jobs = append(jobs, func() {
			x := e.truths(n, max(200_000, 500**windows))
			got[i], rounds[i] = make([]tally, len(list)), make([]tally, len(list))
			for g := range *windows {
				whole, all := e.gateWindow(n, uint64(g))
				bias[i] += whole.Value("throughput", metric.Steady, nil, nil).V / x.throughput / float64(*windows)
				old, sent := e.gateRounds(n, uint64(g))
				for k, c := range list {
					outcome, used := gateOf(whole, c.threshold(x))
					got[i][k].add(outcome, float64(sentBy(all, used))/float64(n))
					outcome, used = gateOf(old, c.threshold(x))
					rounds[i][k].add(outcome, sent*float64(used)/float64(old.Due())/float64(n))
				}
			}
		})
	}
	twoAtATime(jobs)
	pct := func(k int) string { return fmt.Sprintf("%.1f", 100*float64(k)/float64(*windows)) }
	for from := 0; from < len(list); {
		to := from
		for to < len(list) && list[to].name == list[from].name {
			to++
		}
		fmt.Fprintf(out, "**%s, %d in flight, %d gates a row; in brackets ten rounds**\n\n| server | at its limit: %% pass | %% fail |", list[from].name, n, *windows)
		for _, c := range list[from+1 : to] {
			fmt.Fprintf(out, " pass at %g × |", c.at)
		}
		out.WriteString(" requests beside rounds |\n|---|---|---|---|" + strings.Repeat("---|", to-from-1) + "\n")
		for i, e := range servers {
			x, old := got[i][from:to], rounds[i][from:to]
			beside := func(window, rounds int) string {
				if list[from].name == "throughput" { // of rounds the estimate itself is off by a percent
					return pct(window)
				}
				return fmt.Sprintf("%s (%s)", pct(window), pct(rounds))
			}
			fmt.Fprintf(out, "| %s | %s | %s |", e.name, beside(x[0].pass, old[0].pass), beside(x[0].fail, old[0].fail))
			for k := range x[1:] {
				fmt.Fprintf(out, " %s |", beside(x[k+1].pass, old[k+1].pass))
			}
			for k := range x {
				fmt.Fprintf(out, " %.2f", x[k].waves/old[k].waves)
			}
			out.WriteString(" |\n")
			if most := e.mostPass(list[from], n); most > 0 {
				if low, _, ok := stat.ClopperPearson(float64(x[0].pass), float64(*windows), 0.01); ok && low > most {
					t.Errorf("%d in flight, %s, %s at its limit: %d of %d pass, more than %.1f %%", n, e.name, list[from].name, x[0].pass, *windows, 100*most)
				}
			}
		}
		out.WriteString("\n")
		from = to
	}
	out.WriteString("The estimate of throughput, beside the true one:")
	for i, e := range servers {
		fmt.Fprintf(out, " %s %+.2f %%;", e.name, 100*(bias[i]-1))
	}
	out.WriteString("\n\n")
}

func (t *tally) add(o verdict.Outcome, waves float64) {
	t.waves += waves
	switch o {
	case verdict.Pass:
		t.pass++
	case verdict.Fail:
		t.fail++
	}
}

// mostPass returns the promised share of gates that pass a threshold at its limit; 0 if nothing is
// promised, because no window of twenty waves shows noise of ten lifetimes.
func (e engine) mostPass(c claim, n int) float64 {
	switch {
	case e.name == "noise of 10 lifetimes":
		return 0
	case c.metric == "throughput" && e.name == "noise of 3 lifetimes":
		return 0.08
	case c.stat == "p99":
		return 0.03
	case e.name == "a queue":
		return 0.085
	case n <= leastBatchSize: // batch steps are worst: 8.6 % of 1,000 p95s, and 9.3 % by ten rounds
		return 0.07
	}
	return 0.05
}

const leastBatchSize = 10

// gateWindow returns a window of 20 batches, and its requests in order of start.
func (e engine) gateWindow(n int, seed uint64) (*metric.Level, []*request) {
	return e.windowOf(n, 20, seed)
}

// windowOf is gateWindow of k batches, each of a wave.
func (e engine) windowOf(n, k int, seed uint64) (*metric.Level, []*request) {
	return e.windowFrom(n, k, k*max(n, leastBatchSize), seed)
}

func (e engine) windowFrom(n, k, requests int, seed uint64) (*metric.Level, []*request) {
	c := e.loop(n, seed)
	c.chunks, c.strata = true, max(n, leastBatchSize)
	all := c.run(requests)
	return window(n, k, all), all
}

// gateRounds returns ten rounds with a pause between them, as recordings had them before there were
// windows, and the number of requests that they sent.
func (e engine) gateRounds(n int, seed uint64) (l *metric.Level, sent float64) {
	c := e.loop(n, seed)
	per := max(n, 30)
	if n <= leastBatchSize {
		per = 20
	}
	c.chunks, c.strata, c.middles = true, per, true
	for i := range 10 {
		all := c.run(per)
		sent += float64(len(all))
		one := window(n, 1, all)
		r := one.Rounds[0]
		if l == nil {
			l = one
			l.Batches, l.Rounds = false, nil
		}
		r.WindowEnd = r.End
		r.Index = i
		for _, x := range r.Samples {
			x.Round = i
		}
		l.Rounds = append(l.Rounds, r)
	}
	return l, sent
}

// TestWindowEngines checks that the simulated servers are what their names say.
func TestWindowEngines(t *testing.T) {
	var seen sync.Map
	var jobs []func()
	for _, e := range engines(8) {
		jobs = append(jobs, func() {
			seen.Store(e.name, e.truths(8, 20_000))
			l, all := e.gateWindow(8, 1)
			due := l.Due()
			must.Hold(t, due == 200 && len(l.Rounds) == 20, "%s: %d requests in %d batches", e.name, due, len(l.Rounds))
			for i, r := range l.Rounds[1:] {
				must.Hold(t, r.WindowStart == l.Rounds[i].WindowEnd, "%s: batch %d does not begin where batch %d ends", e.name, i+2, i+1)
			}
			sent := sentBy(all, 200)
			must.Hold(t, sent >= 208 && sent <= 224, "%s: %d requests sent for 200 measured", e.name, sent)
		})
	}
	twoAtATime(jobs)
	of := func(name string) truth { x, _ := seen.Load(name); return x.(truth) }
	plain, heavy, queue, pauses := of("batch steps"), of("6 % heavy prefills"), of("a queue"), of("pauses of 0.5 s every 10 s")
	if !(heavy.p95 > 1.05*plain.p95) || !(queue.p95 > 2*plain.p95) || math.Abs(pauses.mean/plain.mean-1.05) > 0.02 {
		t.Errorf("plain %+v, heavy %+v, queue %+v, pauses %+v", plain, heavy, queue, pauses)
	}
}
