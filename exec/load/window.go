package load

import (
	"cmp"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Window is the time in which a round is measured.
type Window struct {
	Start, End time.Duration // edges of the window; equal if there is none
	Busy       float64       // see metric.Round.Busy
}

// span is the time interval [from, to).
type span struct{ from, to time.Duration }

// ClosedWindow finds the measured window of a round of a closed loop with n slots. The window
// leaves out ramp and drain. It begins when a measured request has started and every slot has
// started once. It ends with the last measured request. It ends earlier if a slot stops for good
// (after its pause).
//
// Busy is the share of the slots' time in the window that was taken by requests in flight, by the
// declared pause after a request, and by waits that the server asked for. A request that was never
// sent counts from its scheduled time. Busy is 0 if there is no window.
func ClosedWindow(samples []*metric.Sample, n int, pause time.Duration) Window {
	slots := spansOf(samples, n, pause)
	firstMeasured, lastMeasured := time.Duration(-1), time.Duration(-1)
	for _, s := range samples {
		if s.Slot < 0 || s.Slot >= n || s.Phase != metric.Measured {
			continue
		}
		if from := sent(s); firstMeasured < 0 || from < firstMeasured {
			firstMeasured = from
		}
		lastMeasured = max(lastMeasured, s.End)
	}
	if firstMeasured < 0 {
		return Window{}
	}
	start, end := firstMeasured, lastMeasured
	for _, spans := range slots {
		if len(spans) == 0 {
			return Window{Start: firstMeasured, End: firstMeasured}
		}
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		start = max(start, spans[0].from)
		last := time.Duration(0)
		for _, s := range spans {
			last = max(last, s.to)
		}
		end = min(end, last)
	}
	if end <= start {
		return Window{Start: start, End: start}
	}
	return Window{Start: start, End: end, Busy: busy(slots, start, end)}
}

// busy returns the share of the slots' time between start and end that is within their spans, which
// are sorted.
func busy(slots [][]span, start, end time.Duration) float64 {
	var sum time.Duration
	for _, spans := range slots {
		reached := start // busy time before this moment is already counted
		for _, s := range spans {
			from, to := max(s.from, reached), min(s.to, end)
			if to > from {
				sum += to - from
				reached = to
			}
		}
	}
	return float64(sum) / (float64(len(slots)) * float64(end-start))
}

// WithBusy returns the window of a closed loop with n slots with its field Busy; see ClosedWindow.
func (w Window) WithBusy(samples []*metric.Sample, n int, pause time.Duration) Window {
	if w.End <= w.Start {
		return w
	}
	within := slices.DeleteFunc(slices.Clone(samples), func(s *metric.Sample) bool {
		return sent(s) >= w.End || s.End+max(pause, s.RetryAfter) <= w.Start
	})
	slots := spansOf(within, n, pause)
	for _, spans := range slots {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	}
	w.Busy = busy(slots, w.Start, w.End)
	return w
}

// spansOf returns when each of n slots was busy: with a request, and with the wait after it.
func spansOf(samples []*metric.Sample, n int, pause time.Duration) [][]span {
	slots := make([][]span, n)
	for _, s := range samples {
		if s.Slot >= 0 && s.Slot < n {
			slots[s.Slot] = append(slots[s.Slot], span{sent(s), s.End + max(pause, s.RetryAfter)})
		}
	}
	return slots
}

func sent(s *metric.Sample) time.Duration { return cmp.Or(s.Sent, s.Scheduled) }

// BurstWindow returns the window of a burst of n requests. It begins when the requests are due, and
// ends with the last request. A burst has no slots, so Busy is the share of requests that were
// sent.
func BurstWindow(samples []*metric.Sample, n int) Window {
	var w Window
	sent, found := 0, false
	for _, s := range samples {
		if s.Phase != metric.Measured {
			continue
		}
		if !found || s.Scheduled < w.Start {
			w.Start = s.Scheduled
		}
		found = true
		w.End = max(w.End, s.End)
		if s.Sent > 0 {
			sent++
		}
	}
	if !found {
		return Window{}
	}
	w.Busy = float64(sent) / float64(n)
	return w
}
