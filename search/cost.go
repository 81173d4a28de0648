package search

import (
	"math"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// waves is the number of waves that a probe runs besides its measured requests. A wave is as many
// requests as the level has in flight. One wave warms the server up, and one is still in flight at
// the end.
const waves = 2

func (s *Search) budgetLeft() time.Duration { return s.opts.Budget - s.spent }

// fit removes the last looks of a probe until the remaining looks fit the budget. A look judges a
// level that still runs. need is the time for the first look, plus a reserve for later probes. ok
// is false if need exceeds the rest of the budget.
func (s *Search) fit(p Probe) (fitted Probe, need time.Duration, ok bool) {
	last := len(p.Looks) - 1
	if s.opts.Budget == 0 {
		p.Expected = s.predict(p.N, p.Looks[last]-p.Have)
		return p, 0, true
	}
	left := s.budgetLeft()
	takes := func(k int) time.Duration { return s.predict(p.N, k-p.Have) + s.reserve(p, k) }
	need = takes(p.Looks[0])
	if left <= 0 || need > left {
		return p, max(need, 1), false
	}
	for last > 0 && takes(p.Looks[last]) > left {
		last--
	}
	p.Looks = p.Looks[:last+1]
	p.Expected = s.predict(p.N, p.Looks[last]-p.Have)
	p.Within = left
	return p, need, true
}

// reserve returns the time that must be left after a probe, so that the search can confirm its
// result. To confirm a level takes as long as to certify it. If the probe's own level may become
// the result, its confirmation takes the time of k requests. A probe of the required level needs no
// confirmation.
func (s *Search) reserve(p Probe, k int) time.Duration {
	if !s.opts.Confirm || p.Purpose == Confirm || p.N == s.opts.Require {
		return 0
	}
	return s.confirmTime(k, p.N)
}

// confirmTime returns how long it takes to confirm level n after it passes with k requests. A
// confirmation measures the level again with new requests.
func (s *Search) confirmTime(k, n int) time.Duration {
	if !s.opts.Confirm {
		return 0
	}
	var keep time.Duration
	pass, _ := s.bounds()
	if l := s.find(pass); l != nil && !l.tried {
		keep = l.spent
	}
	if n > pass {
		keep = max(keep, s.predict(n, k))
	}
	return keep
}

// windows reports whether the duration of a probe depends on its windows, and not on its number of
// requests.
func (s *Search) windows() bool { return s.opts.Over == metric.Speedup || s.opts.Over == metric.Users }

// predict returns the time that the given number of requests takes at level n; 0 if nothing was
// measured yet. The time per request is t(N) = spent / (requests + waves·N). Between two measured
// levels, ln t is linear in ln N. Below all of them, t is proportional to 1/N, because the latency
// is at most that of the lowest level. Above all of them, t is constant, because the server gets no
// faster.
func (s *Search) predict(n, requests int) time.Duration {
	type rate struct {
		seconds float64
		sent    float64
	}
	rates := map[int]rate{}
	for _, v := range s.visits {
		sent := v.Result.Requests - v.Probe.Have
		if sent <= 0 || v.Result.Spent <= 0 {
			continue
		}
		r := rates[v.Result.N]
		r.seconds += v.Result.Spent.Seconds()
		r.sent += float64(sent)
		if !s.windows() {
			r.sent += waves * float64(v.Result.N)
		}
		rates[v.Result.N] = r
	}
	var lo, hi int
	for k := range rates {
		if k <= n && k > lo {
			lo = k
		}
		if k >= n && (hi == 0 || k < hi) {
			hi = k
		}
	}
	t := func(k int) float64 { return rates[k].seconds / rates[k].sent }
	var per float64
	switch {
	case lo == 0 && hi == 0:
		return 0
	case s.windows():
		// The schedule sets the times of a window's requests, whatever the number in flight. So
		// take the time per request from the nearest measured level.
		k := lo
		if k == 0 {
			k = hi
		}
		per = t(k)
		if s.opts.Over == metric.Speedup {
			per *= float64(k) / float64(n)
		}
		return time.Duration(per * float64(requests) * float64(time.Second))
	case lo == 0:
		per = t(hi) * float64(hi) / float64(n)
	case hi == 0 || lo == hi:
		per = t(lo)
	default:
		w := math.Log(float64(n)/float64(lo)) / math.Log(float64(hi)/float64(lo))
		per = math.Exp((1-w)*math.Log(t(lo)) + w*math.Log(t(hi)))
	}
	return time.Duration(per * float64(requests+waves*n) * float64(time.Second))
}
