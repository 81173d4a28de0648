package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

func (b *builder) level(l *metric.Level) Case {
	l = l.InMemory()
	c := Case{
		Server: b.clean(l.Server), Workload: b.clean(l.Workload), Level: b.clean(l.Name),
		Kind: string(l.Kind), N: l.N, Rate: l.Rate, Largest: largest(l), Stage: stageOf(l), Speedup: l.Speedup, Cut: string(l.Cut), Natural: l.Natural, Exact: l.Exact, Skipped: b.clean(l.Skipped),
		RatesOver: string(b.window(l.Workload)), Shed: l.Shed,
		Due: l.Due(), Failures: []Failure{}, Rounds: []Round{}, Looks: []Look{}, Notes: b.cleanAll(l.Notes), Metrics: []Summary{}, Series: []Series{},
	}
	c.Title, c.Description = b.levelWords(l)
	c.Of, c.Share = b.clean(l.Of), l.Share
	if l.Asked != nil {
		c.Asked = l.Asked.Digest()
		if l.Batches {
			c.Asked += " window" // other figures than those of rounds with a pause between them
		}
	}
	if l.Probe != nil {
		c.Probe = &CaseProbe{b.clean(l.Probe.Purpose), l.Probe.Set}
	}
	for _, look := range l.Looks {
		c.Looks = append(c.Looks, Look{look.Requests, look.Planned, look.Spent, b.clean(look.Outcome)})
	}
	b.rounds(&c, l)
	samples := l.MeasuredSamples()
	b.requests(&c, samples)
	c.Turns, c.Rows = turnsOf(samples), rowsOf(samples)
	for _, def := range metric.Defs {
		if def.Later || metric.OfRates(def.Name) && l.Kind != metric.OpenLoop || metric.OfTurns(def.Name) && c.Turns == nil {
			continue
		}
		c.Metrics = append(c.Metrics, b.summary(def, l, samples))
		if def.Name == "accept_rate" {
			for i, v := range l.AcceptRateAt() {
				c.Metrics = append(c.Metrics, Summary{
					Metric: fmt.Sprintf("accept_rate[%d]", i), Unit: string(def.Unit), Better: direction(def.Better), Of: scope(def.Scope), Value: numberOf(v), N: len(samples),
				})
			}
		}
		if s, ok := seriesOf(def, l); ok {
			c.Series = append(c.Series, s)
		}
	}
	if c.VLLMBench != nil {
		c.VLLMBench.ITL = c.Summary("itl").milliseconds()
	}
	return c
}

// rounds adds the level's rounds to the case c, and sets the start and duration of c.
func (b *builder) rounds(c *Case, l *metric.Level) {
	var start, end time.Duration
	for i, r := range l.Rounds {
		if i == 0 || r.Start < start {
			start = r.Start
		}
		end = max(end, r.End)
		c.Rounds = append(c.Rounds, b.round(l, r))
		c.Window += c.Rounds[i].Window
	}
	for _, r := range l.Voided {
		c.Voided = append(c.Voided, b.round(l, r))
	}
	c.VLLMBench = vllmBench(l)
	c.At, c.Duration = start.Seconds(), max(end-start, 0).Seconds()
	if len(l.Rounds) > 0 && l.Rounds[0].Leg != nil {
		// Add up the rounds of this server. Between them the other server's rounds took place.
		c.Duration = 0
		for _, r := range c.Rounds {
			c.Duration += r.Duration
		}
	}
}

func (b *builder) round(l *metric.Level, r *metric.Round) Round {
	out := Round{
		Index: r.Index, Seed: r.Seed, Due: r.Due,
		At: r.Start.Seconds(), Duration: max(r.End-r.Start, 0).Seconds(),
		Busy: share(r.Busy), CPU: share(r.Health.CPU),
		GCPause: r.Health.GCPause.Seconds(), Delay: r.Health.Delay.Seconds(), Stall: r.Health.Stall.Seconds(),
		Complete: r.Complete, Stopped: b.clean(r.Stopped), Void: b.clean(r.Void),
	}
	for _, s := range l.Stretches(r, b.window(l.Workload), 1) {
		out.Window = s.Seconds()
	}
	return out
}

// requests counts the measured requests of a case: completed, failed in each way, and canceled.
func (b *builder) requests(c *Case, samples []*metric.Sample) {
	failures := map[metric.FailureKind]map[string]int{}
	for _, s := range samples {
		c.Reconnects += s.Reconnects
		if s.Canceled() {
			c.Canceled++
			continue
		}
		if f := s.Failure; f != nil {
			c.Failed++
			if failures[f.Kind] == nil {
				failures[f.Kind] = map[string]int{}
			}
			failures[f.Kind][b.clean(f.Message)]++
			continue
		}
		c.Completed++
		if s.Usage != nil {
			c.InputTokens += s.Usage.Input
			c.OutputTokens += s.Usage.Output
		}
	}
	c.Failures = append(c.Failures, countFailures(failures)...)
}

// seriesOf joins the readings of one metric from all rounds of a level to one series.
func seriesOf(def metric.Def, l *metric.Level) (Series, bool) {
	joined := metric.Series{}
	for _, r := range l.Rounds {
		if r.Telemetry == nil {
			continue
		}
		for _, s := range r.Telemetry.Series {
			if n := min(len(s.At), len(s.Values)); s.Metric == def.Name {
				joined.At, joined.Values = append(joined.At, s.At[:n]...), append(joined.Values, s.Values[:n]...)
			}
		}
	}
	joined.Thin()
	out := Series{Metric: def.Name, Unit: string(def.Unit), At: []float64{}, Values: joined.Values}
	for _, at := range joined.At {
		out.At = append(out.At, float64(at)/1e3)
	}
	return out, len(out.At) > 0
}

// mostMessages is the largest number of different messages for one kind of failure. messageBytes is
// the largest length of a message.
const (
	mostMessages = 5
	messageBytes = 2000
)

func countFailures(kinds map[metric.FailureKind]map[string]int) []Failure {
	var out []Failure
	for kind, messages := range kinds {
		f := Failure{Kind: string(kind)}
		for message, n := range messages {
			f.Count += n
			f.Messages = append(f.Messages, Message{text.Bytes(message, messageBytes), n})
		}
		slices.SortFunc(f.Messages, func(a, b Message) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text))
		})
		f.Messages = f.Messages[:min(len(f.Messages), mostMessages)]
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// curved lists the metrics whose full distribution is in the document. Each distribution has
// curvePoints points.
var curved = []string{"ttft", "speed", "itl", "e2e"}

const curvePoints = 41

func (b *builder) summary(def metric.Def, l *metric.Level, samples []*metric.Sample) Summary {
	if b.declared != nil && b.declared.Prices != nil {
		def.Unit = b.declared.Prices.Unit(def.Unit)
	}
	s := Summary{Metric: def.Name, Unit: string(def.Unit), Better: direction(def.Better), Of: scope(def.Scope)}
	switch def.Scope {
	case metric.Counted:
		told, _ := l.Told() // a note of the level says if rounds are left out
		h, why := told.Histogram(def.Name)
		return counted(s, h, b.clean(why))
	case metric.PerReading:
		g, why := l.Gauge(def.Name)
		s.N, s.Why = g.N, b.clean(why)
		if g.N > 0 {
			s.Mean, s.Min, s.Max = numberOf(g.Mean), numberOf(g.Min), numberOf(g.Max)
		}
		return s
	case metric.PerLevel:
		v := b.levelValue(def, l)
		if told, _ := l.Told(); !v.OK {
			v = b.levelValue(def, told)
		}
		s.Value, s.N = number(v), len(samples)
		if !s.Value.OK {
			s.Why = cmp.Or(b.clean(v.Why), def.NoValue)
		}
		return s
	}
	d := metric.Of(def, samples)
	s.N, s.Worst, s.LeftOut = d.N(), d.Worst, d.LeftOut
	if len(d.Values) == 0 {
		s.Why = def.NoValue
	} else if why := l.Unstreamed(); def.Streams && why != "" {
		s.Why, d.Values, d.Until = why, nil, nil
	}
	stat := func(kind metric.StatKind, p float64) Number {
		// Without values there are no percentiles. Infinite ones would look like measurements.
		if len(d.Values) == 0 {
			return Number{}
		}
		v, ok := d.Stat(metric.Stat{Kind: kind, P: p})
		if !ok {
			return Number{}
		}
		return numberOf(v)
	}
	s.Mean, s.Min, s.Max = stat(metric.Mean, 0), stat(metric.Min, 0), stat(metric.Max, 0)
	s.Percentiles = &Percentiles{}
	for p, n := range s.Percentiles.each() {
		*n = stat(metric.Percentile, p)
	}
	if len(d.Values) > 0 && slices.Contains(curved, def.Name) {
		s.Curve = make([]Number, curvePoints)
		s.Curve[0] = stat(metric.Min, 0)
		for i := 1; i < curvePoints; i++ {
			s.Curve[i] = stat(metric.Percentile, 100*float64(i)/(curvePoints-1))
		}
	}
	return s
}

// counted adds the mean and the percentiles of a histogram to a summary. The mean is exact, and
// percentiles are estimates within their bucket.
func counted(s Summary, h metric.Histogram, why string) Summary {
	s.N, s.Why, s.Estimated = int(math.Round(h.N())), why, true
	if m, ok := h.Mean(); ok {
		s.Mean = numberOf(m)
	}
	s.Percentiles = &Percentiles{}
	for p, n := range s.Percentiles.each() {
		if v, _, _, ok := h.Percentile(p); ok {
			*n = numberOf(v)
		}
	}
	return s
}

// each yields the number of each percentile, in (0, 100), and a pointer to its value.
func (p *Percentiles) each() func(yield func(float64, *Number) bool) {
	return func(yield func(float64, *Number) bool) {
		for i, n := range []*Number{&p.P1, &p.P5, &p.P10, &p.P25, &p.P50, &p.P75, &p.P90, &p.P95, &p.P99, &p.P999} {
			if !yield([]float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9}[i], n) {
				return
			}
		}
	}
}

func scope(s metric.Scope) string {
	switch s {
	case metric.PerGap:
		return "gap"
	case metric.PerLevel:
		return "level"
	case metric.Counted:
		return "histogram"
	case metric.PerReading:
		return "reading"
	}
	return "request"
}

// stageOf returns the rate of a stage as text; "" if the level is no stage.
func stageOf(l *metric.Level) string {
	switch s := l.Stage; {
	case s == nil:
		return ""
	case s.From == s.To:
		return metric.Format(metric.PerSecond, s.From)
	default:
		return metric.Format(metric.PerSecond, s.From) + " to " + metric.Format(metric.PerSecond, s.To)
	}
}
