package assert

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

var (
	rateSearches      = flag.Int("rate-searches", 0, "simulated searches of each row of the table of rate capacities")
	rateBudget        = flag.Duration("rate-budget", 10*time.Minute, "budget of each search")
	rateSearchesTable = flag.String("rate-searches-table", "", "file for the table of rate capacities")
	rateTrace         = flag.Bool("rate-trace", false, "print every gate of a rate, and every probe of a search")
)

// rateLimits are the limits for the p95 of TTFT, in seconds, with which the test searches for the
// largest rate.
var rateLimits = []float64{0.5, 2, 10}

// search finds the capacity of the simulated server in the same way as a run, within a budget.
func (m *rateModel) search(seed int64, limit float64, budget time.Duration) search.Limit {
	t := *threshold("ttft", "p95 < 2s")
	t.Limit = limit
	list := withGrowth(&plan.Workload{}, []required{{Threshold: &t}}, metric.OpenLoop, plan.Level{}, "")
	saturation := m.saturated(seed, mostInFlight, plan.Saturation, 10)
	mean, low, _, _ := largest(saturation.parts, 0.05)
	o := search.RateOptions{
		Options: search.Options{Step: plan.RateStep, From: 1, UpTo: int(100 / plan.RateStep), Relative: 0.05, Budget: budget - saturation.took},
		Largest: mean / plan.RateStep, Least: low / plan.RateStep, Scatter: 1 / m.shape, Effective: 59, Short: 300, Most: 16 * 300,
	}
	s := search.NewRates(o)
	for i := int64(1); ; i++ {
		p, ok := s.Next()
		if !ok {
			return s.Limit()
		}
		n := p.Looks[0]
		l, took := m.arriving(seed+i*7919, float64(p.N)*plan.RateStep, n, saturation)
		if p.Purpose == search.Certify {
			took += m.followed(seed+i*7919+1, l, list[1].Threshold)
		}
		judged := m.subject(l)
		r := search.Result{N: p.N, Outcome: metric.Pass, Requests: n, Spent: took}
		for _, t := range list {
			v := judged.judge(t.Threshold)
			x := distance(t.Threshold, &v)
			r.Margins = append(r.Margins, x)
			switch v.Outcome {
			case verdict.Pass:
			case verdict.Fail:
				r.Outcome, r.Binding = metric.Fail, x.Threshold
			default:
				if r.Outcome == metric.Pass {
					r.Outcome = metric.Inconclusive
				}
			}
		}
		s.Report(p, r)
	}
}

// truth returns the true capacity for each limit, from long runs. This is the largest rate at which
// the p95 of TTFT meets the limit and the backlog hardly grows.
func (m *rateModel) truth(largest float64) []float64 {
	var rates, p95 []float64
	for _, near := range []float64{0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 1} {
		l, _ := m.arriving(7, near*largest, 20_000, saturation{})
		d := metric.Of(metric.MustLookup("ttft"), l.MeasuredSamples())
		at, _ := d.Percentile(95)
		rates, p95 = append(rates, near*largest), append(p95, at)
	}
	var out []float64
	for _, limit := range rateLimits {
		i := slices.IndexFunc(p95, func(x float64) bool { return x >= limit })
		switch {
		case i < 0:
			out = append(out, rates[len(rates)-1])
		case i == 0:
			out = append(out, 0)
		default:
			w := math.Log(limit/p95[i-1]) / math.Log(p95[i]/p95[i-1])
			out = append(out, rates[i-1]+w*(rates[i]-rates[i-1]))
		}
	}
	return out
}

// TestLongRateCapacityCharacteristics measures how near the capacity that a search certifies is to
// the true capacity, for loads with a rate. Long simulated runs give the true capacity.
func TestLongRateCapacityCharacteristics(t *testing.T) {
	if *rateSearches == 0 {
		t.Skip("make characteristics runs it")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n**Rate capacity** in %.0f minutes, %d searches a row.\n\n", rateBudget.Minutes(), *rateSearches)
	out.WriteString("| server, its largest rate, arrivals | TTFT p95 | true limit | estimate within 10 % | certified | above the limit | within 20 % | took |\n|---|---|---|---|---|---|---|---|\n")
	models, shapes := []*rateModel{usualRates()}, []float64{1}
	if *rateFull {
		models, shapes = rateModels(), []float64{1, 0.5}
	}
	for _, m := range models {
		known := m.known(10)
		for _, shape := range shapes {
			t.Run(fmt.Sprintf("%s/shape %v", m.name, shape), func(t *testing.T) {
				m, most := known()
				m.shape = shape
				m.searches(t, &out, most)
			})
		}
	}
	if *rateSearchesTable != "" {
		must.Do(t, os.WriteFile(*rateSearchesTable, []byte(out.String()), 0o644))
	}
	t.Log(out.String())
}

// searches writes one table row for each limit: how near the found capacities are to the true one.
// The parameter most is the server's largest rate.
func (m *rateModel) searches(t *testing.T, out *strings.Builder, most float64) {
	truth := m.truth(most)
	for i, limit := range rateLimits {
		near, certified, over, within, certain, took := 0, 0, 0, 0, 0, time.Duration(0)
		// Near the largest rate the budget is too short for the last tenth.
		apart := 0.2
		if truth[i] > 0.95*most {
			apart = 0.3
		}
		for _, l := range onAll(*rateSearches, func(k int64) search.Limit {
			return m.search(int64(1_000_000*(i+1))+1000*(k-1)+*rateSeed, limit, *rateBudget)
		}) {
			pass, estimate := float64(l.Pass)*plan.RateStep, l.Crossing*plan.RateStep
			took += l.Spent
			if math.Abs(estimate-truth[i]) <= 0.1*truth[i] {
				near++
			}
			if pass > 0 {
				certified++
			}
			if pass > truth[i] {
				over++
			}
			if pass >= 0.8*truth[i] && pass <= truth[i] {
				within++
			}
			if pass >= (1-apart)*truth[i] && pass <= truth[i] {
				certain++
			}
			if *rateTrace {
				fmt.Printf("limit %v truth %.2f: certified %.2f estimate %.2f, %s\n", limit, truth[i], pass, estimate, l.Reason)
				for _, v := range l.Probes {
					fmt.Printf("   %-9s %6.2f %5d %-12s %v %v\n", v.Probe.Purpose, float64(v.Probe.N)*plan.RateStep, v.Result.Requests, v.Result.Outcome, v.Result.Spent.Round(time.Second), v.Result.Margins)
				}
			}
		}
		n := float64(*rateSearches)
		share := float64(over) / n
		must.Hold(t, share <= 0.01+3*math.Sqrt(0.01*0.99/n), "%s, TTFT < %v s: %.1f%% of the certified rates are above the limit", m.name, limit, 100*share)
		bars := map[string][2]float64{"estimates are within 10 %": {float64(near), 0.9}}
		if !m.long {
			bars[fmt.Sprintf("certified rates are within %.0f %%", 100*apart)] = [2]float64{float64(certain), 0.6}
		}
		for what, x := range bars {
			if least := x[1] - 3*math.Sqrt(x[1]*(1-x[1])/n); limit >= 2 && m.shape == 1 && m.lost == 0 && x[0]/n < least {
				t.Errorf("%s, TTFT < %v s: only %.0f%% of the %s", m.name, limit, 100*x[0]/n, what)
			}
		}
		fmt.Fprintf(out, "| %s, %.1f req/s, %s | %v s | %.2f | %.0f%% | %.0f%% | %.1f%% | %.0f%% | %v |\n", m.name, most, shapeName(m.shape), limit, truth[i],
			100*float64(near)/n, 100*float64(certified)/n, 100*float64(over)/n, 100*float64(within)/n, (took / time.Duration(*rateSearches)).Round(time.Second))
	}
}

var unsaturatedGates = flag.Int("unsaturated", 4, "simulated gates of each rate without a saturation")

// TestLongUnsaturated counts how often a p95 at its limit passes near the largest rate if the plan says
// saturate = false, so that nothing tells how near the rate is.
func TestLongUnsaturated(t *testing.T) {
	m := usualRates()
	m.shape = 1
	most := m.largest()
	for _, near := range []float64{0.7, 0.85, 0.95} {
		l, _ := m.arriving(7, near*most, 20_000, saturation{})
		limit, _ := metric.Of(metric.MustLookup("ttft"), l.MeasuredSamples()).Percentile(95)
		times := []float64{1, 2, 10} // the limit beside the true p95
		passed, free := make([]int, len(times)), 0
		for i := range int64(*unsaturatedGates) {
			l, _ := m.arriving(1000+i, near*most, 3000, saturation{})
			s, th := m.subject(l), *threshold("ttft", "p95 < 2s")
			if th.Limit = limit; s.judge(&th).Outcome == verdict.Pass {
				free++
			}
			s.workload.Loads[0].Open.Unsaturated = true
			for k, x := range times {
				if th.Limit = x * limit; s.judge(&th).Outcome == verdict.Pass {
					passed[k]++
				}
			}
		}
		t.Logf("at %v of %.1f req/s a p95 of %.3f s with limits of %v times that passes in %v of %d (%d at its limit if the plan did not say so)",
			near, most, limit, times, passed, *unsaturatedGates, free)
		if n := float64(*unsaturatedGates); float64(passed[0]) > 0.05*n+3*math.Sqrt(0.05*n) {
			t.Errorf("at %v of the largest rate a p95 at its limit passes in %d of %d", near, passed[0], *unsaturatedGates)
		}
	}
}
