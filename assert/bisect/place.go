package bisect

import (
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/stat"
)

// Prior standard deviations, in those of a leg: of a step, and of the slope of the drift over the whole
// time and of each bend of it. A level is free. twoSteps is the prior probability of two steps.
const (
	priorStep  = 3.0
	priorDrift = 3.0
	priorLevel = 1e3
	knots      = 4
	twoSteps   = 0.05
)

// A gap is between two neighbours among the measured values. The values in it cannot be told apart yet.
type gap struct {
	good, bad int
	whole     bool // no value between its ends can be measured
}

func (g gap) places() float64 { return float64(g.bad - g.good) }

// share returns the share of the gap's places at which a step would show in the value v.
func (g gap) share(v int) float64 {
	return min(1, max(0, float64(v-g.good)/g.places()))
}

// model has one step, in the gap first, or another one in the gap second; else second is −1. chance is its
// posterior probability, and steps are the expected sizes of its steps.
type model struct {
	first, second int
	chance        float64
	steps         [2]float64
	sd, noise     float64 // of the sum of the steps, and of a leg
}

func gapsOf(o Options, legs []Leg) (gaps []gap, measured map[int]int) {
	measured = map[int]int{}
	for _, l := range legs {
		measured[l.Value]++
	}
	good, whole := 0, true
	for v := 1; v < o.Values; v++ {
		if measured[v] > 0 {
			gaps = append(gaps, gap{good, v, whole})
			good, whole = v, true
		} else if !o.Broken[v] {
			whole = false
		}
	}
	return gaps, measured
}

// locate finds how likely a step is in each gap, and which value to measure next.
func (s *State) locate(o Options, legs []Leg) {
	gaps, measured := gapsOf(o, legs)
	models := believed(gaps, legs)
	inclusion := make([]float64, len(gaps)) // of a step for the worse
	for _, m := range models {
		for k, g := range m.gaps() {
			if m.steps[k] > 0 {
				inclusion[g] += m.chance
			}
		}
		if m.second >= 0 {
			s.Two += m.chance
		}
	}
	best := -1
	for i, g := range gaps {
		for v := g.good + 1; v <= g.bad; v++ {
			s.Chances[v] += inclusion[i] / g.places()
		}
		if g.whole && (best < 0 || inclusion[i] > inclusion[best]) {
			best = i
		}
	}
	s.size(o, models, len(legs))
	if s.named = best >= 0 && inclusion[best] >= Certain; s.named {
		s.Good, s.Bad, s.Sure = gaps[best].good, gaps[best].bad, inclusion[best]
		s.second(gaps, models, best)
	} else {
		s.stretch(gaps, inclusion)
	}
	s.Next = s.tells(o, gaps, models, measured, legs)
}

func (m model) gaps() []int {
	if m.second < 0 {
		return []int{m.first}
	}
	return []int{m.first, m.second}
}

func (s *State) size(o Options, models []model, legs int) {
	mean, square, df := 0.0, 0.0, float64(legs)
	s.Exceeds, s.Noise = 0, 0
	for _, m := range models {
		sum := m.steps[0] + m.steps[1]
		s.Exceeds += m.chance * (1 - stat.StudentCDF((o.Least-sum)/m.sd, df))
		mean, square, s.Noise = mean+m.chance*sum, square+m.chance*(sum*sum+m.sd*m.sd), s.Noise+m.chance*m.noise
	}
	half := stat.StudentQuantile(endsCertain, df) * math.Sqrt(max(0, square-mean*mean))
	s.Change, s.Low, s.High = mean, mean-half, mean+half
}

// second finds the likeliest place of another step, if there is more likely one than not.
func (s *State) second(gaps []gap, models []model, best int) {
	if s.Two <= 0.5 {
		return
	}
	others := make([]float64, len(gaps))
	for _, m := range models {
		if m.second >= 0 && slices.Contains(m.gaps(), best) {
			others[m.first+m.second-best] += m.chance
		}
	}
	at := slices.Index(others, slices.Max(others))
	s.Other = [2]int{gaps[at].good, gaps[at].bad}
}

// stretch finds the shortest row of gaps that holds a step with a probability of Certain.
func (s *State) stretch(gaps []gap, inclusion []float64) {
	s.Good, s.Bad, s.Sure = 0, gaps[len(gaps)-1].bad, 0
	for i := range gaps {
		sum := 0.0
		for j := i; j < len(gaps); j++ {
			if sum += inclusion[j]; sum >= Certain {
				if gaps[j].bad-gaps[i].good <= s.Bad-s.Good {
					s.Good, s.Bad = gaps[i].good, gaps[j].bad
				}
				break
			}
		}
	}
}

// tells returns the value whose leg tells most about the place: that of which the models differ most in
// what they expect. Among nearly equal ones a value that was measured before is cheaper. Every
// endEvery-th leg is one of an end, in turns.
func (s *State) tells(o Options, gaps []gap, models []model, measured map[int]int, legs []Leg) int {
	last, since := o.Values-1, 0
	for since < len(legs) && legs[len(legs)-1-since].Value != 0 && legs[len(legs)-1-since].Value != last {
		since++
	}
	if since >= endEvery-1 {
		if measured[0] <= measured[last] {
			return 0
		}
		return last
	}
	tell := make([]float64, o.Values)
	for v := 1; v < last; v++ {
		if o.Broken[v] {
			continue
		}
		mean, square := 0.0, 0.0
		for _, m := range models {
			a := gaps[m.first].share(v)
			e, sq := m.steps[0]*a, m.steps[0]*m.steps[0]*a
			if m.second >= 0 {
				b := gaps[m.second].share(v)
				e, sq = e+m.steps[1]*b, sq+m.steps[1]*m.steps[1]*b+2*m.steps[0]*m.steps[1]*a*b
			}
			mean, square = mean+m.chance*e, square+m.chance*sq
		}
		tell[v] = square - mean*mean
	}
	best := 0
	for v := range tell {
		known, other := measured[v] > 0, measured[best] > 0
		if tell[v] > tell[best]/0.9 || known == other && tell[v] > tell[best] || known && !other && tell[v] > 0.9*tell[best] {
			best = v
		}
	}
	return best
}

// needed is about how many more legs it takes, if each tells as much as the legs so far.
func (s *State) needed(legs int) int {
	left := 0.0 // bits that are missing
	for _, p := range s.Chances {
		if p > 0 && p < 1 {
			left -= p * math.Log2(p)
		}
	}
	told := math.Log2(float64(len(s.Chances)-1)) - left
	if told <= 0 {
		return 0
	}
	return int(math.Ceil(left / told * float64(legs)))
}

// believed returns the models with a step in one gap or in two, with their posterior probabilities.
func believed(gaps []gap, legs []Leg) []model {
	all := 0.0
	for _, g := range gaps {
		all += g.places()
	}
	var out []model
	var logs []float64
	add := func(m model, prior float64) {
		evidence := m.weigh(gaps, legs)
		out, logs = append(out, m), append(logs, math.Log(prior)+evidence)
	}
	for i, g := range gaps {
		add(model{first: i, second: -1}, (1-twoSteps)*g.places()/all)
		for j := i + 1; j < len(gaps); j++ {
			add(model{first: i, second: j}, twoSteps*2*g.places()*gaps[j].places()/(all*all))
		}
	}
	most, sum := slices.Max(logs), 0.0
	for i := range logs {
		logs[i] = math.Exp(logs[i] - most)
		sum += logs[i]
	}
	for i := range out {
		out[i].chance = logs[i] / sum
	}
	return out
}

// weigh returns the logarithm of the evidence for a model, up to a constant that all models share, and
// sets the sizes of its steps. With a prior β ~ N(0, σ²·Λ₀⁻¹) and p(σ²) ∝ 1/σ² the evidence is
// |Λ₀|^½ · |Λ₀ + X'X|^−½ · (y'y − b'(Λ₀ + X'X)⁻¹b)^−n/2, b = X'y.
func (m *model) weigh(gaps []gap, legs []Leg) (evidence float64) {
	const shared = 1 + knots
	own := m.gaps()
	p := shared + len(own)
	from, to := legs[0].At, legs[0].At
	for _, l := range legs {
		from, to = min(from, l.At), max(to, l.At)
	}
	a, b, x := make([][]float64, p), make([]float64, p), make([]float64, p)
	squares := 0.0
	for i := range a {
		a[i] = make([]float64, p)
		sd := []float64{priorLevel, priorDrift, priorStep}[min(i, 1)+(i/shared)]
		a[i][i] = 1 / (sd * sd)
		evidence += math.Log(1 / sd) // half of log |Λ₀|
	}
	for _, l := range legs {
		t, y := (l.At-from)/max(to-from, 1e-9), l.Figure-legs[0].Figure
		x[0] = 1
		for k := range knots {
			x[1+k] = max(0, t-float64(k)/knots)
		}
		for k, g := range own {
			x[shared+k] = 0
			if l.Value >= gaps[g].bad {
				x[shared+k] = 1
			}
		}
		for i := range p {
			b[i] += x[i] * y
			for j := range p {
				a[i][j] += x[i] * x[j]
			}
		}
		squares += y * y
	}
	half := cholesky(a)
	beta := solve(a, b)
	for i := range b {
		squares -= b[i] * beta[i]
		x[i] = 0
	}
	n := float64(len(legs))
	squares = max(squares, n*1e-14) // rounding may leave nothing or less of equal legs
	for k := range own {
		x[shared+k] = 1
	}
	variance := 0.0
	for i, v := range solve(a, x) {
		variance += x[i] * v
	}
	copy(m.steps[:], beta[shared:])
	m.noise = math.Sqrt(squares / n)
	m.sd = m.noise * math.Sqrt(variance)
	return evidence - half - n/2*math.Log(squares)
}

// cholesky replaces a symmetric positive definite matrix by its Cholesky factor, and returns half of the
// logarithm of its determinant.
func cholesky(a [][]float64) (half float64) {
	n := len(a)
	for j := range n {
		for k := range j {
			a[j][j] -= a[j][k] * a[j][k]
		}
		a[j][j] = math.Sqrt(max(a[j][j], 1e-300))
		half += math.Log(a[j][j])
		for i := j + 1; i < n; i++ {
			for k := range j {
				a[i][j] -= a[i][k] * a[j][k]
			}
			a[i][j] /= a[j][j]
		}
	}
	return half
}

// solve returns the solution of A·x = b, of which a is the Cholesky factor.
func solve(a [][]float64, b []float64) []float64 {
	x, n := slices.Clone(b), len(b)
	for i := range n {
		for k := range i {
			x[i] -= a[i][k] * x[k]
		}
		x[i] /= a[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= a[k][i] * x[k]
		}
		x[i] /= a[i][i]
	}
	return x
}
