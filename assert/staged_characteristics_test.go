package assert

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

var (
	staged      = flag.Int("staged", 4, "simulated comparisons of each cell of a comparison in stages")
	stagedTable = flag.String("staged-table", "", "write the characteristics of comparisons in stages to this file, as Markdown")
)

// inTurns describes simulated comparisons with a fresh server for each leg. The logarithm of a leg's
// time is that of its side, its start, its leg (0.5 %), its requests (1 %), and the time of the leg.
// Times of first tokens and of later tokens have a correlation of 0.9 in each of these.
type inTurns struct {
	most, changes int // planned rounds; number of required changes: 1 or 3
	tolerance     float64
	worse         float64                       // true change, as a share
	start         func(r *rand.Rand) [2]float64 // start of a server: for first and for later tokens
	candidate     float64                       // factor of the candidate's starts; 0 means 1
	slow          float64                       // chance that a start of the candidate alone is 27 % slower
	drift         func(r *rand.Rand, minutes []float64) []float64
	// parts is the standard deviation of what a round sends, the same on both sides. If it is not 0,
	// rounds are not alike, so they are compared in pairs.
	parts float64
}

// stagedOutcomes counts the outcomes of comparisons in stages.
type stagedOutcomes struct {
	n, green, red      int
	starts, tooLow     int // starts of both sides; bounds at the end that lie above the truth
	tooHigh, unmissing int // bounds below the truth; greens that do not name what they may have missed
}

func (o stagedOutcomes) share(k int) float64 { return float64(k) / float64(max(o.n, 1)) }
func (o stagedOutcomes) meanStarts() float64 { return float64(o.starts) / float64(max(o.n, 1)) }
func (o stagedOutcomes) minutes() float64    { return o.meanStarts() / 16 } // of eight fixed rounds
func (o *stagedOutcomes) add(v Verdicts, k int, truth float64) {
	o.n, o.starts = o.n+1, o.starts+2*k
	switch v.Outcome {
	case verdict.Pass:
		o.green++
		if want := fmt.Sprintf("fewer than %d of 100 starts", int(100*(1-math.Pow(0.05, 1/float64(k))))); !strings.Contains(v.Comparisons[0].Line, want) {
			o.unmissing++
		}
	case verdict.Fail:
		o.red++
	}
	if c := v.Comparisons[0].Changes[0]; c.Low.OK {
		o.tooLow += map[bool]int{true: 1}[c.Low.V > truth]
		o.tooHigh += map[bool]int{true: 1}[c.High.V < truth]
	}
}

// normal returns starts that differ by a normal law, or by Student's t law with three degrees of
// freedom and the same standard deviation.
func normal(sd float64) func(*rand.Rand) [2]float64 {
	return func(r *rand.Rand) [2]float64 { return correlated(r, sd) }
}

func correlated(r *rand.Rand, sd float64) [2]float64 {
	common := math.Sqrt(0.9) * r.NormFloat64()
	return [2]float64{sd * (common + math.Sqrt(0.1)*r.NormFloat64()), sd * (common + math.Sqrt(0.1)*r.NormFloat64())}
}

func student3(r *rand.Rand) [2]float64 {
	chi := 0.0
	for range 3 {
		z := r.NormFloat64()
		chi += z * z
	}
	return correlated(r, 0.01/math.Sqrt(3)/math.Sqrt(chi/3))
}

// oneOfSeven is a server of which one start of seven is 27 % slower.
func oneOfSeven(r *rand.Rand) [2]float64 {
	out := correlated(r, 0.003)
	if r.Float64() < 1.0/7 {
		out[0], out[1] = out[0]+math.Log(1.27), out[1]+math.Log(1.27)
	}
	return out
}

// wanders returns a drift that returns to its mean, with a standard deviation and a time constant.
func wanders(sd, minutes float64) func(*rand.Rand, []float64) []float64 {
	return func(r *rand.Rand, at []float64) []float64 {
		out := make([]float64, len(at))
		x := r.NormFloat64()
		for i := range at {
			if i > 0 {
				a := math.Exp(-(at[i] - at[i-1]) / minutes)
				x = a*x + math.Sqrt(1-a*a)*r.NormFloat64()
			}
			out[i] = sd * x
		}
		return out
	}
}

func linear(perHour float64) func(*rand.Rand, []float64) []float64 {
	return func(_ *rand.Rand, at []float64) []float64 {
		out := make([]float64, len(at))
		for i, t := range at {
			out[i] = perHour * t / 60
		}
		return out
	}
}

// draw returns the factors of the times of first and of later tokens, for each side and round.
func (c inTurns) draw(r *rand.Rand) (factor [2][][2]float64) {
	var minutes []float64
	for i := range 2 * c.most { // a start of 7.6 minutes and a leg of one
		minutes = append(minutes, 8.6*float64(i)+8.1)
	}
	drift := make([]float64, len(minutes))
	if c.drift != nil {
		drift = c.drift(r, minutes)
	}
	for round := range c.most {
		part := 0.0
		if c.parts > 0 {
			part = c.parts * r.NormFloat64()
		}
		for turn := range 2 {
			side := (turn + round) % 2
			start, leg, requests := c.start(r), correlated(r, 0.005), correlated(r, 0.01)
			var x [2]float64
			for k := range x {
				if side == 1 && c.candidate > 0 {
					start[k] *= c.candidate
				}
				x[k] = start[k] + leg[k] + requests[k] + drift[2*round+turn] + part
				if side == 1 {
					x[k] += math.Log1p(c.worse)
				}
			}
			if side == 1 && c.slow > 0 && r.Float64() < c.slow {
				x[0], x[1] = x[0]+math.Log(1.27), x[1]+math.Log(1.27)
			}
			factor[side] = append(factor[side], [2]float64{math.Exp(x[0]), math.Exp(x[1])})
		}
	}
	return factor
}

// run simulates one comparison, and judges it at its looks as a run does. It returns the verdicts at
// the last look, and the number of its rounds.
func (c inTurns) run(r *rand.Rand) (Verdicts, int) {
	factor := c.draw(r)
	claims := []*plan.Claim{tolerate("ttft mean +5%")}
	if c.changes == 3 {
		claims = []*plan.Claim{tolerate("ttft mean +5%", "tpot mean +5%", "e2e mean +5%")}
	}
	for _, ch := range claims[0].Changes {
		ch.Limit = c.tolerance
	}
	d := duel{rounds: c.most, perRound: 4, claims: claims}
	later := func(side int) func(*metric.Sample) {
		return func(x *metric.Sample) {
			x.Last = x.First + time.Duration(factor[side][x.Round][1]*1e9)
			x.End = x.Last
		}
	}
	d.control, d.candidate = func(round, _ int) float64 { return factor[0][round][0] }, func(round, _ int) float64 { return factor[1][round][0] }
	d.change = [2]func(*metric.Sample){later(0), later(1)}
	return d.inStages(c.parts == 0)
}

// inStages judges the comparison at its looks, until it stops. It returns the verdicts at the last
// look, and the number of its rounds. Rounds are alike or send something else each.
func (d duel) inStages(alike bool) (Verdicts, int) {
	p, run := d.make()
	p.Workloads[0].Output.Natural = !alike
	return untilStop(p, run)
}

// untilStop judges a comparison of the plan at its looks, until it stops.
func untilStop(p *plan.Plan, run *metric.Run) (Verdicts, int) {
	block := p.Compares[0]
	block.LeastRounds = 3
	rec := run.Comparisons[0]
	rec.Planned = block.Looks()
	whole := [2][]*metric.Round{run.Levels[0].Rounds, run.Levels[1].Rounds}
	for _, n := range rec.Planned {
		rec.Looks = append(rec.Looks, metric.ComparisonLook{Rounds: n})
		for side, l := range run.Levels {
			l.Rounds = whole[side][:n]
		}
		if _, stop := JudgeComparison(p, block, run); stop {
			return Judge(p, run, Options{}), n
		}
	}
	panic("the last look did not end the comparison")
}

// of runs n comparisons.
func (c inTurns) of(n int, seed uint64) stagedOutcomes {
	var o stagedOutcomes
	r := rand.New(rand.NewPCG(seed, 39))
	for range n {
		v, k := c.run(r)
		o.add(v, k, c.worse)
	}
	return o
}

// Comparisons in stages, judged at every look by the code that judges runs: how often they are wrong,
// what they find, and how many starts they take.
func TestLongStagedCharacteristics(t *testing.T) {
	n := *staged
	// most returns the largest share that agrees with a bound which a trial reached with a margin of two
	// standard errors of its 4,000 comparisons.
	most := func(bound float64) float64 {
		return bound + max(0, 3*math.Sqrt(bound*(1-bound)/float64(n))-2*math.Sqrt(bound*(1-bound)/4000))
	}
	one := func(change func(*inTurns)) inTurns {
		c := inTurns{most: 12, changes: 1, tolerance: 0.05, worse: 0.05, start: normal(0.01)}
		if change != nil {
			change(&c)
		}
		return c
	}
	type cell struct {
		name string
		c    inTurns
		got  stagedOutcomes
		most float64 // green and red, at the tolerance
		// For three changes: the least share of greens and reds, the most starts, and the most minutes.
		green, red, starts, minutes float64
	}
	limits := []*cell{
		{name: "starts differ by 0.3 %", c: one(func(c *inTurns) { c.start = normal(0.003) }), most: 0.057},
		{name: "1 %", c: one(nil), most: 0.057},
		{name: "3 %", c: one(func(c *inTurns) { c.start = normal(0.03) }), most: 0.057},
		{name: "1 %, heavy tails (t, 3 degrees of freedom)", c: one(func(c *inTurns) { c.start = student3 }), most: 0.057},
		{name: "one of seven is 27 % slower", c: one(func(c *inTurns) { c.start = oneOfSeven }), most: 0.057},
		{name: "0.3 %; the machine wanders by 1 % in 10 minutes", c: one(func(c *inTurns) { c.start, c.drift = normal(0.003), wanders(0.01, 10) }), most: 0.057},
		{name: "0.3 %; it wanders by 2 % in 60 minutes", c: one(func(c *inTurns) { c.start, c.drift = normal(0.003), wanders(0.02, 60) }), most: 0.057},
		{name: "1 %; it slows down by 5 % an hour", c: one(func(c *inTurns) { c.drift = linear(0.05) }), most: 0.057},
		{name: "1 %, the candidate's by 3 %", c: one(func(c *inTurns) { c.candidate = 3 }), most: 0.065},
		{name: "1 %, the candidate's by 10 %", c: one(func(c *inTurns) { c.candidate = 10 }), most: 0.085},
	}
	pairs := []*cell{
		{name: "starts differ by 1 %", c: one(func(c *inTurns) { c.parts = 0.3 }), most: 0.057},
		{name: "1 %; it slows down by 5 % an hour", c: one(func(c *inTurns) { c.parts, c.drift = 0.3, linear(0.05) }), most: 0.057},
		{name: "1 %, the candidate's by 3 %", c: one(func(c *inTurns) { c.parts, c.candidate = 0.3, 3 }), most: 0.065},
	}
	three := func(tolerance, worse, starts float64) inTurns {
		return inTurns{most: 12, changes: 3, tolerance: tolerance, worse: worse, start: normal(starts)}
	}
	powers := []*cell{
		{name: "5 %, starts 1 %: unchanged", c: three(0.05, 0, 0.01), green: 0.98, starts: 8.5, minutes: 0.53},
		{name: "5 %, starts 0.3 %: unchanged", c: three(0.05, 0, 0.003), green: 0.98, minutes: 0.47},
		{name: "10 %, starts 1 %: unchanged", c: three(0.10, 0, 0.01), green: 0.99, minutes: 0.42},
		{name: "3 %, starts 1 %: unchanged", c: three(0.03, 0, 0.01), green: 0.95, minutes: 0.76},
		{name: "5 %, starts 1 %: worse by the tolerance", c: three(0.05, 0.05, 0.01), starts: 12.5},
		{name: "1.5 times the tolerance", c: three(0.05, 0.075, 0.01), red: 0.84},
		{name: "2 times", c: three(0.05, 0.10, 0.01), red: 0.99},
		{name: "5 times", c: three(0.05, 0.25, 0.01), red: 0.995, starts: 6.5},
		{name: "5 %, one start of seven 27 % slower: unchanged", c: func() inTurns { c := three(0.05, 0, 0); c.start = oneOfSeven; return c }()},
		{name: "5 %, one start of four of the candidate 27 % slower", c: func() inTurns { c := three(0.05, 0, 0.003); c.slow = 0.25; return c }()},
		{name: "5 %, starts 1 %, what rounds send 30 %, in pairs: unchanged", c: func() inTurns { c := three(0.05, 0, 0.01); c.parts = 0.3; return c }(), green: 0.98},
	}
	var todo []func()
	for i, x := range slices.Concat(limits, powers, pairs) {
		if *only == "" || strings.Contains(x.name, *only) {
			todo = append(todo, func() { x.got = x.c.of(n, uint64(500+i)) })
		}
	}
	twoAtATime(todo)
	pct := func(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
	var out strings.Builder
	atTheLimit := func(title string, list []*cell) {
		out.WriteString("**" + title + "**\n\n| what varies | green | red | bound above the truth | below it | starts |\n|---|---|---|---|---|---|\n")
		for _, x := range list {
			o := x.got
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %.1f |\n", x.name, pct(o.share(o.green)), pct(o.share(o.red)), pct(o.share(o.tooLow)), pct(o.share(o.tooHigh)), o.meanStarts())
			for what, share := range map[string]float64{"green": o.share(o.green), "red": o.share(o.red), "low bounds": o.share(o.tooLow), "high bounds": o.share(o.tooHigh)} {
				if share > most(x.most) {
					t.Errorf("%s: wrong %s %.3f, at most %.3f", x.name, what, share, most(x.most))
				}
			}
		}
	}
	atTheLimit("Comparison in stages, at the tolerance: one change, 5 % tolerated and 5 % worse, looks after 3 to 12 starts of each", limits)
	out.WriteString("\n")
	atTheLimit("The same in pairs, where what is sent varies by 30 % from round to round", pairs)
	out.WriteString("\n**Comparison in stages: three changes with a correlation of 0.9; minutes beside those of eight fixed rounds**\n\n| tolerance | green | red | starts | minutes |\n|---|---|---|---|---|\n")
	for _, x := range powers {
		o := x.got
		fmt.Fprintf(&out, "| %s | %s | %s | %.1f | %.0f%% |\n", x.name, pct(o.share(o.green)), pct(o.share(o.red)), o.meanStarts(), 100*o.minutes())
		if o.n < 50 {
			continue // too few to tell
		}
		for what, short := range map[string]float64{"green": x.green - o.share(o.green), "red": x.red - o.share(o.red)} {
			must.Hold(t, short <= 3*math.Sqrt(0.25/float64(n)), "%s: %s short by %.3f", x.name, what, short)
		}
		if x.starts > 0 && o.meanStarts() > x.starts+0.5 || x.minutes > 0 && o.minutes() > x.minutes+0.04 {
			t.Errorf("%s: %.1f starts, %.2f of the minutes", x.name, o.meanStarts(), o.minutes())
		}
		if x.c.worse == 0 && x.c.slow == 0 && o.share(o.red) > most(0.01) {
			t.Errorf("%s: red in %.3f", x.name, o.share(o.red))
		}
	}
	for _, x := range slices.Concat(limits, powers, pairs) {
		must.Hold(t, x.got.unmissing <= 0, "%s: %d greens do not name the slow states that they may have missed", x.name, x.got.unmissing)
	}
	out.WriteString("\n")
	if *stagedTable != "" {
		must.Do(t, os.WriteFile(*stagedTable, []byte(out.String()), 0o644))
	}
}
