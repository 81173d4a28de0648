package search

import (
	"fmt"
	"github.com/tokgate/tokgate/metric"
	"math"
)

// Near the limit hardly any number of requests decides. So a search that ends well below the
// estimated limit certifies a load that is clearly below it, with more requests than usual and fresh
// ones. It begins at the highest.
var certifyShares = []float64{0.8, 0.65, 0.5}

// certify returns a probe that may certify more than what passes so far. ok is false if no share of
// the estimated limit is higher, or if one was certified.
func (s *Search) certify() (Probe, bool) {
	pass, fail := s.bounds()
	crossing := cross(s.visits, pass, fail)
	if s.opts.Certify == nil || !crossing.OK || s.certified() {
		return Probe{}, false
	}
	for _, share := range certifyShares {
		n := max(int(share*crossing.N), s.opts.From)
		if n <= pass {
			break
		}
		if l := s.find(n); n < s.top() && (l == nil || !l.fresh && l.stands == metric.Inconclusive) {
			return s.certifying(n), true
		}
	}
	return Probe{}, false
}

// certified reports whether a probe has certified a load below the estimated limit. Then the search
// narrows the bracket no further.
func (s *Search) certified() bool {
	for _, l := range s.levels {
		if l.fresh && l.stands == metric.Pass && l.n != s.opts.Require {
			return true
		}
	}
	return false
}

// decide returns a probe of the required level with more requests, if its first samples did not
// decide it.
func (s *Search) decide() (Probe, bool) {
	r := s.opts.Require
	pass, _ := s.bounds()
	l := s.find(r)
	if s.opts.Certify == nil || r <= pass || r >= s.top() || l == nil || l.fresh || l.stands != metric.Inconclusive {
		return Probe{}, false
	}
	return s.certifying(r), true
}

func (s *Search) certifying(n int) Probe {
	looks := s.opts.Certify(n)
	p := Probe{N: n, Purpose: Certify, Looks: looks, Planned: len(looks)}
	if l := s.find(n); l != nil {
		p.Set = l.sets
	}
	return p
}

// lacking describes a search that ended while levels far apart were still undecided. It says how
// near to its limit the server stays at those levels. It returns "" if no such levels remain.
func (s *Search) lacking() string {
	us := s.undecided()
	if s.ended == "" || len(us) < 2 {
		return ""
	}
	threshold, off := "", math.Inf(1)
	for _, th := range thresholds(s.visits) {
		far := 0.0
		for _, p := range points(s.visits, th) {
			if p.n >= us[0].n && p.n <= us[len(us)-1].n {
				far = max(far, math.Abs(p.log))
			}
		}
		if far < off {
			threshold, off = th, far
		}
	}
	if threshold == "" {
		return ""
	}
	return fmt.Sprintf("from %s to %s %s stays within %s of its limit", s.label(us[0].n), s.label(us[len(us)-1].n), threshold, percent(off))
}

// percent writes a logarithmic margin as a percentage, rounded up: 0.026 is "3 %".
func percent(log float64) string {
	return fmt.Sprintf("%.0f %%", max(1, math.Ceil(100*math.Expm1(log)-1e-9)))
}
