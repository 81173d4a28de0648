package nights

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// historyOf returns a history of simulated series.
func historyOf(rng *rand.Rand, r row) metric.History {
	h := nightsOf(ttftTrend, make([]float64, spanned)...)
	for i := range h.Nights {
		h.Nights[i].Figures = nil
	}
	for k := range r.series {
		values, names := r.noise(rng, spanned)
		key := ttftTrend
		key.Level = fmt.Sprint(k)
		for i, x := range values {
			if k < r.changed {
				x += r.change(i)
			}
			h.Nights[i].Figures = append(h.Nights[i].Figures, metric.Figure{Trend: key, Value: 2 * math.Exp(x)})
			if k == 0 && names[i] != "" {
				h.Nights[i].Job = &metric.Job{Runner: names[i]}
			}
		}
	}
	return h
}

// No failing series names an expected range, so no range holds the value that fails; and no change
// is listed twice. The histories are those of the characteristics.
func TestFailuresNameNoRange(t *testing.T) {
	fails := 0
	for n, r := range rows() {
		if r.series > 12 {
			continue
		}
		got := Judge(historyOf(rand.New(rand.NewPCG(uint64(n), 77)), r), Options{Ignore: 0.01})
		for _, x := range got.Trends {
			seen := map[string]bool{}
			for _, c := range x.Changes {
				must.Hold(t, !seen[c.Run], "%s: run %s is listed twice", r.what, c.Run)
				seen[c.Run] = true
			}
			if x.Outcome != verdict.Fail {
				continue
			}
			if fails++; strings.Contains(x.Message, "expected") || !strings.Contains(x.Message, "since run") || x.Since == "" {
				t.Errorf("%s: %s", r.what, x.Message)
			}
		}
	}
	must.Hold(t, fails >= 20, "only %d series fail", fails)
}

// TestLongSince measures how exactly a change is dated. The seeds are fixed.
func TestLongSince(t *testing.T) {
	five := step(0.05, 40)
	var dated, right, twice, fails, together, joint, drifts, creeping, steps, wrong float64
	for plan := range *plansFlag {
		for n, noise := range []draw{normal, outliers(0.02, 0.15)} {
			rng := rand.New(rand.NewPCG(uint64(n), 400+uint64(plan)))
			one := row{noise: noise, series: 1, changed: 1, change: five}
			if x := Judge(historyOf(rng, one), Options{}).Trends[0]; x.Outcome == verdict.Fail {
				fails++
				near := 0.0
				for _, c := range x.Changes {
					var at int
					fmt.Sscanf(c.Run, "r%d", &at)
					if c.Weekly == 0 && math.Abs(float64(at-40)) <= 10 {
						near++
					}
				}
				if twice += share(near > 1); near > 1 {
					t.Log(x.Message, x.Changes)
				}
				var at int
				fmt.Sscanf(x.Since, "r%d", &at)
				dated += share(at >= 39 && at <= 41)
				right += share(at == 40)
				steps++
				wrong += share(strings.Contains(x.Message, "creeps"))
			}
			r := Judge(historyOf(rng, row{noise: noise, series: 12, changed: 4, change: five}), Options{})
			joint++
			lines, exact := 0, false
			for _, e := range r.Events {
				if e.Worse && len(e.Trends) >= 3 {
					lines++
					exact = exact || e.Run == "r40"
				}
			}
			together += share(lines == 1 && exact)
			creep := row{noise: noise, series: 1, changed: 1, change: func(i int) float64 { return float64(i) * math.Log(1.001) }}
			if x := Judge(historyOf(rng, creep), Options{}).Trends[0]; x.Outcome == verdict.Fail {
				drifts++
				creeping += share(strings.Contains(x.Message, "creeps"))
			}
		}
	}
	t.Logf("of %v failing, since within one night %.0f %%, on the night %.0f %%, listed twice %.0f %%, told as a drift %.0f %%", fails, 100*dated/fails, 100*right/fails, 100*twice/fails, 100*wrong/steps)
	t.Logf("of %v joint changes of four of twelve series one line with the right night %.0f %%", joint, 100*together/joint)
	t.Logf("of %v drifts told as drifts %.0f %%", drifts, 100*creeping/drifts)
	if dated < 0.85*fails || twice > 0 || together < 0.8*joint || creeping < 0.5*drifts {
		t.Error("promised are 85 % within one night, no change twice, 80 % of joint changes and 50 % of drifts")
	}
}
