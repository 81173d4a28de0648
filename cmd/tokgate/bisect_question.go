package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/assert/bisect"
	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/report/bisection"
)

// question reads what the command line asks, and checks it against the plan.
func (a *app) question(path string, o *bisectOptions) (*question, error) {
	q := &question{path: path, most: o.legs}
	q.Simulated = o.simulate
	for _, in := range o.in.list {
		if name, _, ok := strings.Cut(in.Var, "="); in.Var == "" || ok {
			q.in.list = append(q.in.list, in)
		} else if q.Variable != "" {
			return nil, usageError("name=value sets another variable", "--var names two variables to bisect, %s and %s", q.Variable, name)
		} else {
			q.Variable = name
		}
	}
	list := q.in.list
	q.in = o.in
	q.in.list, q.in.undated = list, o.simulate
	if q.Variable == "" || o.values == "" {
		return nil, usageError("tokgate bisect upgrade.hcl --var image --values nightlies.txt", "bisect needs a variable and its values")
	}
	var err error
	if q.Values, err = valuesIn(o.values); err != nil {
		return nil, err
	}
	q.plans = map[string]*plan.Plan{}
	for _, value := range q.Values { // an error of the plan is known before the first leg
		if q.plans[value] != nil {
			continue
		}
		if q.whole, err = a.loadWith(q, value); err != nil {
			return nil, err
		}
		q.plans[value] = q.whole
		if o.simulate {
			if err := a.needSimulators([]*plan.Plan{q.whole}); err != nil {
				return nil, err
			}
		}
	}
	if err := q.cell(o); err != nil {
		return nil, err
	}
	if q.Salt = o.salt; !o.simulate {
		q.Salt, q.Began = a.salt(), time.Now().UTC().Round(time.Second)
	}
	return q, nil
}

// valuesIn reads the values of a variable, one on each line.
func valuesIn(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError("", "could not read --values: %w", err)
	}
	var out []string
	for _, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	if len(out) < 2 {
		return nil, usageError("the first is known good, and the last known bad", "%s has fewer than two values", path)
	}
	return out, nil
}

// loadWith loads the plan with one value of the variable.
func (a *app) loadWith(q *question, value string) (*plan.Plan, error) {
	in := q.in
	in.list = append(slices.Clone(in.list), decode.Input{Var: q.Variable + "=" + value})
	in.self = true
	plans, err := a.loadAll([]string{q.path}, in, !q.Simulated)
	if err != nil {
		return nil, err
	}
	return plans[0], nil
}

// cell finds the server, the workload and the level that are measured, the metric, and how much worse it
// is claimed to be.
func (q *question) cell(o *bisectOptions) error {
	c, err := meant(q.whole, o.compare)
	if err != nil {
		return err
	}
	tolerated := 0.0
	if c != nil {
		q.Server = c.Candidate.Address()
		tolerated = q.firstTolerated(c)
	} else if len(q.whole.Servers) == 1 {
		q.Server = q.whole.Servers[0].Address()
	}
	if o.asked != "" {
		tolerated = 0
		if err := q.named(o.asked); err != nil {
			return err
		}
	}
	if o.at != "" {
		q.Workload, q.Level, _ = strings.Cut(o.at, "/")
	}
	w := workloadOf(q.whole, q.Workload)
	if q.def.Name == "" || q.Server == "" || w == nil || w.Fixed(q.Level) == nil {
		return usageError("such as --compare upgrade, or --metric 'ttft p95' --at chat/8",
			"it is not clear what to measure: the plan has no such comparison, server, workload or level")
	}
	if q.Worse = 1; q.def.Better == metric.HigherIsBetter {
		q.Worse = -1
	}
	q.Metric = strings.TrimSpace(q.def.Name + " " + q.stat.String())
	return q.sizes(o, tolerated)
}

// firstTolerated takes the first change of a metric of requests that a comparison tolerates, at the first
// level and workload of its block. It returns how large it is.
func (q *question) firstTolerated(c *plan.Compare) float64 {
	for _, claim := range c.Claims {
		for _, ch := range claim.Changes {
			if !claim.Improve && !ch.Points && bisected(ch.Metric) && len(claim.At) > 0 {
				q.def, q.stat, q.Workload, q.Level = ch.Metric, ch.Stat, claim.Workloads[0].Address(), claim.At[0]
				return math.Abs(ch.Limit)
			}
		}
	}
	return 0
}

// named takes the metric of the command line.
func (q *question) named(text string) error {
	name, of, _ := strings.Cut(strings.TrimSpace(text), " ")
	def, ok := metric.Lookup(name)
	stat, err := metric.Stat{}, error(nil)
	if of != "" {
		stat, err = metric.ParseStat(of)
	}
	if !ok || !bisected(def) || err != nil || (of == "") != (def.Scope == metric.PerLevel) || stat.Exact() {
		return usageError("such as --metric 'ttft p95' or --metric throughput", "--metric %q is not a metric of requests with its statistic", text)
	}
	q.def, q.stat = def, stat
	return nil
}

// bisected reports whether a metric is a time or a speed that requests show, so that it has a ratio.
func bisected(def metric.Def) bool {
	return def.Source == metric.Client && def.Unit != metric.Ratio && def.Better != metric.Neutral && !def.Paired && def.Name != "lag"
}

// sizes reads how much worse the last value is said to be, and from how much on it is bisected.
func (q *question) sizes(o *bisectOptions, tolerated float64) error {
	claimed, err := percentIn("--claimed", o.claimed)
	if o.claimed == "" {
		claimed = tolerated
	}
	if q.Least = claimed / 2; o.least != "" && err == nil {
		q.Least, err = percentIn("--least", o.least)
	}
	if err == nil && !(q.Least > 0) {
		err = usageError("such as --claimed +7%", "how much worse is the last value said to be?")
	}
	q.claimed = math.Log1p(max(claimed, 2*q.Least))
	return err
}

// meant returns the comparison of a name, or the plan's only one; nil if it has none.
func meant(p *plan.Plan, name string) (*plan.Compare, error) {
	if name == "" && len(p.Compares) == 1 {
		return p.Compares[0], nil
	}
	var names []string
	for _, c := range p.Compares {
		if names = append(names, c.Name); c.Name == name {
			return c, nil
		}
	}
	if name == "" {
		return nil, nil
	}
	return nil, unknownName("--compare", "comparison", name, names)
}

func workloadOf(p *plan.Plan, address string) *plan.Workload {
	i := slices.IndexFunc(p.Workloads, func(w *plan.Workload) bool { return w.Address() == address })
	if i < 0 {
		return nil
	}
	return p.Workloads[i]
}

// percentIn reads a change such as "+7%" or "7%"; its sign says nothing, because worse is meant.
func percentIn(flag, text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	var x float64
	if _, err := fmt.Sscanf(strings.TrimLeft(text, "+-"), "%f%%", &x); err != nil || !(x > 0 && x < 1000) {
		return 0, usageError("such as "+flag+" +7%", "%s %q is not a change in percent", flag, text)
	}
	return x / 100, nil
}

// legPlan returns a plan that measures the cell once, with one value: one round of what a leg of the
// comparison sends.
func (q *question) legPlan(value string) (*plan.Plan, error) {
	p := q.plans[value]
	w := workloadOf(p, q.Workload)
	s := slices.IndexFunc(p.Servers, func(s *plan.Server) bool { return s.Address() == q.Server })
	if w == nil || s < 0 || w.Fixed(q.Level) == nil {
		return nil, usageError("a bisection needs the same cell for each value", "with %s = %s the plan has no %s at %s on %s",
			q.Variable, value, q.Workload, q.Level, q.Server)
	}
	one, work := *p, *w
	work.Servers, work.SLAs, work.Capacity, work.Loads = p.Servers[s:s+1], nil, nil, nil
	for _, load := range w.Loads {
		if i := slices.IndexFunc(load.Levels, func(l plan.Level) bool { return l.Name == q.Level }); i >= 0 {
			l, level := *load, load.Levels[i]
			if rounds := max(level.Rounds, 1); !level.Batches {
				level.Requests, level.Duration, level.Rounds = level.RoundRequests(0), level.Duration/time.Duration(rounds), 1
			}
			l.Levels = []plan.Level{level}
			work.Loads = []*plan.Load{&l}
		}
	}
	one.Servers, one.Workloads, one.Compares, one.Asserts = p.Servers[s:s+1], []*plan.Workload{&work}, nil, nil
	return &one, nil
}

// fill takes over the figure of a leg that was run.
func fill(l *bisection.Leg, run *metric.Run, q *question) {
	for _, s := range run.Servers {
		l.Broken = s.Error
		if len(s.Starts) > 0 {
			l.Start = s.Starts[0].Took().Seconds()
		}
	}
	for _, level := range run.Levels {
		level = sample.Sound(level.Judged())
		v := level.Stat(q.def, q.stat, metric.Terms{Window: q.whole.Gate.Window})
		switch {
		case l.Broken != "":
		case level.Skipped != "":
			l.Broken = level.Skipped
		case float64(level.Completed()) < (1-plan.MostFailed)*float64(level.Due()):
			l.Broken = fmt.Sprintf("%d of %d requests failed, so its times are not comparable", level.Due()-level.Completed(), level.Due())
		case !v.OK || !(v.V > 0):
			l.Broken = "it has no value of " + q.Metric + ": " + v.Why
		default:
			l.Figure = v.V
		}
		if level.Asked != nil {
			l.Asked = level.Asked.Digest()
		}
		l.Took = run.End.Seconds()
	}
	if l.Figure == 0 && l.Broken == "" {
		l.Broken = "nothing was measured"
	}
}

// forecastBisection says what a bisection is expected to cost.
func (a *app) forecastBisection(q *question) {
	f := bisect.Forecast(bisect.Options{Values: len(q.Values), Least: math.Log1p(q.Least), Most: q.most}, q.claimed, usualNoise)
	cost := ""
	for _, s := range q.whole.Servers {
		if t, ok := startTimes(q.whole, readLastRun(q.whole.Path))[s]; ok && s.Address() == q.Server {
			cost = fmt.Sprintf(": %s of starts (%s)", plan.PlainDuration(t.all(f.Legs).Round(time.Minute)), t.basis)
		}
	}
	fmt.Fprintf(a.Out, "About %d legs with %d of the %d values of %s%s, at most %d legs. A leg is one start of %s and one round of %s at %s.\n",
		f.Legs, f.Values, len(q.Values), q.Variable, cost, q.most, q.Server, q.Workload, q.Level)
	fmt.Fprintf(a.Out, "Assumed: legs differ by %.0f %%, and the claim is true. Bisected if %s of the last value is certainly worse by more than %s.\n",
		100*usualNoise, q.Metric, metric.Format(metric.Ratio, q.Least))
}

// usualNoise is the standard deviation of a leg that a forecast assumes.
const usualNoise = 0.02
