package metric

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

func TestDistribution(t *testing.T) {
	ten := []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	lower := func(worst int) Distribution {
		return NewDistribution(append([]float64(nil), ten...), worst, LowerIsBetter)
	}
	higher := func(worst int) Distribution {
		return NewDistribution(append([]float64(nil), ten...), worst, HigherIsBetter)
	}
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		d    Distribution
		stat string
		want float64
	}{
		// Nearest rank: ⌈p/100·10⌉.
		{"10", lower(0), "p0.1", 1}, {"10", lower(0), "p10", 1}, {"10", lower(0), "p10.1", 2}, {"10", lower(0), "p50", 5}, {"10", lower(0), "p95", 10}, {"10", lower(0), "p99.9", 10},
		{"10", lower(0), "mean", 5.5}, {"10", lower(0), "min", 1}, {"10", lower(0), "max", 10}, {"10", lower(0), "every", 10},
		{"10", higher(0), "p5", 1}, {"10", higher(0), "every", 1}, {"10", higher(0), "max", 10},
		// Two of 12 requests failed. The p90 has rank ⌈0.9·12⌉ = 11, a failed request. The p80 has
		// rank ⌈0.8·12⌉ = 10, a completed request.
		{"10 and 2 failed", lower(2), "p90", inf}, {"10 and 2 failed", lower(2), "p80", 10}, {"10 and 2 failed", lower(2), "mean", 5.5}, {"10 and 2 failed", lower(2), "max", inf}, {"10 and 2 failed", lower(2), "min", 1}, {"10 and 2 failed", lower(2), "every", inf},
		// If higher is better, failed requests have the lowest ranks. The p10 has rank ⌈0.1·12⌉ =
		// 2, a failed request. The p20 has rank ⌈0.2·12⌉ = 3, a completed request.
		{"10 and 2 failed, higher", higher(2), "p10", 0}, {"10 and 2 failed, higher", higher(2), "p20", 1}, {"10 and 2 failed, higher", higher(2), "min", 0}, {"10 and 2 failed, higher", higher(2), "max", 10}, {"10 and 2 failed, higher", higher(2), "every", 0},
		{"all failed", NewDistribution(nil, 3, LowerIsBetter), "p50", inf}, {"all failed", NewDistribution(nil, 3, LowerIsBetter), "min", inf},
		{"all failed, higher", NewDistribution(nil, 3, HigherIsBetter), "p50", 0}, {"all failed, higher", NewDistribution(nil, 3, HigherIsBetter), "max", 0},
	} {
		stat := must.Get(ParseStat(c.stat))(t)
		v, ok := c.d.Stat(stat)
		must.Hold(t, ok && v == c.want, "%s of %s = %v, %v, want %v", c.stat, c.name, v, ok, c.want)
	}
	for _, stat := range []Stat{{Kind: Mean}, {Kind: Percentile, P: 50}, {Kind: Min}, {Kind: Max}, {Kind: Every}, {}} {
		v, ok := (Distribution{}).Stat(stat)
		must.Hold(t, !ok, "%v of nothing = %v", stat, v)
	}
	_, ok := NewDistribution(nil, 3, LowerIsBetter).Stat(Stat{Kind: Mean})
	must.Hold(t, !ok, "requests that all failed have a mean")
	// In binary 0.999·1000 is 999.0000000000001, but the rank must be 999.
	thousand := make([]float64, 1000)
	for i := range thousand {
		thousand[i] = float64(i + 1)
	}
	v, _ := NewDistribution(thousand, 0, LowerIsBetter).Percentile(99.9)
	must.Hold(t, v == 999, "p99.9 of 1..1000 = %v, want 999", v)
}

// A percentile never falls as p grows. It is between the smallest and the largest observation. One
// more failed request never improves it.
func TestPercentilesAreMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 500 {
		values := make([]float64, 1+r.IntN(50))
		for i := range values {
			values[i] = float64(r.IntN(20))
		}
		for _, better := range []Direction{LowerIsBetter, HigherIsBetter} {
			worst := r.IntN(5)
			d := NewDistribution(append([]float64(nil), values...), worst, better)
			more := NewDistribution(append([]float64(nil), values...), worst+1, better)
			last := math.Inf(-1)
			for p := 0.5; p < 100; p += 0.5 {
				v, ok := d.Percentile(p)
				w, _ := more.Percentile(p)
				must.Need(t, ok && v >= last, "p%v = %v after %v", p, v, last)
				must.Need(t, (better != LowerIsBetter || w >= v) && (better != HigherIsBetter || w <= v), "a failure improves p%v from %v to %v", p, v, w)
				last = v
			}
		}
	}
}

func TestParseStat(t *testing.T) {
	for s, want := range map[string]Stat{"": {}, "mean": {Kind: Mean}, "min": {Kind: Min}, "max": {Kind: Max}, "every": {Kind: Every}, "rate": {Kind: Rate}, "share": {Kind: Share},
		"p50": {Percentile, 50}, "p0.1": {Percentile, 0.1}, "p99.9": {Percentile, 99.9}} {
		got, err := ParseStat(s)
		must.Hold(t, err == nil && got == want && got.String() == s, "ParseStat(%q) = %+v, %v, written %q", s, got, err, got)
	}
	for _, s := range []string{"p", "p0", "p0.09", "p100", "p99.91", "p1e1", "p+5", "p-5", "p5.5.5", "P95", "avg", "median", "p95 ", "pNaN", "p."} {
		got, err := ParseStat(s)
		must.Hold(t, err != nil, "ParseStat(%q) = %+v", s, got)
	}
}

func TestOf(t *testing.T) {
	a, b := stream(0, Measured, 1*s, 10, 2*s, 3*s), stream(1, Measured, 1*s, 10, 4*s, 4*s+500*time.Millisecond)
	b.Failure = &Failure{Kind: FailStream}
	samples := []*Sample{a, b}
	ttft, _ := Lookup("ttft")
	d := Of(ttft, samples)
	must.Hold(t, len(d.Values) == 1 && d.Values[0] == 1 && d.Worst == 1 && d.N() == 2, "ttft: %+v", d)
	// Request b failed. Its gaps before the failure count, and the failure counts as one more gap,
	// worse than all others.
	itl, _ := Lookup("itl")
	if d := Of(itl, samples); len(d.Values) != 2 || d.Values[0] != 0.5 || d.Worst != 1 {
		t.Errorf("itl: %+v", d)
	}
}

// Every definition of a metric has the properties that the language, the reports and the
// documentation rely on.
func TestDefs(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Defs {
		must.Hold(t, d.Name != "" && d.Name == strings.ToLower(d.Name) && !seen[d.Name], "the name %q is empty, not lower case or taken", d.Name)
		seen[d.Name] = true
		must.Hold(t, d.Title != "" && len(d.Title) <= 24 && d.Doc != "" && d.NoValue != "" && d.Unit != "", "%s is not fully defined: %+v", d.Name, d)
		got, ok := Lookup(d.Name)
		must.Hold(t, ok && got.Name == d.Name && d.String() == d.Name, "Lookup(%q) = %v, %v", d.Name, got, ok)
	}
	_, ok := Lookup("nope")
	must.Hold(t, !ok, "an unknown metric is found")
	got := Names(nil)
	must.Hold(t, len(got) == len(Defs) && got[0] == Defs[0].Name, "Names = %v", got)
}

func TestUnitOf(t *testing.T) {
	for _, c := range []struct {
		metric, stat string
		want         Unit
	}{
		{"goodput", "", PerSecond}, {"goodput", "share", Ratio}, {"goodput", "observed", Ratio}, {"success", "rate", Ratio}, {"success", "every", Ratio}, {"ttft", "p95", Seconds},
	} {
		def, _ := Lookup(c.metric)
		stat, err := ParseStat(c.stat)
		got := def.UnitOf(stat)
		must.Hold(t, err == nil && got == c.want && stat.String() == c.stat, "%s %s is in %s, want %s (%v)", c.metric, stat, got, c.want, err)
	}
}
