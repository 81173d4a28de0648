package assert

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Each row changes one thing in a valid level, which the verdict's message must name.
func TestLoad(t *testing.T) {
	each := func(change func(*metric.Sample)) func(*metric.Level) {
		return func(l *metric.Level) {
			for _, r := range l.Rounds {
				for _, x := range r.Samples {
					change(x)
				}
			}
		}
	}
	first := func(change func(*metric.Sample)) func(*metric.Level) {
		return func(l *metric.Level) { change(l.Rounds[0].Samples[0]) }
	}
	for _, c := range []struct {
		name   string
		change func(*metric.Level)
		want   verdict.Outcome
		says   string // part of the message, or of a note if the level passes
	}{
		{"good", func(*metric.Level) {}, verdict.Pass, "60 of 60 requests completed in 5 rounds"},
		{"one failed", first(fail), verdict.Pass, "59 of 60 requests completed and 1 failed; the most frequent failure: HTTP 500: Internal Server Error (1×)"},
		{"none completed", each(fail), verdict.Error, "none of 60 requests completed: HTTP 500: Internal Server Error (60×)"},
		{"a record lost", func(l *metric.Level) { l.Rounds[1].Samples = l.Rounds[1].Samples[1:] }, verdict.Error, "the record lacks 1 of the 12 requests that were due in round 2"},
		{"a record too many", func(l *metric.Level) { l.Rounds[1].Samples = append(l.Rounds[1].Samples, l.Rounds[1].Samples[0]) }, verdict.Error, "but only 12 were due"},
		{"a nil record", func(l *metric.Level) { l.Rounds[1].Samples[3] = nil }, verdict.Error, "the record lacks 1 of"},
		{"a nil round", func(l *metric.Level) { l.Rounds[1] = nil }, verdict.Error, "48 of 60 planned requests were due"},
		{"cut short", func(l *metric.Level) {
			l.Rounds[4].Complete, l.Rounds[4].Stopped = false, "every warm-up request failed"
		}, verdict.Error, "round 5 was cut short: every warm-up request failed"},
		// The generator measures itself until the end of a round. Without that end, nothing shows that it
		// kept up, even if a look judged the round's requests.
		{"no end", func(l *metric.Level) { l.Rounds[1].Unended, l.Rounds[3].Unended = true, true }, verdict.Error, "the recording lacks the end of 2 rounds, so it is not known whether the load generator kept up"},
		{"cancelled", first(func(x *metric.Sample) { x.Failure = &metric.Failure{Kind: metric.FailCanceled} }), verdict.Error, "the run itself cancelled 1 request"},
		{"all cancelled", each(func(x *metric.Sample) { x.Failure = &metric.Failure{Kind: metric.FailCanceled} }), verdict.Error, "the run itself cancelled 60 requests"},
		{"fewer rounds", func(l *metric.Level) { l.Rounds = l.Rounds[:4] }, verdict.Error, "48 of 60 planned requests"},
		{"no rounds", func(l *metric.Level) { l.Rounds = nil }, verdict.Error, "no request was due"},
		{"other concurrency", func(l *metric.Level) { l.N = 3 }, verdict.Error, "the load of the level is 3 requests (closed), but the plan asks for 4 requests (closed)"},
		{"no usage", first(func(x *metric.Sample) { x.Usage = nil }), verdict.Error, "1 of 60 answers came without usage"},
		{"input one off, exact", first(func(x *metric.Sample) { x.Usage.Input++ }), verdict.Error, "input length: 1 of 60 prompts"},
		{"input 1% off", func(l *metric.Level) { l.Exact = false; l.Rounds[0].Samples[0].Usage.Input = 1010 }, verdict.Pass, ""},
		{"input 1.1% off", func(l *metric.Level) { l.Exact = false; l.Rounds[0].Samples[0].Usage.Input = 989 }, verdict.Error, "989 tokens instead of 1000"},
		{"output short", first(func(x *metric.Sample) { x.Usage.Output = 3 }), verdict.Error, "output length: 1 of 60 answers did not have the requested length; one had 3 tokens instead of 11. Either name"},
		{"no output, natural", func(l *metric.Level) { l.Natural = true; l.Rounds[0].Samples[0].Usage.Output = 0 }, verdict.Error, "output length: by the server's usage, 1 of 60 answers have no tokens"},
		{"output short, natural", func(l *metric.Level) { l.Natural = true; l.Rounds[0].Samples[0].Usage.Output = 3 }, verdict.Pass, ""},
		// 84 cached tokens are allowed: 64 of the chat template, and 2% of the 1000 tokens of the
		// prompt.
		{"template cached", each(func(x *metric.Sample) { x.Usage.Cached = 84 }), verdict.Pass, ""},
		{"one token more", first(func(x *metric.Sample) { x.Usage.Cached = 85 }), verdict.Error, "cache: 1 of 60 prompts"},
		{"all cached", each(func(x *metric.Sample) { x.Usage.Cached = 1000 }), verdict.Error, "cache: 60 of 60 prompts had more cached tokens than expected; one had 1000 of its 1000 tokens in a cache, although"},
		{"a short prompt all cached", each(func(x *metric.Sample) { x.InputAsked, x.Usage.Input, x.Usage.Cached = 20, 20, 20 }), verdict.Error, "cache"},
		{"cache not told", each(func(x *metric.Sample) { x.Usage.Cached = -1 }), verdict.Pass, "cache hits were not checked"},
		{"busy 95%", func(l *metric.Level) { l.Rounds[0].Busy = 0.95 }, verdict.Pass, ""},
		{"busy 94%", idle(0.94), verdict.Error, "round 1: the slots were busy for 94% of the window"},
		// A failed request may leave its slot idle for 100 ms. That is 0.56 % of the time of four
		// slots in 4.5 s, so busy for 94.5 % is enough, although 95 % are required.
		{"busy 94.5% as one request failed", func(l *metric.Level) { l.Rounds[0].Busy = 0.945; fail(l.Rounds[0].Samples[5]) }, verdict.Pass, "busy for 94.5% of the window (required 95%); requests failed"},
		{"busy 94% though but one request failed", func(l *metric.Level) { idle(0.94)(l); fail(l.Rounds[0].Samples[5]) }, verdict.Error, "busy for 94% of the window"},
		{"no window though but one request failed", func(l *metric.Level) {
			idle(0)(l)
			fail(l.Rounds[0].Samples[5])
		}, verdict.Error, "the 4 slots were never all busy at once"},
		{"no window as most failed", func(l *metric.Level) {
			l.Rounds[0].WindowEnd = l.Rounds[0].WindowStart
			for _, x := range l.Rounds[0].Samples[5:] {
				fail(x)
			}
		}, verdict.Pass, "the 4 slots were never all busy at once; requests failed"},
		{"no window", idle(0), verdict.Error, "the 4 slots were never all busy at once"},
		{"CPU 89%", func(l *metric.Level) { l.Rounds[3].Health.CPU = 0.89 }, verdict.Pass, ""},
		{"CPU 90%", func(l *metric.Level) { l.Rounds[3].Health.CPU = 0.90 }, verdict.Error, "generator: the load generator used 90% of its cores"},
		{"CPU unknown", func(l *metric.Level) { l.Rounds[3].Health.CPU = -1 }, verdict.Pass, ""},
		// A delay of 100 ms is allowed: 10% of the median TTFT of 1 s.
		{"delay 100 ms", func(l *metric.Level) { l.Rounds[3].Health.Delay = 100 * time.Millisecond }, verdict.Pass, ""},
		// A delay of 101 ms gets a note. It cannot change the verdict, because the p95 of 1 s is
		// far below the limit of 2 s.
		{"delay 101 ms", func(l *metric.Level) { l.Rounds[3].Health.Delay = 101 * time.Millisecond }, verdict.Pass, "the load generator may have read and sent up to 101 ms late in round 4"},
		{"pause 101 ms", func(l *metric.Level) { l.Rounds[3].Health.GCPause = 101 * time.Millisecond }, verdict.Pass, "up to 101 ms late in round 4"},
		{"a stall", func(l *metric.Level) { l.Rounds[1].Health.Stall = 4900 * time.Millisecond }, verdict.Pass, "the generator stood still for 4.9 s in round 2"},
		{"measured again", func(l *metric.Level) { void(l, 4900*time.Millisecond) }, verdict.Pass, "round 6 was measured again: the generator stood still for 4.9 s"},
		{"left out for nothing", func(l *metric.Level) { void(l, 0) }, verdict.Error, "round 6 was left out, although nothing had disturbed it"},
		{"too many left out", func(l *metric.Level) { void(l, time.Second); void(l, time.Second) }, verdict.Error, "2 of 7 rounds were left out, but at most 1 may be left out"},
		{"one wave, never all slots busy", func(l *metric.Level) {
			for _, r := range l.Rounds {
				r.Due, r.Samples, r.WindowStart = 4, r.MeasuredSamples()[:4], r.WindowEnd
			}
			l.Rounds = append(l.Rounds, l.Rounds...)
			l.Rounds = append(l.Rounds, l.Rounds[:5]...)
		}, verdict.Pass, "60 of 60"},
		{"reconnects", first(func(x *metric.Sample) { x.Reconnects = 2 }), verdict.Pass, "a reused connection died before the first byte: 2"},
		{"lock-step", func(l *metric.Level) {
			for _, r := range l.Rounds {
				for _, x := range r.Samples {
					shift := time.Duration(x.Slot) * 300 * time.Millisecond
					x.Scheduled, x.Sent, x.First, x.FirstAnswer, x.Last, x.End = x.Scheduled-shift, x.Sent-shift, x.First-shift, x.FirstAnswer-shift, x.Last-shift, x.End-shift
				}
			}
		}, verdict.Pass, "lock-step"},
	} {
		p, run := gate(shape{rounds: 5, perRound: 12}.level(), threshold("ttft", "p95 < 2s"))
		c.change(run.Levels[0])
		v := Judge(p, run, Options{})
		load, sla := verdictOf(t, v, "load at 4"), verdictOf(t, v, "sla.ttft.p95 at 4")
		must.Hold(t, load.Outcome == c.want, "%s: %v, want %v: %s", c.name, load.Outcome, c.want, load.Message)
		said := load.Message
		if c.want == verdict.Pass {
			said += "\n" + strings.Join(load.NotesOf(), "\n")
		}
		must.Hold(t, strings.Contains(said, c.says), "%s: says %q, want %q", c.name, said, c.says)
		if (sla.Outcome == verdict.Skipped) != (c.want == verdict.Error) || c.want == verdict.Error && v.Outcome != verdict.Error {
			t.Errorf("%s: the threshold is %v and the run %v", c.name, sla.Outcome, v.Outcome)
		}
	}
}

// idle returns a function that sets how busy the slots were in every round. With busy 0, the slots
// were never all busy at once.
func idle(busy float64) func(*metric.Level) {
	return func(l *metric.Level) {
		for _, r := range l.Rounds {
			if r.Busy = busy; busy == 0 {
				r.WindowEnd = r.WindowStart
			}
		}
	}
}

// Slots that were idle in some rounds do not always invalidate a threshold. It keeps its verdict if
// the other rounds alone give the same. It keeps a fail if less load can only make it pass.
func TestIdleSlots(t *testing.T) {
	for _, c := range []struct {
		name         string
		ttft         func(round, i int) float64
		metric, text string
		rounds       int // number of rounds with idle slots; there are ten rounds
		want         verdict.Outcome
	}{
		{"nine rounds pass alone", nil, "ttft", "p95 < 2s", 1, verdict.Pass},
		// Two of ten rounds with 40 requests each have enough load. Their 80 requests can decide a
		// p95, because 59 are enough if none of them is over the limit.
		{"two rounds pass alone", nil, "ttft", "p95 < 2s", 8, verdict.Pass},
		{"one has too few requests", nil, "ttft", "p95 < 2s", 9, verdict.Error},
		// Each round has 40 requests, one of them over the limit. In the three rounds with enough
		// load 3 of 120 are over it, too few requests to decide a p95. In all ten rounds 10 of 400
		// are over it, which passes. So the pass rests on the rounds with idle slots.
		{"a pass that rests on them", func(_, i int) float64 { return 1 + 1.5*float64(1-min(i, 1)) }, "ttft", "p95 < 2s", 7, verdict.Error},
		{"a failure of more load", func(round, _ int) float64 { return 3 }, "ttft", "p95 < 2s", 9, verdict.Fail},
		{"a mean that fails", func(round, _ int) float64 { return 3 }, "ttft", "mean < 2s", 9, verdict.Fail},
		// The four slots produce 4 · 11 tokens at a time. In nine rounds slots are idle and a
		// request takes 5.2 s: 8.5 tok/s, which fails. In the last round all slots are busy and a
		// request takes 4.2 s: 10.5 tok/s, which passes.
		{"a rate that fails for want of load", func(round, _ int) float64 { return 5 - float64(round/9) }, "throughput", "> 10 tok/s", 9, verdict.Error},
		{"a rate that the others miss too", nil, "throughput", "> 1000000 tok/s", 8, verdict.Fail},
	} {
		ttft := c.ttft
		if ttft == nil {
			ttft = func(int, int) float64 { return 1 }
		}
		p, run := gate(shape{rounds: 10, perRound: 40, ttft: ttft}.level(), threshold(c.metric, c.text))
		l := run.Levels[0]
		for _, r := range l.Rounds[:c.rounds] {
			r.Busy = 0.9
		}
		v := Judge(p, run, Options{})
		got := v.List[slices.IndexFunc(v.List, func(v verdict.Verdict) bool { return strings.HasPrefix(v.Name, "sla.") })]
		if got.Outcome != c.want || c.want == verdict.Error && got.Cause != verdict.CauseGenerator {
			t.Errorf("%s: %v, want %v: %s", c.name, got.Outcome, c.want, got.Message)
		}
		if load := verdictOf(t, v, "load at 4"); load.Outcome != verdict.Pass || !strings.Contains(strings.Join(load.NotesOf(), "\n"), "the slots were busy for 90% of the window (required 95%) in round 1") {
			t.Errorf("%s: %v %q", c.name, load.Outcome, load.Notes)
		}
	}
}

// void adds a disturbed round that was measured again.
func void(l *metric.Level, stall time.Duration) {
	r := *l.Rounds[0]
	r.Index = len(l.Rounds) + len(l.Voided)
	r.Health.Stall = stall
	r.Void = metric.Disturbance{Stall: stall}.String()
	l.Voided = append(l.Voided, &r)
}

func burst(rounds, n int, spread time.Duration) *metric.Level {
	l := shape{n: 1, rounds: rounds, perRound: n}.level()
	l.Kind, l.N, l.Name = metric.Burst, n, fmt.Sprintf("burst %d", n)
	for _, r := range l.Rounds {
		r.WindowStart = r.Start
		for i, x := range r.Samples {
			shift := x.Sent - r.Start
			if i == n-1 {
				shift -= spread
			}
			x.Slot = i
			x.Scheduled, x.Sent, x.First, x.FirstAnswer, x.Last, x.End = r.Start, x.Sent-shift, x.First-shift, x.FirstAnswer-shift, x.Last-shift, x.End-shift
		}
	}
	return l
}

func TestBurst(t *testing.T) {
	// The first and the last request of a burst may be sent at most 100 ms apart: 10% of the median
	// TTFT of 1 s.
	for spread, want := range map[time.Duration]verdict.Outcome{0: verdict.Pass, 100 * time.Millisecond: verdict.Pass, 101 * time.Millisecond: verdict.Error} {
		p, run := gate(burst(10, 8, spread), threshold("ttft", "p95 < 2s"))
		v := Judge(p, run, Options{})
		if load := verdictOf(t, v, "load at burst 8"); load.Outcome != want || v.Outcome != want {
			t.Errorf("spread %v: %v, want %v: %v", spread, load.Outcome, want, names(v))
		}
	}
	// The requests of one burst depend on each other. So a burst counts as one request, however
	// large it is.
	p, run := gate(burst(4, 100, 0), threshold("ttft", "p95 < 2s"))
	v := Judge(p, run, Options{})
	must.Hold(t, v.Outcome == verdict.Inconclusive && verdictOf(t, v, "sla.ttft.p95 at burst 100").Effective == 4, "four bursts: %v", names(v))
}

func TestServer(t *testing.T) {
	good := func() (*plan.Plan, *metric.Run) {
		return gate(shape{rounds: 5, perRound: 12}.level(), threshold("ttft", "p95 < 2s"))
	}
	for _, c := range []struct {
		name                       string
		change                     func(*plan.Plan, *metric.Run)
		server, load, sla, outcome verdict.Outcome
	}{
		{"good", func(*plan.Plan, *metric.Run) {}, verdict.Pass, verdict.Pass, verdict.Pass, verdict.Pass},
		{"died", func(_ *plan.Plan, r *metric.Run) { r.Servers[0].Error = "it exited with status 137" }, verdict.Error, verdict.Skipped, verdict.Skipped, verdict.Error},
		{"not started", func(_ *plan.Plan, r *metric.Run) { r.Servers, r.Levels = nil, nil }, verdict.Error, verdict.Error, verdict.Skipped, verdict.Error},
		{"level not run", func(_ *plan.Plan, r *metric.Run) { r.Levels = nil }, verdict.Pass, verdict.Error, verdict.Skipped, verdict.Error},
		{"level skipped", func(_ *plan.Plan, r *metric.Run) {
			r.Levels[0] = &metric.Level{Server: "sim", Workload: "chat", Name: "4", Kind: metric.ClosedLoop, N: 4, Skipped: "the budget of 1m was spent"}
		}, verdict.Pass, verdict.Error, verdict.Skipped, verdict.Error},
		// The user left out the plan's only case, so nothing was measured.
		{"left out", func(_ *plan.Plan, r *metric.Run) {
			r.Servers = nil
			r.Levels[0] = &metric.Level{Server: "sim", Workload: "chat", Name: "4", Skipped: metric.SkippedOnly}
		}, verdict.Skipped, verdict.Skipped, verdict.Skipped, verdict.Error},
	} {
		p, run := good()
		c.change(p, run)
		v := Judge(p, run, Options{})
		got := []verdict.Outcome{verdictOf(t, v, "start").Outcome, verdictOf(t, v, "load at 4").Outcome, verdictOf(t, v, "sla.ttft.p95 at 4").Outcome, v.Outcome}
		want := []verdict.Outcome{c.server, c.load, c.sla, c.outcome}
		must.Hold(t, slices.Equal(got, want), "%s: %v, want %v", c.name, got, want)
	}
}

// If the budget is short, a level may have fewer rounds than planned. At least five complete rounds
// must remain, and the record must say how many were dropped.
func TestShedRounds(t *testing.T) {
	for _, c := range []struct {
		name         string
		rounds, shed int
		change       func(*metric.Level)
		want         verdict.Outcome
	}{
		{"shed", 7, 3, nil, verdict.Pass},
		{"shed down to five", 5, 5, nil, verdict.Pass},
		{"below five", 4, 6, nil, verdict.Error},
		{"not shed", 7, 0, nil, verdict.Error},
		{"a round is missing besides", 6, 3, nil, verdict.Error},
		{"more than there were", 7, 4, nil, verdict.Error},
		{"the last one was cut short", 7, 3, func(l *metric.Level) { l.Rounds[6].Complete = false }, verdict.Error},
	} {
		l := shape{rounds: c.rounds, perRound: 12}.level()
		l.Shed = c.shed
		if c.change != nil {
			c.change(l)
		}
		p, run := gate(l, threshold("ttft", "p95 < 2s"))
		p.Workloads[0].Loads[0].Levels[0].Requests, p.Workloads[0].Loads[0].Levels[0].Rounds = 120, 10
		v := verdictOf(t, Judge(p, run, Options{}), "load at 4")
		must.Hold(t, v.Outcome == c.want, "%s: %v: %s", c.name, v.Outcome, v.Message)
	}
}

// A level with a planned time must last that long, with any number of requests.
func TestMeasuredForItsTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		time    time.Duration // duration of a round; 0: until its requests end, after about 4 s
		planned time.Duration
		want    verdict.Outcome
		says    string
	}{
		{"all of it", 4 * time.Second, 20 * time.Second, verdict.Pass, ""},
		{"more of it", 4 * time.Second, 15 * time.Second, verdict.Pass, ""},
		{"too short", 4 * time.Second, 25 * time.Second, verdict.Error, "cut short: requests were sent for only 20s of the planned 25s"},
		{"by requests, long enough", 0, 15 * time.Second, verdict.Pass, ""},
		{"by requests, too short", 0, 2 * time.Minute, verdict.Error, "of the planned 2m"},
	} {
		l := shape{rounds: 5, perRound: 12}.level()
		for _, r := range l.Rounds {
			r.Time = c.time
		}
		p, run := gate(l, threshold("ttft", "p95 < 2s"))
		level := &p.Workloads[0].Loads[0].Levels[0]
		level.Duration, level.Requests = c.planned, 5*level.N
		v := verdictOf(t, Judge(p, run, Options{}), "load at 4")
		must.Hold(t, v.Outcome == c.want && strings.Contains(v.Message, c.says), "%s: %v %q, want %v %q", c.name, v.Outcome, v.Message, c.want, c.says)
	}
}
