package assert

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	arrivals "github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

var (
	rateGates = flag.Int("rates", 4, "simulated gates of each row of the table of rates; below 50 what is true is measured for a quarter as long")
	rateFull  = flag.Bool("rates-full", false, "on every model of a server, at 2 and 10 requests a second, Poisson and in bursts: hours; -run TestLongRateCharacteristics/H100/2/shape_0.5/0.95 runs one row")
	rateSeed  = flag.Int64("rates-seed", 0, "added to the seed of each gate")
	rateTail  = flag.Int("rates-requests", 3000, "requests of each gate of a percentile")
	rateTable = flag.String("rates-table", "", "file for the table of rates")
)

// rateModel is a simulated server at which requests arrive.
type rateModel struct {
	name    string
	profile *sim.Profile
	input   int
	answers int     // mean answer length in tokens; lengths vary by ± 50 %
	shape   float64 // shape parameter of the gamma-distributed gaps between arrivals; 1 is Poisson
	// lost is the number of tokens that the server computes twice if a request must wait. If lost >
	// 0, a longer queue makes the server slower.
	lost int
	// long means that requests take so long that ten minutes hold too few of them, one after the
	// other, to certify a percentile.
	long bool
}

// usualRates returns a server with the default profile. Its largest rate is about 12 req/s.
func usualRates() *rateModel {
	return &rateModel{name: "default", profile: sim.DefaultProfile(), input: 256, answers: 96, shape: 1}
}

func (m *rateModel) lengths(seed int64) arrivals.Lengths {
	return arrivals.Lengths{Mean: m.answers, Jitter: 0.5, Seed: seed, Workload: "chat", Level: "rate"}
}

// recomputedJobs is the first id of the simulated jobs that stand for tokens computed a second time
// by a crowded server, not for requests.
const recomputedJobs = 1 << 40

// saturation holds what was measured while the simulated engine was saturated.
type saturation struct {
	parts []float64 // requests per second in each part of the time, computed from the tokens made
	at    float64   // answered at once
	slots int       // in flight
	took  time.Duration
}

// saturated simulates a saturated server and returns what its engine did. After a warm-up it keeps
// at most the given number of requests in flight, for the given length of time.
func (m *rateModel) saturated(seed int64, most int, length time.Duration, parts int) saturation {
	e, lengths := sim.NewEngine(m.profile, seed), m.lengths(seed)
	steps := arrivals.Saturation{N: plan.SaturationSlots, Most: most}
	var began, aged []bool // for each job: did its first token come; did it begin in mid-answer
	before := map[uint64]time.Duration{}
	inFlight, answering, tokens := 0, 0, int64(0)
	submit := func(at time.Duration, part float64) {
		id := len(began)
		began, aged = append(began, false), append(aged, part > 0)
		output := lengths.At(metric.Filler, id)
		made := int(part * float64(output))
		m.send(e, at, sim.Job{ID: uint64(id), Input: m.input + made, Output: output - made})
		inFlight++
	}
	for range steps.N {
		submit(0, 0)
	}
	out := saturation{parts: make([]float64, parts)}
	const never = time.Duration(math.MaxInt64 / 2)
	from, warm, tick, area := never, time.Minute, time.Second, 0.0
	// first is the time at which the first answer was complete. last is the time of the last token
	// in the window.
	var first, last time.Duration
	for now := time.Duration(1); ; {
		emitted, next, _ := e.Advance(now)
		free := 0
		for _, x := range emitted {
			if x.ID >= recomputedJobs {
				continue
			}
			if x.At > from && x.At <= from+length {
				area, last = area+float64(answering)*(x.At-max(last, from)).Seconds(), x.At
				since, ok := before[x.ID]
				if !ok {
					since = x.At - 1 // its first
				}
				m.adds(out.parts, float64(x.Tokens), since-from, x.At-from, length)
			}
			before[x.ID], tokens = x.At, tokens+int64(x.Tokens)
			if !began[x.ID] {
				began[x.ID] = true
				answering++
			}
			if x.Last {
				free++
				inFlight--
				answering--
				if first == 0 && from == never {
					first = x.At
					warm = min(warm, 2*first)
				}
			}
		}
		for range free {
			submit(now, 0)
		}
		if now >= from+length {
			out.at, out.slots, out.took = area/length.Seconds(), steps.N, from+length
			return out
		}
		if isWarm := now >= warm; from == never && (now >= tick || isWarm) {
			had := steps.N
			if steps.Look(now, inFlight-answering, tokens, isWarm) {
				if from = now; steps.Queues(inFlight - answering) {
					for id := range began {
						if aged[id] && !began[id] && e.Cancel(uint64(id)) {
							inFlight--
							submit(now, 0)
						}
					}
				}
			}
			if steps.Anew && steps.N > had {
				for id := range began {
					if e.Cancel(uint64(id)) {
						inFlight--
						if began[id] {
							answering--
						}
					}
				}
				had = 0
			}
			for i := range steps.N - had {
				submit(now, (float64(steps.N-had-i)-0.5)/float64(steps.N-had))
			}
			tick = now + time.Second
			if isWarm {
				warm = never
			}
			if from < never {
				tick, warm = never, never
			}
		}
		now = min(max(next, now+1), max(tick, now+1), max(warm, now+1))
	}
}

// adds spreads tokens over the elements of parts, as requests per second. The tokens were made
// between the times from and to. Each element stands for an equal part of the duration length.
func (m *rateModel) adds(parts []float64, tokens float64, from, to, length time.Duration) {
	each := length / time.Duration(len(parts))
	rate := tokens / float64(m.answers) / each.Seconds()
	for i := max(from, 0) / each; i <= (to-1)/each && int(i) < len(parts); i++ {
		parts[i] += rate * (min(to, (i+1)*each) - max(from, i*each)).Seconds() / (to - from).Seconds()
	}
}

func (m *rateModel) send(e *sim.Engine, at time.Duration, j sim.Job) {
	if m.lost > 0 && e.State(at).Waiting > 0 {
		mustSubmit(e, at, sim.Job{ID: recomputedJobs + j.ID, Input: 1, Output: m.lost})
	}
	mustSubmit(e, at, j)
}

func mustSubmit(e *sim.Engine, at time.Duration, j sim.Job) {
	if err := e.Submit(at, j); err != nil {
		panic(err)
	}
}

// arriving simulates a level whose requests arrive at a rate. It returns the level and how long it
// took. Ten rounds of measured requests follow a warm-up as in a run. Further requests arrive until
// all measured requests have ended.
func (m *rateModel) arriving(seed int64, rate float64, requests int, most saturation) (*metric.Level, time.Duration) {
	e, lengths := sim.NewEngine(m.profile, seed), m.lengths(seed)
	schedule := arrivals.Open{Rate: rate, Shape: m.shape, Due: requests, Seed: seed, Workload: "chat", Level: "rate"}.Begin(0)
	l := &metric.Level{Name: plan.RateName(rate), Kind: metric.OpenLoop, Rate: rate, Saturation: most.parts, SaturationAt: most.at}
	for i := range 10 {
		l.Rounds = append(l.Rounds, &metric.Round{Index: i, Complete: true, Busy: 1})
	}
	var samples []*metric.Sample // by id
	open, inFlight, steady, ended := requests, 0, arrivals.NewSteady(0, l.Overloaded()), time.Duration(0)
	warmed, took := 0, time.Duration(0)
	work := func(until time.Duration) {
		emitted, _, _ := e.Advance(until)
		for _, x := range emitted {
			if x.ID >= recomputedJobs {
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
		m.send(e, at, sim.Job{ID: uint64(len(samples) - 1), Input: m.input, Output: lengths.At(turn.Phase, turn.Order)})
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

// The next functions decide, by the rules of other tools, whether a server sustains a rate. The
// table that the test writes compares them with tokgate.

// trending reports whether a line through the number of requests in flight at a hundred moments
// rises. The test has 95 % confidence, as if the hundred numbers were independent.
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

// deficient reports whether fewer than 95 % of the requests that were due in the window ended in
// it.
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

// rateModels returns the servers of the full table.
func rateModels() []*rateModel {
	models := []*rateModel{usualRates()}
	for _, m := range []struct{ name, profile string }{
		{"H200", "qwen3-coder-30b-a3b-instruct-fp8.1x-h200-sxm"}, {"H100", "qwen3.5-35b-a3b-fp8.1x-h100"}, {"DGX Spark", "qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10.vanilla"},
	} {
		p, err := sim.LoadProfile(m.profile, "")
		if err != nil {
			panic(err)
		}
		models = append(models, &rateModel{name: m.name, profile: p, input: 256, answers: 96, shape: 1, long: m.name == "H200"})
	}
	unlimited, crowded := usualRates(), usualRates()
	unlimited.name, crowded.name, crowded.lost = "no admission limit", "loses throughput", 24
	p := *unlimited.profile
	p.Limits.MaxSeqs, p.Limits.KVTokens, unlimited.profile = 0, 0, &p
	return append(models, unlimited, crowded)
}

// scale changes the length of answers, so that the largest rate of the server comes close to the
// requested rate.
func (m *rateModel) scale(about float64) {
	for range 2 {
		mean, _ := stat.Moments(m.saturated(1, plan.SaturationSlots, 2*time.Minute, 2).parts)
		m.answers = max(4, int(math.Round(float64(m.answers)*mean/about)))
	}
}

// known returns a function that measures the largest rate of the server, which takes long. In a
// full run it first scales the server, so that this rate comes close to the requested one.
func (m *rateModel) known(about float64) func() (*rateModel, float64) {
	return sync.OnceValues(func() (*rateModel, float64) {
		out := *m
		if *rateFull {
			out.scale(about)
		}
		return &out, out.largest()
	})
}

// shorter is a factor by which the simulations of true values are shortened. It is 4 if fewer than
// 50 gates are simulated, and else 1.
func shorter() int {
	if *rateGates < 50 {
		return 4
	}
	return 1
}

// mostInFlight is the default of max_in_flight.
const mostInFlight = 4096

// largest returns the largest rate that the simulated server can sustain. It measures the rate with
// as many requests in flight as possible. If a long queue slows the server (lost > 0), it also
// searches for the largest rate whose backlog does not grow, and returns that if it is higher.
func (m *rateModel) largest() float64 {
	low := m.answered(mostInFlight, 2*time.Hour/time.Duration(shorter()))
	if !*rateFull || m.lost == 0 {
		return low
	}
	high := 2 * low
	for range 7 {
		middle := (low + high) / 2
		l, _ := m.arriving(3, middle, 20_000, saturation{})
		if g, _ := l.Growth(); g.Share < 0.005 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// answered returns how many requests the server answers per second with n in flight. The first n
// requests begin in the middle of their answers. When they have ended, counting begins. It lasts
// for half of the given length.
func (m *rateModel) answered(n int, length time.Duration) float64 {
	e, lengths := sim.NewEngine(m.profile, 1), m.lengths(1)
	id, tokens := uint64(0), 0
	submit := func(at time.Duration, before float64) {
		output := lengths.At(metric.Filler, int(id))
		made := int(before * float64(output))
		m.send(e, at, sim.Job{ID: id, Input: m.input + made, Output: output - made})
		id++
	}
	for i := range n {
		submit(0, (float64(i)+0.5)/float64(n))
	}
	first, from := n, time.Duration(0)
	for now := time.Duration(1); first > 0 || now < from+length/2; {
		emitted, next, _ := e.Advance(now)
		free := 0
		for _, x := range emitted {
			if x.ID >= recomputedJobs {
				continue
			}
			if first == 0 {
				tokens += x.Tokens
			}
			if x.Last {
				free++
				if x.ID < uint64(n) {
					first--
					from = x.At
				}
			}
		}
		for range free {
			submit(now, 0)
		}
		now = max(next, now+1)
	}
	return float64(tokens) / float64(m.answers) / (length / 2).Seconds()
}

// onAll runs gates, numbered from 1, on all processors, and returns their results in order.
func onAll[T any](gates int, gate func(i int64) T) []T {
	out := make([]T, gates)
	var todo atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := todo.Add(1); i <= int64(gates); i = todo.Add(1) {
				out[i-1] = gate(i)
			}
		})
	}
	all.Wait()
	return out
}

// sustains returns two cells of a table for a rate near the model's largest rate. The first is how
// often we judge it sustained, and the second how often rules of other tools call it overloaded.
func (m *rateModel) sustains(t *testing.T, requests int, truth, near float64) (ours, theirs string) {
	growth := withGrowth(&plan.Workload{}, nil, metric.OpenLoop, plan.Level{}, "")[0].Threshold
	count, trend, deficit := map[verdict.Outcome]int{}, 0, 0
	for _, x := range onAll(*rateGates, func(i int64) (out struct {
		verdict.Verdict
		trends, deficient bool
	}) {
		seed := int64(1000*near) + 10_000*i + *rateSeed
		l, _ := m.arriving(seed, near*truth, requests, m.saturated(seed+1, mostInFlight, plan.Saturation, 10))
		m.followed(seed+2, l, growth)
		out.Verdict, out.trends, out.deficient = m.judged(l, growth), trending(l), deficient(l)
		if *rateTrace {
			p := l.Passages()[0]
			fmt.Printf("   %-12s %d→%d in flight, the saturated server answered %.0f; %s\n", out.Outcome, p.Begin, p.End, l.SaturationAt, out.Message)
		}
		return out
	}) {
		count[x.Outcome]++
		if x.trends {
			trend++
		}
		if x.deficient {
			deficit++
		}
	}
	gates := float64(*rateGates)
	share := func(n int) float64 { return float64(n) / gates }
	ours = fmt.Sprintf("%.1f / %.1f", 100*share(count[verdict.Pass]), 100*share(count[verdict.Fail]))
	theirs = fmt.Sprintf("%.0f / %.0f", 100*share(trend), 100*share(deficit))
	if *rateTrace {
		fmt.Printf("%s, %.1f req/s, shape %v, %.2f: %s, other rules %s\n", m.name, truth, m.shape, near, ours, theirs)
	}
	wrong, decided := verdict.Fail, 0.75
	if near > 1 {
		wrong = verdict.Pass
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
	// Chance may add three standard errors to the allowed error of 5 %.
	if most := 0.05 + 3*math.Sqrt(0.05*0.95/gates); share(count[wrong]) > most {
		t.Errorf("%s: at %.2f of the largest rate %.1f%% are decided wrongly", m.name, near, 100*share(count[wrong]))
	}
	least := decided - 3*math.Sqrt(decided*(1-decided)/gates)
	must.Hold(t, 1-share(count[verdict.Inconclusive]) >= least, "%s: at %.2f of the largest rate only %.1f%% are decided", m.name, near, 100*(1-share(count[verdict.Inconclusive])))
	return ours, theirs
}

// judged returns the verdict on a threshold at a simulated level.
func (m *rateModel) judged(l *metric.Level, th *plan.Threshold) verdict.Verdict {
	return m.subject(l).judge(th)
}

func (m *rateModel) subject(l *metric.Level) *subject {
	w := &plan.Workload{Loads: []*plan.Load{{Open: &plan.Open{Arrivals: plan.Gamma, Burstiness: m.shape}, Levels: []plan.Level{{Name: l.Name}}}}}
	return &subject{evidence: gather(l), workload: w, policy: plan.Policy{Confidence: 0.95}, alpha: 0.05}
}

// followed saturates the server after the level if the verdict on the growth of its backlog awaits
// that, as a run does. It returns how long the saturation took.
func (m *rateModel) followed(seed int64, l *metric.Level, growth *plan.Threshold) (took time.Duration) {
	if !m.subject(l).awaits(growth) {
		return 0
	}
	for length := 20 * time.Second; length <= plan.Saturation; length += 10 * time.Second {
		after := m.saturated(seed, mostInFlight, length, 10)
		l.After, took = after.parts, after.took
		if _, low, high, _ := largest(l.After, 0.05); low > l.Rate || high < l.Rate {
			break
		}
	}
	return took
}

// TestLongRateCharacteristics measures how often a rate is judged sustained, and how often a
// percentile is certified. The true largest rate comes from one hour of saturation of the simulated
// engine.
func TestLongRateCharacteristics(t *testing.T) {
	var sustained, others, percentiles strings.Builder
	fmt.Fprintf(&percentiles, "\n**A TTFT p95 at its limit** (by %d,000 requests at that rate): false passes of %d gates a row with %d requests, with the cap on what they count as, and without it; and of a part of a mix, a quarter of them at random, with that of its own; passes with the cap of a p95 that is 20 %% below its limit.\n\n| server | rate / largest | with the cap | without | of a part | 20 %% below: passes |\n|---|---|---|---|---|---|\n", truly()/1000, *rateGates, *rateTail)
	models, abouts, shapes := []*rateModel{usualRates()}, []float64{10}, []float64{1}
	nears, tails := []float64{0.85, 0.95, 1.05, 1.15}, []float64{0.7, 0.85}
	if *rateFull {
		models, abouts, shapes = rateModels(), []float64{10, 2}, []float64{1, 0.5}
		nears, tails = []float64{0.5, 0.7, 0.85, 0.95, 1.05, 1.15, 1.3}, []float64{0.3, 0.7, 0.8, 0.85, 0.9}
	}
	fmt.Fprintf(&sustained, "\n**Sustained?** 5 minutes of requests, %d gates a cell: %% called sustained / not sustained. The others are undecided.\n\n", *rateGates)
	others.WriteString("\n**Rules of other tools, on the same gates:** % called overloaded because the number of requests in flight rises / because fewer than 95 % of the requests ended.\n\n")
	head := "| server, its largest rate, arrivals |"
	for _, near := range nears {
		head += fmt.Sprintf(" %.2f |", near)
	}
	head += "\n|---|" + strings.Repeat("---|", len(nears)) + "\n"
	sustained.WriteString(head)
	others.WriteString(head)
	for _, about := range abouts {
		for _, m := range models {
			known := m.known(about)
			row := func(kind string, shape, near float64, measure func(t *testing.T, m *rateModel, truth float64)) {
				t.Run(fmt.Sprintf("%s/%v/%s/%v", m.name, about, kind, near), func(t *testing.T) {
					m, truth := known()
					m.shape = shape
					measure(t, m, truth)
				})
			}
			for _, shape := range shapes {
				label, ours, theirs := "", slices.Repeat([]string{"–"}, len(nears)), slices.Repeat([]string{"–"}, len(nears))
				for i, near := range nears {
					row(fmt.Sprintf("shape %v", shape), shape, near, func(t *testing.T, m *rateModel, truth float64) {
						label = fmt.Sprintf("| %s, %.1f req/s, %s | ", m.name, truth, shapeName(shape))
						ours[i], theirs[i] = m.sustains(t, int(about*300), truth, near)
					})
				}
				if label != "" {
					sustained.WriteString(label + strings.Join(ours, " | ") + " |\n")
					others.WriteString(label + strings.Join(theirs, " | ") + " |\n")
				}
			}
			for _, near := range tails {
				if about == 10 {
					row("p95", 1, near, func(t *testing.T, m *rateModel, truth float64) { m.certifies(t, &percentiles, truth, near) })
				}
			}
		}
	}
	out := sustained.String() + others.String() + percentiles.String()
	if *rateTable != "" {
		must.Do(t, os.WriteFile(*rateTable, []byte(out), 0o644))
	}
	t.Log(out)
}

// shapeName returns the name of arrivals whose gaps have the given shape parameter.
func shapeName(shape float64) string {
	if shape == 1 {
		return "Poisson"
	}
	return fmt.Sprintf("gamma %v", shape)
}

// truly returns the number of requests in a simulation that finds a true percentile. It must be
// large if the server answers hundreds of requests at the same time: all of them may be fast or
// slow together, so they count as few.
func truly() int {
	if *rateFull {
		return 400_000 / shorter()
	}
	return 40_000 / shorter()
}

// certifies writes a row: how often a p95 of TTFT passes if the true p95 is exactly at its limit.
func (m *rateModel) certifies(t *testing.T, out *strings.Builder, truth, near float64) {
	limit, far := *threshold("ttft", "p95 < 2s"), *threshold("ttft", "p95 < 2s")
	long, _ := m.arriving(7, near*truth, truly(), saturation{})
	d := metric.Of(metric.MustLookup("ttft"), long.MeasuredSamples())
	limit.Limit, _ = d.Percentile(95)
	far.Limit = limit.Limit / 0.8
	// passes counts the gates that pass in four cases: with the crowding cap, without it, for a
	// part of a mix, and with the p95 20 % below the limit.
	var passes [4]int
	for _, passed := range onAll(*rateGates, func(i int64) [4]bool {
		seed := int64(2000*near) + 10_000*i + *rateSeed
		l, _ := m.arriving(seed, near*truth, *rateTail, m.saturated(seed+1, mostInFlight, plan.Saturation, 10))
		v := m.judged(l, &limit)
		below, part := m.judged(l, &far).Outcome == verdict.Pass, m.judged(quarter(l, seed), &limit).Outcome == verdict.Pass
		if *rateTrace {
			p := l.Passages()[0]
			fmt.Printf("   %-12s begins after %v with %d in flight, mean %.1f; %s\n", v.Outcome, p.From, p.Begin, p.Mean, v.Message)
		}
		l.Saturation = nil
		return [4]bool{v.Outcome == verdict.Pass, m.judged(l, &limit).Outcome == verdict.Pass, part, below}
	}) {
		for i, p := range passed {
			if p {
				passes[i]++
			}
		}
	}
	n := float64(*rateGates)
	row := fmt.Sprintf("| %s | %.2f |", m.name, near)
	for _, k := range passes {
		row += fmt.Sprintf(" %.1f%% |", 100*float64(k)/n)
	}
	row += "\n"
	out.WriteString(row)
	if *rateTrace {
		fmt.Print(row)
	}
	if most := 0.05 + 3*math.Sqrt(0.05*0.95/n); float64(max(passes[0], passes[2]))/n > most {
		t.Errorf("%s: at %.2f of the largest rate %d of %d gates pass a p95 at its limit, and %d of a part", m.name, near, passes[0], *rateGates, passes[2])
	}
}

// quarter returns the level of a part of a mix. The part has a random quarter of the requests of
// the level l.
func quarter(l *metric.Level, seed int64) *metric.Level {
	random, out := rand.New(rand.NewPCG(uint64(seed), 4)), *l
	out.Of, out.Share, out.Rounds = "mix", 0.25, nil
	for _, r := range l.Rounds {
		var own []*metric.Sample
		for four := range slices.Chunk(r.MeasuredSamples(), 4) {
			own = append(own, four[random.IntN(len(four))])
		}
		part := r.With(own)
		part.Due = len(own)
		out.Rounds = append(out.Rounds, part)
	}
	return &out
}
