package assert

import (
	"fmt"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// The generator stood still for 180 ms in each round, so the speed may have been measured wrongly.
// What the server did beside it decides, if the generator cannot have caused it.
//
// A request takes 0.3 s, and the four slots of a round begin 0.3 s apart. The standstill is in the
// last 180 ms of the first request of slot 0. Its second request is overdue and leaves at the end of
// the standstill. The server feels this until 0.3 s later.
func TestSureFailures(t *testing.T) {
	const ms = time.Millisecond
	failure := func(kind metric.FailureKind, status int) func(*metric.Sample) {
		return func(x *metric.Sample) {
			fail(x)
			x.Failure.Kind, x.Status = kind, status
		}
	}
	refused := failure(metric.FailStatus, 500)
	last := func(x *metric.Sample) bool { return x.Order >= 35 } // 5 requests of a round, long after the standstill
	overdue := func(x *metric.Sample) bool { return x.Order == 4 }
	for _, c := range []struct {
		name     string
		fails    func(*metric.Sample) bool // of the first round
		how      func(*metric.Sample)
		recorded bool // standstills
		stood    int  // rounds with a standstill
		success  string
		want     verdict.Outcome
		sure     bool
	}{
		{"nothing failed", nil, nil, true, 5, "every", verdict.Error, false},
		{"five refused", last, refused, true, 5, "every", verdict.Fail, true},
		{"five refused, and a share of 90 % is allowed", last, refused, true, 5, "rate >= 90%", verdict.Inconclusive, false},
		{"an overdue request refused", overdue, refused, true, 5, "every", verdict.Error, false},
		{"timed out", last, failure(metric.FailTimeout, 0), true, 5, "every", verdict.Error, false},
		{"connections refused", last, failure(metric.FailConnect, 0), true, 5, "every", verdict.Error, false},
		{"no file descriptor", last, failure(metric.FailLocal, 0), true, 5, "every", verdict.Error, false},
		{"too slow for the server", last, failure(metric.FailStatus, 408), true, 5, "every", verdict.Error, false},
		{"sent late", last, func(x *metric.Sample) { refused(x); x.Scheduled -= 100 * ms }, true, 5, "every", verdict.Error, false},
		{"sent a little late", last, func(x *metric.Sample) { refused(x); x.Scheduled -= 10 * ms }, true, 5, "every", verdict.Fail, true},
		{"standstills not recorded", last, refused, false, 5, "every", verdict.Error, false},
		{"not recorded, in an undisturbed round", last, refused, false, 0, "every", verdict.Fail, true},
	} {
		l := shape{rounds: 5, perRound: 40, ttft: func(int, int) float64 { return 0.1 }}.level()
		for i, r := range l.Rounds {
			from := r.Samples[0].End - 180*ms
			if i < c.stood {
				r.Health.Stall = 180 * ms
			}
			if c.recorded {
				r.Health.Standstills = []metric.Standstill{{From: from, To: from + 180*ms}}
			}
			for _, x := range r.Samples {
				if i == 0 && c.fails != nil && c.fails(x) {
					c.how(x)
				}
			}
			r.Start = r.Samples[0].Scheduled
		}
		p, run := gate(l, threshold("success", c.success), threshold("speed", "mean > 40 tok/s"))
		v := Judge(p, run, Options{})
		name := map[bool]string{true: "sla.success.every at 4", false: "sla.success.rate at 4"}[c.success == "every"]
		got := verdictOf(t, v, name)
		must.Hold(t, got.Sure == c.sure, "%s: success is %v, sure %v, want %v: %s", c.name, got.Outcome, got.Sure, c.sure, got.Message)
		must.Hold(t, v.Outcome == c.want, "%s: %v, want %v: %q", c.name, v.Outcome, c.want, names(v))
		if c.want == verdict.Fail && v.ExitCode(false) != verdict.ExitFail {
			t.Errorf("%s: exit code %d", c.name, v.ExitCode(false))
		}
	}
}

// Two standstills end at 2 s and at 5 s. The request that was due at 1.9 s left at 2.5 s, and those
// that were due at 4.5 and 5.5 s left on time after the second one. With requests of 1 s, the server
// feels the first standstill until 3.5 s, and the second until 6 s.
func TestAftermaths(t *testing.T) {
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	r := &metric.Round{Health: metric.Health{Standstills: []metric.Standstill{{From: at(1), To: at(2)}, {From: at(4), To: at(5)}}}}
	for _, x := range [][2]float64{{0.5, 0.5}, {1.9, 2.5}, {2.2, 2.2}, {4.5, 5}, {5.5, 5.5}} {
		r.Samples = append(r.Samples, &metric.Sample{Scheduled: at(x[0]), Sent: at(x[1])})
	}
	in, got := aftermaths(r, time.Second), ""
	for _, s := range []float64{0, 0.98, 0.99, 1.5, 2.5, 3.49, 3.5, 3.98, 3.99, 5.99, 6, 9} {
		if in(at(s)) {
			got += fmt.Sprint(s, " ")
		}
	}
	want := "0.99 1.5 2.5 3.49 3.99 5.99 "
	must.Hold(t, got == want, "in %s, want %s", got, want)
	must.Hold(t, !aftermaths(&metric.Round{}, time.Second)(0), "a round without standstills has one")
}
