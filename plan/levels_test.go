package plan

import "testing"

// The longest answer is rounded up, and not by a rounding error.
func TestOutputMax(t *testing.T) {
	for _, row := range []struct {
		out  Output
		want int
	}{
		{Output{Mean: 100}, 100},
		{Output{Mean: 1000, Jitter: 0.1}, 1100},  // 1000 · 1.1, which is a little more in binary
		{Output{Mean: 1024, Jitter: 0.05}, 1076}, // 1075.2
		{Output{Mean: 1, Jitter: 0.5}, 2},        // 1.5
	} {
		if got := row.out.Max(); got != row.want {
			t.Errorf("%+v.Max() = %d, want %d", row.out, got, row.want)
		}
	}
}
