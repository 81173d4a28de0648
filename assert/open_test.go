package assert

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// backlog returns a level with 1,000 requests in ten rounds. 10 requests arrive per second, and
// each is in flight for 1 s.
//
// The parameter kept is the number of requests in every 100 that end only after the window. They
// are evenly spread.
func backlog(kept int, saturation ...float64) *metric.Level {
	l := &metric.Level{Name: "10 req/s", Kind: metric.OpenLoop, Rate: 10, Saturation: saturation}
	for r := range 10 {
		begin := time.Second + time.Duration(r)*10*time.Second
		round := &metric.Round{Index: r, Due: 100, WindowStart: begin, WindowEnd: begin + 10*time.Second, Start: begin + 100*time.Millisecond, Complete: true, Busy: 1}
		for i := range 100 {
			due := begin + time.Duration(i+1)*100*time.Millisecond
			x := &metric.Sample{Round: r, Order: i, Phase: metric.Measured, FromDue: true, Scheduled: due, Sent: due, First: due + time.Second, Last: due + time.Second, End: due + time.Second,
				Chunks: 1, Usage: &metric.Usage{Input: 1, Output: 1}}
			if (i+1)*kept/100 > i*kept/100 {
				x.End = 200 * time.Second
			}
			round.End = max(round.End, x.End)
			round.Samples = append(round.Samples, x)
		}
		l.Rounds = append(l.Rounds, round)
	}
	return l
}

func judgedRate(l *metric.Level, o plan.Open) (*subject, verdict.Verdict) {
	w := &plan.Workload{Loads: []*plan.Load{{Kind: metric.OpenLoop, Open: &o, Levels: []plan.Level{{Name: l.Name, Rate: l.Rate}}}}}
	s := &subject{evidence: gather(l), workload: w, policy: plan.Policy{Confidence: 0.95}, alpha: 0.05}
	return s, s.judge(withGrowth(&plan.Workload{}, nil, metric.OpenLoop, plan.Level{Name: l.Name}, verdict.SeverityError)[0].Threshold)
}

// All requests in flight may fail together. At 10 req/s and 1 s per request, ten requests are in
// flight, so 1,000 requests count as 100 independent ones. That is too few to certify a success
// rate of 98 %.
func TestShareOfARate(t *testing.T) {
	for text, want := range map[string]verdict.Outcome{"rate >= 95%": verdict.Pass, "rate >= 98%": verdict.Inconclusive} {
		s, _ := judgedRate(backlog(0), plan.Open{})
		v := s.judge(threshold("success", text))
		if v.Outcome != want || !strings.Contains(strings.Join(v.NotesOf(), "; "), "for a pass, 1000 requests count as only 100, because all requests in flight (10)") {
			t.Errorf("%s: %v %q, want %v", text, v.Outcome, v.Notes, want)
		}
	}
	s, _ := judgedRate(backlog(0), plan.Open{})
	must.Hold(t, s.wave() == 10, "a wave of %d, want 10", s.wave())
}

// In a stage the wave is the largest number of the stage's own requests in flight.
func TestShareOfAStage(t *testing.T) {
	l := backlog(0)
	l.Stage = &metric.Stage{}
	s, _ := judgedRate(l, plan.Open{})
	for text, want := range map[string]verdict.Outcome{"rate >= 95%": verdict.Pass, "rate >= 98%": verdict.Inconclusive} {
		v := s.judge(threshold("success", text))
		must.Hold(t, v.Outcome == want, "%s: %v %q, want %v", text, v.Outcome, v.Notes, want)
	}
	must.Hold(t, s.wave() == 11, "a wave of %d, want 11", s.wave())
}

func TestGrowth(t *testing.T) {
	// Of every 100 requests, 8 are not answered. At any time, ten other requests are in flight. So
	// at the end 80 + 10 of 1,000 requests are in flight, a growth of 9 %.
	g, ok := backlog(8).Growth()
	must.Hold(t, ok && g.Arrivals == 1000 && math.Abs(g.Share-0.09) <= 0.0021, "growth %+v, want 9%% of 1000", g)
	p := backlog(8).Passages()
	must.Hold(t, len(p) == 1 && len(p[0].Rounds) == 10 && p[0].Begin == 0 && p[0].Max == p[0].End, "passages %+v", p)
	if _, ok := (&metric.Level{Kind: metric.ClosedLoop, N: 1, Rounds: backlog(0).Rounds}).Growth(); ok {
		t.Error("a closed loop has a backlog")
	}
	apart := backlog(0)
	apart.Rounds[5].WindowStart += time.Second
	n := len(apart.Passages())
	must.Hold(t, n == 2, "a pause between two rounds leaves %d windows, want 2", n)
}

func TestSustained(t *testing.T) {
	twelve := []float64{12, 12.1, 11.9, 12, 12.1, 11.9, 12, 12.1, 11.9, 12}
	eleven := []float64{9, 11, 10, 9, 11, 10, 9, 11, 10, 9}
	for _, tt := range []struct {
		name       string
		kept       int
		saturation []float64
		cut        metric.Cut
		change     func(*metric.Level)
		want       verdict.Outcome
		words      string
	}{
		{"its backlog stays", 0, nil, "", nil, verdict.Pass, "sustained, because the backlog grew less than allowed"},
		{"its backlog grows by 8 %", 8, twelve, "", nil, verdict.Fail, "not sustained, because the backlog grew more than allowed"},
		// 50 of 1,000 requests are not answered, and 10 others are in flight at the end, so the
		// backlog grows by 6 %. At a rate that is certainly below the largest rate, chance alone
		// may explain a growth of 1.645·√(1.5/1000) = 6.4 %.
		// This growth is more than half of the limit, so it takes a saturation after the level.
		{"its backlog grows by 5 %, below the largest rate", 5, twelve, "", nil, verdict.Inconclusive, "measured before the level"},
		{"its backlog grows by 5 %, near the largest rate", 5, eleven, "", nil, verdict.Fail, "not sustained, because the backlog grew more than allowed"},
		{"its backlog grows by 5 %, the largest rate unknown", 5, nil, "", nil, verdict.Fail, "not sustained, because the backlog grew more than allowed"},
		// 70 of 1,000 requests time out, one of them after the window. Chance explains a growth of
		// up to 6.4 %. So it is not certain that the backlog grows by more than the allowed 2 %.
		{"some time out, below the largest rate", 0, twelve, "", lose(7), verdict.Inconclusive, "69 requests that timed out"},
		{"few time out, below the largest rate", 0, twelve, "", lose(1), verdict.Inconclusive, "10 requests that timed out"},
		{"undecided, below the largest rate", 2, twelve, "", spreadOut, verdict.Inconclusive, "measured before the level"},
		{"undecided, near the largest rate", 2, eleven, "", spreadOut, verdict.Inconclusive, ""},
		{"undecided by its backlog, above the largest rate", 2, []float64{9.8, 9.85, 9.82, 9.81}, "", spreadOut, verdict.Fail, "faster than the server can sustain"},
		// The server answers 990 requests in 100 s. These 9.9 req/s are about its largest rate,
		// which the saturation measured as 9.92 and 9.93 req/s.
		{"its backlog stays, above the largest rate", 0, []float64{9.92, 9.93, 9.92, 9.93}, "", nil, verdict.Inconclusive, ""},
		{"its backlog stays, above that of a saturation that was slower", 0, []float64{7, 7.1, 7, 7.1}, "", nil, verdict.Pass, "sustained, because the backlog grew less than allowed"},
		{"undecided, above that of a saturation that was slower", 2, []float64{7, 7.1, 7, 7.1}, "", spreadOut, verdict.Inconclusive, ""},
		{"undecided, the largest rate unknown", 2, nil, "", spreadOut, verdict.Inconclusive, ""},
		{"undecided, a saturation of nonsense", 2, []float64{12, math.NaN(), 12}, "", spreadOut, verdict.Inconclusive, ""},
		{"no token came any more", 0, twelve, metric.CutStalled, nil, verdict.Fail, "the server stopped answering"},
		{"too many in flight, undecided", 2, twelve, metric.CutFull, spreadOut, verdict.Inconclusive, ""},
		// At the end 90 requests are in flight, and 9.1 are answered per second. The saturated
		// server answered 12 req/s with 200 requests in flight, so 12·90/200 = 5.4 req/s with 90.
		// In the next row it answered 12 req/s with 90, so now it is slower.
		{"it fills up", 8, twelve, "", fillsTo(200), verdict.Inconclusive, "measured before the level"},
		{"it fills up, but slower than when saturated", 8, twelve, "", fillsTo(90), verdict.Inconclusive, ""},
		// At the end 440 requests are in flight, 40 more than the saturated server answered at the
		// same time. Chance explains a queue of 40 (4 % of the arrivals), but no growth of 44 %.
		{"it became slower, below the largest rate", 43, twelve, "", fillsTo(400), verdict.Inconclusive, ""},
		{"it fills up, near the largest rate", 8, eleven, "", fillsTo(90), verdict.Inconclusive, ""},
		{"it fills up, above the largest rate", 8, []float64{8, 8, 8, 8}, "", fillsTo(90), verdict.Fail, "not sustained, because the backlog grew more than allowed"},
		// At the end 90 requests are in flight, 10 more than the saturated server answered at the
		// same time. In the next row 120 requests are in flight, 110 more than it answered. Chance
		// explains only 64 more (6.4 % of the 1,000 arrivals).
		{"it is hardly more than full", 8, twelve, "", fillsTo(80), verdict.Inconclusive, ""},
		{"it is more than full", 11, twelve, "", fillsTo(10), verdict.Fail, "not sustained, because the backlog grew more than allowed"},
		{"no window", 0, twelve, "", func(l *metric.Level) { l.Rounds = nil }, verdict.Error, "no request was due"},
	} {
		l := backlog(tt.kept, tt.saturation...)
		l.Cut = tt.cut
		if tt.change != nil {
			tt.change(l)
		}
		_, v := judgedRate(l, plan.Open{Arrivals: plan.Poisson})
		must.Hold(t, v.Outcome == tt.want && strings.Contains(v.Message, tt.words), "%s: %v, %s; want %v, %q", tt.name, v.Outcome, v.Message, tt.want, tt.words)
	}
}

// Below the largest rate a backlog may grow by chance, or because the server has become slower since
// that rate was measured. A saturation after the level tells which. It comes where the growth is
// above 1 %, half of the limit, but the growth itself does not decide.
//
// In the rows, 10 requests arrive per second. At the end 10·kept of the 1,000 requests are not
// answered, and 10 others are in flight.
func TestSustainedAfterTheLevel(t *testing.T) {
	twelve := []float64{12, 12.1, 11.9, 12, 12.1, 11.9, 12, 12.1, 11.9, 12}
	about := func(mean, spread float64) []float64 {
		return []float64{mean - spread, mean, mean + spread, mean - spread, mean, mean + spread, mean - spread, mean, mean + spread, mean}
	}
	for _, tt := range []struct {
		name   string
		kept   int
		after  []float64
		change func(*metric.Level)
		want   verdict.Outcome
		words  string
		note   string
		awaits bool
	}{
		{"no saturation after it", 5, nil, nil, verdict.Inconclusive, "below the largest rate that was measured before the level", "", true},
		{"as fast as before", 5, about(12, 0.1), nil, verdict.Pass, "before the level and after it", "", false},
		{"slower than before, and still faster than the rate", 5, about(10.5, 0.1), nil, verdict.Pass, "before the level and after it", "before the level it sustained about 12 req/s, and after it 10.5 req/s", false},
		{"slower than the rate", 5, about(9, 0.1), nil, verdict.Fail, "because the server became slower", "before the level it sustained about 12 req/s, and after it 9 req/s", false},
		// The standard deviation is 2.98·√(7/9) = 2.49. The 95 % bound 9 + 1.833·2.49/√10 = 10.4
		// is above the rate, and so is the bound at 99.5 %.
		{"perhaps slower than the rate", 5, about(9, 2.98), nil, verdict.Inconclusive, "does not show whether the server still sustains", "the server became slower", false},
		// The standard deviation is 1.2·√(7/9) = 1.00, and 9.3 + 1.833·1.00/√10 = 9.9. But the bound
		// at 99.5 % is 9.3 + 3.25·1.00/√10 = 10.3.
		{"slower than the rate, but not certainly enough", 5, about(9.3, 1.2), nil, verdict.Inconclusive, "does not show whether the server still sustains", "the server became slower", false},
		{"a saturation of nonsense", 5, []float64{12, math.NaN()}, nil, verdict.Inconclusive, "measured before the level", "", true},
		// The backlog does not grow, and neither certainly meets the limit nor exceeds it: no
		// saturation after the level is asked for.
		{"its backlog stays", 0, nil, func(l *metric.Level) { spreadOut(l); last(l, 0) }, verdict.Pass, "below the largest rate that the server can sustain", "", false},
		{"the server was busy with the saturation", 5, nil, func(l *metric.Level) { l.Unrecovered = true }, verdict.Inconclusive, "still busy with the saturation", "", false},
		{"busy with it, and its backlog stays", 0, nil, func(l *metric.Level) { l.Unrecovered = true }, verdict.Pass, "because the backlog grew less than allowed", "", false},
		{"busy with it, and its backlog hardly grew", 0, nil, func(l *metric.Level) { spreadOut(l); last(l, 0); l.Unrecovered = true }, verdict.Inconclusive, "still busy with the saturation", "", false},
	} {
		l := backlog(tt.kept, twelve...)
		if l.After = tt.after; tt.change != nil {
			tt.change(l)
		}
		s, v := judgedRate(l, plan.Open{Arrivals: plan.Poisson})
		if v.Outcome != tt.want || !strings.Contains(v.Message, tt.words) || !strings.Contains(strings.Join(v.NotesOf(), "; "), tt.note) {
			t.Errorf("%s: %v, %s, %q; want %v, %q, %q", tt.name, v.Outcome, v.Message, v.Notes, tt.want, tt.words, tt.note)
		}
		got := s.awaits(withGrowth(&plan.Workload{}, nil, metric.OpenLoop, plan.Level{Name: l.Name}, verdict.SeverityError)[0].Threshold)
		must.Hold(t, got == tt.awaits, "%s: it awaits a saturation: %v, want %v", tt.name, got, tt.awaits)
		if tt.awaits && (v.More != -1 || !strings.Contains(v.Needs, "a saturation right after the level")) {
			t.Errorf("%s: needs %q, %d more", tt.name, v.Needs, v.More)
		}
	}
}

// last makes all but n of the last requests of a level end before its window does.
func last(l *metric.Level, n int) {
	r := l.Rounds[len(l.Rounds)-1]
	for _, s := range r.Samples[:len(r.Samples)-n] {
		s.End = min(s.End, r.WindowEnd-1)
	}
}

// At 10 req/s, 0.8 % above the largest rate, the backlog grows by 0.8 % in the long run. More
// requests would not decide this: a growth within the limit of 2 % never fails, and a rate above
// the largest one never passes.
func TestSlightlyAboveTheLargestRate(t *testing.T) {
	_, v := judgedRate(backlog(0, 9.92, 9.93, 9.92, 9.93), plan.Open{Arrivals: plan.Poisson})
	want := "needs a rate below 9.92 req/s, "
	must.Hold(t, v.Outcome == verdict.Inconclusive && strings.HasPrefix(v.Needs, want) && v.More == -1, "%v, %q, %d", v.Outcome, v.Needs, v.More)
}

// fillsTo sets the number of requests that the server answers at the same time in the saturation.
func fillsTo(n float64) func(*metric.Level) { return func(l *metric.Level) { l.SaturationAt = n } }

// lose returns a function that makes n of every 100 requests time out, evenly spread.
func lose(n int) func(*metric.Level) {
	return func(l *metric.Level) {
		for _, r := range l.Rounds {
			for i := range n {
				r.Samples[(2*i+1)*50/n].Failure = &metric.Failure{Kind: metric.FailTimeout}
			}
		}
	}
}

// spreadOut makes the backlog fluctuate. In every third round all requests stay in flight until the
// end of the round. So the backlog is tens of requests above or below its trend.
func spreadOut(l *metric.Level) {
	for i, r := range l.Rounds {
		for _, s := range r.Samples {
			if i%3 == 1 {
				s.End = max(s.End, r.WindowEnd)
			}
		}
	}
}

// Near the largest rate, requests depend on each other. Then n requests count as at most n·(1 −
// ρ)²/(c² + 0.5) independent ones. ρ is the share of the largest rate, and c is the coefficient of
// variation of the gaps between arrivals.
//
// At ρ = 0.8, 1,000 requests count as 1000·0.04/1.5 = 26 with Poisson arrivals, as 80 with constant
// gaps, and as 16 with gamma shape 0.5.
func TestCrowding(t *testing.T) {
	same := make([]float64, 10)
	for i := range same {
		same[i] = 12.5
	}
	for _, tt := range []struct {
		open plan.Open
		want float64
	}{
		{plan.Open{Arrivals: plan.Poisson}, 0.04 / 1.5},
		{plan.Open{Arrivals: plan.Constant}, 0.04 / 0.5},
		{plan.Open{Arrivals: plan.Gamma, Burstiness: 0.5}, 0.04 / 2.5},
	} {
		s, _ := judgedRate(backlog(0, same...), tt.open)
		got := s.crowding()
		must.Hold(t, math.Abs(got-tt.want) <= 1e-9, "%s: %v, want %v", tt.open.Arrivals, got, tt.want)
	}
	above := make([]float64, 10)
	for i := range above {
		above[i] = 8
	}
	s, _ := judgedRate(backlog(0, above...), plan.Open{Arrivals: plan.Poisson})
	if v := s.judge(threshold("ttft", "p95 < 2s")); v.Outcome != verdict.Inconclusive || v.More != -1 || !strings.Contains(v.Needs, "a rate below 8 req/s, the largest rate") {
		t.Errorf("above the largest rate: %v, %q", v.Outcome, v.Needs)
	}
	if s, _ := judgedRate(backlog(0), plan.Open{Arrivals: plan.Poisson}); s.crowding() != 1 {
		t.Error("without a saturation there is no cap")
	}
	level := plan.Level{Requests: 3000}
	// A p95 needs 59 effective requests. At a utilization of ρ, these are 59·1.5/(1 − ρ)² requests,
	// which is 3,000 at ρ = 0.828.
	p95 := threshold("ttft", "p95 < 2s")
	got, want := nearest(p95, level, &plan.Open{Arrivals: plan.Poisson}, 0.05), "3000 requests are enough for a rate of up to 82% of the largest rate"
	must.Hold(t, strings.Contains(got, want), "%q lacks %q", got, want)
}

// A level at a fixed rate may end early, when too many requests are in flight. It is then valid
// only if its backlog certainly grew.
func TestGivenUp(t *testing.T) {
	for _, tt := range []struct {
		kept  int
		valid bool
	}{{8, true}, {0, false}} {
		l := backlog(tt.kept)
		l.Cut = metric.CutFull
		s, v := judgedRate(l, plan.Open{Arrivals: plan.Poisson})
		problems := 0
		s.opened(&verdict.Verdict{}, []judgedThreshold{{withGrowth(&plan.Workload{}, nil, metric.OpenLoop, plan.Level{}, verdict.SeverityError)[0].Threshold, &v}}, func(_ verdict.Cause, _ string, _ ...any) { problems++ })
		must.Hold(t, (problems == 0) == tt.valid, "%d %% stay: %d problems", tt.kept, problems)
	}
}

// timedOut makes every request of l time out after 5 s. The number begun says how many of every ten
// requests get a first token, after 4 s.
func timedOut(l *metric.Level, begun int) *metric.Level {
	for _, r := range l.Rounds {
		for i, x := range r.Samples {
			*x = metric.Sample{Round: x.Round, Order: x.Order, Phase: x.Phase, FromDue: true, Scheduled: x.Scheduled, Sent: x.Sent, End: x.Scheduled + 5*time.Second,
				Failure: &metric.Failure{Kind: metric.FailTimeout, Message: "no end within 5s"}}
			if i%10 < begun {
				x.First, x.Last, x.Chunks = x.Sent+4*time.Second, x.Sent+4*time.Second, 1
			}
		}
		r.End = r.WindowEnd + 5*time.Second
	}
	return l
}

// A rate is not sustained if every request times out while the server keeps answering. In this test
// 949 of 1,000 requests time out in the window, and 51 are in flight at its end.
//
// If no token arrives at all, the server may be dead. That is an error.
func TestOverrun(t *testing.T) {
	for _, tt := range []struct {
		name  string
		level *metric.Level
		grows verdict.Severity
		load  verdict.Outcome
		want  map[string]verdict.Outcome
	}{
		{"answering", timedOut(backlog(0), 1), verdict.SeverityError, verdict.Pass, map[string]verdict.Outcome{"ttft p95": verdict.Fail, "speed mean": verdict.Skipped, growing: verdict.Fail}},
		{"growth only warns", timedOut(backlog(0), 1), verdict.SeverityWarn, verdict.Error, map[string]verdict.Outcome{"ttft p95": verdict.Fail, "speed mean": verdict.Error, growing: verdict.Fail}},
		{"silent", timedOut(backlog(0), 0), verdict.SeverityError, verdict.Error, map[string]verdict.Outcome{"ttft p95": verdict.Fail, "speed mean": verdict.Error, growing: verdict.Fail}},
		{"refusing", func() *metric.Level {
			l := timedOut(backlog(0), 1)
			for _, r := range l.Rounds {
				for _, x := range r.Samples {
					x.Failure.Kind = metric.FailStatus
				}
			}
			return l
		}(), verdict.SeverityError, verdict.Error, map[string]verdict.Outcome{"ttft p95": verdict.Fail, "speed mean": verdict.Error, growing: verdict.Fail}},
	} {
		s, _ := judgedRate(tt.level, plan.Open{Arrivals: plan.Poisson})
		level := plan.Level{Name: "10 req/s", Rate: 10, Requests: 1000, Rounds: 10}
		list := withGrowth(&plan.Workload{}, []required{{Threshold: threshold("ttft", "p95 < 2s")}, {Threshold: threshold("speed", "mean > 10 tok/s")}}, metric.OpenLoop, level, tt.grows)
		judged := pairs(list, s.thresholds(list))
		var v verdict.Verdict
		s.load(&v, metric.OpenLoop, level, judged)
		got := map[string]verdict.Outcome{}
		for _, j := range judged {
			got[label(j.threshold)] = j.Outcome
		}
		diff := cmp.Diff(tt.want, got)
		must.Hold(t, v.Outcome == tt.load && diff == "", "%s: load %v (%s), want %v; %s", tt.name, v.Outcome, v.Message, tt.load, diff)
	}
	g, _ := timedOut(backlog(0), 1).Growth()
	must.Hold(t, g.Lost == 949 && g.Share == 1, "growth %+v, want all of 1000, 949 of them lost", g)
}

// A saturation after the level is asked for only if it may certify the rate and nothing else fails.
func TestLookFollows(t *testing.T) {
	twelve := []float64{12, 12.1, 11.9, 12, 12.1, 11.9, 12, 12.1, 11.9, 12}
	open := plan.Open{Arrivals: plan.Poisson}
	for _, tt := range []struct {
		name   string
		kept   int
		change func(*metric.Level, *plan.Workload)
		ttft   string
		want   bool
	}{
		{"its backlog grew", 5, nil, "p95 < 2s", true},
		{"its backlog stays", 0, nil, "p95 < 2s", false},
		{"another threshold fails", 5, nil, "p95 < 30ms", false},
		{"it followed already", 5, func(l *metric.Level, _ *plan.Workload) { l.After = twelve }, "p95 < 2s", false},
		{"the largest rate is not known", 2, func(l *metric.Level, _ *plan.Workload) { l.Saturation = nil; spreadOut(l) }, "p95 < 2s", false},
		{"estimates decide", 5, func(_ *metric.Level, w *plan.Workload) { w.Policy.Decide = plan.Estimate }, "p95 < 2s", false},
		{"the level was given up", 5, func(l *metric.Level, _ *plan.Workload) { l.Cut = metric.CutFull }, "p95 < 2s", false},
	} {
		l := backlog(tt.kept, twelve...)
		l.Natural = true
		w := &plan.Workload{
			Loads:  []*plan.Load{{Kind: metric.OpenLoop, Open: &open, Levels: []plan.Level{{Name: l.Name, Rate: l.Rate, Requests: 1000, Rounds: 10}}}},
			SLAs:   []*plan.SLA{{At: []string{l.Name}, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{threshold("ttft", tt.ttft)}}},
			Policy: plan.Policy{Confidence: 0.95},
		}
		if tt.change != nil {
			tt.change(l, w)
		}
		v := JudgeLook(&plan.Plan{}, w, l, metric.Look{Planned: 1})
		must.Hold(t, v.Follows == tt.want, "%s: follows %v, want %v: %v %s", tt.name, v.Follows, tt.want, v.Outcome, v.Invalid)
	}
}

// At a rate a drift of the latency is a note, as in a closed loop. In the second half of the level
// requests take twice as long.
func TestDriftAtARate(t *testing.T) {
	for _, tt := range []struct {
		longer time.Duration
		want   bool
	}{{0, false}, {time.Second, true}} {
		l := backlog(0)
		for i, r := range l.Rounds {
			for k, s := range r.Samples {
				s.End += time.Duration(k%7) * time.Millisecond
				if i >= 5 {
					s.End += tt.longer
				}
				s.Last = s.End
			}
		}
		notes := strings.Join(gather(l).drift(), "; ")
		must.Hold(t, strings.Contains(notes, "drift: the end-to-end time grows by") == tt.want, "%v longer: %q", tt.longer, notes)
	}
}
