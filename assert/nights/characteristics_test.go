package nights

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

var (
	plansFlag = flag.Int("plans", 40, "plans for each row of the characteristics")
	manyFlag  = flag.Int("many", 25, "plans for each row with a hundred series")
	rowsFlag  = flag.String("rows", "", "only the rows whose name contains this")
	tableFlag = flag.String("table", "", "write the table of the characteristics to this file")
)

// mornings reports for each night of a history whether the judgement of that night fails.
func mornings(columns []column) []bool {
	red := make([]bool, len(columns[0].values))
	for k, watched := range watch(columns) {
		for i := range red {
			tonight := watched[i]
			if !red[i] && !tonight.Changed {
				tonight.confirm(located(columns[k], watched[:i+1]), columns[k], watched[:i+1])
			}
			red[i] = red[i] || tonight.Changed && tonight.Worse
		}
	}
	return red
}

// planOf simulates several series of figures over 60 nights. The values have a noise of 2 %,
// correlated from night to night as given. The function change returns by how much a value changes,
// as a logarithm.
func planOf(rng *rand.Rand, series int, correlation float64, change func(night, series int) float64) []column {
	plan := make([]column, series)
	for k := range plan {
		plan[k] = column{values: make([]float64, 60), worse: 1, floor: leastNoise}
		x := rng.NormFloat64()
		for i := range plan[k].values {
			if i > 0 {
				x = correlation*x + math.Sqrt(1-correlation*correlation)*rng.NormFloat64()
			}
			plan[k].values[i] = 0.02*x + change(i, k)
		}
	}
	return plan
}

// TestLongCharacteristics measures three things: after how many nights a change is found, whether
// nights still fail weeks later, and how often unchanged nights fail. Its seeds are fixed.
func TestLongCharacteristics(t *testing.T) {
	five, fifteen := math.Log(1.05), math.Log(1.15)
	type changes = func(rng *rand.Rand) func(night, series int) float64
	none := func(*rand.Rand) func(int, int) float64 { return func(int, int) float64 { return 0 } }
	step := func(size float64, from, of int) changes {
		return func(*rand.Rand) func(int, int) float64 {
			return func(i, k int) float64 {
				if i >= from && k < of {
					return size
				}
				return 0
			}
		}
	}
	outliers := func(c changes) changes {
		return func(rng *rand.Rand) func(int, int) float64 {
			inner := c(rng)
			return func(i, k int) float64 {
				if rng.Float64() < 0.05 {
					return inner(i, k) + fifteen
				}
				return inner(i, k)
			}
		}
	}
	drift := func(*rand.Rand) func(int, int) float64 {
		return func(i, _ int) float64 { return float64(i) * math.Log(1.001) }
	}
	const never = 60
	rows := []struct {
		name        string
		series      int
		correlation float64
		changes     changes
		from        int // first night with the change; equal to never if there is none
		soon, last  float64
		ever, red   float64 // red: most failed mornings; all others: least shares; 0: not tested
	}{
		{"+3 % from night 40", 1, 0, step(math.Log(1.03), 40, 1), 40, 0, 0, 0, 0},
		{"+5 % from night 40", 1, 0, step(five, 40, 1), 40, 0.87, 0.95, 0, 0},
		{"+5 % from night 40, 5 % of nights are outliers of +15 %", 1, 0, outliers(step(five, 40, 1)), 40, 0.80, 0.90, 0, 0},
		{"+5 % from night 15", 1, 0, step(five, 15, 1), 15, 0, 0, 0.90, 0},
		{"+10 % from night 40", 1, 0, step(math.Log(1.1), 40, 1), 40, 0.95, 0.95, 0, 0},
		{"+0.1 % every night", 1, 0, drift, 0, 0, 0, 0.90, 0},
		{"+5 % from night 40 in one series", 100, 0, step(five, 40, 1), 40, 0, 0.90, 0, 0},
		{"+5 % from night 40 in ten series", 100, 0, step(five, 40, 10), 40, 0.90, 0.95, 0, 0},
		{"unchanged", 1, 0, none, never, 0, 0, 0, 50 * RedByChance},
		{"unchanged", 10, 0, none, never, 0, 0, 0, 50 * RedByChance},
		{"unchanged", 100, 0, none, never, 0, 0, 0, 50 * RedByChance},
		{"unchanged, AR(1) 0.7", 1, 0.7, none, never, 0, 0, 0, 2 * 50 * RedByChance},
		{"unchanged, AR(1) 0.7", 100, 0.7, none, never, 0, 0, 0, 2 * 50 * RedByChance},
		{"unchanged, 5 % of nights are outliers of +15 %", 1, 0, outliers(none), never, 0, 0, 0, 0},
	}
	var table strings.Builder
	fmt.Fprintln(&table, "| series | what happens | red within 3 nights | red on night 60 | red on some night since | red mornings of nights 11 to 60 |\n|---:|---|---:|---:|---:|---:|")
	for n, r := range rows {
		if !strings.Contains(fmt.Sprint(r.series, " ", r.name), *rowsFlag) {
			continue
		}
		var soon, last, ever, red float64
		plans := *plansFlag
		if r.series == 100 {
			plans = *manyFlag
		}
		for plan := range plans {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(plan)))
			m := mornings(planOf(rng, r.series, r.correlation, r.changes(rng)))
			since, early := 0.0, false
			for i, is := range m {
				if is {
					red++
					if i >= r.from {
						since++
						early = early || i < r.from+3
					}
				}
			}
			soon, last, ever = soon+share(early), last+share(m[len(m)-1]), ever+share(since > 0)
		}
		of := float64(plans)
		soon, last, ever, red = soon/of, last/of, ever/of, red/of
		percent := func(x float64) string {
			if r.from == never {
				return ""
			}
			return fmt.Sprintf("%.0f %%", 100*x)
		}
		line := fmt.Sprintf("| %d | %s | %s | %s | %s | %.1f |", r.series, r.name, percent(soon), percent(last), percent(ever), red)
		t.Log(line)
		fmt.Fprintln(&table, line)
		if soon < r.soon || last < r.last || ever < r.ever || r.red > 0 && red > r.red {
			t.Errorf("%s: promised are %v, %v, %v and at most %v red mornings", line, r.soon, r.last, r.ever, r.red)
		}
	}
	if *tableFlag != "" {
		if err := os.WriteFile(*tableFlag, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func share(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
