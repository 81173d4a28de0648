package nights

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

var (
	plansFlag = flag.Int("plans", 40, "plans for each row of the characteristics")
	manyFlag  = flag.Int("many", 25, "plans for each row with forty or more series")
	rowsFlag  = flag.String("rows", "", "only the rows whose name contains this")
	tableFlag = flag.String("table", "", "write the table of the characteristics to this file")
)

const (
	spanned = 60   // nights of a simulated history
	sigma   = 0.02 // standard deviation of a night
	// promisedPlans is the number of plans of a row for which its promises are meant.
	promisedPlans = 300
)

// draw returns the values of one series without a change, as logarithms, and the runner of each
// night.
type draw func(rng *rand.Rand, nights int) (values []float64, runners []string)

// each makes a draw of nights that are independent of each other.
func each(one func(rng *rand.Rand, i int) float64) draw {
	return func(rng *rand.Rand, nights int) ([]float64, []string) {
		out := make([]float64, nights)
		for i := range out {
			out[i] = one(rng, i)
		}
		return out, make([]string, nights)
	}
}

// outliers makes a draw with normal noise, in which a share of the nights is slower by size.
func outliers(share, size float64) draw {
	return each(func(rng *rand.Rand, _ int) float64 {
		x := sigma * rng.NormFloat64()
		if rng.Float64() < share {
			x += math.Log1p(size)
		}
		return x
	})
}

// runners makes a draw of two runners. The second has a share of 30 % of the nights and is slower
// by 10 %.
func runners(named bool) draw {
	return func(rng *rand.Rand, nights int) ([]float64, []string) {
		values, names := make([]float64, nights), make([]string, nights)
		for i := range values {
			values[i] = sigma * rng.NormFloat64()
			if rng.Float64() < 0.3 {
				values[i] += math.Log(1.1)
				if named {
					names[i] = "slower"
				}
			}
		}
		return values, names
	}
}

// autoregressive makes a draw in which each night has the correlation r with the night before.
func autoregressive(r float64) draw {
	return func(rng *rand.Rand, nights int) ([]float64, []string) {
		out, x := make([]float64, nights), rng.NormFloat64()
		for i := range out {
			if i > 0 {
				x = r*x + math.Sqrt(1-r*r)*rng.NormFloat64()
			}
			out[i] = sigma * x
		}
		return out, make([]string, nights)
	}
}

// walk makes a draw of normal noise around a level that moves by 0.3 % a night.
func walk(rng *rand.Rand, nights int) ([]float64, []string) {
	out, level := make([]float64, nights), 0.0
	for i := range out {
		level += 0.003 * rng.NormFloat64()
		out[i] = level + sigma*rng.NormFloat64()
	}
	return out, make([]string, nights)
}

// pods makes a draw of normal noise with another runner every night.
func pods(rng *rand.Rand, nights int) ([]float64, []string) {
	values, names := normal(rng, nights)
	for i := range names {
		names[i] = fmt.Sprint("pod-", i)
	}
	return values, names
}

var (
	normal = each(func(rng *rand.Rand, _ int) float64 { return sigma * rng.NormFloat64() })
	// heavy has Student's t distribution with four degrees of freedom: z/√(χ²/4), whose variance is 2.
	heavy = each(func(rng *rand.Rand, _ int) float64 {
		squares := 0.0
		for range 4 {
			z := rng.NormFloat64()
			squares += z * z
		}
		return sigma * rng.NormFloat64() / math.Sqrt(squares/4) / math.Sqrt2
	})
	exponential = each(func(rng *rand.Rand, _ int) float64 { return sigma * (rng.ExpFloat64() - 1) })
	weekly      = each(func(rng *rand.Rand, i int) float64 {
		x := sigma * rng.NormFloat64()
		if i%7 >= 5 {
			x += math.Log(1.03)
		}
		return x
	})
	// lognormal has the shape 0.5, so a skewness of 1.75 and an excess kurtosis of 5.9. Its mean is
	// e^(1/8), its standard deviation 0.604.
	lognormal = each(func(rng *rand.Rand, _ int) float64 {
		return sigma * (math.Exp(0.5*rng.NormFloat64()) - math.Exp(0.125)) / 0.604
	})
	// gamma has the shape 1.5, so a skewness of 1.63 and an excess kurtosis of 4: the sum of an
	// exponential and half of a squared normal variable.
	gamma = each(func(rng *rand.Rand, _ int) float64 {
		z := rng.NormFloat64()
		return sigma * (rng.ExpFloat64() + z*z/2 - 1.5) / math.Sqrt(1.5)
	})
)

// shift is a change of a series: by how much a night deviates, as a logarithm.
type shift func(night int) float64

func step(size float64, from int) shift {
	return func(i int) float64 {
		if i >= from {
			return math.Log1p(size)
		}
		return 0
	}
}

func (f shift) and(g shift) shift { return func(i int) float64 { return f(i) + g(i) } }

func none(int) float64 { return 0 }

// planOf simulates a plan. Its first series have the change. If pinned is true, the plan has thirty
// nights before a pin, so its noise is known.
func planOf(rng *rand.Rand, noise draw, series, changed int, change shift, pinned bool) (plan []lane, owner []int) {
	for k := range series {
		known := map[laneName]memory{}
		if pinned {
			before, _ := noise(rng, 30)
			c := []column{{values: before, worse: 1, floor: leastNoise}}
			_, was := watchAll(c)
			known[laneName{}] = was[0].remembered()
		}
		values, names := noise(rng, spanned)
		for i := range values {
			if k < changed {
				values[i] += change(i)
			}
		}
		split := lanes(column{values: values, worse: 1, floor: leastNoise}, names, known, len(plan))
		for range split {
			owner = append(owner, k)
		}
		plan = append(plan, split...)
	}
	return plan, owner
}

// row is a row of the characteristics. The limit red is the most red mornings;
// soon and last are the least shares. 0 means that it is not limited.
type row struct {
	what       string
	noise      draw
	series     int
	changed    int // number of series with the change
	change     shift
	from       int // first night with the change
	pinned     bool
	soon, last float64
	red        float64
}

func (r row) unchanged() bool { return r.changed == 0 }

// rows returns the rows of the characteristics.
func rows() []row {
	var out []row
	unchanged := func(what string, noise draw, most ...float64) {
		for i, red := range most {
			if series := []int{1, 12, 40}[i]; red != 0 {
				out = append(out, row{what: "unchanged, " + what, noise: noise, series: series, red: red, change: none})
			}
		}
	}
	printed := math.Inf(1)
	unchanged("normal", normal, 1.6, 1.2, 1.4)
	unchanged("weekends 3 % slower", weekly, 1.6, 1.2, 1.4)
	unchanged("t with 4 degrees of freedom", heavy, 1.6, 1.2, 1.4)
	unchanged("2 % of nights are outliers of +15 %", outliers(0.02, 0.15), 2.2, 1.6, 1.5)
	unchanged("5 % of nights are outliers of +15 %", outliers(0.05, 0.15), printed, printed)
	unchanged("exponential", exponential, 3.6, 1.8, 2.0)
	unchanged("two runners without names", runners(false), 2.2, 1.2, 1.7)
	unchanged("two runners with names", runners(true), 2.2, 1.2, 1.7)
	unchanged("AR(1) 0.5", autoregressive(0.5), 4.3, printed)
	unchanged("AR(1) 0.7", autoregressive(0.7), 5.6)
	unchanged("random walk of 0.3 % a night", walk, printed, printed)
	unchanged("gamma of shape 1.5", gamma, printed, 3)
	out = append(out, row{what: "unchanged, normal", noise: normal, series: 100, red: 50 * 0.04, change: none},
		row{what: "unchanged, AR(1) 0.7", noise: autoregressive(0.7), series: 100, red: 2 * 50 * 0.04, change: none})
	add := func(what string, series, changed, from int, change shift, soon, last float64, noises ...string) {
		for _, n := range noises {
			name, noise := "", normal
			switch n {
			case "outliers":
				name, noise = ", 2 % of nights are outliers of +15 %", outliers(0.02, 0.15)
			case "more":
				name, noise = ", 5 % of nights are outliers of +15 %", outliers(0.05, 0.15)
			case "t":
				name, noise = ", t with 4 degrees of freedom", heavy
			case "named":
				name, noise = ", two runners with names", runners(true)
			case "pods":
				name, noise = ", another runner every night", pods
			}
			out = append(out, row{what: what + name, noise: noise, series: series, changed: changed, change: change, from: from, soon: soon, last: last})
		}
	}
	five, ten := step(0.05, 40), step(0.1, 40)
	add("+3 % from night 40", 1, 1, 40, step(0.03, 40), 0, 0, "normal")
	add("+5 % from night 40", 1, 1, 40, five, 0.85, 0.95, "normal", "outliers", "t")
	add("+5 % from night 40", 12, 1, 40, five, 0.47, 0.93, "normal", "outliers", "t")
	add("+5 % from night 40", 1, 1, 40, five, 0.75, 0.90, "more")
	add("+5 % from night 15", 1, 1, 15, step(0.05, 15), 0, 0, "normal")
	add("+10 % from night 40", 1, 1, 40, ten, 0.97, 0.95, "normal", "outliers", "t")
	add("+10 % from night 40", 12, 1, 40, ten, 0.97, 0, "normal", "outliers", "t")
	add("+10 % from night 40", 40, 1, 40, ten, 0.92, 0, "normal", "outliers", "t")
	drift := func(i int) float64 { return float64(i) * math.Log(1.001) }
	add("+0.1 % every night", 1, 1, 0, drift, 0, 0.83, "normal", "outliers")
	add("+0.1 % every night", 12, 1, 0, drift, 0, 0.68, "normal", "outliers")
	early := step(-0.1, 6)
	add("−10 % from night 6, +5 % from night 40", 1, 1, 40, early.and(five), 0.72, 0, "normal", "outliers")
	add("−10 % from night 6, +5 % from night 40", 12, 1, 40, early.and(five), 0.36, 0, "normal", "outliers")
	add("−10 % from night 6, +10 % from night 40", 1, 1, 40, early.and(ten), 0.90, 0, "normal", "outliers")
	add("−10 % from night 6, +10 % from night 40", 12, 1, 40, early.and(ten), 0.90, 0, "normal", "outliers")
	back := step(-0.1, 20).and(step(1/0.9-1, 40))
	add("−10 % from night 20, back from night 40", 1, 1, 40, back, 0.88, 0, "normal", "outliers")
	add("−10 % from night 20, back from night 40", 12, 1, 40, back, 0.88, 0, "normal", "outliers")
	for _, series := range []int{1, 12} {
		add("+10 % from night 5 after a pin", series, 1, 5, step(0.1, 5), 0.83, 0, "normal", "outliers")
		out[len(out)-1].pinned, out[len(out)-2].pinned = true, true
	}
	add("+5 % from night 40", 1, 1, 40, five, 0, 0, "named")
	add("+10 % from night 40", 1, 1, 40, ten, 0.95, 0, "named")
	add("+10 % from night 40", 12, 1, 40, ten, 0.72, 0, "named")
	add("+10 % from night 40", 1, 1, 40, ten, 0.97, 0, "pods")
	add("+5 % from night 40 in one series", 100, 1, 40, five, 0, 0.90, "normal")
	add("+5 % from night 40 in ten series", 100, 10, 40, five, 0.90, 0.95, "normal")
	// This noise was not looked at before the rule was fixed.
	return append(out, row{what: "unchanged, lognormal of shape 0.5", noise: lognormal, series: 12, red: 3, change: none})
}

// replay judges the lanes of a plan each morning, as if that night were the last. It returns for
// each lane whether it is red.
func replay(lanes []lane) [][]bool {
	s := replayed{lanes: lanes}
	s.start()
	out := make([][]bool, len(lanes))
	for k := range lanes {
		for i := range s.watched[k] {
			s.night(k, i)
			out[k] = append(out[k], s.red[k])
		}
	}
	return out
}

// TestLongCharacteristics measures how often unchanged nights fail, after how many nights a change
// is found, and whether nights still fail weeks later. Its seeds are fixed.
func TestLongCharacteristics(t *testing.T) {
	var table strings.Builder
	fmt.Fprintln(&table, "| series | what happens | red within 3 nights | red on night 60 | red mornings of 50 |\n|---:|---|---:|---:|---:|")
	for n, r := range rows() {
		if !strings.Contains(fmt.Sprint(r.series, " ", r.what), *rowsFlag) {
			continue
		}
		var soon, last, red, squares float64
		plans := *plansFlag
		if r.series >= 40 {
			plans = *manyFlag
		}
		for plan := range plans {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(plan)))
			lanes, owner := planOf(rng, r.noise, r.series, r.changed, r.change, r.pinned)
			of := replay(lanes)
			any, mine := make([]bool, spanned), make([]bool, spanned)
			for k := range lanes {
				for i, is := range of[k] {
					any[i], mine[i] = any[i] || is, mine[i] || is && owner[k] < r.changed
				}
			}
			mornings := 0.0
			for _, is := range any[leastReference:] {
				mornings += share(is)
			}
			red, squares = red+mornings, squares+mornings*mornings
			if r.unchanged() {
				continue
			}
			soon += share(mine[r.from] || mine[r.from+1] || mine[r.from+2])
			last += share(mine[spanned-1])
		}
		of := float64(plans)
		soon, last, red = soon/of, last/of, red/of
		line := fmt.Sprintf("| %d | %s | | | %.1f |", r.series, r.what, red)
		if !r.unchanged() {
			line = fmt.Sprintf("| %d | %s | %.0f %% | %.0f %% | %.1f |", r.series, r.what, 100*soon, 100*last, red)
		}
		t.Log(line)
		fmt.Fprintln(&table, line)
		// The promises hold for promisedPlans plans. Fewer plans may miss them by two standard errors.
		slack := 0.0
		if plans < promisedPlans && (r.series < 40 || plans < promisedPlans/5) {
			slack = 2 / math.Sqrt(of)
		}
		spread := math.Sqrt(max(squares/of-red*red, 0))
		below := func(got, promised float64) bool {
			return got < promised-slack*math.Sqrt(promised*(1-promised))
		}
		if below(soon, r.soon) || below(last, r.last) || red-slack*spread > cmp.Or(r.red, math.Inf(1)) {
			t.Errorf("%s: promised are %v, %v and at most %v red mornings", line, r.soon, r.last, r.red)
		}
	}
	if *tableFlag != "" {
		must.Do(t, os.WriteFile(*tableFlag, []byte(table.String()), 0o644))
	}
}

func share(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
