package search_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/search"
)

var (
	searches = flag.Int("searches", 120, "simulated searches of each kind of server")
	table    = flag.String("table", "", "write the operating characteristics to this file, as Markdown")
)

// The operating characteristics of the search are measured on simulated servers, whose true limit
// is known. Each request has a log-normal latency. An exact binomial test judges the p95. Its
// looks (early judgements) share the allowed error. The test is simple, so that only the search is
// tested.

const (
	quantile = 0.95
	alpha    = 0.05
	z95      = 1.6449 // 95th percentile of the standard normal distribution
	simUpTo  = 128
)

var simLooks = []int{100, 200, 400, 800, 1600}

// simMost is the largest number of requests of a level. It is 16 times the first look of a plan,
// and 4 times the last of simLooks.
const simMost = 6400

// server is a simulated server. The function margin returns ln(p95 / limit) at level n, with the
// p95 over all rounds.
type server struct {
	margin func(n int) float64
	sigma  float64 // standard deviation of the log latency within a round
	tau    float64 // standard deviation of the shift that all requests of a round share
	cap    int     // number of requests that the server admits; 0 means all
	sat    float64 // level at which throughput is half of its maximum
	truth  int     // the largest level that meets the limit, as do all lower levels
}

func (s *server) settle() *server {
	for s.truth < simUpTo && s.margin(s.truth+1) <= 0 {
		s.truth++
	}
	return s
}

// spent returns the time of a probe with the given number of requests at level n, including warm-up
// and drain. A request takes 10 s at a low level, and longer at higher levels.
func (s *server) spent(n, requests int) time.Duration {
	latency := 10 * (1 + float64(n)/s.sat)
	return time.Duration(float64(requests+2*n) * latency / float64(n) * float64(time.Second))
}

const rounds = 10

// test returns which outcome n requests certify, by the binomial distribution. They certify a pass
// if the number of requests over the limit is at most the result most, and a fail if it is at least
// the result fewest. The parameter looks is the number of times that the requests may be judged.
func test(n, looks int) (most, fewest int) {
	key := [2]int{n, looks}
	if t, ok := tests.Load(key); ok {
		return t.([2]int)[0], t.([2]int)[1]
	}
	a := alpha / float64(looks)
	over := func(k int) bool { return atMost(float64(k), float64(n), 1-quantile) > a }
	most = sort.Search(n+1, over) - 1
	fewest = sort.Search(n+1, func(k int) bool { return 1-atMost(float64(k)-1, float64(n), 1-quantile) <= a })
	tests.Store(key, [2]int{most, fewest})
	return most, fewest
}

var tests sync.Map // caches results of the function test, by number of requests and looks

// samples holds the latencies of one level's requests, as logarithms relative to the limit.
type samples struct {
	x      []float64
	shifts [rounds]float64
	over   [rounds]int
}

type oracle struct {
	server *server
	rng    *rand.Rand
	sets   map[[2]int]*samples
	sent   int
	spent  time.Duration
}

func newOracle(s *server, seed uint64) *oracle {
	return &oracle{server: s, rng: rand.New(rand.NewPCG(seed, 42)), sets: map[[2]int]*samples{}}
}

// measure simulates a probe. It judges the probe at each look, and stops at the first look that
// decides.
func (o *oracle) measure(p search.Probe) search.Result {
	n, set := p.N, p.Set
	key := [2]int{n, set}
	d := o.sets[key]
	if d == nil {
		d = &samples{}
		for i := range d.shifts {
			d.shifts[i] = o.server.tau * o.rng.NormFloat64()
		}
		o.sets[key] = d
	}
	// mu is the mean of the log latency, relative to the limit. With it, the p95 over all rounds
	// has the server's margin.
	mu := o.server.margin(n) - z95*math.Hypot(o.server.sigma, o.server.tau)
	r := search.Result{N: n, Outcome: metric.Inconclusive, Binding: "ttft"}
	for _, k := range p.Looks {
		for len(d.x) < k {
			i := len(d.x) % rounds
			x := mu + d.shifts[i] + o.server.sigma*o.rng.NormFloat64()
			if x > 0 {
				d.over[i]++
			}
			d.x = append(d.x, x)
		}
		r.Requests = k
		if r.Outcome, r.Needs = o.judge(d, k, p.Planned); r.Outcome != metric.Inconclusive {
			break
		}
	}
	if r.Outcome == metric.Pass && o.server.cap > 0 && n > o.server.cap {
		r.Outcome, r.Cap = metric.Capped, o.server.cap
	}
	m := float64(r.Requests)
	at := order(d.x[:r.Requests], mu+o.server.sigma/2)
	half := 2 * math.Sqrt(m*quantile*(1-quantile))
	r.Margins = []search.Margin{{Threshold: "ttft", Log: at(m * quantile), Low: at(m*quantile - half), High: at(m*quantile + half)}}
	r.Spent = o.server.spent(n, r.Requests-p.Have)
	o.spent += r.Spent
	o.sent += r.Requests - p.Have
	return r
}

// order returns a function that returns the value of x at a given rank. To save time, it sorts the
// values up to the parameter floor only when a rank among them is requested.
func order(x []float64, floor float64) func(rank float64) float64 {
	var upper []float64
	for _, v := range x {
		if v > floor {
			upper = append(upper, v)
		}
	}
	slices.Sort(upper)
	return func(rank float64) float64 {
		fromTop := len(x) - max(1, min(len(x), int(math.Ceil(rank))))
		if fromTop >= len(upper) {
			return slices.Sorted(slices.Values(x))[len(x)-1-fromTop]
		}
		return upper[len(upper)-1-fromTop]
	}
}

// judge tests a level with the exact binomial test, one-sided in both directions. If all requests
// of a round are slow or fast together, they are not independent. judge then uses the effective
// number of requests (Korn and Graubard, Survey Methodology 24, 1998).
func (o *oracle) judge(d *samples, n, looks int) (metric.Outcome, int) {
	k := 0
	for _, over := range d.over {
		k += over
	}
	p, e := float64(k)/float64(n), 1-quantile
	eff := 1.0
	if o.server.tau == 0 {
		switch most, fewest := test(n, looks); {
		case k <= most:
			return metric.Pass, 0
		case k >= fewest:
			return metric.Fail, 0
		}
	} else {
		v := 0.0
		for _, over := range d.over {
			v += math.Pow(float64(over)/(float64(n)/rounds)-p, 2)
		}
		v /= rounds * (rounds - 1)
		if v > 0 {
			// A mean of 10 blocks needs t = 2.821 at 99 %, instead of z = 2.326. So requests count
			// as 0.680 = (z/t)² times as many.
			eff = min(1, p*(1-p)/v*0.680/float64(n))
		}
		m, a := float64(n)*eff, alpha/float64(looks)
		switch {
		case atMost(p*m, m, e) <= a:
			return metric.Pass, 0
		case k > 0 && 1-atMost(p*m-1, m, e) <= a:
			return metric.Fail, 0
		}
	}
	// Return how many more requests are needed. With them, the measured share would be 2.33
	// standard errors away from the limit.
	if p == e {
		return metric.Inconclusive, -1
	}
	needs := 2.33 * 2.33 * e * (1 - e) / ((p - e) * (p - e)) / eff
	return metric.Inconclusive, max(1, int(min(needs, 1e6))-n)
}

// atMost returns the probability that at most k of n requests are over the limit. Each is over it
// with probability e. k and n may be fractions: P(Bin(n, e) ≤ k) = I_{1−e}(n−k, k+1).
func atMost(k, n, e float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	}
	return incompleteBeta(n-k, k+1, 1-e)
}

// incompleteBeta returns the regularised incomplete beta function I_x(a, b), by its continued
// fraction.
func incompleteBeta(a, b, x float64) float64 {
	if x > (a+1)/(a+b+2) {
		return 1 - incompleteBeta(b, a, 1-x)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	// Compute the continued fraction 1/(1 + d₁/(1 + d₂/(1 + …))) by Lentz's method.
	f, c, d := 1.0, 1.0, 0.0
	for i := 0; i < 4000; i++ {
		m := float64(i / 2)
		num := 1.0
		switch {
		case i > 0 && i%2 == 0:
			num = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		case i > 0:
			num = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		d = 1 / (1 + num*d)
		c = 1 + num/c
		f *= c * d
		if i > 0 && math.Abs(c*d-1) < 1e-12 {
			break
		}
	}
	return front * (f - 1)
}

func TestLongBinomialOracle(t *testing.T) {
	// Each request is over the limit with probability e. If e is 5 %, the probability that none of
	// 59 is over is 0.95^59 = 0.0485. The probability that at most one of 100 is over is 0.95^100 +
	// 100·0.05·0.95^99 = 0.0371. If e is 50 %, the probability that at most 5 of 10 are over is
	// 638/1024 = 0.6230.
	for _, tt := range []struct{ k, n, e, want float64 }{
		{0, 59, .05, 0.0485}, {1, 100, .05, 0.0371}, {5, 10, .5, 0.6230},
	} {
		if got := atMost(tt.k, tt.n, tt.e); math.Abs(got-tt.want) > 1e-4 {
			t.Errorf("atMost(%v, %v, %v) = %.5f, want %v", tt.k, tt.n, tt.e, got, tt.want)
		}
	}
}

// between returns a random number in [lo, hi) with a uniform distribution. logBetween returns one
// whose logarithm has a uniform distribution.
func between(r *rand.Rand, lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }
func logBetween(r *rand.Rand, lo, hi float64) float64 {
	return lo * math.Pow(hi/lo, r.Float64())
}

// knee returns a function that gives ln(latency / limit) at level n. The latency grows with n, and
// is equal to the limit at level top.
func knee(r *rand.Rand, top float64) func(int) float64 {
	a, k := between(r, .2, .5), between(r, 1.5, 4)
	return func(n int) float64 { return math.Log(a + (1-a)*math.Pow(float64(n)/top, k)) }
}

type scenario struct {
	name string
	// draw returns the k-th server of the scenario, from 0 on.
	draw func(r *rand.Rand, k uint64) *server
	// near is the smallest allowed share of searches whose result is within 10% or one level of the
	// true limit. It is 0 if a wave in the latency hides the true limit.
	near float64
	// covers is the smallest allowed share of searches whose interval contains the true limit. It
	// is 0 if the latency of the servers crosses the limit several times.
	covers float64
	// peers is the smallest share of searches with point estimates, as in other tools, that must
	// claim too high a limit. A smaller share would mean that the scenario is too easy.
	peers float64
	most  int // setting max_requests; 0 means the default
}

var scenarios = []scenario{
	{"latency knee", func(r *rand.Rand, _ uint64) *server {
		top := logBetween(r, 12, 110)
		return &server{margin: knee(r, top), sigma: between(r, .2, .5), sat: top / 2}
	}, .9, .95, .3, 0},
	{"admission cap", func(r *rand.Rand, _ uint64) *server {
		// Each server admits only as many requests as its cap. In half of the servers, the latency
		// of further requests includes their wait. In the other half it does not, and the server
		// reports its cap.
		c, low := math.Floor(logBetween(r, 6, 110)), between(r, .3, .7)
		s := &server{sigma: between(r, .2, .5), sat: c / 2}
		wait := 4.0
		if r.IntN(2) == 0 {
			wait, s.cap = 0, int(c)
		}
		s.margin = func(n int) float64 {
			m := low
			if over := float64(n) - c; over > 0 && wait > 0 {
				m += 0.6 + wait*over/c
			}
			return math.Log(m)
		}
		return s
	}, .9, .95, 0, 0},
	{"flat, then a knee", func(r *rand.Rand, _ uint64) *server {
		c, low := logBetween(r, 12, 100), between(r, .75, .85)
		return &server{sigma: between(r, .2, .4), sat: c / 2, margin: func(n int) float64 {
			return math.Log(low) + 5*math.Log(max(1, float64(n)/c))
		}}
	}, .9, .95, 0, 0},
	{"noisy rounds", func(r *rand.Rand, _ uint64) *server {
		top := logBetween(r, 12, 110)
		return &server{margin: knee(r, top), sigma: between(r, .2, .4), tau: .05, sat: top / 2}
	}, .9, .95, .3, 0},
	{"flat at the limit", flatAtLimit, .5, .95, .15, 0},
	{"not monotone", func(r *rand.Rand, _ uint64) *server {
		// Latency grows with N, but also swings by ±20%, about once each time N doubles.
		top, phase := logBetween(r, 12, 100), between(r, 0, 2*math.Pi)
		up := knee(r, top)
		return &server{sigma: between(r, .2, .4), sat: top / 2, margin: func(n int) float64 {
			return up(n) + .2*math.Sin(phase+2*math.Pi*math.Log2(float64(n)))
		}}
	}, 0, 0, .15, 0},
	{"flat at the limit, `max_requests = 80000`", flatAtLimit, .4, .95, .15, 80000},
}

// share returns how many of the given runs a scenario gets. A scenario with max_requests takes
// long, so it gets a quarter.
func (sc scenario) share(runs int) int {
	if sc.most > 0 {
		runs /= 4
	}
	return runs
}

// flatAtLimit returns a server whose p95 is the same from level 8 to level 60, and differs from the
// limit by up to 5%. If it differs too little, no search can decide. The difference comes from a
// multiple of the golden ratio, because these spread evenly for any number of servers.
func flatAtLimit(r *rand.Rand, k uint64) *server {
	_, part := math.Modf((float64(k) + .5) * math.Phi)
	at := -.05 + .1*part
	return &server{sigma: between(r, .2, .4), sat: 20, margin: func(n int) float64 {
		x := float64(n)
		return at + .6*math.Log(min(1, x/8)) + 3*math.Log(max(1, x/60))
	}}
}

// tally counts the outcomes of searches.
type tally struct {
	runs, over, beyond, near, covered, bracketed, exact, confirmed int

	probes, sent int
	spent        time.Duration
	widths       []float64 // relative width of each search's bracket, from L to U: U/L − 1

	// Searches are compared with sweeps, which measure levels at equal steps. The steps are as wide
	// as the search's final bracket. In a sweep of equal size, every level has as many requests as
	// the search needed at the limit. In a sweep of equal rule, a level ends when its outcome is
	// certain, and the result is confirmed.
	sweeps, sweepNear               int
	searched, sized, ruled          int
	searchTime, sizedTime, ruleTime time.Duration

	peerOver, peerNear, peerSent int
}

func within(l, truth int) bool {
	return math.Abs(float64(l-truth)) <= max(1, .1*float64(truth))
}

// run makes one search. For comparison, it also makes the searches of other tools, and in every
// fifth run a sweep over all levels.
func (c *tally) run(t *testing.T, srv *server, seed uint64, most int) {
	o := newOracle(srv, seed)
	certify := search.Doubling(simLooks[0], most)
	l := c.search(t, srv, seed, search.Options{Looks: func(int) []int { return simLooks }, First: 3, Certify: certify}, o.measure)
	c.sent += o.sent
	c.spent += o.spent
	if c.runs%5 == 1 {
		looks := simLooks
		if slices.ContainsFunc(l.Probes, func(v search.Visit) bool { return v.Probe.Purpose == search.Certify }) {
			looks = certify(0)
		}
		c.sweep(o, l, seed, srv.true(), looks)
	}
	c.peers(srv, seed, srv.true())
}

// true returns the true limit: up to this level, the server always meets the threshold and admits
// all requests.
func (s *server) true() int {
	if s.cap > 0 {
		return min(s.truth, s.cap)
	}
	return s.truth
}

// search makes one search and counts its outcome.
func (c *tally) search(t *testing.T, srv *server, seed uint64, opts search.Options, measure func(search.Probe) search.Result) search.Limit {
	opts.UpTo, opts.Begin, opts.Confirm = simUpTo, 8, true
	s := search.New(opts)
	probes := 0
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		if probes++; probes > 60 {
			t.Fatalf("seed %d: no end after %d probes: %+v", seed, probes, s.Limit())
		}
		s.Report(p, measure(p))
	}
	c.probes += probes
	l := s.Limit()
	truth := srv.true()
	c.runs++
	// It is wrong to claim a level that misses the threshold or that the server does not admit.
	if l.Pass > 0 && (srv.margin(l.Pass) > 0 || srv.cap > 0 && l.Pass > srv.cap) {
		c.over++
	}
	if l.Pass > truth {
		c.beyond++
	}
	if within(l.Pass, truth) {
		c.near++
	}
	if l.Kind == metric.CapacityExact || l.Kind == metric.CapacityServerCap {
		c.exact++
	}
	if l.Confirmed {
		c.confirmed++
	}
	if l.Pass > 0 && l.Fail > 0 {
		c.bracketed++
		// The true limit lies between truth and truth + 1. Count how often the estimate's interval
		// overlaps this range.
		if l.CrossingLow <= float64(truth+1) && l.CrossingHigh >= float64(truth) {
			c.covered++
		}
	}
	if l.Pass > 0 && l.Fail > 0 {
		c.widths = append(c.widths, float64(l.Fail)/float64(l.Pass)-1)
	}
	return l
}

func (c *tally) sweep(o *oracle, l search.Limit, seed uint64, truth int, looks []int) {
	width, size := 1, simLooks[0]
	if l.Pass > 0 && l.Fail > 0 {
		width = l.Fail - l.Pass
	}
	for _, v := range l.Probes {
		if n := v.Result.N; n == l.Pass || n == l.Fail {
			size = max(size, v.Result.Requests)
		}
	}
	sweep := newOracle(o.server, seed+1)
	pass, failed := 0, false
	for n := 1; n <= simUpTo; n += width {
		c.sized += size
		c.sizedTime += o.server.spent(n, size)
		switch r := sweep.measure(search.Probe{N: n, Looks: looks, Planned: len(looks)}); {
		case r.Outcome == metric.Fail:
			failed = true
		case r.Outcome == metric.Pass && !failed:
			pass = n
		}
	}
	if pass > 0 {
		sweep.measure(search.Probe{N: pass, Set: 1, Looks: looks, Planned: len(looks)})
	}
	c.sweeps++
	if within(pass, truth) {
		c.sweepNear++
	}
	c.searched += o.sent
	c.searchTime += o.spent
	c.ruled += sweep.sent
	c.ruleTime += sweep.spent
}

// peers searches as other tools do. It doubles the level until a level fails, and then halves the
// distance between the largest passing and the smallest failing level. The point estimate of 200
// requests decides each level.
func (c *tally) peers(srv *server, seed uint64, truth int) {
	o := newOracle(srv, seed)
	passes := func(n int) bool {
		return o.measure(search.Probe{N: n, Looks: []int{200}, Planned: 1}).Margins[0].Log <= 0
	}
	lo, hi := 0, 1
	for hi <= simUpTo && passes(hi) {
		lo, hi = hi, 2*hi
	}
	for hi = min(hi, simUpTo+1); hi-lo > 1; {
		if mid := (lo + hi) / 2; passes(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo > 0 && srv.margin(lo) > 0 {
		c.peerOver++
	}
	if within(lo, truth) {
		c.peerNear++
	}
	c.peerSent += o.sent
}

// slack returns how far a measured share may differ from p by chance. It is three standard errors,
// but 0 from 1,000 runs on.
func (c *tally) slack(p float64) float64 {
	if c.runs >= 1000 {
		return 0
	}
	return 3 * math.Sqrt(p*(1-p)/float64(c.runs))
}

func share(k, n int) float64 { return float64(k) / float64(max(1, n)) }

func (c *tally) String() string {
	pct := func(k, n int) float64 { return 100 * share(k, n) }
	return fmt.Sprintf("over-claims %.2f%% (beyond the first crossing %.2f%%), within 10%% %.1f%%, exact %.0f%%, confirmed %.0f%%, interval covers %.1f%%"+
		" | %.1f probes, %d requests | of a sweep of equal size: requests %.0f%%, time %.0f%%; of equal rule: requests %.0f%%, time %.0f%% (within 10%% %.0f%%)"+
		" | point estimates: over-claims %.0f%%, within 10%% %.0f%%, %d requests",
		pct(c.over, c.runs), pct(c.beyond, c.runs), pct(c.near, c.runs), pct(c.exact, c.runs), pct(c.confirmed, c.runs), pct(c.covered, c.bracketed),
		float64(c.probes)/float64(c.runs), c.sent/c.runs,
		pct(c.searched, c.sized), 100*c.searchTime.Seconds()/c.sizedTime.Seconds(),
		pct(c.searched, c.ruled), 100*c.searchTime.Seconds()/c.ruleTime.Seconds(), pct(c.sweepNear, c.sweeps),
		pct(c.peerOver, c.runs), pct(c.peerNear, c.runs), c.peerSent/c.runs)
}

func pct(k, n int) string    { return fmt.Sprintf("%.1f%%", 100*share(k, n)) }
func whole(x float64) string { return fmt.Sprintf("%.0f%%", 100*x) }

// foundHead is the head of the tables' first columns: the results of the searches and their cost.
const foundHead = "| server | over-claims | within 10% or 1 | exact | confirmed | interval holds the crossing | bracket, median | probes | requests | minutes |"

func (c *tally) found(name string) string {
	slices.Sort(c.widths)
	width := "–"
	if n := len(c.widths); n > 0 {
		width = "+" + whole(c.widths[n/2])
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %.1f | %d | %.0f |", name,
		pct(c.over, c.runs), pct(c.near, c.runs), whole(share(c.exact, c.runs)), whole(share(c.confirmed, c.runs)), pct(c.covered, c.bracketed), width,
		float64(c.probes)/float64(c.runs), c.sent/c.runs, c.spent.Minutes()/float64(c.runs))
}

// row returns a row of the table that writeTable writes.
func (c *tally) row(name string) string {
	return fmt.Sprintf("%s %s | %s | %s | %s | %d |\n", c.found(name),
		whole(c.searchTime.Seconds()/c.sizedTime.Seconds()), whole(c.searchTime.Seconds()/c.ruleTime.Seconds()),
		pct(c.peerOver, c.runs), pct(c.peerNear, c.runs), c.peerSent/c.runs)
}

func writeTable(t *testing.T, tallies, judged []tally) {
	if *table == "" {
		return
	}
	var b strings.Builder
	b.WriteString("**Capacity search, up to 128 in flight**\n\n" + foundHead + " time of a sweep of equal size | of equal rule | point estimates: over-claims | within 10% or 1 | requests |\n" +
		strings.Repeat("|---", 15) + "|\n")
	for i, sc := range scenarios {
		if tallies[i].runs > 0 { // 0 if the flag -run left this scenario out
			b.WriteString(tallies[i].row(sc.name))
		}
	}
	b.WriteString("\n**The same servers, looks and rounds as a plan has them by default, judged by the code that judges runs**\n\n" + foundHead + "\n" + strings.Repeat("|---", 10) + "|\n")
	for i, sc := range scenarios {
		if judged[i].runs > 0 {
			b.WriteString(judged[i].found(sc.name) + "\n")
		}
	}
	must.Do(t, os.WriteFile(*table, []byte(b.String()), 0o644))
}

// judgedCharacteristics searches the limits of the simulated servers with tokgate's own judge. The
// plan sets looks and rounds, and requests count less if rounds differ. These searches take longer,
// so it makes fewer of them than the parameter runs says.
func judgedCharacteristics(t *testing.T, tallies []tally, runs int) {
	for i, sc := range scenarios {
		t.Run("judged "+sc.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			c := &tallies[i]
			for seed := range uint64(max(runs/10-30, sc.share(8))) {
				srv := sc.draw(rng, seed).settle()
				o := &judgedOracle{oracle: newOracle(srv, seed+1), plan: judged(t, sc.most), levels: map[[2]int]*metric.Level{}}
				c.search(t, srv, seed+1, search.Options{Looks: o.looks(false), Certify: o.looks(true)}, o.measure)
				c.sent += o.sent
				c.spent += o.spent
			}
			t.Log(c.found(sc.name))
			if got := share(c.over, c.runs); got > 0.01+c.slack(0.01) {
				t.Errorf("over-claims in %.4f of the runs, want at most 0.01", got)
			}
			if got := share(c.near, c.runs); got < sc.near-c.slack(sc.near) {
				t.Errorf("within 10%% or one step in %.3f of the runs, want %.2f", got, sc.near)
			}
			if got := share(c.covered, c.bracketed); got < sc.covers-c.slack(sc.covers) {
				t.Errorf("the interval covers the crossing in %.3f of the runs, want %.2f", got, sc.covers)
			}
		})
	}
}

func TestLongCharacteristics(t *testing.T) {
	runs := *searches
	if testing.Short() {
		runs = 100
	}
	tallies, judged := make([]tally, len(scenarios)), make([]tally, len(scenarios))
	t.Cleanup(func() { writeTable(t, tallies, judged) }) // write the table after all subtests
	judgedCharacteristics(t, judged, runs)
	for i, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			c := &tallies[i]
			for seed := range uint64(sc.share(runs)) {
				c.run(t, sc.draw(rng, seed).settle(), seed+1, cmp.Or(sc.most, simMost))
			}
			t.Log(c)
			if got := share(c.over, c.runs); got > 0.01 {
				t.Errorf("over-claims in %.4f of the runs, want at most 0.01", got)
			}
			if got := share(c.covered, c.bracketed); got < sc.covers-c.slack(sc.covers) {
				t.Errorf("the interval covers the crossing in %.3f of the runs, want %.2f", got, sc.covers)
			}
			if got := share(c.peerOver, c.runs); got < sc.peers-c.slack(sc.peers) {
				t.Errorf("point estimates over-claim in %.3f of the runs, want %.2f: the scenario is too easy", got, sc.peers)
			}
			if got := share(c.near, c.runs); got < sc.near-c.slack(sc.near) {
				t.Errorf("within 10%% or one step in %.3f of the runs, want %.2f", got, sc.near)
			}
			if sc.near == 0 {
				return
			}
			if got := share(c.searched, c.sized); got > 0.6 {
				t.Errorf("requests are %.2f of a sweep of equal size, want at most 0.6", got)
			}
			if got := c.searchTime.Seconds() / c.ruleTime.Seconds(); got > 0.75 {
				t.Errorf("time is %.2f of a sweep of equal rule, want at most three quarters", got)
			}
		})
	}
}
