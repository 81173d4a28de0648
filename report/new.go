package report

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report/text"
)

// Meta is what a document holds beyond the run, the plan and the verdicts.
type Meta struct {
	ExitCode    int
	Host        string              // "": not recorded
	Folder      string              // of the reports, as the user named it; "": none
	Calibration *metric.Calibration // nil: the run's own
	// Redacted takes the place of the plan's secrets in foreign text;
	// "": "[redacted]".
	Redacted string
}

// New joins a run, its plan and its verdicts. p may be nil when a recorded
// run is shown without its plan; run may not.
func New(run *metric.Run, p *plan.Plan, v assert.Verdicts, m Meta) *Document {
	b := builder{run: run, plan: p, redact: redactor(p, m.Redacted)}
	d := &Document{
		Schema:      Schema,
		Tool:        run.Tool,
		Run:         run.ID,
		Plan:        b.planned(),
		Host:        m.Host,
		Folder:      m.Folder,
		Started:     run.Started.Round(0).UTC(),
		Duration:    run.End.Seconds(),
		Salt:        strconv.FormatUint(run.Salt, 10),
		Simulated:   run.Simulated,
		Partial:     v.Partial,
		Stopped:     b.clean(run.Stopped),
		Outcome:     Outcome(v.Outcome.String()),
		Why:         b.clean(v.Why),
		ExitCode:    m.ExitCode,
		Calibration: calibration(cmp.Or(m.Calibration, run.Calibration)),
		Servers:     []Server{},
		Cases:       []Case{},
		Capacities:  []Capacity{},
		Comparisons: []Comparison{},
		Verdicts:    []Verdict{},
	}
	for _, s := range run.Servers {
		d.Servers = append(d.Servers, b.server(s))
	}
	for _, l := range run.Levels {
		d.Cases = append(d.Cases, b.level(l))
	}
	if p != nil {
		for _, w := range p.Workloads {
			d.Workloads = append(d.Workloads, b.workload(w))
		}
	}
	for _, c := range run.Capacities {
		d.Capacities = append(d.Capacities, b.capacity(c))
	}
	for _, c := range v.Comparisons {
		d.Comparisons = append(d.Comparisons, b.comparison(c))
	}
	for i := range v.List {
		// What was judged is what is shown, not what the search thought.
		if c := v.List[i].Capacity; c != nil {
			d.judged(b.capacity(c))
		}
		d.Verdicts = append(d.Verdicts, b.verdict(&v.List[i]))
	}
	d.Timelines = b.timelines(d)
	return d
}

type builder struct {
	run    *metric.Run
	plan   *plan.Plan // may be nil
	redact *strings.Replacer
}

// redactor replaces the plan's secrets. Values under four bytes protect
// nothing and would tear holes into numbers and words; they stay.
func redactor(p *plan.Plan, with string) *strings.Replacer {
	if p == nil {
		return strings.NewReplacer()
	}
	with = cmp.Or(with, "[redacted]")
	// The longest first: of two secrets that begin alike, the whole longer
	// one must go.
	secrets := slices.Clone(p.Secrets)
	slices.SortStableFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, s := range secrets {
		if len(s) >= 4 {
			pairs = append(pairs, s, with)
		}
	}
	return strings.NewReplacer(pairs...)
}

// clean makes foreign text valid UTF-8 without the plan's secrets; everything
// else stays for the outputs to deal with.
func (b *builder) clean(s string) string {
	return strings.ToValidUTF8(b.redact.Replace(s), "\uFFFD")
}

// cleanAll is clean of each; never nil.
func (b *builder) cleanAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = b.clean(s)
	}
	return out
}

func (b *builder) planned() Plan {
	out := Plan{Path: b.run.Plan, Hash: b.run.PlanHash, Servers: []string{}}
	if p := b.plan; p != nil {
		out.Path, out.Hash = cmp.Or(p.Path, out.Path), cmp.Or(p.Hash, out.Hash)
		out.Confidence = some(p.Gate.Confidence)
		out.Decide = string(p.Gate.Decide)
		out.Warn = p.Gate.OnInconclusive == plan.Warn
		out.Budget = p.Gate.Budget.Seconds()
		out.MeasureOnly = p.Gate.MeasureOnly
		if p.Prices != nil {
			out.Currency = b.clean(p.Prices.Currency)
		}
		for _, s := range p.Servers {
			out.Servers = append(out.Servers, b.clean(s.Address()))
		}
	} else {
		for _, s := range b.run.Servers {
			out.Servers = append(out.Servers, b.clean(s.Address))
		}
	}
	out.Path = strings.ToValidUTF8(filepath.ToSlash(out.Path), "\uFFFD")
	out.Name = planName(out.Path)
	out.Sources = b.sources()
	return out
}

// planName is the file's name without its extensions .hcl and .hcl.json.
func planName(file string) string {
	name := path.Base(file)
	for _, ext := range []string{".json", ".hcl", ".yaml"} {
		name = strings.TrimSuffix(name, ext)
	}
	if name == "" || name == "." || name == "/" {
		return "plan"
	}
	return name
}

func calibration(c *metric.Calibration) *Calibration {
	if c == nil {
		return nil
	}
	return &Calibration{
		Streams:  c.Streams,
		Rate:     some(c.Rate),
		Delay50:  c.Delay50.Seconds(),
		Delay99:  c.Delay99.Seconds(),
		CPU:      share(c.CPU),
		Duration: c.Took.Seconds(),
	}
}

// share is a share in [0, 1]; a negative one is unknown.
func share(v float64) Number {
	if v < 0 {
		return Number{}
	}
	return some(v)
}

func (b *builder) server(s *metric.ServerRun) Server {
	out := Server{Address: b.clean(s.Address), Fingerprint: []Property{}, Error: b.clean(s.Error), Log: b.clean(s.Log)}
	for _, key := range s.Fingerprint.Keys() {
		out.Fingerprint = append(out.Fingerprint, Property{b.clean(key), b.clean(s.Fingerprint[key])})
	}
	return out
}

func (b *builder) level(l *metric.Level) Case {
	c := Case{
		Server: b.clean(l.Server), Workload: b.clean(l.Workload), Level: b.clean(l.Name),
		Kind: string(l.Kind), N: l.N, Natural: l.Natural, Exact: l.Exact, Skipped: b.clean(l.Skipped),
		RatesOver: string(b.window(l.Workload)), Shed: l.Shed,
		Due: l.Due(), Failures: []Failure{}, Rounds: []Round{}, Looks: []Look{}, Notes: b.cleanAll(l.Notes), Metrics: []Summary{}, Series: []Series{},
	}
	if l.Asked != nil {
		c.Asked = l.Asked.Digest()
	}
	if l.Probe != nil {
		c.Probe = &CaseProbe{b.clean(l.Probe.Purpose), l.Probe.Set}
	}
	for _, look := range l.Looks {
		c.Looks = append(c.Looks, Look{look.Requests, look.Planned, b.clean(look.Outcome)})
	}
	var start, end time.Duration
	for i, r := range l.Rounds {
		if i == 0 || r.Start < start {
			start = r.Start
		}
		end = max(end, r.End)
		window := 0.0
		for _, s := range r.Stretches(b.window(l.Workload), 1) {
			window = s.Seconds()
		}
		c.Window += window
		c.Rounds = append(c.Rounds, Round{
			Index: r.Index, Seed: r.Seed, Due: r.Due,
			At: r.Start.Seconds(), Duration: max(r.End-r.Start, 0).Seconds(), Window: window,
			Busy: share(r.Busy), CPU: share(r.Health.CPU),
			GCPause: r.Health.GCPause.Seconds(), Delay: r.Health.Delay.Seconds(), Stall: r.Health.Stall.Seconds(),
			Complete: r.Complete, Stopped: b.clean(r.Stopped),
		})
	}
	c.At, c.Duration = start.Seconds(), max(end-start, 0).Seconds()
	if len(l.Rounds) > 0 && l.Rounds[0].Leg != nil {
		// Between its legs were those of another server.
		c.Duration = 0
		for _, r := range c.Rounds {
			c.Duration += r.Duration
		}
	}

	samples := l.MeasuredSamples()
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
	for _, def := range metric.Defs {
		if def.Later {
			continue
		}
		c.Metrics = append(c.Metrics, b.summary(def, l, samples))
		if def.Name == "accept_rate" {
			for i, v := range l.AcceptRateAt() {
				c.Metrics = append(c.Metrics, Summary{
					Metric: fmt.Sprintf("accept_rate[%d]", i), Unit: string(def.Unit), Better: direction(def.Better), Of: scope(def.Scope), Value: some(v), N: len(samples),
				})
			}
		}
		if s, ok := seriesOf(def, l); ok {
			c.Series = append(c.Series, s)
		}
	}
	return c
}

// seriesOf joins what the rounds of a level recorded of a metric over time.
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

// mostMessages bounds how many different messages of one kind are kept, and
// messageBytes how long each may be.
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

// curved are the metrics whose distributions are kept, curvePoints at how many
// points.
var curved = []string{"ttft", "speed", "itl", "e2e"}

const curvePoints = 41

func (b *builder) summary(def metric.Def, l *metric.Level, samples []*metric.Sample) Summary {
	if b.plan != nil && b.plan.Prices != nil {
		def.Unit = b.plan.Prices.Unit(def.Unit)
	}
	s := Summary{Metric: def.Name, Unit: string(def.Unit), Better: direction(def.Better), Of: scope(def.Scope)}
	switch def.Scope {
	case metric.Counted:
		h, why := l.Histogram(def.Name)
		return counted(s, h, b.clean(why))
	case metric.PerReading:
		g, why := l.Gauge(def.Name)
		s.N, s.Why = g.N, b.clean(why)
		if g.N > 0 {
			s.Mean, s.Min, s.Max = some(g.Mean), some(g.Min), some(g.Max)
		}
		return s
	case metric.PerLevel:
		v := b.levelValue(def, l)
		s.Value, s.N = number(v), len(samples)
		if !s.Value.OK {
			s.Why = cmp.Or(b.clean(v.Why), def.NoValue)
		}
		return s
	}
	d := metric.Of(def, samples)
	s.N, s.Worst = d.N(), d.Worst
	if len(d.Values) == 0 {
		s.Why = def.NoValue
	}
	stat := func(kind metric.StatKind, p float64) Number {
		// Where no request has the metric at all there is nothing to rank:
		// a column of infinities would look like a measurement.
		if len(d.Values) == 0 {
			return Number{}
		}
		v, ok := d.Stat(metric.Stat{Kind: kind, P: p})
		if !ok {
			return Number{}
		}
		return some(v)
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

// counted is the summary of a histogram: its mean is exact, its percentiles
// are estimates within their buckets.
func counted(s Summary, h metric.Histogram, why string) Summary {
	s.N, s.Why, s.Estimated = int(math.Round(h.N())), why, true
	if m, ok := h.Mean(); ok {
		s.Mean = some(m)
	}
	s.Percentiles = &Percentiles{}
	for p, n := range s.Percentiles.each() {
		if v, _, _, ok := h.Percentile(p); ok {
			*n = some(v)
		}
	}
	return s
}

// each gives every percentile and where it is kept.
func (p *Percentiles) each() func(yield func(float64, *Number) bool) {
	return func(yield func(float64, *Number) bool) {
		for i, n := range []*Number{&p.P1, &p.P5, &p.P10, &p.P25, &p.P50, &p.P75, &p.P90, &p.P95, &p.P99, &p.P999} {
			if !yield([]float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9}[i], n) {
				return
			}
		}
	}
}

func direction(d metric.Direction) string {
	switch d {
	case metric.LowerIsBetter:
		return "lower"
	case metric.HigherIsBetter:
		return "higher"
	}
	return "neutral"
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

func (b *builder) verdict(v *assert.Verdict) Verdict {
	out := Verdict{
		Kind: string(v.Kind), Server: b.clean(v.Server), Workload: b.clean(v.Workload), Level: b.clean(v.Level),
		Name: b.clean(v.Name), Outcome: Outcome(v.Outcome.String()),
		Severity: cmp.Or(string(v.Severity), string(plan.SeverityError)),
		Warn:     v.Warn,
		Message:  b.clean(v.Message), Needs: b.clean(v.Needs), Notes: b.cleanAll(v.Notes),
		Decide: v.Decide,
		Value:  number(v.Value), Why: b.clean(v.Value.Why),
		Low: number(v.Low), High: number(v.High),
		N:    v.N,
		File: b.clean(filepath.ToSlash(v.File)), Line: max(v.Line, 0),
	}
	if !out.Value.OK && v.Value.OK {
		out.Why = fmt.Sprint(v.Value.V)
	}
	if v.Confidence > 0 {
		out.Confidence = some(v.Confidence)
	}
	if v.N > 0 {
		out.Effective, out.Over = some(v.Effective), some(v.Over)
	}
	if v.Outcome == assert.Error || v.Outcome == assert.Pending {
		out.Cause = cause(v.Cause)
	}
	if t := v.Threshold; t != nil {
		out.Threshold = b.threshold(t)
	}
	return out
}

func (b *builder) threshold(t *verdict.Threshold) *Threshold {
	out := &Threshold{
		Metric: t.Metric.Name, Stat: t.Stat.String(), Op: t.Op, Unit: string(t.Metric.UnitOf(t.Stat)),
		Text: b.clean(t.Text),
	}
	if t.Op != "" && !math.IsNaN(t.Limit) {
		out.Limit = some(t.Limit)
	}
	return out
}
