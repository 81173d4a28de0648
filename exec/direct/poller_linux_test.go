package direct

import (
	"runtime"
	"testing"
)

// Connections are spread over pollers when they open. One poller gets as many as it can well read
// before the next one gets any.
func TestChoose(t *testing.T) {
	t.Cleanup(func() { pollers.list = nil })
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, tt := range []struct {
		loads []int // of the pollers that there are
		n     int   // Config.Pollers
		want  int   // number of the chosen poller
	}{
		{nil, 0, 0},
		{nil, 2, 0},
		{[]int{0}, 0, 0},
		{[]int{0}, 2, 1}, // the second one is made
		{[]int{1, 0}, 2, 1},
		{[]int{1, 1}, 2, 0},
		{[]int{9, 0}, 1, 0},
		{[]int{enough - 1, 0}, 0, 0},
		{[]int{enough}, 0, 1},
		{[]int{enough, enough - 1}, 0, 1},
		{[]int{enough + 1, enough}, 0, 1},
		{[]int{enough, enough}, 0, 0},
		{[]int{enough, enough, 0}, 0, 0}, // there are two cores
	} {
		pollers.list = nil
		for _, load := range tt.loads {
			p := &poller{}
			p.lines.n = load
			pollers.list = append(pollers.list, p)
		}
		switch p := choose(tt.n); {
		case p == nil && len(tt.loads) <= tt.want:
			t.Skip("this system allows no poller")
		case p == nil || pollers.list[tt.want] != p:
			t.Errorf("connections %d, %d pollers: chose another poller than %d", tt.loads, tt.n, tt.want)
		}
	}
}
