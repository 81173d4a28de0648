package nights

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// A replayed morning is what Judge says of the nights until then, also with pins and with several
// runners. A morning that is not told says the same as the one before.
func TestReplay(t *testing.T) {
	red, told := 0, 0
	for n, r := range rows() {
		what := r.what
		if r.series > 12 || n%3 != 0 && !strings.Contains(what, "names") {
			continue
		}
		h := historyOf(rand.New(rand.NewPCG(uint64(n), 78)), r)
		if n%2 == 0 {
			h.Pins = []metric.Pin{{Run: "r25", At: h.Nights[27].Started.Add(1), Why: "x"}}
		}
		opts := Options{Ignore: 0.01}
		var before verdict.Outcome
		for i, m := range Replay(h, opts, 0) {
			prefix := metric.History{Nights: h.Nights[:i+1]}
			if i > 27 {
				prefix.Pins = h.Pins
			}
			got := Judge(prefix, opts)
			if m.Red != (got.Outcome == verdict.Fail) || m.Told != nil && m.Told.Outcome != got.Outcome || m.Told == nil && got.Outcome != before {
				t.Errorf("%s, night %d: red %t, told %t; Judge says %v, and %v the night before", what, i, m.Red, m.Told != nil, got.Outcome, before)
			}
			if before = got.Outcome; m.Red {
				red++
			}
			if m.Told != nil {
				told++
			}
		}
	}
	must.Hold(t, red >= 100 && told >= 100, "only %d mornings were red, and %d told", red, told)
}

// After two red mornings the change is pinned, and later nights are compared with it.
func TestReplayPins(t *testing.T) {
	values := append(steady(20), 2.2, 2.2, 2.2, 2.2)
	for range 12 {
		values = append(values, 2.2, 2.21)
	}
	var pins []string
	red := 0
	for i, m := range Replay(nightsOf(ttftTrend, values...), Options{}, 2) {
		if m.Pinned != nil {
			pins = append(pins, m.Pinned.Run)
			must.Hold(t, i == 23, "pinned before night %d", i)
		}
		if m.Red {
			red++
		}
	}
	// One night is suspect, two are red, and the pin accepts the first of them.
	must.Hold(t, red == 2 && len(pins) == 1 && pins[0] == "r20", "%d red mornings, pins %v", red, pins)
}

// The step that soon names is found within three nights by about as many plans as it says.
func TestSoon(t *testing.T) {
	const plans = 60
	for _, series := range []int{1, 12} {
		for _, from := range []int{20, 40} {
			found := 0
			for plan := range plans {
				rng := rand.New(rand.NewPCG(79, uint64(plan)))
				columns := make([]column, series)
				for k := range columns {
					values, _ := normal(rng, from+3)
					columns[k] = column{values: values, worse: +1, floor: leastNoise}
				}
				size := watch(columns)[0][from-1].soon()
				for i := from; i < from+3; i++ {
					columns[0].values[i] += size
				}
				if now := watch(columns)[0][from+2]; now.Changed && now.Worse {
					found++
				}
			}
			low, high, _ := stat.ClopperPearson(float64(found), plans, 0.002)
			t.Logf("%d series, night %d: found in %d of %d", series, from, found, plans)
			must.Hold(t, low <= 0.9 && high >= 0.7, "%d series, night %d: found in %d of %d plans, want about %v", series, from, found, plans, ofSteps)
		}
	}
}
