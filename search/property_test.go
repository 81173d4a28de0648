package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// world is a simulated search: its options, and a server whose true limit is known.
type world struct {
	opts  Options
	deep  bool    // deep probes are made
	truth int     // largest level that the server sustains
	doubt float64 // probability that the verdict on a level close to the true limit is inconclusive
	share float64 // duration of a request at level 1, in seconds
	power float64 // at level N a request takes share / N^power seconds
}

func draw(r *rand.Rand) world {
	from := 1 + r.IntN(8)
	upTo := from + r.IntN(200)
	some := func(n int) int { return r.IntN(2) * n }
	in := func() int { return from + r.IntN(upTo-from+1) }
	w := world{
		opts: Options{
			From: from, UpTo: upTo,
			Begin: some(in()), Start: some(1 + r.IntN(300)), Require: some(in()),
			Resolution: some(1 + r.IntN(5)), Relative: float64(r.IntN(3)) * .04,
			Confirm: r.IntN(2) == 0, First: r.IntN(4), Looks: Doubling(50+r.IntN(200), 800),
		},
		deep:  r.IntN(2) == 0,
		truth: from - 1 + r.IntN(upTo-from+2),
		doubt: r.Float64(),
		share: .1 + r.Float64(),
		power: r.Float64(),
	}
	if w.deep {
		most := 801 + r.IntN(5000)
		w.opts.Certify = Doubling(100, max(most, 1000))
	}
	return w
}

func (w world) spent(p Probe, requests int) time.Duration {
	t := w.share * math.Pow(float64(p.N), -w.power)
	return time.Duration(t * float64(requests-p.Have+waves*p.N) * float64(time.Second))
}

// honest never gives a wrong answer, but may be inconclusive. It is more often inconclusive near
// the limit and with few requests.
func (w world) honest(r *rand.Rand, p Probe) Result {
	res := Result{N: p.N, Outcome: metric.Inconclusive}
	for _, k := range p.Looks {
		res.Requests = k
		log, half := math.Log(float64(p.N)/(float64(w.truth)+.5)), 2/math.Sqrt(float64(k))
		res.Margins = []Margin{{Threshold: "ttft", Log: log, Low: log - half, High: log + half}}
		away := math.Abs(math.Log((float64(w.truth) + .5) / float64(p.N)))
		if r.Float64() < w.doubt*math.Exp(-away*float64(k)/40) {
			continue
		}
		if res.Outcome = metric.Fail; p.N <= w.truth {
			res.Outcome = metric.Pass
		}
		break
	}
	if res.Outcome == metric.Inconclusive {
		res.Needs = r.IntN(1000) - 100
	}
	res.Spent = w.spent(p, res.Requests)
	return res
}

// watch runs a search, which gets its results from answer. After every step it checks what must
// always hold.
func watch(t *testing.T, s *Search, answer func(Probe) Result, step func(Probe, Result)) (Limit, int) {
	t.Helper()
	type set struct{ n, set int }
	judged := map[set]int{}
	n := 0
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		if n++; n > 400 {
			t.Fatalf("no end after %d probes; the last is %+v", n, p)
		}
		if p.N < s.opts.From || p.N > s.opts.UpTo || p.N >= s.ceiling {
			t.Fatalf("probe outside the search: %+v", p)
		}
		have := judged[set{p.N, p.Set}]
		if len(p.Looks) == 0 || p.Looks[0] <= have || p.Have != have {
			t.Fatalf("%+v after %d requests: asks for what it has", p, have)
		}
		if p.Purpose == Retry || p.Purpose == Confirm {
			if p.Set == 0 || p.Have != 0 {
				t.Fatalf("not on fresh samples: %+v", p)
			}
		}
		judged[set{p.N, p.Set}] = p.Looks[len(p.Looks)-1]
		r := answer(p)
		s.Report(p, r)
		step(p, r)
		if pass, fail := s.bounds(); fail > 0 && pass >= fail {
			t.Fatalf("bracket [%d, %d]", pass, fail)
		}
	}
	l := s.Limit()
	if l.Reason == "" {
		t.Errorf("ended without a reason")
	}
	if has := l.Pass > 0 || l.Fail > 0; has == (l.Kind == metric.CapacityUnknown) {
		t.Errorf("kind %s with L %d, U %d", l.Kind, l.Pass, l.Fail)
	}
	if l.Confirmed && !s.opts.Confirm {
		t.Errorf("confirmed unasked")
	}
	return l, n
}

func TestLongHonestOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 4000 {
		w := draw(rng)
		s := New(w.opts)
		lastL, lastU := 0, math.MaxInt
		l, n := watch(t, s, func(p Probe) Result { return w.honest(rng, p) }, func(p Probe, r Result) {
			pass, fail := s.bounds()
			if pass > w.truth || (fail > 0 && fail <= w.truth) {
				t.Fatalf("run %d: bracket [%d, %d], the limit is %d", i, pass, fail, w.truth)
			}
			// Only an inconclusive confirmation may lower the highest level that passed.
			if pass < lastL && !(p.Purpose == Confirm && r.Outcome == metric.Inconclusive) {
				t.Fatalf("run %d: %s %d %s widened L from %d to %d", i, p.Purpose, p.N, r.Outcome, lastL, pass)
			}
			if fail > 0 && fail > lastU {
				t.Fatalf("run %d: U rose from %d to %d", i, lastU, fail)
			}
			if lastL = pass; fail > 0 {
				lastU = fail
			}
		})
		if l.NonMonotone != nil {
			t.Fatalf("run %d: %v on a monotone server", i, l.NonMonotone)
		}
		if r := w.opts.Require; r > 0 {
			if first := l.Probes[0].Probe; first.N != r || first.Purpose != Gate {
				t.Fatalf("run %d: first %+v, the gate asks for %d", i, first, r)
			}
			// The verdict on a required level must agree with the true limit. A passed level is at
			// most the limit, and a failed one is above it.
			if r <= l.Pass && r > w.truth || l.Fail > 0 && r >= l.Fail && r <= w.truth {
				t.Fatalf("run %d: %d is required, %d passes and %d fails; the limit is %d", i, r, l.Pass, l.Fail, w.truth)
			}
		}
		// A binary search needs log2(UpTo) probes. Allow several times as many, because this search
		// closes in from both sides and may extend each probe several times.
		if most := 24 + 8*int(math.Log2(float64(w.opts.UpTo))); n > most {
			t.Errorf("run %d: %d probes, want at most %d", i, n, most)
		}
	}
}

// If every probe is certain, the search finds the limit exactly. The number of probes grows only
// with the logarithm of UpTo.
func TestLongCertainOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 2000 {
		w := draw(rng)
		w.doubt, w.opts.Relative, w.opts.Resolution = 0, 0, 0
		s := New(w.opts)
		l, n := watch(t, s, func(p Probe) Result { return w.honest(rng, p) }, func(Probe, Result) {})
		want := fmt.Sprint(metric.CapacityExact, w.truth, w.truth+1)
		switch w.truth {
		case w.opts.From - 1:
			want = fmt.Sprint(metric.CapacityBelow, 0, w.opts.From)
		case w.opts.UpTo:
			want = fmt.Sprint(metric.CapacityAtLeast, w.opts.UpTo, 0)
		}
		if got := fmt.Sprint(l.Kind, l.Pass, l.Fail); got != want {
			t.Fatalf("run %d: %s, want %s: %+v", i, got, want, w)
		}
		if w.opts.Confirm && l.Pass > 0 && !l.Confirmed {
			t.Errorf("run %d: not confirmed", i)
		}
		// The allowed number of probes covers all kinds of probes: the ladder up and down, the
		// bisection, the required level, the check and the confirmation.
		if most := 6 + 3*int(math.Ceil(math.Log2(float64(w.opts.UpTo)))); n > most {
			t.Errorf("run %d: %d probes, want at most %d: %+v", i, n, most, w)
		}
	}
}

// A search keeps within its budget if it never underestimates the time of a request. Here the time
// falls as a power of N. So a prediction between measured levels is exact, and elsewhere too long.
// The first probe may exceed the budget, because its time is unknown.
func TestLongBudgetHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	cut := 0
	for i := range 4000 {
		w := draw(rng)
		w.opts.Budget = time.Duration(1+rng.IntN(1000)) * time.Second
		s := New(w.opts)
		l, n := watch(t, s, func(p Probe) Result { return w.honest(rng, p) }, func(p Probe, r Result) {
			if p.Expected > 0 && r.Spent > p.Expected+time.Millisecond {
				t.Fatalf("run %d: %d took %s, predicted %s", i, p.N, r.Spent, p.Expected)
			}
			if p.Expected > p.Within {
				t.Fatalf("run %d: %s predicted, %s left", i, p.Expected, p.Within)
			}
		})
		if n > 1 && l.Spent > w.opts.Budget {
			t.Errorf("run %d: spent %s of %s", i, l.Spent, w.opts.Budget)
		}
		if l.Pass > w.truth || (l.Fail > 0 && l.Fail <= w.truth) {
			t.Errorf("run %d: [%d, %d], the limit is %d", i, l.Pass, l.Fail, w.truth)
		}
		if l.Pass > 0 && l.Fail > 0 && s.budgetLeft() < 0 && l.Kind == metric.CapacityUnknown {
			t.Errorf("run %d: unknown with a bracket", i)
		}
		if len(l.Reason) > 7 && l.Reason[:7] == "budget:" {
			cut++
		}
	}
	if cut < 1000 {
		t.Errorf("only %d searches ran out of budget: the test tests too little", cut)
	}
}

// Whatever a server answers, the search ends, requests no probe twice, and claims only what was
// certified.
func TestLongAnyAnswers(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	seen := map[metric.CapacityKind]int{}
	for i := range 6000 {
		w := draw(rng)
		odds := [5]float64{rng.Float64(), rng.Float64(), rng.Float64(), rng.Float64() * .2, rng.Float64() * .2}
		any := func(p Probe) Result {
			sum := 0.0
			for _, o := range odds {
				sum += o
			}
			x, o := rng.Float64()*sum, 0
			for o < 4 && x >= odds[o] {
				x -= odds[o]
				o++
			}
			r := Result{N: p.N, Outcome: []metric.Outcome{metric.Pass, metric.Fail, metric.Inconclusive, metric.Saturated, metric.Capped}[o], Requests: 1 + rng.IntN(900), Needs: rng.IntN(2000) - 500}
			if len(p.Looks) > 0 {
				r.Requests = min(r.Requests, p.Looks[len(p.Looks)-1])
			}
			if r.Outcome == metric.Capped {
				r.Cap = rng.IntN(p.N + 10)
			}
			inf := math.Inf(1 - 2*rng.IntN(2))
			for _, m := range []float64{rng.NormFloat64(), inf, math.NaN()} {
				r.Margins = append(r.Margins, Margin{Threshold: fmt.Sprint(m > 0), Log: m, Low: m - 1, High: m + 1})
			}
			return r
		}
		for range rng.IntN(4) {
			n := 1 + rng.IntN(220)
			r := any(Probe{N: n})
			w.opts.Known = append(w.opts.Known, r)
		}
		s := New(w.opts)
		// Make sure that the search does not extend known samples: watch counts only new ones.
		for _, l := range s.levels {
			l.have = math.MaxInt
		}
		l, _ := watch(t, s, any, func(Probe, Result) {})
		seen[l.Kind]++
		if l.Kind == metric.CapacityExact && (l.Pass == 0 || l.Fail <= l.Pass) {
			t.Errorf("run %d: exact [%d, %d]", i, l.Pass, l.Fail)
		}
		if l.Pass > 0 && s.find(l.Pass).stands != metric.Pass || l.Fail > 0 && s.find(l.Fail).stands != metric.Fail {
			t.Errorf("run %d: [%d, %d] does not stand", i, l.Pass, l.Fail)
		}
		if l.Confirmed && !confirmedBy(l.Probes, l.Pass) {
			t.Errorf("run %d: %d is confirmed by nothing", i, l.Pass)
		}
		n, low, high := l.Crossing, l.CrossingLow, l.CrossingHigh
		if math.IsNaN(n+low+high) || math.IsInf(n+low+high, 0) || (high > 0 && low > high) || (n > 0 && n < low) {
			t.Errorf("run %d: crossing %g, %g to %g", i, n, low, high)
		}
	}
	for _, k := range []metric.CapacityKind{metric.CapacityUnknown, metric.CapacityExact, metric.CapacityInterpolated, metric.CapacityAtLeast, metric.CapacityBelow, metric.CapacityServerCap} {
		if seen[k] == 0 {
			t.Errorf("no search came to %s: the test tests too little", k)
		}
	}
}

func confirmedBy(visits []Visit, n int) bool {
	for _, v := range visits {
		if v.Probe.Purpose == Confirm && v.Probe.N == n && v.Result.Outcome == metric.Pass {
			return true
		}
	}
	return false
}
