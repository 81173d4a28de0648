package direct

import (
	"runtime"
	"testing"
)

// Connections are spread over pollers when they open. One poller gets as many as it can well read
// before the next one gets any.
func TestChoose(t *testing.T) {
	t.Cleanup(func() { pollers.list = nil })
	cores := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(cores)
	for _, tt := range []struct {
		loads []int // of the pollers that there are
		n     int   // Config.Pollers
		cores int
		want  int // number of the chosen poller
	}{
		{nil, 0, 3, 0},
		{nil, 2, 3, 0},
		{[]int{0}, 0, 3, 0},
		{[]int{0}, 2, 3, 1}, // the second one is made
		{[]int{1, 0}, 2, 3, 1},
		{[]int{1, 1}, 2, 3, 0},
		{[]int{9, 0}, 1, 3, 0},
		{[]int{enough - 1, 0}, 0, 3, 0},
		{[]int{enough}, 0, 3, 1},
		{[]int{enough, enough - 1}, 0, 3, 1},
		{[]int{enough + 1, enough}, 0, 3, 1},
		{[]int{enough, enough}, 0, 3, 0},
		{[]int{2 * enough}, 0, 2, 0}, // the second core sends
		{[]int{2 * enough}, 0, 1, 0},
		{[]int{enough, enough, 0}, 0, 3, 0}, // two cores read, and the third sends
	} {
		runtime.GOMAXPROCS(tt.cores)
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
			t.Errorf("connections %d, %d pollers, %d cores: chose another poller than %d", tt.loads, tt.n, tt.cores, tt.want)
		}
	}
}
