package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tokgate/tokgate/internal/must"
)

// The length of the longest answer is rounded up, but an error of binary rounding adds no token.
func TestOutputMax(t *testing.T) {
	for _, row := range []struct {
		out  Output
		want int
	}{
		{Output{Mean: 100}, 100},
		{Output{Mean: 1000, Jitter: 0.1}, 1100},  // in binary 1000 · 1.1 is a little above 1100
		{Output{Mean: 1024, Jitter: 0.05}, 1076}, // 1075.2
		{Output{Mean: 1, Jitter: 0.5}, 2},        // 1.5
	} {
		must.Same(t, fmt.Sprintf("%+v.Max()", row.out), row.want, row.out.Max())
	}
}

// Each further look at a level of users needs a new window. All windows have the same length and
// the same number of rounds.
func TestMoreOfUsers(t *testing.T) {
	l := Level{N: 50}
	(&People{Window: 5 * time.Minute}).Part(&l)
	got, want := l.More(20), slices.Repeat([]int{1}, 20)
	must.Hold(t, cmp.Equal(got, want), "%v, want %v", got, want)
	if got := (Level{N: 50, Requests: 500, Rounds: 10}).More(200); !cmp.Equal(got, []int{50, 50, 50, 50}) {
		t.Errorf("%v", got)
	}
}

// Rows of a data set are cut to length. They are twice as many as the plan has requests, but at
// most 4,096.
func TestRowsOfADataSet(t *testing.T) {
	load := func(levels ...Level) *Workload { return &Workload{Loads: []*Load{{Levels: levels}}} }
	for _, tt := range []struct {
		w    *Workload
		want int
	}{
		{load(Level{N: 1, Requests: 10, Rounds: 5}), 64},
		{load(Level{N: 4, Requests: 200, Rounds: 10}), 2 * (200 + 160)},
		{load(Level{N: 4, Requests: 20_000, Rounds: 10}), 4096},
		{load(Level{N: 4, Requests: 10, Rounds: 10, Duration: time.Minute}), 4096},
		{&Workload{Capacity: &Capacity{}}, 4096},
		{&Workload{OfMixture: OfMixture{Of: &Workload{}}}, 4096},
	} {
		got := tt.w.Rows()
		must.Hold(t, got == tt.want, "%+v: %d rows, want %d", tt.w.Loads, got, tt.want)
	}
}

func TestBatchesOf(t *testing.T) {
	for _, c := range []struct{ requests, n, want int }{
		{640, 32, 20}, // 20 waves
		{1280, 32, 20},
		{300, 30, 10},
		{300, 64, 4}, // 4.7 waves
		{320, 64, 5},
		{600, 64, 9},
		{200, 8, 20}, // batches of ten requests
		{200, 1, 20},
		{199, 8, 19},
		{40, 8, 5}, // five waves: batches of eight
		{39, 8, 3},
		{5, 1, 5},
		{4, 1, 1},
		{1, 1, 1},
	} {
		l := Level{N: c.n, Requests: c.requests}
		if l.Cut(); l.Rounds != c.want || !l.Batches {
			t.Errorf("%d requests, %d in flight: %d batches, want %d", c.requests, c.n, l.Rounds, c.want)
		}
	}
}
