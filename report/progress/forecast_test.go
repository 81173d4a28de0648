package progress

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

// The run has two server starts of 10 s and four levels. The duration of a level is estimated from
// the earlier levels, in proportion to the work.
func TestForecast(t *testing.T) {
	const sec = time.Second
	f := Forecast{Parts: []Work{
		{Server: "a", Times: 1}, {Server: "b", Times: 1},
		{Server: "a", Workload: "w", Level: "1", Times: 1, Size: 20}, {Server: "a", Workload: "w", Level: "4", Times: 1, Size: 40},
		{Server: "b", Workload: "w", Level: "1", Times: 1, Size: 20}, {Server: "b", Workload: "w", Level: "4", Times: 1, Size: 40},
	}}
	sum, unknown := f.Total()
	must.Hold(t, sum == 0 && unknown == 6, "in all %s, %d unknown", sum, unknown)
	is := func(now, want time.Duration, known bool) {
		t.Helper()
		left, _, ok := f.remaining(now, 0)
		must.Hold(t, left == want && ok == known, "at %s: %s %v left, want %s %v", now, left, ok, want, known)
	}
	is(0, 0, false)
	f.part("a", "", "").begin(0)
	f.part("a", "", "").end(10 * sec)
	is(10*sec, 0, false) // no level yet
	one := f.part("a", "w", "1")
	one.begin(12 * sec)
	one.rest = 15 * sec // at 17 s: 5 s have passed and 15 s are left, so the level takes 20 s
	// The remaining time is 15 s for this level, 40, 20 and 40 s for three more levels, 10 s for a
	// start, and 2 s around that start.
	is(17*sec, (15+40+20+40+10+2)*sec, true)
	one.end(32 * sec)
	is(32*sec, (40+20+40+10+2)*sec, true)
	four := f.part("a", "w", "4")
	four.begin(32 * sec)
	is(42*sec, (30+20+40+10+2)*sec, true)
	four.end(62 * sec) // the level took 30 s on server a, so 30 s are expected on server b
	is(62*sec, (20+30+10+2)*sec, true)
	f.part("b", "", "").begin(64 * sec)
	// Server a took 4 s outside its start and its levels: from 10 to 12 s, and from 62 to 64 s. So
	// 4 s are also expected for server b.
	is(69*sec, (20+30+5+4)*sec, true)
	f.part("b", "", "").end(74 * sec)
	f.part("b", "w", "1").skip()
	is(74*sec, 30*sec, true)
}

// Durations of an earlier run are the first estimate. If two levels run at the same time, half of
// each duration counts. A search of unknown duration is not in the sum.
func TestForecastOfAnEarlierRun(t *testing.T) {
	const sec = time.Second
	f := Forecast{Rest: 7 * sec, Parts: []Work{
		{Server: "a", Times: 8, Took: 10 * sec, Known: true}, {Server: "b", Times: 8, Took: 10 * sec, Known: true},
		{Server: "a", Workload: "w", Level: "1", Times: 8, Took: 4 * sec, Known: true, Beside: true},
		{Server: "b", Workload: "w", Level: "1", Times: 8, Took: 4 * sec, Known: true, Beside: true},
		{Server: "b", Workload: "w", Times: 1},
	}}
	sum, unknown := f.Total()
	must.Hold(t, sum == (7+160+32)*sec && unknown == 1, "in all %s, %d unknown", sum, unknown)
	left, searches, ok := f.remaining(0, 0)
	must.Hold(t, left == 199*sec && searches == 1 && ok, "%s, %d searches, %v", left, searches, ok)
}
