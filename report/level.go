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

// level derives a case from the level l. The level bare is the same without its requests, and whole
// is the same with the rounds that are not judged; for a part of a mix, the level of its mix.
func (b *builder) level(bare, l, whole *metric.Level) Case {
	judged := b.run.WithStarts(l.InMemory())
	if whole == l {
		whole = judged
	}
	l = judged
	c := Case{Level: bare, RatesOver: b.window(l.Workload), Metrics: []Summary{}, Spent: spentOn(whole, l)}
	c.Title, c.Description = b.levelWords(l)
	if l.Asked != nil {
		c.Digest = l.Asked.Digest()
		if l.Batches {
			c.Digest += " window" // other figures than those of rounds with a pause between them
		}
	}
	for _, s := range l.Windows(c.RatesOver) {
		c.Window += s.Seconds()
	}
	samples := l.MeasuredSamples()
	x := observed{Level: l, samples: samples, unstreamed: l.Unstreamed()}
	x.told, _ = l.Told() // a note of the level says if rounds are left out
	b.requests(&c, samples)
	c.Departures = l.Departures()
	c.Breakdown = Breakdown{Implied: metric.ImpliedHitRate(samples), Turns: turnsOf(samples), Rows: rowsOf(samples)}
	for _, def := range metric.Defs {
		if metric.OfRates(def.Name) && l.Kind != metric.OpenLoop || metric.OfTurns(def.Name) && c.Turns == nil ||
			def.Name == "imbalance" && c.Replicas == nil {
			continue
		}
		c.Metrics = append(c.Metrics, b.summary(def, x))
		if def.Name == "accept_rate" {
			for i, v := range l.AcceptRateAt() {
				c.Metrics = append(c.Metrics, Summary{
					Metric: fmt.Sprintf("accept_rate[%d]",
						i), Unit: def.Unit, Better: def.Better.String(), Of: scope(def.Scope), Value: metric.Some(v), N: len(samples),
				})
			}
		}
		if s, ok := seriesOf(def, l); ok {
			c.Series = append(c.Series, s)
		}
	}
	if found := b.run.Server(l.Server); found != nil {
		for _, def := range found.Queried() {
			c.Metrics = append(c.Metrics, b.summary(def, x))
			if s, ok := seriesOf(def, l); ok {
				c.Series = append(c.Series, s)
			}
		}
	}
	c.VLLMBench = vllmBench(l)
	return c
}

func (c *Case) begin() float64 {
	var begin time.Duration
	for i, r := range c.Rounds {
		if i == 0 || r.Start < begin {
			begin = r.Start
		}
	}
	return begin.Seconds()
}

// Took returns the time from Begin to the end of the last measured request, in seconds. If the case
// took turns with another server, it is the total of its rounds.
func (c *Case) Took() float64 {
	end, sum := 0.0, 0.0
	for _, r := range c.Rounds {
		end, sum = max(end, r.End.Seconds()), sum+max(r.End-r.Start, 0).Seconds()
	}
	if len(c.Rounds) > 0 && c.Rounds[0].Leg != nil {
		return sum
	}
	return max(end-c.begin(), 0)
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
	out := Series{Metric: def.Name, Unit: def.Unit, At: []float64{}, Values: joined.Values}
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

// observed is a level with what its metrics are computed from.
type observed struct {
	*metric.Level
	told       *metric.Level    // see metric.Level.Told
	samples    []*metric.Sample // measured requests
	unstreamed string           // see metric.Level.Unstreamed
}

func (b *builder) summary(def metric.Def, l observed) Summary {
	if b.declared != nil && b.declared.Prices != nil {
		def.Unit = b.declared.Prices.Unit(def.Unit)
	}
	s := Summary{Metric: def.Name, Unit: def.Unit, Better: def.Better.String(), Of: scope(def.Scope)}
	switch def.Scope {
	case metric.Counted:
		h, why := l.told.Histogram(def.Name)
		return counted(s, h, why)
	case metric.PerReading:
		g, why := l.Gauge(def.Name)
		s.N, s.Why = g.N, why
		if g.N > 0 {
			s.Mean, s.Min, s.Max = metric.Some(g.Mean), metric.Some(g.Min), metric.Some(g.Max)
		}
		return s
	case metric.PerLevel:
		v := b.levelValue(def, l.Level)
		if !v.OK && l.told != l.Level {
			v = b.levelValue(def, l.told)
		}
		s.Value, s.N = v, len(l.samples)
		if !s.Value.OK {
			s.Why = cmp.Or(v.Why, def.NoValue)
		}
		return s
	}
	d := metric.Of(def, l.samples)
	s.N, s.Worst, s.LeftOut = d.N(), d.Worst, d.LeftOut
	if len(d.Values) == 0 {
		s.Why = def.NoValue
	} else if def.Streams && l.unstreamed != "" {
		s.Why, d.Values, d.Until = l.unstreamed, nil, nil
	}
	stat := func(kind metric.StatKind, p float64) metric.Value {
		// Without values there are no percentiles. Infinite ones would look like measurements.
		if len(d.Values) == 0 {
			return metric.Value{}
		}
		v, ok := d.Stat(metric.Stat{Kind: kind, P: p})
		if !ok {
			return metric.Value{}
		}
		return metric.Some(v)
	}
	s.Mean, s.Min, s.Max = stat(metric.Mean, 0), stat(metric.Min, 0), stat(metric.Max, 0)
	s.Percentiles = &Percentiles{}
	for p, n := range s.Percentiles.each() {
		*n = stat(metric.Percentile, p)
	}
	if len(d.Values) > 0 && slices.Contains(curved, def.Name) {
		s.Curve = make([]metric.Value, curvePoints)
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
		s.Mean = metric.Some(m)
	}
	s.Percentiles = &Percentiles{}
	for p, n := range s.Percentiles.each() {
		if v, _, _, ok := h.Percentile(p); ok {
			*n = metric.Some(v)
		}
	}
	return s
}

// each yields the number of each percentile, in (0, 100), and a pointer to its value.
func (p *Percentiles) each() func(yield func(float64, *metric.Value) bool) {
	return func(yield func(float64, *metric.Value) bool) {
		for i, n := range []*metric.Value{&p.P1, &p.P5, &p.P10, &p.P25, &p.P50, &p.P75, &p.P90, &p.P95, &p.P99, &p.P999} {
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
