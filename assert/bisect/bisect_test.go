package bisect

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

var (
	histories      = flag.Int("histories", 5, "simulated histories of each row")
	historiesTable = flag.String("histories-table", "", "write how often bisections are right to this file, as Markdown")
)

// past is a history of values with steps, and the machine that measures it.
type past struct {
	name   string
	values int
	steps  []float64 // relative changes, at places that are drawn
	noise  float64   // standard deviation of a leg
	claim  float64   // change that is claimed
	drift  func(r *rand.Rand) func(t float64) float64
	broken float64 // share of the values between the ends that do not start
}

type told struct {
	n, right, around, wrong, unknown, refused int
	legs, images                              []int
}

// run bisects one history. Legs take a unit of time.
func (p past) run(r *rand.Rand) (State, []Leg, []int) {
	places := r.Perm(p.values - 1)[:len(p.steps)]
	for i := range places {
		places[i]++
	}
	broken := map[int]bool{}
	for v := 1; v < p.values-1; v++ {
		broken[v] = r.Float64() < p.broken
	}
	drift := func(float64) float64 { return 0 }
	if p.drift != nil {
		drift = p.drift(r)
	}
	o := Options{Values: p.values, Least: math.Log1p(p.claim) / 2, Most: 240, Broken: broken}
	var legs []Leg
	for {
		s := Next(o, legs)
		if s.Outcome != Open {
			return s, legs, places
		}
		at := float64(len(legs))
		y := drift(at) + p.noise*r.NormFloat64()
		for k, place := range places {
			if s.Next >= place {
				y += math.Log1p(p.steps[k])
			}
		}
		legs = append(legs, Leg{s.Next, at, y})
	}
}

func (w *told) add(s State, legs []Leg, places []int) {
	seen := map[int]bool{}
	for _, l := range legs {
		seen[l.Value] = true
	}
	w.n++
	w.legs, w.images = append(w.legs, len(legs)), append(w.images, len(seen))
	within := slices.ContainsFunc(places, func(p int) bool { return s.Good < p && p <= s.Bad })
	switch {
	case s.Outcome == Unchanged:
		w.refused++
	case s.Outcome == Unknown:
		w.unknown++
	case within && s.Bad-s.Good == 1:
		w.right++
	case within:
		w.around++
	default:
		w.wrong++
	}
}

func median(xs []int) int { slices.Sort(xs); return xs[len(xs)/2] }

var pasts = []past{
	{name: "one step of 5 %, noise 2 %", values: 64, steps: []float64{0.05}, noise: 0.02, claim: 0.05},
	{name: "noise 3 %", values: 64, steps: []float64{0.05}, noise: 0.03, claim: 0.05},
	{name: "noise 2 %, linear drift of 3 % in 100 legs", values: 64, steps: []float64{0.05}, noise: 0.02, claim: 0.05,
		drift: func(*rand.Rand) func(float64) float64 { return func(t float64) float64 { return 0.03 * t / 100 } }},
	{name: "noise 2 %, a wave of ± 1.5 % in 100 legs", values: 64, steps: []float64{0.05}, noise: 0.02, claim: 0.05,
		drift: func(r *rand.Rand) func(float64) float64 {
			phase := r.Float64()
			return func(t float64) float64 { return 0.015 * math.Sin(2*math.Pi*(t/100+phase)) }
		}},
	{name: "noise 3 %, linear drift of 3 % in 100 legs", values: 64, steps: []float64{0.05}, noise: 0.03, claim: 0.05,
		drift: func(*rand.Rand) func(float64) float64 { return func(t float64) float64 { return -0.03 * t / 100 } }},
	{name: "noise 2 %, one value of five does not start", values: 64, steps: []float64{0.05}, noise: 0.02, claim: 0.05, broken: 0.2},
	{name: "two steps of 4 %, noise 2 %", values: 64, steps: []float64{0.04, 0.04}, noise: 0.02, claim: 0.08},
	{name: "steps of 6 % and 3 %, noise 2 %", values: 64, steps: []float64{0.06, 0.03}, noise: 0.02, claim: 0.09},
	{name: "1.2 % where 7 % is claimed, noise 2 %", values: 64, steps: []float64{0.012}, noise: 0.02, claim: 0.07},
	{name: "one step of 5 %, noise 5 %", values: 64, steps: []float64{0.05}, noise: 0.05, claim: 0.05},
}

// How often a bisection is right, and what it takes.
func TestLongBisections(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "**Bisections of 64 values, %d histories a row**\n\n| history | right | a stretch around it | wrong | cannot tell | refused | legs | values |\n|---|---|---|---|---|---|---|---|\n", *histories)
	for i, p := range pasts {
		r := rand.New(rand.NewPCG(uint64(i), 45))
		var w told
		for range *histories {
			w.add(p.run(r))
		}
		pct := func(k int) string { return fmt.Sprintf("%.1f%%", 100*float64(k)/float64(w.n)) }
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %d | %d |\n", p.name, pct(w.right), pct(w.around), pct(w.wrong), pct(w.unknown), pct(w.refused), median(w.legs), median(w.images))
	}
	out.WriteString("\n")
	t.Log("\n" + out.String())
	if *historiesTable != "" {
		if err := os.WriteFile(*historiesTable, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// bisected runs a bisection of exact legs: those of values from bad on are worse by size.
func bisected(o Options, bad int, size float64) (State, []Leg) {
	var legs []Leg
	for {
		s := Next(o, legs)
		if s.Outcome != Open {
			return s, legs
		}
		// A little noise that is the same in each run.
		y := 0.001 * float64(len(legs)*7%5-2)
		if s.Next >= bad {
			y += size
		}
		legs = append(legs, Leg{s.Next, float64(len(legs)), y})
	}
}

func TestNext(t *testing.T) {
	for _, row := range []struct {
		name      string
		o         Options
		bad       int
		size      float64
		want      Outcome
		good, fst int
	}{
		{"the first value is good", Options{Values: 8, Least: 0.02, Most: 100}, 1, 0.05, Found, 0, 1},
		{"in the middle", Options{Values: 8, Least: 0.02, Most: 100}, 5, 0.05, Found, 4, 5},
		{"only the last is bad", Options{Values: 8, Least: 0.02, Most: 100}, 7, 0.05, Found, 6, 7},
		{"two values", Options{Values: 2, Least: 0.02, Most: 100}, 1, 0.05, Found, 0, 1},
		{"values beside the place do not start", Options{Values: 8, Least: 0.02, Most: 100, Broken: map[int]bool{4: true, 5: true}}, 5, 0.05, Found, 3, 6},
		{"not worse by what is asked", Options{Values: 8, Least: 0.02, Most: 100}, 5, 0.01, Unchanged, 0, 7},
		{"better", Options{Values: 8, Least: 0.02, Most: 100}, 5, -0.05, Unchanged, 0, 7},
		{"nothing is asked", Options{Values: 8, Most: 100}, 5, 0.05, Unknown, 0, 7},
		{"one value", Options{Values: 1, Least: 0.02, Most: 100}, 5, 0.05, Unknown, 0, 0},
		{"the last does not start", Options{Values: 8, Least: 0.02, Most: 100, Broken: map[int]bool{7: true}}, 5, 0.05, Unknown, 0, 7},
		{"too few legs", Options{Values: 64, Least: 0.02, Most: 13}, 30, 0.05, Unknown, 0, 63},
	} {
		s, legs := bisected(row.o, row.bad, row.size)
		if s.Outcome != row.want || s.Outcome == Found && (s.Good != row.good || s.Bad != row.fst) {
			t.Errorf("%s: %s between %d and %d after %d legs, want %s between %d and %d", row.name, s.Outcome, s.Good, s.Bad, len(legs), row.want, row.good, row.fst)
		}
		for i, l := range legs {
			if row.o.Broken[l.Value] {
				t.Errorf("%s: leg %d is of the value %d, which does not start", row.name, i, l.Value)
			}
			if s := Next(row.o, legs[:i]); s.Next != l.Value {
				t.Errorf("%s: after %d legs again, the next one is of %d and not of %d", row.name, i, s.Next, l.Value)
			}
		}
	}
}

// The ends take turns, A B B A, before any other value is measured.
func TestEndsFirst(t *testing.T) {
	_, legs := bisected(Options{Values: 8, Least: 0.02, Most: 100}, 5, 0.05)
	var order []int
	for _, l := range legs[:8] {
		order = append(order, l.Value)
	}
	if want := []int{0, 7, 7, 0, 0, 7, 7, 0}; !slices.Equal(order, want) {
		t.Errorf("the first legs are of %v, want %v", order, want)
	}
}

// A figure that is missing or not a number is no leg.
func TestLegsWithoutFigures(t *testing.T) {
	o := Options{Values: 8, Least: 0.02, Most: 100}
	_, legs := bisected(o, 5, 0.05)
	with := append(slices.Clone(legs), Leg{3, 99, math.NaN()}, Leg{-1, 99, 0}, Leg{8, 99, 0}, Leg{3, 99, math.Inf(1)})
	if a, b := Next(o, legs), Next(o, with); a.Outcome != b.Outcome || a.Bad != b.Bad || a.Sure != b.Sure {
		t.Errorf("%+v\n%+v", a, b)
	}
}
