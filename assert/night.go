package assert

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/assert/trend"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan/suggest"
)

// NightOptions is how tonight is held against a history.
type NightOptions struct {
	// Ignore is the size of a change below which nobody wants to be told, as a
	// share (0.01: one percent); of metrics that are shares themselves the
	// difference. 0: every change counts that is no chance.
	Ignore float64
	// Run must be the last night; "": whichever is.
	Run string
	// Now is what no night may have started after, but for an hour in which
	// clocks may differ; zero: not checked. The last night is the latest, and one
	// of next year would be judged every night until then.
	Now time.Time
	// MaxAge is how long before Now the last night may have started: where the
	// nights have stopped the last one stays as good as it was. 0: any time.
	MaxAge time.Duration
	// Unread is how many lines of the history could not be read, where one of
	// them may be the last night.
	Unread int
}

// Nights is what a history came to on its last night.
type Nights struct {
	Outcome Outcome // Error, Fail or Pass; a first night passes, recorded
	Why     string  // of an Error that no series explains
	// Recorded is set when no series has enough nights to be held against.
	Recorded bool
	Run      string    // of the last night
	Started  time.Time // of the last night
	Pinned   *metric.Pin
	Since    int // nights since the pin, or in all, tonight included
	Trends   []Trend
}

// Trend is one series over the nights since it began or was pinned.
type Trend struct {
	metric.Trend
	Unit    metric.Unit
	Better  metric.Direction
	Outcome Outcome // Skipped: recorded only, or it ended on purpose
	Message string  // one line
	Points  []NightPoint
	// Tonight in the metric's unit; nil without enough nights.
	Tonight *NightBounds
	// Changes, located in hindsight, in order.
	Changes []NightChange
}

// NightPoint is one night of a series.
type NightPoint struct {
	Run     string
	Started time.Time
	Value   float64
	Alarm   bool // it differed from the reference
}

// NightBounds is what a night was held against.
type NightBounds struct {
	Reference int     // nights
	Center    float64 // their geometric mean, of shares the mean
	Low, High float64 // tonight's prediction interval
	// Noise is their spread from night to night: one standard deviation, as a
	// share of Center, of shares the difference.
	Noise float64
	Shift float64 // of the stretch that alarmed, or of tonight; as Noise
}

// NightChange is where a series changed, and what else did.
type NightChange struct {
	Run           string // first night after it
	Started       time.Time
	Before, After float64
	P             float64
	// Differs lists what of the server was another on that night than on the
	// one before: "engine.version 0.19.1 → 0.20.0".
	Differs []string
}

// leastNoise is the least spread from night to night that is believed: below
// it figures are rounded, and a series that said the same every night would
// alarm at its first other digit.
const leastNoise = 0.002

// limitMetric names the limit that a capacity search found: no metric of a
// level, but a figure of a night.
const limitMetric = "capacity"

// FalseAlarms is how many nights one false alarm of a history with that many
// series is expected in, were they independent; +Inf of none.
func FalseAlarms(series int) float64 {
	return 1 / (1 - math.Pow(1-trend.PerNight, float64(series)))
}

// JudgeNights holds the last night of h against those before it, series by
// series: a figure beyond its prediction interval on the worse side is a
// failure, on the better side a pass that says so, and one that is missing
// tonight an error. Nights before the last pin are left out. See package trend
// for the method.
func JudgeNights(h metric.History, opts NightOptions) Nights {
	nights := slices.Clone(h.Nights)
	out := Nights{Outcome: Error}
	lost := ""
	if len(h.Pins) > 0 {
		p := h.Pins[len(h.Pins)-1]
		if i := slices.IndexFunc(nights, func(n metric.Night) bool { return n.Run == p.Run }); i >= 0 {
			nights, out.Pinned = nights[i:], &p
		} else {
			lost = lostPin(p, nights)
		}
	}
	if len(nights) == 0 {
		out.Why = "the history has no nights"
		return out
	}
	last := nights[len(nights)-1]
	out.Run, out.Started, out.Since = last.Run, last.Started, len(nights)
	for _, n := range nights {
		if n.Simulated != last.Simulated {
			out.Why = fmt.Sprintf("run %s was simulated and run %s was not: keep two histories", either(n.Simulated, n.Run, last.Run), either(n.Simulated, last.Run, n.Run))
			return out
		}
	}
	series := gatherTrends(nights)
	if len(series) == 0 {
		out.Why = "the nights have no figures"
		return out
	}
	out.Recorded = true
	outcome := Pass
	for _, s := range series {
		t := s.judge(nights, opts)
		out.Trends = append(out.Trends, t)
		if t.Outcome != Skipped {
			out.Recorded = false
			outcome = max(outcome, t.Outcome)
		}
	}
	if out.Why = cmp.Or(opts.notTonight(last), lost); out.Why != "" {
		outcome = Error
	}
	out.Outcome = outcome
	return out
}

// lostPin says that the run that was pinned last is none of the nights: what
// the later ones are to be held to is not known.
func lostPin(p metric.Pin, nights []metric.Night) string {
	var runs []string
	for _, n := range nights {
		runs = append(runs, n.Run)
	}
	hint := "pin one that is"
	if near := suggest.Nearest(p.Run, runs); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return fmt.Sprintf("run %s, which was pinned, is not in the history: %s", p.Run, hint)
}

// age is a time that has passed, in words.
func age(d time.Duration) string {
	if days := int(d.Hours() / 24); days >= 2 {
		return fmt.Sprintf("%d days", days)
	}
	return fmt.Sprintf("%.3g hours", d.Hours())
}

// notTonight is why the last night is not the one to be judged; "".
func (o NightOptions) notTonight(last metric.Night) string {
	switch {
	case !o.Now.IsZero() && last.Started.After(o.Now.Add(time.Hour)):
		return fmt.Sprintf("run %s starts in the future, at %s: a clock was wrong, and its line is to be removed", last.Run, last.Started.UTC().Format(time.DateTime))
	case o.MaxAge > 0 && o.Now.Sub(last.Started) > o.MaxAge:
		return fmt.Sprintf("the last night, run %s, was %s ago, and none may be longer ago than %s: were later ones not run, or not added?", last.Run, age(o.Now.Sub(last.Started)), age(o.MaxAge))
	case o.Run != "" && last.Run != o.Run:
		return fmt.Sprintf("run %s is not the last night: run %s started later", o.Run, last.Run)
	case o.Unread > 0:
		return fmt.Sprintf("%s of the history cannot be read, and may be the last night: repair or remove them", count(o.Unread, "lines"))
	case len(last.Figures) == 0:
		return fmt.Sprintf("run %s measured nothing", last.Run)
	}
	return ""
}

// nightSeries is one trend with the nights in which it has a figure.
type nightSeries struct {
	key    metric.Trend
	at     []int // indices of the nights
	values []float64
	// next is the trend that took its place when the workload changed; nil:
	// none did.
	next *metric.Trend
}

// gatherTrends finds the series of the nights, in the order in which they
// first occur.
func gatherTrends(nights []metric.Night) []*nightSeries {
	var list []*nightSeries
	known := map[metric.Trend]*nightSeries{}
	last := map[metric.Trend]*nightSeries{} // by the trend without what was asked
	for i, n := range nights {
		for _, f := range n.Figures {
			s := known[f.Trend]
			if s == nil {
				s = &nightSeries{key: f.Trend}
				known[f.Trend] = s
				list = append(list, s)
			}
			// A workload may also become what it was.
			any := f.Trend
			any.Asked = ""
			if old := last[any]; old != nil && old != s {
				old.next = &s.key
			}
			last[any] = s
			if len(s.at) == 0 || s.at[len(s.at)-1] != i {
				s.at, s.values = append(s.at, i), append(s.values, f.Value)
			}
		}
	}
	return list
}

func (s *nightSeries) judge(nights []metric.Night, opts NightOptions) Trend {
	t := Trend{Trend: s.key, Outcome: Error}
	def, ok := metric.Lookup(s.key.Metric)
	if s.key.Metric == limitMetric {
		def, ok = metric.Def{Name: limitMetric, Unit: metric.Requests, Better: metric.HigherIsBetter}, true
	}
	if !ok {
		t.Message = fmt.Sprintf("this version does not know the metric %q", s.key.Metric)
		return t
	}
	if kind, err := metric.ParseStat(s.key.Stat); err == nil {
		def.Unit = def.UnitOf(kind)
	}
	t.Unit, t.Better = def.Unit, def.Better
	scale := scaleOf(def)
	series := make([]float64, len(s.values))
	for i, v := range s.values {
		if v == 0 && scale.log && def.Source == metric.Server {
			t.Outcome = Skipped
			t.Message = fmt.Sprintf("recorded only: it was 0 in run %s, and nothing is a ratio of that", nights[s.at[i]].Run)
			return t
		}
		if !scale.takes(v) {
			t.Message = fmt.Sprintf("run %s has the value %v, which is none of %s", nights[s.at[i]].Run, v, def.Name)
			return t
		}
		series[i] = scale.to(v)
	}
	floor := leastNoise
	if def.Name == limitMetric {
		floor = max(floor, 0.5/s.values[0]) // half a request in flight
	}
	watched := trend.Watch(series, floor, opts.Ignore)
	for i, v := range s.values {
		n := nights[s.at[i]]
		t.Points = append(t.Points, NightPoint{n.Run, n.Started, v, false})
		for k := i + 1 - watched[i].Alarm; k <= i; k++ {
			t.Points[k].Alarm = true
		}
	}
	for _, c := range trend.Divisive(series) {
		n := nights[s.at[c.Night]]
		t.Changes = append(t.Changes, NightChange{
			Run: n.Run, Started: n.Started, Before: scale.from(c.Before), After: scale.from(c.After), P: c.P,
			Differs: nightDiffers(nights[s.at[c.Night-1]], n, s.key.Server),
		})
	}
	tonight := watched[len(watched)-1]
	if s.at[len(s.at)-1] != len(nights)-1 {
		if s.next != nil {
			t.Outcome, t.Message = Skipped, fmt.Sprintf("ended with run %s: the workload is another one since", nights[s.at[len(s.at)-1]].Run)
			return t
		}
		t.Message = fmt.Sprintf("was not measured tonight; last in run %s", nights[s.at[len(s.at)-1]].Run)
		return t
	}
	value := s.values[len(s.values)-1]
	if tonight.Reference < trend.Least {
		t.Outcome = Skipped
		t.Message = fmt.Sprintf("%s, recorded: night %d, judged from the %dth on", metric.Format(t.Unit, value), tonight.Reference+1, trend.Least+1)
		return t
	}
	t.Tonight = &NightBounds{
		Reference: tonight.Reference,
		Center:    scale.from(tonight.Mean),
		Low:       scale.from(scale.within(tonight.Low)),
		High:      scale.from(scale.within(tonight.High)),
		Noise:     tonight.Sigma,
		Shift:     tonight.Shift,
	}
	t.Outcome = Pass
	expected := fmt.Sprintf("expected %s to %s after %d nights", metric.Format(t.Unit, t.Tonight.Low), metric.Format(t.Unit, t.Tonight.High), tonight.Reference)
	if tonight.Alarm == 0 {
		t.Message = fmt.Sprintf("%s, %s", metric.Format(t.Unit, value), expected)
		return t
	}
	what := "higher"
	if tonight.Shift < 0 {
		what = "lower"
	}
	stretch := "tonight"
	if tonight.Alarm > 1 {
		stretch = fmt.Sprintf("the last %d nights together", tonight.Alarm)
	}
	t.Message = fmt.Sprintf("%s: %s %s %s than %s, the mean of %d nights; %s", metric.Format(t.Unit, value), stretch,
		scale.shift(tonight.Shift), what, metric.Format(t.Unit, t.Tonight.Center), tonight.Reference, expected)
	switch better := t.Better; {
	case better == metric.LowerIsBetter && tonight.Shift < 0, better == metric.HigherIsBetter && tonight.Shift > 0:
		t.Message += "; better: pin this run to hold later nights to it"
	default:
		t.Outcome = Fail
	}
	return t
}

// nightScale is how the values of a metric are compared.
type nightScale struct {
	log bool
}

// scaleOf compares shares by their difference and everything else by ratio.
func scaleOf(def metric.Def) nightScale { return nightScale{log: def.Unit != metric.Ratio} }

func (s nightScale) takes(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && v >= 0 && (v > 0 || !s.log)
}

func (s nightScale) to(v float64) float64 {
	if s.log {
		return math.Log(v)
	}
	return v
}

func (s nightScale) from(x float64) float64 {
	if s.log {
		return math.Exp(x)
	}
	return x
}

// within is x where a share can be.
func (s nightScale) within(x float64) float64 {
	if s.log {
		return x
	}
	return min(max(x, 0), 1)
}

// shift writes the size of a change: "4.2%", of shares "4.2 points".
func (s nightScale) shift(x float64) string {
	if s.log {
		return metric.Format(metric.Ratio, math.Abs(math.Expm1(x)))
	}
	return strings.TrimSuffix(metric.Format(metric.Ratio, math.Abs(x)), "%") + " points"
}

// nightDiffers lists what of a server is another in b than in a.
func nightDiffers(a, b metric.Night, server string) []string {
	was, is := a.Servers[server], b.Servers[server]
	var out []string
	note := func(key, x, y string) {
		if x != y {
			out = append(out, fmt.Sprintf("%s %s → %s", key, either(x != "", x, "unknown"), either(y != "", y, "unknown")))
		}
	}
	var keys []string
	for k := range was {
		keys = append(keys, k)
	}
	for k := range is {
		if _, ok := was[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		note(k, was[k], is[k])
	}
	note("tokgate", a.Tool, b.Tool)
	return out
}

func either(cond bool, a, b string) string {
	if cond {
		return a
	}
	return b
}
