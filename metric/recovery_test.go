package metric

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

// Recovery is the due time of the first of ten good requests in a row. At the end of the round,
// fewer than ten suffice. In this test requests are due every second, and the first is due at 0 s.
func TestRecovery(t *testing.T) {
	for _, tt := range []struct {
		bad  []int // of 30
		want float64
	}{
		{nil, 0},
		{[]int{0, 1, 2}, 3},
		{[]int{0, 1, 11}, 12},  // nine good requests in a row from 2 s on are too few
		{[]int{0, 1, 12}, 2},   // ten good requests from 2 s on; the later bad request does not matter
		{[]int{0, 24}, 1},      // 23 good requests in a row from 1 s on
		{[]int{5, 15, 25}, 26}, // no ten good requests in a row, but four good ones at the end
		{[]int{5, 15, 29}, 16}, // 13 good requests in a row from 16 s on
		{[]int{9, 19, 29}, -1}, // no ten good requests in a row, and none at the end
	} {
		r := &Round{WindowStart: 100 * time.Second}
		for i := range 30 {
			at := 100*time.Second + time.Duration(i)*time.Second
			r.Samples = append(r.Samples, &Sample{Phase: Measured, Scheduled: at, Sent: at, First: at + 1, Last: at + 1, End: at + 500*time.Millisecond})
		}
		for _, i := range tt.bad {
			r.Samples[i].End += time.Second
		}
		got := r.Recovery(func(s *Sample) bool { return s.End-s.Scheduled < time.Second })
		must.Hold(t, got.OK == (tt.want >= 0) && (!got.OK || got.V == tt.want), "bad %v: %+v, want %v", tt.bad, got, tt.want)
	}
}
