package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestSplit(t *testing.T) {
	for _, row := range []struct {
		name   string
		values []float64
		high   int
		apart  float64
	}{
		{"seven like one another and a slow one", []float64{0, 0.01, -0.01, 0, 0.24, 0.01, -0.01, 0}, 1, 0.24},
		{"two slow of eight", []float64{0, 0.01, -0.01, 0, 0.24, 0.01, -0.01, 0.26}, 2, 0.25},
		{"too few", []float64{0, 0.01, -0.01, 0, 0.24, 0.01, -0.01}, 0, 0},
		{"a fast one is no slow group", []float64{0, 0.01, -0.01, 0, -0.24, 0.01, -0.01, 0}, 0, 0},
		{"too near", []float64{0, 0, 0, 0, 0.04, 0, 0, 0}, 0, 0},
		{"equal", make([]float64, 8), 0, 0},
		{"none", nil, 0, 0},
	} {
		high, apart := Split(row.values, 0.05)
		must.Hold(t, high == row.high && math.Abs(apart-row.apart) <= 0.01, "%s: %d, %.3f; want %d, %.3f", row.name, high, apart, row.high, row.apart)
	}
}

// How often values of one law look like two groups, and how often a slow group is found.
func TestSplitRates(t *testing.T) {
	const draws = 20_000
	r := rand.New(rand.NewPCG(8, 8))
	t3 := func() float64 {
		sum := 0.0
		for range 3 {
			z := r.NormFloat64()
			sum += z * z
		}
		return r.NormFloat64() / math.Sqrt(sum/3)
	}
	for _, n := range []int{8, 12, 24} {
		found := map[string]int{}
		for range draws {
			normal, heavy, slow := make([]float64, n), make([]float64, n), make([]float64, n)
			any := false
			for i := range n {
				normal[i], heavy[i], slow[i] = 0.1*r.NormFloat64(), 0.1*t3(), 0.01*r.NormFloat64()
				if r.IntN(4) == 0 {
					slow[i], any = slow[i]+math.Log(1.27), true
				}
			}
			for name, values := range map[string][]float64{"normal": normal, "t3": heavy, "slow": slow} {
				if high, _ := Split(values, 0.05); high > 0 {
					found[name]++
				}
			}
			if any {
				found["has"]++
			}
		}
		share := func(name string) float64 { return float64(found[name]) / draws }
		t.Logf("%d starts: normal %.4f, t3 %.3f, one of four slow %.3f of %.3f", n, share("normal"), share("t3"), share("slow"), share("has"))
		if share("normal") > 0.01 || share("slow") < 0.8*share("has") {
			t.Errorf("%d starts: normal values are split in %.4f, slow groups are found in %.3f of %.3f", n, share("normal"), share("slow"), share("has"))
		}
	}
}
