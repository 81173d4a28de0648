package search

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
)

// exactly returns a function that answers probes without noise. A level has a fixed margin, known
// to ±1/√n after n requests.
func exactly(margin func(n int) float64) func(Probe) Result {
	return func(p Probe) Result {
		m := margin(p.N)
		r := Result{N: p.N, Outcome: Inconclusive, Binding: "ttft"}
		for _, k := range p.Looks {
			half := 1 / math.Sqrt(float64(k))
			r.Requests = k
			r.Margins = []Margin{{Threshold: "ttft", Log: m, Low: m - half, High: m + half}}
			if r.Outcome = Pass; m+half > 0 {
				r.Outcome = Inconclusive
			}
			if m-half > 0 {
				r.Outcome = Fail
			}
			if r.Outcome != Inconclusive {
				break
			}
		}
		if r.Outcome == Inconclusive {
			r.Needs = int(min(1/(m*m), 1e6)) - r.Requests
		}
		// A request takes 1 s at every level.
		r.Spent = time.Duration(r.Requests-p.Have+2*p.N) * time.Second
		return r
	}
}

// flat returns a function that gives each level its margin. The parameter at is the margin of
// levels 8 to 60. Lower levels are far below the limit, and higher levels far above it.
func flat(at float64) func(int) float64 {
	return func(n int) float64 {
		switch {
		case n < 8:
			return -.5
		case n > 60:
			return .5
		}
		return at
	}
}

func TestDeep(t *testing.T) {
	for _, tt := range []struct {
		name   string
		margin func(int) float64
		opts   Options
		probes string
		line   string // beginning of the expected line about the limit in reports
		notes  []string
	}{
		// A probe needs 64² = 4096 requests to decide a level with the margin −1/64. The first
		// three looks have fewer, and the fourth has 6400.
		//
		// Level 60 may pass, so 61 is the lowest level that cannot. The deep probe keeps a factor
		// of 1.05 from it: 61/1.05 = 58.
		{
			"passes", flat(-1. / 64), Options{},
			"ladder 8i 4p 16i 32i 64f bisect 48i 56i 60i 62f deep 58i 58i 58i 58p bisect 59i 61f check 24i confirm 58p'",
			"~60 requests in flight (58 passes, 61 fails) ·", nil,
		},
		// All levels from 8 to 60 fail by a small margin, and level 7 passes. A deep probe keeps a
		// factor of 1.05 from the lowest level that may fail, 8. So it is at level 9.
		{
			"fails", flat(1. / 64), Options{},
			"ladder 8i 4p 16i 32i 64f bisect 48i 56i 6p 7p deep 9i 9i 9i 9f check 2p confirm 7p'",
			"~7 requests in flight (7 passes, 9 fails) ·", nil,
		},
		// With a margin of 1/256, about 150,000 requests are needed for an interval of two thirds
		// of the margin. The search gives up after 3200.
		{
			"too near", flat(-1. / 256), Options{},
			"ladder 8i 4p 16i 32i 64f bisect 48i 56i 60i 62f deep 58i 58i 58i bisect 6p 7p 61f check 2p confirm 7p'",
			"~60 requests in flight (7 passes, 61 fails) ·",
			[]string{"from 8 to 60 ttft stays within 1 % of its limit: about 150,000 requests at 60 would decide (max_requests)"},
		},
		{
			"at the limit", flat(0), Options{},
			"ladder 8i 4p 16i 32i 64f bisect 48i 56i 60i 62f deep 58i 58i bisect 6p 7p 61f check 2p confirm 7p'",
			"~59 requests in flight (7 passes, 61 fails) ·",
			[]string{"from 8 to 60 ttft stays within 1 % of its limit: hardly any number of requests would decide"},
		},
		{
			"no deep probe", flat(-1. / 64), Options{Deep: func(int) []int { return nil }},
			"ladder 8i 4p 16i 32i 64f bisect 6p 7p 48i 56i 60i 62f 61f check 2p confirm 7p'",
			"~60 requests in flight (7 passes, 61 fails) ·",
			[]string{"from 8 to 60 ttft stays within 2 % of its limit: about 9,200 requests at 60 would decide (max_requests)"},
		},
		// Level 32 passes and level 36 is undecided. Their distance of 4 is the resolution, a tenth
		// of 32 rounded up, so the search measures no level between them. The first deep probe is
		// at 36·1.05 = 38.
		//
		// Level 56 may pass, so 57 is the lowest level that cannot. The next deep probe is at
		// 57/1.05 = 54.
		{
			"fails, beside a pass as far as the resolution", func(n int) float64 {
				if n < 34 {
					return -.5
				}
				return 1. / 64
			}, Options{Relative: .1},
			"ladder 8p 16p 32p 64i 128i deep 128i' 128i' 128i' 128f' bisect 48i 40i 36i deep 38i 38i 38i 38f check 24p confirm 32p'",
			"~35 requests in flight (32 passes, 38 fails) ·", nil,
		},
		{
			"passes, beside a fail as far as the resolution", func(n int) float64 {
				switch {
				case n < 42:
					return -.5
				case n < 58:
					return -1. / 64
				}
				return .5
			}, Options{Relative: .1},
			"ladder 8p 16p 32p 64f bisect 48i 40p 44i 56i 60f deep 54i 54i 54i 54p check 24p confirm 54p'",
			"54 requests in flight", nil,
		},
		// A deep probe keeps a distance to neighbouring levels. The smallest and the largest level
		// of a search have a neighbour on only one side, so a deep probe can use them.
		{
			"nothing passes", func(n int) float64 { return flat(1. / 64)(max(n, 8)) }, Options{},
			"ladder 8i 4i 2i 1i 16i 32i 64f bisect 48i 56i deep 1i' 1i' 1i' 1f'",
			"does not hold at 1 request in flight ·", nil,
		},
		{
			"nothing fails", func(n int) float64 { return flat(-1. / 64)(min(n, 60)) }, Options{},
			"ladder 8i 4p 16i 32i 64i 128i deep 128i' 128i' 128i' 128p' check 96i confirm 128p''",
			"128+ requests in flight (the search goes up to 128) ·", nil,
		},
		// The probes so far take 2200 s, so 12,800 s are left for a deep probe at level 58 and its
		// confirmation. 6400 requests in each would take 2 · 6516 s, so the probe gets 3200
		// requests, which are not enough.
		{
			"budget", flat(-1. / 64), Options{Budget: 15000 * time.Second, Deep: func(int) []int { return Halving(800, 12800) }},
			"ladder 8i 4p 16i 32i 64f bisect 48i 56i 60i 62f deep 58i 58i 58i bisect 6p 7p 61f check 2p confirm 7p'",
			"~60 requests in flight (7 passes, 61 fails) ·",
			[]string{"from 8 to 60 ttft stays within 2 % of its limit: about 9,200 requests at 60 would decide (budget)"},
		},
		{
			"larger budget", flat(-1. / 64), Options{Budget: 17500 * time.Second},
			"ladder 8i 4p 16i 32i 64f bisect 48i 56i 60i 62f deep 58i 58i 58i 58p bisect 59i 61f check 24i confirm 58p'",
			"~60 requests in flight (58 passes, 61 fails) ·", nil,
		},
		{
			"required, decided by one above", flat(-1. / 64), Options{Require: 32},
			"require 32i extend 32i ladder 16i 8i 4p 64f bisect 48i 56i 60i 62f deep 58i 58i 58i 58p bisect 59i 61f check 24i confirm 58p'",
			"~60 requests in flight (58 passes, 61 fails) ·", nil,
		},
		// The search decides the required level 20 directly, even if its neighbours are known. The
		// limit is 20.5, and ln(20.5/20) = 0.0247, so about 1/0.0247² = 1640 requests are needed.
		{
			"required, decided itself", func(n int) float64 { return math.Log(float64(n) / 20.5) }, Options{Require: 20},
			"require 20i extend 20i ladder 10p 40f bisect 15p 17p 18p 19p 30f 25f 22i extend 22f bisect 21i deep 20i' 20i' 20p' confirm 20p''",
			"~20 requests in flight (20 passes, 22 fails) ·", nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := tt.opts
			opts.UpTo, opts.Begin, opts.Confirm, opts.Looks = 128, 8, true, Doubling(100, 400)
			if opts.Deep == nil {
				opts.Deep = func(int) []int { return Halving(800, 6400) }
			}
			got, l := drive(t, New(opts), exactly(tt.margin))
			if got != tt.probes || !strings.HasPrefix(line(l), tt.line) {
				t.Errorf("%q, %q\nwant %q, %q", got, line(l), tt.probes, tt.line)
			}
			must.Same(t, "notes (-want +got)", tt.notes, l.Notes)
			if opts.Budget > 0 && l.Spent > opts.Budget {
				t.Errorf("spent %s of %s", l.Spent, opts.Budget)
			}
		})
	}
}

// A deep probe has four looks, one after another, which share the allowed error. The confirmation
// may have as many requests as the deep probe.
func TestDeepLooks(t *testing.T) {
	s := New(Options{UpTo: 128, Begin: 8, Confirm: true, Looks: Doubling(100, 400), Deep: func(int) []int { return Halving(800, 6400) }})
	var got []Probe
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		if p.N == 58 {
			p.Expected = 0
			got = append(got, p)
		}
		s.Report(p, exactly(flat(-1./64))(p))
	}
	want := []Probe{
		{N: 58, Purpose: Deep, Looks: []int{800}, Planned: 4},
		{N: 58, Purpose: Deep, Have: 800, Looks: []int{1600}, Planned: 4},
		{N: 58, Purpose: Deep, Have: 1600, Looks: []int{3200}, Planned: 4},
		{N: 58, Purpose: Deep, Have: 3200, Looks: []int{6400}, Planned: 4},
		{N: 58, Purpose: Confirm, Set: 1, Looks: []int{800, 1600, 3200, 6400}, Planned: 4},
	}
	must.Same(t, "probes of 58 (-want +got)", want, got)
}

// The search finds the limit among 100,000 levels in reasonable time. It asks for looks at most
// 100,000 times.
func TestDeepOfManyLevels(t *testing.T) {
	asked := 0
	_, l := drive(t, New(Options{UpTo: 100000, Begin: 8, Relative: .05, Looks: Doubling(100, 400), Deep: func(int) []int {
		asked++
		return Halving(800, 6400)
	}}), exactly(func(n int) float64 { return flat(1. / 300)(min(n, 60)) }))
	if l.Pass != 7 || asked > 100000 {
		t.Errorf("%s; looks were asked for %d times", line(l), asked)
	}
}

// If no request failed, margins do not show how many requests a verdict needs. The search then says
// that more requests would decide, without a number.
func TestLackingWithoutBounds(t *testing.T) {
	answer := func(p Probe) Result {
		k := p.Looks[len(p.Looks)-1]
		r := Result{N: p.N, Outcome: Inconclusive, Requests: k, Needs: -1, Margins: []Margin{{Threshold: "success", Log: -MaxLog, Low: -MaxLog, High: 1}}}
		if p.N <= 16 {
			r.Outcome = Pass
		}
		return r
	}
	for _, c := range []struct {
		deep []int
		want string
	}{
		{nil, "from 17 to 128 more requests would decide (max_requests)"},
		{[]int{800, 1600}, "from 17 to 128 more requests would decide (max_requests)"},
	} {
		_, l := drive(t, New(Options{UpTo: 128, Begin: 8, Looks: Doubling(100, 400), Deep: func(int) []int { return c.deep }}), answer)
		if !slices.Equal(l.Notes, []string{c.want}) {
			t.Errorf("%s: %q, want %q", line(l), l.Notes, c.want)
		}
	}
}

func TestHalving(t *testing.T) {
	for _, tt := range []struct {
		least, most int
		want        []int
	}{
		{5000, 40000, []int{5000, 10000, 20000, 40000}},
		{5001, 40000, []int{10000, 20000, 40000}},
		{2400, 4800, []int{2400, 4800}},
		{2400, 3000, []int{3000}},
	} {
		if got := Halving(tt.least, tt.most); !slices.Equal(got, tt.want) {
			t.Errorf("Halving(%d, %d) = %v, want %v", tt.least, tt.most, got, tt.want)
		}
	}
}

// A threshold that surely holds does not prevent a deep probe. It may lack an interval, because
// nothing failed or because its value is exact.
func TestMay(t *testing.T) {
	visit := func(n, requests int, ms ...Margin) Visit {
		return Visit{Probe{N: n}, Result{N: n, Requests: requests, Margins: ms}}
	}
	ttft := func(log, low, high float64) Margin { return Margin{Threshold: "ttft", Log: log, Low: low, High: high} }
	success := Margin{Threshold: "success", Log: -MaxLog, Low: -MaxLog, High: -.3}
	// n requests give bounds at 1/√n from the estimate, so 100 requests give bounds at 0.1.
	ts := trends([]Visit{
		visit(8, 100, ttft(-.02, -.12, .08), success),
		visit(16, 300, ttft(-.06, -.06-1/math.Sqrt(300), -.06+1/math.Sqrt(300)), success),
		visit(32, 100, ttft(.05, -.05, .15), success),
	})
	// A fit may not decrease with the load. So levels 8 and 16 get the same margin, the mean
	// over their requests: (100·(-0.02) + 300·(-0.06))/400 = -0.05.
	if diff := cmp.Diff([]float64{-.05, -.05, .05}, ts[0].fit, near); diff != "" || !slices.Equal(ts[0].requests, []float64{400, 400, 100}) {
		t.Errorf("fit %v from %v requests", ts[0].fit, ts[0].requests)
	}
	must.Same(t, "units (-want +got)", []float64{1, 1}, []float64{ts[0].above, ts[0].below}, near)
	for _, tt := range []struct {
		n, most    int
		pass, fail bool
	}{
		{8, 400, true, false}, // 400 requests give a margin of -0.05 ± 0.05
		{8, 399, false, false},
		// After 400 requests the margin of level 8 is -0.05. After 1200 more it may be 0.75·√(1/400 −
		// 1/1600) = 0.032 higher, which is -0.018. To fail, level 8 needs a margin of at least
		// 1/√1600 = +0.025. So it cannot fail.
		{8, 1600, true, false},
		{32, 400, false, true}, // the margin 0.05 may fall to -0.015, but a pass needs -0.05
		{32, 6400, true, true}, // the margin may fall to -0.024; a pass needs at most -0.0125
		{32, 0, false, false},
	} {
		if pass, fail := mayPass(ts, tt.n, tt.most, hope), mayFail(ts, tt.n, tt.most, hope); pass != tt.pass || fail != tt.fail {
			t.Errorf("%d requests at %d: may pass %t, may fail %t, want %t, %t", tt.most, tt.n, pass, fail, tt.pass, tt.fail)
		}
	}
	// Without hope (0), the margin at level 32 is expected to stay at 0.05. So level 32 can only
	// fail.
	if mayPass(ts, 32, 6400, 0) || !mayFail(ts, 32, 6400, 0) {
		t.Error("32 is expected to pass, or not to fail")
	}
	// 1/(0.05·2/3)² = 900.
	if up, down := toPass(ts, 8), toFail(ts, 8); math.Abs(up-900) > 1e-6 || !math.IsInf(down, 1) {
		t.Errorf("8 passes with %v requests, fails with %v; want 900, and none", up, down)
	}
	if mayPass(nil, 8, 1000, hope) || mayFail(nil, 8, 1000, hope) {
		t.Error("nothing is known, and something may be decided")
	}
}
