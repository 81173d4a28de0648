package search

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// script answers the probes of a test. Without an entry in levels, a level passes up to limit and
// fails above it. An entry has one letter for each probe of the level: p pass, f fail, i
// inconclusive, s saturated, c capped. The last letter holds for all later probes.
type script struct {
	limit  int
	levels map[int]string
	cap    int // Result.Cap of a level at which the server refuses requests
	visits map[int]int
}

func (s *script) answer(p Probe) Result {
	if s.visits == nil {
		s.visits = map[int]int{}
	}
	letters := s.levels[p.N]
	if letters == "" {
		letters = "f"
		if p.N <= s.limit {
			letters = "p"
		}
	}
	o := letters[min(s.visits[p.N], len(letters)-1)]
	s.visits[p.N]++
	r := Result{
		N: p.N, Requests: p.Looks[len(p.Looks)-1], Binding: "ttft",
		Outcome: map[byte]metric.Outcome{'p': metric.Pass, 'f': metric.Fail, 'i': metric.Inconclusive, 's': metric.Saturated, 'c': metric.Capped}[o],
	}
	if o == 'c' {
		r.Cap = s.cap
	}
	if o == 'i' {
		r.Needs = -1 // no number of requests decides the level
	}
	if o == 'p' || o == 'f' {
		m := float64(p.N)/(float64(s.limit)+.5) - 1
		r.Margins = []Margin{{Threshold: "ttft", Log: m, Low: m - .01, High: m + .01}}
	}
	return r
}

// drive runs a search to its end and writes its probes in one line. For example, "ladder 8p/400" is
// the first visit to level 8, which passed with 400 requests. In "8'p", the prime means that the
// level was measured again with new requests.
func drive(t *testing.T, s *Search, answer func(Probe) Result) (string, Limit) {
	t.Helper()
	var line []string
	last := Purpose("")
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		if again, _ := s.Next(); !cmp.Equal(p, again) {
			t.Fatalf("Next twice: %+v, then %+v", p, again)
		}
		r := answer(p)
		s.Report(p, r)
		word := fmt.Sprintf("%d%s%s", p.N, r.Outcome.String()[:1], strings.Repeat("'", p.Set))
		if p.Purpose != last {
			word = string(p.Purpose) + " " + word
			last = p.Purpose
		}
		if line = append(line, word); len(line) > 100 {
			t.Fatalf("no end: %s", strings.Join(line, " "))
		}
	}
	return strings.Join(line, " "), s.Limit()
}

func known(n int, o metric.Outcome) Result {
	return Result{N: n, Outcome: o, Requests: 400, Binding: "ttft"}
}

func TestProbes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		opts   Options
		script script
		probes string
		kind   metric.CapacityKind
		l, u   int
		reason string
	}{
		{
			name:   "double, then halve",
			opts:   Options{UpTo: 128, Confirm: true},
			script: script{limit: 39},
			// Levels 32 and 64 enclose the limit, so the search bisects. Then it checks level 24,
			// because the widest gap between measured levels below 39 is from 16 to 32.
			probes: "ladder 1p 2p 4p 8p 16p 32p 64f bisect 48f 40f 36p 38p 39p check 24p confirm 39p'",
			kind:   metric.CapacityExact, l: 39, u: 40, reason: "the limit is found to within the resolution",
		},
		{
			name:   "from the last known limit, unmoved",
			opts:   Options{UpTo: 128, Start: 39, Confirm: true},
			script: script{limit: 39},
			// The last known limit is 39. The search first probes the levels 34 and 44, which are
			// an eighth of 39 below and above it.
			probes: "ladder 34p 44f bisect 39p 41f 40f check 17p confirm 39p'",
			kind:   metric.CapacityExact, l: 39, u: 40, reason: "the limit is found to within the resolution",
		},
		{
			name:   "from the last known limit, risen: the distance doubles",
			opts:   Options{UpTo: 256, Start: 40},
			script: script{limit: 130},
			// Above 40, the last known limit, the distance to 40 doubles: levels 45, 50, 60 and 80.
			// From 80 on, the level itself doubles.
			probes: "ladder 35p 45p 50p 60p 80p 160f bisect 120p 140f 130p 135f 132f 131f check 100p",
			kind:   metric.CapacityExact, l: 130, u: 131, reason: "the limit is found to within the resolution",
		},
		{
			name:   "from the last known limit, fallen",
			opts:   Options{UpTo: 256, Start: 40},
			script: script{limit: 7},
			// Below 40, the last known limit, the distance to 40 doubles: levels 35, 30 and 20. The
			// next level would be 0, so the level halves instead: 10 and 5.
			probes: "ladder 35f 30f 20f 10f 5p bisect 7p 8f check 2p",
			kind:   metric.CapacityExact, l: 7, u: 8, reason: "the limit is found to within the resolution",
		},
		{
			name:   "a ladder that begins above from comes down to it",
			opts:   Options{From: 2, UpTo: 64, Begin: 8},
			script: script{limit: 1},
			probes: "ladder 8f 4f 2f",
			kind:   metric.CapacityBelow, u: 2, reason: "the search goes down to 2",
		},
		{
			name:   "nothing fails",
			opts:   Options{UpTo: 100, Begin: 40, Confirm: true},
			script: script{limit: 200},
			probes: "ladder 40p 80p 100p check 60p confirm 100p'",
			kind:   metric.CapacityAtLeast, l: 100, reason: "the search goes up to 100",
		},
		{
			name:   "known levels are probes",
			opts:   Options{UpTo: 128, Known: []Result{known(1, metric.Pass), known(5, metric.Pass), known(30, metric.Pass)}},
			script: script{limit: 33},
			probes: "ladder 60f bisect 45f 37f 33p 35f 34f check 17p",
			kind:   metric.CapacityExact, l: 33, u: 34, reason: "the limit is found to within the resolution",
		},
		{
			name: "a wide bracket is halved geometrically",
			opts: Options{UpTo: 128, Known: []Result{known(4, metric.Pass), known(100, metric.Fail)}},
			// Between 4 and 100 the search takes geometric middles: √(4·100) = 20 and √(20·100) =
			// 44. Then the ends, 20 and 44, are close together, so it takes the arithmetic middle:
			// 32.
			script: script{limit: 39},
			probes: "bisect 20p 44f 32p 38p 41f 39p 40f check 12p",
			kind:   metric.CapacityExact, l: 39, u: 40, reason: "the limit is found to within the resolution",
		},
		{
			name:   "a resolution",
			opts:   Options{UpTo: 128, Begin: 16, Resolution: 4},
			script: script{limit: 39},
			probes: "ladder 16p 32p 64f bisect 48f 40f 36p check 24p",
			kind:   metric.CapacityExact, l: 36, u: 40, reason: "the limit is found to within the resolution",
		},
		{
			name:   "a relative resolution: a tenth of 36 is 4",
			opts:   Options{UpTo: 128, Begin: 16, Relative: .1},
			script: script{limit: 39},
			probes: "ladder 16p 32p 64f bisect 48f 40f 36p check 24p",
			kind:   metric.CapacityExact, l: 36, u: 40, reason: "the limit is found to within the resolution",
		},
		{
			name:   "the gate first: met",
			opts:   Options{UpTo: 64, Require: 30, Confirm: true},
			script: script{limit: 31},
			probes: "require 30p ladder 60f bisect 45f 37f 33f 31p 32f check 15p confirm 31p'",
			kind:   metric.CapacityExact, l: 31, u: 32, reason: "the limit is found to within the resolution",
		},
		{
			name:   "the gate first: missed",
			opts:   Options{UpTo: 64, Require: 30},
			script: script{limit: 9},
			probes: "require 30f ladder 15f 7p bisect 11f 9p 10f check 3p",
			kind:   metric.CapacityExact, l: 9, u: 10, reason: "the limit is found to within the resolution",
		},
		{
			name: "the gate first: an inconclusive level is extended to the last look",
			opts: Options{UpTo: 64, Require: 30},
			// The plan requires level 30, so the search extends it, although the result says that
			// no number of requests would decide it.
			script: script{limit: 29, levels: map[int]string{30: "ii"}},
			probes: "require 30i extend 30i ladder 15p 60f bisect 22p 26p 28p 29p 45f 37f 33f 31f check 7p",
			kind:   metric.CapacityInterpolated, l: 29, u: 31, reason: "30 could not be decided",
		},
		{
			name: "noise at the edge: neighbours on both sides of what cannot be decided",
			opts: Options{UpTo: 64, Begin: 16, Confirm: true},
			script: script{limit: 39, levels: map[int]string{
				38: "i", 39: "i", 40: "i", 41: "i",
			}},
			probes: "ladder 16p 32p 64f bisect 48f 40i 36p 38i 37p 44f 42f check 24p confirm 37p'",
			kind:   metric.CapacityInterpolated, l: 37, u: 42, reason: "38 to 40 could not be decided", // 41 is too near to 40
		},
		{
			name: "much is undecided: a level clearly below the estimate is certified, and no more is narrowed",
			opts: Options{UpTo: 64, Begin: 16, Confirm: true, Certify: Doubling(200, 3200)},
			script: script{limit: 40, levels: map[int]string{
				16: "i", 20: "i", 24: "i", 32: "i", 28: "i", 36: "i", 40: "i", 44: "i", 48: "i",
			}},
			probes: "ladder 16i 8p 32i 64f bisect 12p 14p 15p 48i 56f 52f 50f certify 28i 23p check 19p confirm 23p'",
			kind:   metric.CapacityInterpolated, l: 23, u: 50, reason: "28 to 48 could not be decided",
		},
		{
			name:   "the required level is undecided: it gets more requests",
			opts:   Options{UpTo: 64, Require: 24, Certify: Doubling(200, 3200)},
			script: script{limit: 40, levels: map[int]string{24: "iip"}},
			probes: "require 24i extend 24i certify 24p' ladder 48f bisect 36p 42f 39p 40p 41f check 12p",
			kind:   metric.CapacityExact, l: 40, u: 41, reason: "the limit is found to within the resolution",
		},
		{
			name:   "an inconclusive rung is passed by",
			opts:   Options{UpTo: 64, Begin: 8},
			script: script{limit: 20, levels: map[int]string{8: "i"}},
			// Level 8 is inconclusive, so the search first looks for a lower level that passes, 4.
			// Then the ladder goes on upwards.
			probes: "ladder 8i 4p 16p 32f bisect 24f 20p 22f 21f check 12p",
			kind:   metric.CapacityExact, l: 20, u: 21, reason: "the limit is found to within the resolution",
		},
		{
			name:   "not monotone: pass at 16, fail at 24, pass at 32",
			opts:   Options{UpTo: 32, Begin: 16, Confirm: true},
			script: script{limit: 32, levels: map[int]string{24: "f", 20: "p", 22: "p", 23: "p"}},
			// The ladder skips level 24. The check measures it, and it fails although level 32
			// passed. So both levels are measured again, and the lower one counts.
			probes: "ladder 16p 32p check 24f retry 24f' 32p' bisect 20p 22p 23p confirm 23p'",
			kind:   metric.CapacityExact, l: 23, u: 24, reason: "the limit is found to within the resolution",
		},
		{
			name:   "not monotone, in the levels known before",
			opts:   Options{UpTo: 32, Known: []Result{known(16, metric.Pass), known(24, metric.Fail), known(32, metric.Pass)}},
			script: script{limit: 32, levels: map[int]string{24: "f", 20: "f", 18: "f", 17: "f"}},
			probes: "retry 24f' 32p' bisect 20f 18f 17f check 8p",
			kind:   metric.CapacityExact, l: 16, u: 17, reason: "the limit is found to within the resolution",
		},
		{
			name:   "a contradiction that fresh samples dissolve",
			opts:   Options{UpTo: 32, Begin: 16},
			script: script{limit: 32, levels: map[int]string{24: "fp"}},
			probes: "ladder 16p 32p check 24f retry 24p'",
			kind:   metric.CapacityAtLeast, l: 32, reason: "the search goes up to 32",
		},
		{
			name:   "a confirmation that fails: one step down",
			opts:   Options{UpTo: 64, Begin: 16, Confirm: true},
			script: script{limit: 39, levels: map[int]string{39: "pf"}},
			probes: "ladder 16p 32p 64f bisect 48f 40f 36p 38p 39p check 24p confirm 39f' 38p'",
			kind:   metric.CapacityExact, l: 38, u: 39, reason: "the limit is found to within the resolution",
		},
		{
			name:   "a confirmation that cannot tell: one step down, and no longer exact",
			opts:   Options{UpTo: 64, Begin: 16, Confirm: true},
			script: script{limit: 39, levels: map[int]string{39: "pi"}},
			probes: "ladder 16p 32p 64f bisect 48f 40f 36p 38p 39p check 24p confirm 39i' 38p'",
			kind:   metric.CapacityInterpolated, l: 38, u: 40, reason: "39 could not be decided",
		},
		{
			name:   "the server's admission cap",
			opts:   Options{UpTo: 256, Begin: 16, Confirm: true},
			script: script{limit: 64, cap: 64, levels: map[int]string{128: "c"}},
			probes: "ladder 16p 32p 64p 128c check 48p confirm 64p'",
			kind:   metric.CapacityServerCap, l: 64, reason: "the server admitted 64 of 128",
		},
		{
			name:   "the cap lies below a level that fails",
			opts:   Options{UpTo: 256, Known: []Result{known(32, metric.Pass), known(200, metric.Fail)}},
			script: script{limit: 100, cap: 64, levels: map[int]string{80: "c"}},
			probes: "bisect 80c ladder 64p check 48p",
			kind:   metric.CapacityServerCap, l: 64, u: 200, reason: "the server admitted 64 of 80",
		},
		{
			name:   "the cap lies above the limit",
			opts:   Options{UpTo: 256, Begin: 16},
			script: script{limit: 37, cap: 40, levels: map[int]string{64: "c"}},
			probes: "ladder 16p 32p 64c 40f bisect 36p 38f 37p check 24p",
			kind:   metric.CapacityExact, l: 37, u: 38, reason: "the limit is found to within the resolution",
		},
		{
			name:   "the generator saturates: what passed stands",
			opts:   Options{UpTo: 256, Begin: 64, Confirm: true},
			script: script{limit: 200, levels: map[int]string{96: "s", 128: "s"}},
			probes: "ladder 64p 128s again 128s' bisect 96s again 96s' bisect 80p 88p 92p 94p 95p check 32p confirm 95p'",
			kind:   metric.CapacityAtLeast, l: 95, reason: "the generator was saturated at 96",
		},
		{
			name:   "the generator saturates at the first level",
			opts:   Options{UpTo: 256, Begin: 8},
			script: script{limit: 5, levels: map[int]string{8: "s"}},
			probes: "ladder 8s again 8s' ladder 4p bisect 6f 5p check 2p",
			kind:   metric.CapacityExact, l: 5, u: 6, reason: "the limit is found to within the resolution",
		},
		{
			name:   "the generator is saturated by chance",
			opts:   Options{UpTo: 256, Begin: 8, Known: []Result{{N: 16, Outcome: metric.Saturated, Note: "one core busy"}}},
			script: script{limit: 17},
			probes: "again 16p' ladder 32f bisect 24f 20f 18f 17p check 8p",
			kind:   metric.CapacityExact, l: 17, u: 18, reason: "the limit is found to within the resolution",
		},
		{
			name:   "a larger load failed, and what lies between saturates the generator",
			opts:   Options{UpTo: 256, Begin: 8},
			script: script{limit: 10, levels: map[int]string{12: "s"}},
			probes: "ladder 8p 16f bisect 12s again 12s' bisect 10p 11f check 4p",
			kind:   metric.CapacityExact, l: 10, u: 11, reason: "the limit is found to within the resolution",
		},
		{
			name:   "the server admits fewer, and does not say how many",
			opts:   Options{UpTo: 256, Begin: 16},
			script: script{limit: 256, levels: map[int]string{32: "c", 24: "c", 22: "c", 21: "c"}},
			probes: "ladder 16p 32c bisect 24c 20p 22c 21c check 8p",
			kind:   metric.CapacityServerCap, l: 20, reason: "the server did not admit all of 21",
		},
		{
			name:   "the generator saturates at once",
			opts:   Options{UpTo: 256, Known: []Result{{N: 1, Outcome: metric.Saturated, Note: "one core busy"}}},
			script: script{levels: map[int]string{1: "s"}},
			probes: "again 1s'",
			kind:   metric.CapacityUnknown, reason: "the generator was saturated at 1",
		},
		{
			name:   "nothing can be decided",
			opts:   Options{UpTo: 4},
			script: script{levels: map[int]string{1: "i", 2: "i", 4: "i"}},
			probes: "ladder 1i 2i 4i",
			kind:   metric.CapacityUnknown, reason: "1 to 4 could not be decided",
		},
		{
			name:   "one level",
			opts:   Options{From: 8, UpTo: 8, Confirm: true, Require: 8},
			script: script{limit: 8},
			probes: "require 8p confirm 8p'",
			kind:   metric.CapacityAtLeast, l: 8, reason: "the search goes up to 8",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, l := drive(t, New(tt.opts), tt.script.answer)
			must.Same(t, "probes (-want +got)", tt.probes, got)
			if l.Kind != tt.kind || l.Pass != tt.l || l.Fail != tt.u || l.Reason != tt.reason {
				t.Errorf("limit %s %d %d, %q; want %s %d %d, %q", l.Kind, l.Pass, l.Fail, l.Reason, tt.kind, tt.l, tt.u, tt.reason)
			}
			if l.Kind == metric.CapacityExact && tt.opts.Confirm != l.Confirmed {
				t.Errorf("confirmed %t, asked for %t", l.Confirmed, tt.opts.Confirm)
			}
		})
	}
}

func TestNonMonotoneEvidence(t *testing.T) {
	s := New(Options{UpTo: 32, Begin: 16})
	_, l := drive(t, s, (&script{limit: 32, levels: map[int]string{24: "f"}}).answer)
	want := [][2]int{{24, 32}}
	must.Same(t, "evidence (-want +got)", want, l.NonMonotone)
	s = New(Options{UpTo: 32, Begin: 16})
	_, l = drive(t, s, (&script{limit: 32, levels: map[int]string{24: "fp"}}).answer)
	if l.NonMonotone != nil || !cmp.Equal(l.Notes, []string{"24 failed first, but passed on fresh requests"}) {
		t.Errorf("dissolved: evidence %v, notes %q", l.NonMonotone, l.Notes)
	}
	s = New(Options{UpTo: 64, Begin: 16, Confirm: true})
	_, l = drive(t, s, (&script{limit: 39, levels: map[int]string{39: "pf"}}).answer)
	if want := []string{"39 passed first, but failed on fresh requests, so a smaller load was tried"}; !cmp.Equal(l.Notes, want) {
		t.Errorf("notes %q, want %q", l.Notes, want)
	}
}

func TestLooks(t *testing.T) {
	opts := Options{UpTo: 64, Begin: 32, First: 2, Confirm: true, Looks: Doubling(100, 800)}
	answers := map[string]Result{
		// Level 32 needs 150 more than its 200 requests, so the search extends it only to the look
		// at 400.
		"ladder 32 [100 200]":          {Outcome: metric.Inconclusive, Requests: 200, Needs: 150},
		"extend 32 [400]":              {Outcome: metric.Pass, Requests: 400},
		"ladder 64 [100 200]":          {Outcome: metric.Fail, Requests: 100},
		"confirm 32 [100 200 400 800]": {Outcome: metric.Pass, Requests: 200},
		// Level 48 needs more than the 800 requests that a probe may have, so the search first
		// measures other levels.
		"bisect 48 [100 200]": {Outcome: metric.Inconclusive, Requests: 200, Needs: 601},
		// The result does not say how many requests would decide level 40, so the search extends it
		// by one look at a time.
		"bisect 40 [100 200]": {Outcome: metric.Inconclusive, Requests: 200},
		"extend 40 [400]":     {Outcome: metric.Inconclusive, Requests: 400},
		"extend 40 [800]":     {Outcome: metric.Inconclusive, Requests: 800},
	}
	var got []string
	s := New(opts)
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		key := fmt.Sprintf("%s %d %v", p.Purpose, p.N, p.Looks)
		r, known := answers[key]
		if !known {
			r = Result{Outcome: metric.Inconclusive, Requests: 200, Needs: -1}
		} else {
			got = append(got, key)
		}
		if p.Planned != 4 {
			t.Errorf("%s: error split over %d looks, want 4", key, p.Planned)
		}
		r.N = p.N
		s.Report(p, r)
	}
	want := []string{
		"ladder 32 [100 200]", "extend 32 [400]", "ladder 64 [100 200]", "bisect 48 [100 200]",
		"bisect 40 [100 200]", "extend 40 [400]", "extend 40 [800]", "confirm 32 [100 200 400 800]",
	}
	must.Same(t, "probes (-want +got)", want, got)
}

// A level that was measured before the search, but not decided, gets more requests.
func TestKnownExtended(t *testing.T) {
	s := New(Options{UpTo: 8, Require: 4, Looks: Doubling(200, 800), Known: []Result{
		{N: 4, Outcome: metric.Inconclusive, Requests: 300},
	}})
	p, ok := s.Next()
	want := Probe{N: 4, Purpose: Extend, Have: 300, Looks: []int{400, 800}, Planned: 3}
	if diff := cmp.Diff(want, p); !ok || diff != "" {
		t.Errorf("probe (-want +got):\n%s", diff)
	}
}

func TestBudget(t *testing.T) {
	// A request takes 1 s at any level. A probe sends its measured requests and two waves of N
	// other requests, so it takes as long as the search predicts.
	cost := func(p Probe) time.Duration {
		return time.Duration(p.Looks[len(p.Looks)-1]-p.Have+2*p.N) * time.Second
	}
	run := func(budget time.Duration, confirm bool) (string, Limit) {
		sc := &script{limit: 39}
		s := New(Options{UpTo: 64, Begin: 16, Budget: budget, Confirm: confirm, Looks: func(int) []int { return []int{100} }})
		return drive(t, s, func(p Probe) Result {
			r := sc.answer(p)
			if r.Spent = cost(p); r.Spent > p.Within {
				t.Errorf("%s %d takes %s, %s are left", p.Purpose, p.N, r.Spent, p.Within)
			}
			return r
		})
	}
	for _, tt := range []struct {
		budget  time.Duration
		confirm bool
		probes  string
		kind    metric.CapacityKind
		reason  string
	}{
		// The probes of levels 16, 32 and 64 take 524 s, and the probe of level 48 takes 196 s. So
		// a budget of 720 s is just enough for all four.
		{719 * time.Second, false, "ladder 16p 32p 64f check 24p", metric.CapacityInterpolated, "budget: 47s left, the next probe takes about 3m16s"},
		{720 * time.Second, false, "ladder 16p 32p 64f bisect 48f", metric.CapacityInterpolated, "budget: 0s left, the next probe takes about 3m0s"},
		// The budget must also pay for the confirmation of a level that passes. Level 64 and its
		// confirmation would take 456 s, but only 424 s are left, so the search tries level 48.
		// Level 48 fails, and then level 40 would take too long, so the search confirms level 32.
		{720 * time.Second, true, "ladder 16p 32p bisect 48f confirm 32p'", metric.CapacityInterpolated, "budget: 1m4s left, the next probe takes about 6m0s"},
	} {
		got, l := run(tt.budget, tt.confirm)
		if got != tt.probes || l.Kind != tt.kind || l.Reason != tt.reason {
			t.Errorf("budget %s, confirm %t: %q, %s, %q\nwant %q, %s, %q", tt.budget, tt.confirm, got, l.Kind, l.Reason, tt.probes, tt.kind, tt.reason)
		}
		if l.Spent > tt.budget {
			t.Errorf("spent %s of %s", l.Spent, tt.budget)
		}
	}
}

// If a probe with all its looks (planned judgements) would exceed the budget, the search removes
// the last looks.
func TestBudgetCutsLooks(t *testing.T) {
	s := New(Options{From: 10, UpTo: 20, Budget: 400 * time.Second, Looks: Doubling(100, 800), First: 4})
	p, _ := s.Next()
	s.Report(p, Result{N: 10, Outcome: metric.Pass, Requests: 100, Spent: 120 * time.Second})
	// 280 s of the budget are left. A request takes 1 s, and a probe at level 20 needs two extra
	// waves of 20 requests. So the look at 200 requests fits (240 s), and the look at 400 (440 s)
	// is removed.
	p, ok := s.Next()
	want := Probe{
		N: 20, Purpose: Ladder, Looks: []int{100, 200}, Planned: 4,
		Within: 280 * time.Second, Expected: 240 * time.Second,
	}
	if diff := cmp.Diff(want, p); !ok || diff != "" {
		t.Errorf("probe (-want +got):\n%s", diff)
	}
}

// The search must keep enough budget to confirm a level that passes. The required level is the
// exception: its probe needs no confirmation.
func TestBudgetForTheGate(t *testing.T) {
	for _, tt := range []struct {
		require int
		want    Purpose
	}{{20, Gate}, {0, Confirm}} {
		s := New(Options{
			From: 10, UpTo: 20, Confirm: true, Require: tt.require, Looks: Doubling(100, 100),
			// The known probe at level 10 took 120 s for 100 requests and two waves of 10. So a
			// probe at level 20 takes 140 s.
			Known: []Result{{N: 10, Outcome: metric.Pass, Requests: 100, Spent: 120 * time.Second}}, Budget: 150 * time.Second,
		})
		if p, ok := s.Next(); !ok || p.Purpose != tt.want {
			t.Errorf("require %d: %s %d, want %s", tt.require, p.Purpose, p.N, tt.want)
		}
	}
}

func TestPredict(t *testing.T) {
	s := New(Options{UpTo: 100, Known: []Result{
		{N: 10, Outcome: metric.Pass, Requests: 80, Spent: 100 * time.Second}, // with two extra waves, 100 requests of 1 s
		{N: 40, Outcome: metric.Pass, Requests: 20, Spent: 25 * time.Second},  // with two extra waves, 100 requests of 0.25 s
	}})
	for _, tt := range []struct {
		n, requests int
		want        time.Duration
	}{
		{10, 80, 100 * time.Second},
		{20, 60, 50 * time.Second}, // 100 requests; half-way in ln N, each takes √(1·¼) = ½ s
		{5, 90, 200 * time.Second}, // 100 requests; below level 10 each takes 10/5 · 1 s
		{80, 240, 100 * time.Second},
	} {
		if got := s.predict(tt.n, tt.requests); (got - tt.want).Abs() > time.Millisecond {
			t.Errorf("predict(%d, %d) = %s, want %s", tt.n, tt.requests, got, tt.want)
		}
	}
	windows := New(Options{Over: metric.Users, UpTo: 100, Known: []Result{{N: 10, Outcome: metric.Pass, Requests: 10, Spent: 400 * time.Second}}})
	if got, want := windows.predict(40, 20), 800*time.Second; got != want { // 40 s each, at any N
		t.Errorf("20 parts at 40 users: %s, want %s", got, want)
	}
	if got := New(Options{UpTo: 8}).predict(4, 100); got != 0 {
		t.Errorf("prediction from nothing: %s", got)
	}
}

func TestStop(t *testing.T) {
	s := New(Options{UpTo: 64})
	p, _ := s.Next()
	s.Report(p, Result{N: 1, Outcome: metric.Pass, Requests: 100})
	s.Next()
	s.Stop("interrupted")
	if _, ok := s.Next(); ok {
		t.Error("a probe after Stop")
	}
	if l := s.Limit(); l.Kind != metric.CapacityAtLeast || l.Pass != 1 || l.Reason != "interrupted" {
		t.Errorf("limit %s %d, %q", l.Kind, l.Pass, l.Reason)
	}
}

func TestMisuse(t *testing.T) {
	panics := func(name string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		f()
	}
	panics("no levels", func() { New(Options{}) })
	panics("from above up to", func() { New(Options{From: 9, UpTo: 8}) })
	panics("negative budget", func() { New(Options{UpTo: 8, Budget: -1}) })
	panics("relative resolution", func() { New(Options{UpTo: 8, Relative: 1}) })
	panics("looks descend", func() { New(Options{UpTo: 8, Looks: func(int) []int { return []int{2, 1} }}).Next() })
	panics("no looks", func() { New(Options{UpTo: 8, Looks: func(int) []int { return nil }}).Next() })
	panics("doubling", func() { Doubling(8, 4) })
	panics("not asked for", func() { New(Options{UpTo: 8}).Report(Probe{N: 1}, Result{N: 1, Outcome: metric.Pass}) })
	panics("another level", func() {
		s := New(Options{UpTo: 8})
		p, _ := s.Next()
		s.Report(p, Result{N: 2, Outcome: metric.Pass})
	})
	panics("pending", func() {
		s := New(Options{UpTo: 8})
		p, _ := s.Next()
		s.Report(p, Result{N: p.N})
	})
}

func TestLine(t *testing.T) {
	for _, tt := range []struct {
		l    Limit
		of   metric.Capacity
		want string
	}{
		{
			Limit{Bracket: metric.Bracket{Kind: metric.CapacityExact, Pass: 39, Fail: 40, Confirmed: true, Binding: "ttft", AtPass: "7.9 s", AtFail: "8.1 s"}},
			metric.Capacity{}, "39 requests in flight · limited by ttft: 7.9 s at 39, 8.1 s at 40",
		},
		{
			Limit{Bracket: metric.Bracket{Kind: metric.CapacityInterpolated, Pass: 12, Fail: 18, Crossing: 15.4, Binding: "speed", AtFail: "14 tok/s"}},
			metric.Capacity{}, "~15 requests in flight (12 passes, 18 fails), not confirmed · limited by speed: 14 tok/s at 18",
		},
		{Limit{Bracket: metric.Bracket{Kind: metric.CapacityInterpolated, Pass: 12, Fail: 18, Confirmed: true}}, metric.Capacity{}, "~12 requests in flight (12 passes, 18 fails)"},
		{Limit{Bracket: metric.Bracket{Kind: metric.CapacityAtLeast, Pass: 125, Confirmed: true}, Reason: "the search goes up to 125"}, metric.Capacity{}, "125+ requests in flight (the search goes up to 125)"},
		{Limit{Bracket: metric.Bracket{Kind: metric.CapacityBelow, Fail: 1, Binding: "ttft", AtFail: "9.3 s"}}, metric.Capacity{}, "does not hold at 1 request in flight · limited by ttft: 9.3 s at 1"},
		{Limit{Bracket: metric.Bracket{Kind: metric.CapacityServerCap, Pass: 64, Confirmed: true}}, metric.Capacity{}, "64 requests in flight (admission cap)"},
		{Limit{Reason: "the generator was saturated at 8"}, metric.Capacity{}, "unknown: the generator was saturated at 8"},
		{Limit{Bracket: metric.Bracket{Kind: metric.CapacityExact, Pass: 32, Fail: 33, Confirmed: true}}, metric.Capacity{Over: metric.Burst}, "32 requests at once"},
		{Limit{Bracket: metric.Bracket{Kind: metric.CapacityExact, Pass: 3, Fail: 4, Confirmed: true}}, metric.Capacity{Over: metric.OpenLoop, Step: .1}, "certified 0.3 req/s; 0.4 fails"},
		{
			Limit{Bracket: metric.Bracket{Kind: metric.CapacityExact, Pass: 23, Fail: 24, Confirmed: true, NonMonotone: [][2]int{{24, 32}}}},
			metric.Capacity{}, "23 requests in flight · not monotone: 24 fails, but the larger 32 passes",
		},
	} {
		if tt.l.Fill(&tt.of); tt.of.Line != tt.want {
			t.Errorf("\n got %s\nwant %s", tt.of.Line, tt.want)
		}
	}
}

func TestBinding(t *testing.T) {
	margins := func(ttft, speed float64) []Margin {
		return []Margin{
			{Threshold: "ttft", Log: ttft, Shown: fmt.Sprint("ttft ", ttft)},
			{Threshold: "speed", Log: speed, Shown: fmt.Sprint("speed ", speed)},
		}
	}
	s := New(Options{UpTo: 8, Known: []Result{
		{N: 4, Outcome: metric.Pass, Requests: 400, Margins: margins(-.4, -.2)},
		{N: 5, Outcome: metric.Fail, Requests: 400, Margins: margins(.1, .3), Binding: "speed"},
	}})
	if l := s.Limit(); l.Binding != "speed" || l.AtPass != "speed -0.2" || l.AtFail != "speed 0.3" {
		t.Errorf("binding %q: %q, %q", l.Binding, l.AtPass, l.AtFail)
	}
	// No level failed, so name the threshold that is nearest to its limit.
	s = New(Options{UpTo: 4, Known: []Result{{N: 4, Outcome: metric.Pass, Requests: 400, Margins: margins(-.1, -.2)}}})
	if l := s.Limit(); l.Binding != "ttft" || l.AtPass != "ttft -0.1" || l.AtFail != "" {
		t.Errorf("binding %q: %q, %q", l.Binding, l.AtPass, l.AtFail)
	}
}
