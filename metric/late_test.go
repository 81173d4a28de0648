package metric

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

// TestLateIsOfTheWindow judges the lag of requests over all ten rounds of a level together. The
// level has 100 requests, so the 99th percentile of the lag is the second-longest lag.
func TestLateIsOfTheWindow(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		gap  time.Duration // time from one request to the next, by the schedule
		lags []time.Duration
		want string
	}{
		{"in time", 5 * ms, nil, ""},
		{"one of a hundred", 5 * ms, []time.Duration{28 * ms}, ""},
		{"two of a hundred", 5 * ms, []time.Duration{28 * ms, 21 * ms}, "the requests were sent late: the p99 of the lag is 21 ms (allowed 20 ms)"},
		{"within the limit", 5 * ms, []time.Duration{28 * ms, 20 * ms}, ""},
		{"within a tenth of the gap", 700 * ms, []time.Duration{90 * ms, 69 * ms}, ""},
		{"beyond a tenth of the gap", 700 * ms, []time.Duration{90 * ms, 71 * ms}, "the requests were sent late: the p99 of the lag is 71 ms (allowed 70 ms)"},
	} {
		l := &Level{Kind: OpenLoop}
		for i := range 100 {
			if i%10 == 0 {
				l.Rounds = append(l.Rounds, &Round{Index: i / 10})
			}
			s := &Sample{Phase: Measured, Scheduled: time.Duration(i) * c.gap}
			s.Sent = s.Scheduled
			if i < len(c.lags) {
				s.Sent += c.lags[i]
			}
			s.First, s.Last, s.End = s.Scheduled+100*ms, s.Scheduled+200*ms, s.Scheduled+200*ms
			r := l.Rounds[i/10]
			r.Samples = append(r.Samples, s)
		}
		must.Same(t, c.name+" (-want +got)", c.want, l.Late())
		d := l.Disturbed(l.Rounds[0])
		must.Hold(t, d == (Disturbance{}), "%s: a part of the window is disturbed alone: %s", c.name, d)
		leg := *l.Rounds[0]
		leg.Leg = &Leg{}
		if got := l.Disturbed(&leg).Load != ""; got != (len(c.lags) > 0) {
			// A leg (one server's turn in a comparison) is judged alone. With only ten requests,
			// its 99th percentile is its longest lag.
			t.Errorf("%s: a leg, a window of its own, is late: %v", c.name, got)
		}
	}
}

// A stage is measured three times, five minutes apart. These five minutes must not count as time
// between two requests, which are 50 ms apart.
func TestLateOverPasses(t *testing.T) {
	const ms = time.Millisecond
	l := &Level{Kind: OpenLoop}
	for pass := range 3 {
		r := &Round{Index: pass}
		for i := range 100 {
			due := time.Duration(pass)*5*time.Minute + time.Duration(i)*50*ms
			r.Samples = append(r.Samples, &Sample{Phase: Measured, Scheduled: due, Sent: due + 190*ms, First: due + 250*ms, Last: due + time.Second, End: due + time.Second})
		}
		l.Rounds = append(l.Rounds, r)
	}
	must.Same(t, "", "the requests were sent late: the p99 of the lag is 190 ms (allowed 20 ms)", l.Late())
}
