package assert

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/stat"
	arrivals "github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

var (
	rateGates = flag.Int("rates", 4, "simulated gates of each row of the table of rates; below 50 what is true is measured for a quarter as long")
	rateFull  = flag.Bool("rates-full", false, "on every model of a server, at 2 and 10 requests a second, Poisson and in bursts: hours")
	rateOnly  = flag.String("rates-model", "", "only models whose name holds this")
	rateSeed  = flag.Int64("rates-seed", 0, "added to the seed of each gate")
	rateTable = flag.String("rates-table", "", "file for the table of rates")
)

// rateModel is a server to which requests arrive.
type rateModel struct {
	name    string
	profile *sim.Profile
	input   int
	answers int     // mean length of an answer, ± 50 %
	shape   float64 // of the gaps between arrivals; 1 is Poisson
	// lost is how many tokens are computed again for each request that arrives
	// while others wait: it answers fewer requests the longer its queue is.
	lost int
}

// usualRates is the default profile, whose largest rate is about 12 requests a second.
func usualRates() *rateModel {
	return &rateModel{name: "default", profile: sim.DefaultProfile(), input: 256, answers: 96, shape: 1}
}

func (m *rateModel) lengths(seed int64) arrivals.Lengths {
	return arrivals.Lengths{Mean: m.answers, Jitter: 0.5, Seed: seed, Workload: "chat", Level: "rate"}
}

// again marks a job that is no request: what a crowded server computes twice.
const again = 1 << 40

func (m *rateModel) submit(e *sim.Engine, at time.Duration, id uint64, output int) {
	if m.lost > 0 && e.State(at).Waiting > 0 {
		mustSubmit(e, at, sim.Job{ID: again + id, Input: 1, Output: m.lost})
	}
	mustSubmit(e, at, sim.Job{ID: id, Input: m.input, Output: output})
}

// saturated keeps 256 requests in flight in the engine and returns how many
// requests a second its tokens stand for in each of the parts of so long, after as
// long a warm-up as a run has; and how long both took.
func (m *rateModel) saturated(seed int64, length time.Duration, parts int) ([]float64, time.Duration) {
	e, lengths := sim.NewEngine(m.profile, seed), m.lengths(seed)
	id := uint64(0)
	submit := func(at time.Duration) {
		m.submit(e, at, id, lengths.At(metric.Filler, int(id)))
		id++
	}
	for range plan.SaturationSlots {
		submit(0)
	}
	out := make([]float64, parts)
	from := time.Duration(math.MaxInt64 / 2)
	for now := time.Duration(1); ; {
		emitted, next, _ := e.Advance(now)
		free := 0
		for _, x := range emitted {
			if x.ID >= again {
				continue
			}
			if x.At > from && x.At <= from+length {
				out[min(int(int64(x.At-from)*int64(parts)/int64(length)), parts-1)] += float64(x.Tokens) / float64(m.answers) / (length.Seconds() / float64(parts))
			}
			if x.Last {
				free++
				from = min(from, 2*x.At)
			}
		}
		for range free {
			submit(now)
		}
		if now > from+length {
			return out, from + length
		}
		now = max(next, now+1)
	}
}

func mustSubmit(e *sim.Engine, at time.Duration, j sim.Job) {
	if err := e.Submit(at, j); err != nil {
		panic(err)
	}
}

// arriving is a level of a rate on the engine: as long a warm-up as a run has, then so
// many measured requests in ten rounds, and more until all of them have ended.
// It also returns how long that took.
func (m *rateModel) arriving(seed int64, rate float64, requests int, saturation []float64) (*metric.Level, time.Duration) {
	e, lengths := sim.NewEngine(m.profile, seed), m.lengths(seed)
	schedule := arrivals.Open{Rate: rate, Shape: m.shape, Due: requests, Seed: seed, Workload: "chat", Level: "rate"}.Begin(0)
	l := &metric.Level{Name: plan.RateName(rate), Kind: metric.OpenLoop, Rate: rate, Saturation: saturation}
	for i := range 10 {
		l.Rounds = append(l.Rounds, &metric.Round{Index: i, Complete: true, Busy: 1})
	}
	var samples []*metric.Sample // by id
	open, inFlight, steady, ended := requests, 0, arrivals.NewSteady(0), time.Duration(0)
	warmed, took := 0, time.Duration(0)
	work := func(until time.Duration) {
		emitted, _, _ := e.Advance(until)
		for _, x := range emitted {
			if x.ID >= again {
				continue
			}
			s := samples[x.ID]
			if s.First == 0 {
				s.First = x.At
			}
			if s.Last = x.At; !x.Last {
				continue
			}
			s.End, s.Usage, ended = x.At, &metric.Usage{Input: m.input, Output: x.Total}, x.At
			switch inFlight--; s.Phase {
			case metric.Measured:
				open--
			case metric.Warmup:
				warmed, took = warmed+1, took+s.End-s.Scheduled
			}
		}
	}
	for open > 0 {
		turn, at := schedule.Next()
		work(at)
		r := l.Rounds[0]
		switch turn.Phase {
		case metric.Measured:
			r = l.Rounds[turn.Order*10/requests]
			r.WindowEnd, r.Due = at, r.Due+1
		case metric.Filler:
			r = l.Rounds[9]
		}
		s := &metric.Sample{Round: r.Index, Order: turn.Order, Phase: turn.Phase, FromDue: true, Scheduled: at, Sent: at, Chunks: 1, End: math.MaxInt64}
		r.Samples, samples = append(r.Samples, s), append(samples, s)
		m.submit(e, at, uint64(len(samples)-1), lengths.At(turn.Phase, turn.Order))
		inFlight++
		if steady != nil && steady.Over(at, took/time.Duration(max(warmed, 1)), inFlight) {
			l.Rounds[0].WindowStart, steady = schedule.Warm(), nil
		}
	}
	for i, r := range l.Rounds[1:] {
		r.WindowStart = l.Rounds[i].WindowEnd
	}
	return l, ended
}

// Rules of other tools, written anew from what they say that they do, for the table
// alone.

// trending is a least squares line through what is in flight at a hundred moments, as
// if these were independent: does it rise, at 95 %?
func trending(l *metric.Level) bool {
	p := l.Passages()[0]
	counts := make([]float64, 100)
	for _, r := range l.Rounds {
		for _, s := range r.Samples {
			for i := range counts {
				if at := p.From + (p.To-p.From)*time.Duration(i)/100; s.Scheduled <= at && at < s.End {
					counts[i]++
				}
			}
		}
	}
	mean, _ := stat.Moments(counts)
	sxx, sxy, residuals := 0.0, 0.0, 0.0
	for i, c := range counts {
		x := float64(i) - 49.5
		sxx, sxy = sxx+x*x, sxy+x*(c-mean)
	}
	for i, c := range counts {
		d := c - mean - sxy/sxx*(float64(i)-49.5)
		residuals += d * d
	}
	return sxy/sxx/math.Sqrt(residuals/98/sxx) > stat.StudentQuantile(0.95, 98)
}

// deficient says that fewer than 95 % as many requests ended in the window as were
// due in it.
func deficient(l *metric.Level) bool {
	p := l.Passages()[0]
	ended := 0
	for _, r := range l.Rounds {
		for _, s := range r.Samples {
			if s.End > p.From && s.End <= p.To {
				ended++
			}
		}
	}
	return float64(ended) < 0.95*float64(p.Arrivals)
}

// rateModels are the servers of the full table, their answers so long that the largest rate
// is about so many requests a second.
func rateModels(about float64) []*rateModel {
	models := []*rateModel{usualRates()}
	for _, name := range []string{"qwen3-coder-30b-a3b-instruct-fp8.1x-h200-sxm", "qwen3.5-35b-a3b-fp8.1x-h100", "qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10.vanilla"} {
		p, err := sim.LoadProfile(name, "")
		if err != nil {
			panic(err)
		}
		_, short, _ := strings.Cut(name, ".1x-")
		models = append(models, &rateModel{name: short, profile: p, input: 256, shape: 1})
	}
	unlimited, crowded := usualRates(), usualRates()
	unlimited.name, crowded.name, crowded.lost = "no admission limit", "loses throughput", 24
	p := *unlimited.profile
	p.Limits.MaxSeqs, p.Limits.KVTokens, unlimited.profile = 0, 0, &p
	models = append(models, unlimited, crowded)
	for _, m := range models {
		m.answers = 96
		for range 2 {
			parts, _ := m.saturated(1, 2*time.Minute, 2)
			mean, _ := stat.Moments(parts)
			m.answers = max(4, int(math.Round(float64(m.answers)*mean/about)))
		}
	}
	return models
}

// shorter is by how much less is simulated of what is held to be true.
func shorter() int {
	if *rateGates < 50 {
		return 4
	}
	return 1
}

// largest is the largest rate that the model can sustain: what an hour of saturation
// tells; in the full table, whose servers are not all saturated by 256 requests, the
// largest rate at which the backlog of 20,000 requests does not grow.
func (m *rateModel) largest() float64 {
	parts, _ := m.saturated(1, time.Hour/time.Duration(shorter()), 10)
	low, _ := stat.Moments(parts)
	if !*rateFull {
		return low
	}
	low /= 2
	high := 4 * low
	for range 8 {
		middle := (low + high) / 2
		l, _ := m.arriving(3, middle, 20_000, nil)
		if g, _ := l.Growth(); g.Share < 0.005 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// sustains writes the rows of a model: how often a rate near its largest one is called
// sustained.
func (m *rateModel) sustains(t *testing.T, out *strings.Builder, gates, requests int, truth float64, nears []float64) {
	growth := withGrowth(nil, metric.OpenLoop, plan.Level{}, "")[0].Threshold
	for _, near := range nears {
		levels := make(chan *metric.Level)
		var todo atomic.Int64
		for range runtime.GOMAXPROCS(0) {
			go func() {
				for i := todo.Add(1); i <= int64(gates); i = todo.Add(1) {
					seed := int64(1000*near) + 10_000*i + *rateSeed
					saturation, _ := m.saturated(seed+1, plan.Saturation, 10)
					l, _ := m.arriving(seed, near*truth, requests, saturation)
					levels <- l
				}
			}()
		}
		count := map[Outcome]int{}
		trend, deficit := 0, 0
		for range gates {
			l := <-levels
			count[m.judged(l, growth)]++
			if trending(l) {
				trend++
			}
			if deficient(l) {
				deficit++
			}
		}
		share := func(n int) float64 { return float64(n) / float64(gates) }
		row := fmt.Sprintf("| %s, %.1f req/s, shape %v | %.2f | %.1f%% | %.1f%% | %.1f%% | %.1f%% | %.1f%% |\n", m.name, truth, m.shape, near,
			100*share(count[Pass]), 100*share(count[Fail]), 100*share(count[Inconclusive]), 100*share(trend), 100*share(deficit))
		out.WriteString(row)
		if *rateTrace {
			fmt.Print(row)
		}
		wrong, decided := Fail, 0.75
		if near > 1 {
			wrong = Pass
		}
		if near <= 0.85 || near >= 1.15 {
			decided = 0.9
		}
		if truth < 5 {
			decided = 0
			if near <= 0.7 || near >= 1.3 {
				decided = 0.75
			}
		}
		// At 5 % of n gates: three standard errors above.
		if most := 0.05 + 3*math.Sqrt(0.05*0.95/float64(gates)); share(count[wrong]) > most {
			t.Errorf("%s: at %.2f of the largest rate %.1f%% are decided wrongly", m.name, near, 100*share(count[wrong]))
		}
		if least := decided - 3*math.Sqrt(decided*(1-decided)/float64(gates)); m.shape == 1 && 1-share(count[Inconclusive]) < least {
			t.Errorf("%s: at %.2f of the largest rate only %.1f%% are decided", m.name, near, 100*(1-share(count[Inconclusive])))
		}
	}
}

// judged is the verdict of a threshold on a level of the model.
func (m *rateModel) judged(l *metric.Level, th *plan.Threshold) Outcome {
	w := &plan.Workload{Loads: []*plan.Load{{Open: &plan.Open{Arrivals: plan.Gamma, Burstiness: m.shape}, Levels: []plan.Level{{Name: l.Name}}}}}
	s := subject{evidence: gather(l), workload: w, policy: plan.Policy{Confidence: 0.95}, alpha: 0.05}
	return s.judge(th).Outcome
}

// TestLongRateCharacteristics measures how often a rate is called sustained, and a
// percentile certified, on the engine of the built-in server, whose largest rate a
// saturation of an hour tells.
func TestLongRateCharacteristics(t *testing.T) {
	var out strings.Builder
	const requests = 3000
	fmt.Fprintf(&out, "\n**Sustained?** 5 minutes of requests, %d gates a row; shape 1 is Poisson.\n\n", *rateGates)
	out.WriteString("| server, its largest rate, arrivals | rate / largest | sustained | not sustained | undecided | *trend of in-flight: overloaded* | *fewer than 95 % ended: overloaded* |\n|---|---|---|---|---|---|---|\n")
	m := usualRates()
	truth := m.largest()
	if *rateFull {
		for _, about := range []float64{10, 2} {
			for _, m := range rateModels(about) {
				if !strings.Contains(m.name, *rateOnly) {
					continue
				}
				truth := m.largest()
				for _, m.shape = range []float64{1, 0.5} {
					m.sustains(t, &out, *rateGates, int(about*300), truth, []float64{0.5, 0.7, 0.85, 0.95, 1.05, 1.15, 1.3})
				}
			}
		}
	} else {
		m.sustains(t, &out, *rateGates, requests, truth, []float64{0.85, 0.95, 1.05, 1.15})
	}
	truly := 40_000 / shorter()
	fmt.Fprintf(&out, "\n**A TTFT p95 at its limit** (by %d,000 requests at that rate): false passes of gates with these requests, with the cap on what they count as, and without it.\n\n| rate / largest | with the cap | without |\n|---|---|---|\n", truly/1000)
	nears := []float64{0.7, 0.85}
	if *rateFull {
		nears = []float64{0.7, 0.8, 0.85, 0.9}
	}
	for _, near := range nears {
		long, _ := m.arriving(7, near*truth, truly, nil)
		d := metric.Of(metric.MustLookup("ttft"), long.MeasuredSamples())
		at, _ := d.Percentile(95)
		limit := *threshold("ttft", "p95 < 2s")
		limit.Limit = at
		with, without := 0, 0
		for i := range *rateGates {
			seed := int64(2000*near) + int64(10_000*(i+1))
			l, _ := m.arriving(seed, near*truth, requests, nil)
			l.Saturation, _ = m.saturated(seed+1, plan.Saturation, 10)
			if m.judged(l, &limit) == Pass {
				with++
			}
			if l.Saturation = nil; m.judged(l, &limit) == Pass {
				without++
			}
		}
		n := float64(*rateGates)
		fmt.Fprintf(&out, "| %.2f | %.1f%% | %.1f%% |\n", near, 100*float64(with)/n, 100*float64(without)/n)
		if most := 0.05 + 3*math.Sqrt(0.05*0.95/n); float64(with)/n > most {
			t.Errorf("at %.2f of the largest rate %d of %d gates pass a p95 at its limit", near, with, *rateGates)
		}
	}
	if *rateTable != "" {
		if err := os.WriteFile(*rateTable, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(out.String())
}
