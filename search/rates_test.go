package search

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// queue simulates a server with a largest rate of 10 req/s. At the share ρ of that rate, its TTFT
// is 0.1 s · ρ/(1 − ρ).
type queue struct {
	limit float64 // seconds
	tells bool    // certifying probes pass or fail by the limit; without it, all probes are inconclusive
}

func (q queue) play(p Probe) Result {
	load := float64(p.N) / 10_000
	ttft := math.Inf(1)
	if load < 1 {
		ttft = 0.1 * load / (1 - load)
	}
	r := Result{N: p.N, Outcome: metric.Inconclusive, Requests: p.Looks[0], Spent: time.Duration(float64(p.Looks[0])/float64(p.N)*1000)*time.Second + 10*time.Second}
	log := max(-MaxLog, min(math.Log(ttft/q.limit), MaxLog))
	r.Margins = []Margin{{Threshold: "ttft p95", Log: log, Low: log - 1, High: log + 1, Shown: metric.Format(metric.Seconds, ttft)}}
	if q.tells && p.Purpose == Certify {
		if r.Outcome = metric.Pass; ttft > q.limit {
			r.Outcome, r.Binding = metric.Fail, "ttft p95"
		}
	}
	return r
}

// hunted runs a search over rates on the simulated server. It returns the limit that was found, and
// the list of probes, such as "estimate 8 req/s".
func (q queue) hunted(o RateOptions) (Limit, []string) {
	s := NewRates(o)
	var probes []string
	for {
		p, ok := s.Next()
		if !ok {
			return s.Limit(), probes
		}
		probes = append(probes, string(p.Purpose)+" "+s.label(p.N))
		s.Report(p, q.play(p))
	}
}

func rateOptions() RateOptions {
	return RateOptions{
		Options: Options{Step: 0.001, From: 1, UpTo: 40_000, Relative: 0.05}, Largest: 10_000, Least: 9_900, Scatter: 1, Effective: 59, Short: 300, Most: 100_000,
	}
}

// The simulated queue's TTFT is 0.1 s · ρ/(1 − ρ) at the share ρ of 10 req/s. So it reaches the
// limit of 0.9 s at 9 req/s.
func TestRates(t *testing.T) {
	tests := []struct {
		name   string
		queue  queue
		set    func(*RateOptions)
		probes string
		kind   metric.CapacityKind
		l, u   int
		about  float64 // estimate, in steps
		ended  string
	}{
		{
			name: "below the estimate, then halfway to it", queue: queue{limit: 0.9, tells: true},
			// The estimating probes show a limit of 9 req/s. The first rate to certify is 0.82 of
			// it, 7.38 req/s. Each further rate is halfway to 9 req/s: 8.19, then 8.59. That is
			// within 5 % of 9, so the search ends.
			probes: "estimate 8 req/s, estimate 9 req/s, certify 7.38 req/s, certify 8.19 req/s, certify 8.59 req/s",
			kind:   metric.CapacityInterpolated, l: 8590, about: 9000, ended: "near enough",
		},
		{
			name: "what is required comes first", queue: queue{limit: 0.9, tells: true}, set: func(o *RateOptions) { o.Require, o.Relative = 7000, 0.3 },
			probes: "estimate 8 req/s, certify 7 req/s, estimate 9 req/s",
			kind:   metric.CapacityInterpolated, l: 7000, about: 9000, ended: "near enough",
		},
		{
			name: "far above what is required", queue: queue{limit: 0.9, tells: true}, set: func(o *RateOptions) { o.Require, o.Relative = 1000, 0.45 },
			// A probe has at least 600 requests, which take 10 minutes at 1 req/s. 5.28 req/s takes
			// 132.75 / (1 − 5.28/9.9)² = 610 requests and 115 s: sooner than 2 % more or less.
			probes: "estimate 8 req/s, certify 5.28 req/s, estimate 9 req/s",
			kind:   metric.CapacityInterpolated, l: 5280, about: 9000, ended: "near enough",
		},
		{
			name: "far above what is required, and undecided", queue: queue{limit: 0.9}, set: func(o *RateOptions) { o.Require, o.Most = 1000, 4000 },
			// After two higher rates comes the required one.
			probes: "estimate 8 req/s, certify 5.28 req/s, certify 4.75 req/s, certify 1 req/s, estimate 9 req/s, certify 0.9 req/s, certify 0.81 req/s",
			kind:   metric.CapacityUnknown, about: 9000, ended: "5 certifying probes",
		},
		{
			name: "a requirement that fails bounds the search", queue: queue{limit: 0.9, tells: true}, set: func(o *RateOptions) { o.Require, o.Relative = 9500, 0.2 },
			probes: "estimate 8 req/s, estimate 9 req/s, certify 9.5 req/s, certify 7.38 req/s",
			kind:   metric.CapacityInterpolated, l: 7380, u: 9500, about: 9000, ended: "near enough",
		},
		{
			name: "no time for more than the first", queue: queue{limit: 0.9, tells: true}, set: func(o *RateOptions) { o.Budget = 15 * time.Minute },
			// After the two estimates and the certification of 7.38 req/s, 490 s of the 15 minutes
			// are left. The rate halfway to 9 req/s, 8.19, would take 553 s. The search tries 2 %
			// less, 8.02 req/s, which takes 469 s. Then (8.02 + 9)/2 = 8.51 req/s would take about
			// 13 minutes.
			probes: "estimate 8 req/s, estimate 9 req/s, certify 7.38 req/s, certify 8.02 req/s",
			kind:   metric.CapacityInterpolated, l: 8020, about: 9000, ended: "s left, certifying 8.51 req/s takes about 13m",
		},
		{
			name: "no rate is certain", queue: queue{limit: 0.9}, set: func(o *RateOptions) { o.Relative = 0.2 },
			// Five certifying probes fail. After each of them the next rate is a tenth lower.
			probes: "estimate 8 req/s, estimate 9 req/s, certify 7.38 req/s, certify 6.64 req/s, certify 5.97 req/s, certify 5.37 req/s, certify 4.83 req/s",
			kind:   metric.CapacityUnknown, about: 9000, ended: "5 certifying probes",
		},
		{
			name: "as far as it may go", queue: queue{limit: 0.9, tells: true}, set: func(o *RateOptions) { o.UpTo = 4000 },
			probes: "estimate 4 req/s, certify 4 req/s", kind: metric.CapacityAtLeast, l: 4000, about: 9000, ended: "goes up to 4 req/s",
		},
		{
			name: "the smallest of interest is too much", queue: queue{limit: 0.01, tells: true}, set: func(o *RateOptions) { o.From = 5000 },
			// The limit of 0.01 s is reached at 0.91 req/s, below the smallest rate of the search:
			// TTFT is 0.1 s · ρ/(1 − ρ) at the share ρ of 10 req/s.
			probes: "estimate 8 req/s, estimate 5 req/s, certify 5 req/s", kind: metric.CapacityBelow, u: 5000, about: 909, ended: "goes down to",
		},
		{
			name: "what is required takes what time is left", queue: queue{limit: 0.9, tells: true}, set: func(o *RateOptions) { o.Require, o.Budget = 8500, 15*time.Minute },
			// The required rate needs 6,638 requests in 781 s, but only 767 s of the budget are
			// left for requests. So the probe gets fewer.
			probes: "estimate 8 req/s, estimate 9 req/s, certify 8.5 req/s",
			kind:   metric.CapacityInterpolated, l: 8500, about: 9000, ended: "no higher rate",
		},
		{
			// 767.5 s of the budget are left for requests: 767.5 · 8.5 = 6,523 requests.
			name: "what is required is not decided", queue: queue{limit: 0.9}, set: func(o *RateOptions) { o.Require, o.Budget = 8500, 15*time.Minute },
			probes: "estimate 8 req/s, estimate 9 req/s, certify 8.5 req/s",
			kind:   metric.CapacityUnknown, about: 9000, ended: "8.5 req/s was not decided by 6523 requests; budget: ",
		},
		{
			name: "too few requests for any", queue: queue{limit: 0.9, tells: true}, set: func(o *RateOptions) { o.Most = 200 },
			// 200 requests are too few even for the lowest rate that the search may certify.
			probes: "estimate 8 req/s, estimate 9 req/s",
			kind:   metric.CapacityUnknown, about: 9000, ended: "certifying 7.38 req/s takes 2049 requests, more than max_requests = 200",
		},
		{
			name: "saturation not known", queue: queue{limit: 0.9}, set: func(o *RateOptions) { o.Largest = 0 },
			kind: metric.CapacityUnknown, ended: "largest rate",
		},
		{
			name: "no time at all", queue: queue{limit: 0.9}, set: func(o *RateOptions) { o.Budget = 10 * time.Second },
			kind: metric.CapacityUnknown, ended: "budget: 10s left, 300 requests at 8 req/s for an estimate take about 38s",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := rateOptions()
			if tt.set != nil {
				tt.set(&o)
			}
			l, probes := tt.queue.hunted(o)
			if got := strings.Join(probes, ", "); got != tt.probes {
				t.Errorf("measured %s\nwant %s", got, tt.probes)
			}
			if l.Kind != tt.kind || l.Pass != tt.l || l.Fail != tt.u || !strings.Contains(l.Reason, tt.ended) {
				t.Errorf("%v, %d passes, %d fails, %q; want %v, %d, %d, %q", l.Kind, l.Pass, l.Fail, l.Reason, tt.kind, tt.l, tt.u, tt.ended)
			}
			// If no certified rate failed, the estimate must be within 1 % of the true limit.
			must.Hold(t, tt.about <= 0 || tt.u != 0 || math.Abs(l.Crossing-tt.about) <= 0.01*tt.about, "estimate %.0f, want about %.0f", l.Crossing, tt.about)
		})
	}
}

// The budget ends before a probe of the required rate has a request. The rate is then reported as
// not judged.
func TestRatesCutOff(t *testing.T) {
	o := rateOptions()
	o.Require, o.Budget = 8500, 15*time.Minute
	s, q := NewRates(o), queue{limit: 0.9}
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		r := q.play(p)
		if p.Purpose == Certify {
			r.Requests, r.Margins, r.Spent = 0, nil, p.Within
		}
		s.Report(p, r)
	}
	if got, want := s.Limit().Reason, "8.5 req/s was not measured to the end; budget: 0s left, certifying 7.38 req/s takes about "; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A probe that was sent late says nothing about the server. It is made once more, with as many
// requests, then at half the rate, and then the search ends with the reason.
func TestRatesSentLate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		late   func(i int, p Probe) bool // of probe i, from 0
		probes string
		ended  string
	}{
		{"once", func(i int, _ Probe) bool { return i == 0 },
			"estimate 8 req/s 300, estimate 8 req/s 300, estimate 9 req/s 600, certify 7.38 req/s 2049, certify 8.19 req/s 4450, certify 8.59 req/s 7582",
			"near enough"},
		// Nothing above half of 8 req/s is tried any more.
		{"above 5 req/s", func(_ int, p Probe) bool { return p.N > 5000 },
			"estimate 8 req/s 300, estimate 8 req/s 300, estimate 4 req/s 300, estimate 4 req/s 600, certify 4 req/s 600",
			"no higher rate"},
		{"always", func(int, Probe) bool { return true },
			"estimate 8 req/s 300, estimate 8 req/s 300, estimate 4 req/s 300",
			"the load generator sent 3 probes late, the last at 4 req/s: p99 of the lag"},
		{"what certifies", func(_ int, p Probe) bool { return p.Purpose == Certify },
			"estimate 8 req/s 300, estimate 9 req/s 600, certify 7.38 req/s 2049, certify 7.38 req/s 2049, certify 3.69 req/s 600",
			"the load generator sent 3 probes late, the last at 3.69 req/s"},
	} {
		s, q := NewRates(rateOptions()), queue{limit: 0.9, tells: true}
		var probes []string
		for p, ok := s.Next(); ok; p, ok = s.Next() {
			r := q.play(p)
			if tt.late(len(probes), p) {
				r.Outcome, r.Margins, r.Note = metric.Saturated, nil, "p99 of the lag"
			}
			probes = append(probes, fmt.Sprintf("%s %s %d", p.Purpose, s.label(p.N), p.Looks[0]))
			s.Report(p, r)
		}
		if got := strings.Join(probes, ", "); got != tt.probes || !strings.Contains(s.Limit().Reason, tt.ended) {
			t.Errorf("%s: %s\nended: %s\nwant %s\n%s", tt.name, got, s.Limit().Reason, tt.probes, tt.ended)
		}
	}
}

// A probe that only estimates certifies no rate, even if its outcome is certain.
func TestRatesEstimateClaimsNothing(t *testing.T) {
	s := NewRates(rateOptions())
	p, _ := s.Next()
	s.Report(p, Result{N: p.N, Outcome: metric.Pass, Requests: 300, Spent: time.Minute, Margins: []Margin{{Threshold: "ttft p95", Log: -1, Low: -2, High: -0.5}}})
	if l := s.Limit(); l.Pass != 0 || l.Kind != metric.CapacityUnknown || l.Crossing == 0 {
		t.Errorf("%v, %d passes, estimate %v", l.Kind, l.Pass, l.Crossing > 0)
	}
}

// A server that fails every request gives no estimate. The search then ends, without a budget too.
func TestRatesOfAServerThatFails(t *testing.T) {
	s, n := NewRates(rateOptions()), 0
	for p, ok := s.Next(); ok && n < 100; p, ok = s.Next() {
		n++
		s.Report(p, Result{N: p.N, Outcome: metric.Fail, Binding: "success", Spent: time.Second, Note: "every warm-up request failed: 500"})
	}
	l := s.Limit()
	if want := "2 probes gave no estimate of the largest rate: every warm-up request failed: 500"; n != shortProbes || l.Kind != metric.CapacityUnknown || l.Reason != want {
		t.Errorf("%d probes, %s, %q, want %q", n, l.Kind, l.Reason, want)
	}
}

// Levels that were measured before the search narrow the range of the search.
func TestRatesKnown(t *testing.T) {
	o := rateOptions()
	o.Known = []Result{{N: 6000, Outcome: metric.Pass, Requests: 3000}, {N: 9500, Outcome: metric.Fail, Requests: 3000}}
	if l := NewRates(o).Limit(); l.Pass != 6000 || l.Fail != 9500 || l.Kind != metric.CapacityInterpolated {
		t.Errorf("%v, %d passes, %d fails", l.Kind, l.Pass, l.Fail)
	}
	o.Known[1].N = 6200 // within 5 %
	if l := NewRates(o).Limit(); l.Kind != metric.CapacityExact {
		t.Errorf("%v between 6 and 6.2 req/s", l.Kind)
	}
}

// A stopped search keeps its results and the first reason for which it was stopped. It panics on
// the result of a probe that it did not request.
func TestRatesStop(t *testing.T) {
	s := NewRates(rateOptions())
	p, _ := s.Next()
	if again, ok := s.Next(); !ok || again.N != p.N {
		t.Errorf("asked again before it was told: %v, %v", again, p)
	}
	margins := []Margin{{Threshold: growing, Log: -1}, {Threshold: "ttft p95", Log: -1, Low: -2, High: -0.5}}
	s.Report(p, Result{N: p.N, Outcome: metric.Inconclusive, Requests: 300, Margins: margins})
	s.Next()
	s.Stop("interrupted")
	s.Stop("again")
	if _, ok := s.Next(); ok {
		t.Error("it goes on")
	}
	// The growth of a backlog does not predict at which rate a threshold is missed. So only ttft is
	// named.
	if l := s.Limit(); l.Reason != "interrupted" || len(l.Probes) != 1 || l.Binding != "ttft p95" {
		t.Errorf("%q, %d probes, %q binds", l.Reason, len(l.Probes), l.Binding)
	}
	for name, misuse := range map[string]func(){
		"no rate":              func() { NewRates(RateOptions{Options: Options{From: 2, UpTo: 1, Step: 1}}) },
		"a result unasked for": func() { s.Report(p, Result{N: p.N, Outcome: metric.Pass}) },
	} {
		func() {
			defer func() {
				must.Hold(t, recover() != nil, "%s: no panic", name)
			}()
			misuse()
		}()
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		metric.Fail.String(): "fail", metric.Outcome(-1).String(): "Outcome(-1)",
	} {
		must.Hold(t, got == want, "%q, want %q", got, want)
	}
	// The function neat rounds a rate down to three digits, but not below one step.
	for n, want := range map[float64]int{0.5: 1, 9.9: 9, 1234: 1230, 98765: 98700} {
		must.Same(t, fmt.Sprintf("neat(%v)", n), want, neat(n))
	}
}
