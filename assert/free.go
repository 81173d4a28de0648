package assert

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func (j *judge) asserts() {
	if len(j.promised.Asserts) == 0 {
		return
	}
	result, err := j.result()
	for _, a := range j.promised.Asserts {
		v := verdict.Verdict{Kind: verdict.KindAssert, Name: a.Name, Test: verdict.Test{Decide: string(plan.Estimate)},
			Place: verdict.Place{File: a.Range.Filename, Line: a.Range.Start.Line}}
		v.Note("point estimate: the verdict is not certified")
		if err != nil {
			v.Outcome, v.Message = verdict.Error, err.Error()
		} else {
			v.Outcome, v.Message = condition(a, result)
		}
		if v.Outcome == verdict.Error && j.partial {
			// The condition may fail only because it needs a case that was left out of this run.
			v.Outcome, v.Message = verdict.Skipped, "because cases were left out: "+v.Message
		}
		j.add(v, plan.Stop)
	}
}

// condition evaluates one assert block. The outcome is a pass if the condition is true. If it is
// false, the outcome is a fail with the author's message. Anything else is an error.
func condition(a *plan.Assert, result cty.Value) (outcome verdict.Outcome, message string) {
	defer func() {
		// cty panics on arithmetic without a result, such as ∞ − ∞.
		if r := recover(); r != nil {
			outcome, message = verdict.Error, fmt.Sprintf("the condition could not be evaluated: %v", r)
		}
	}()
	if a.Condition == nil {
		return verdict.Error, "there is no condition"
	}
	ctx := &hcl.EvalContext{}
	if a.Context != nil {
		ctx = a.Context.NewChild()
	}
	ctx.Variables = map[string]cty.Value{"result": result}
	ctx.Functions = forgiving(ctx)
	for _, name := range []string{"alltrue", "anytrue"} {
		if f, ok := called(name, ctx); ok {
			ctx.Functions[name] = ofSomething(f)
		}
	}
	if name := unmeasured(a.Condition.Variables(), ctx); name != "" {
		return verdict.Error, "the condition could not be evaluated: " + name + " was not measured"
	}
	v, diags := a.Condition.Value(ctx)
	if diags.HasErrors() {
		return verdict.Error, "the condition could not be evaluated: " + explain(diags, refersToSecret(a.Condition, ctx))
	}
	v, marks := v.UnmarkDeep()
	_, nothing := marks[ofNothing]
	switch {
	case nothing:
		return verdict.Error, "the condition judges nothing: the list given to alltrue or anytrue is empty"
	case hasMark(marks):
		return verdict.Error, "the condition could not be evaluated: it depends on a value that was not measured"
	case !v.IsWhollyKnown():
		return verdict.Error, "the condition cannot be decided: it uses a value that this run was not given"
	case v.IsNull():
		return verdict.Error, "the condition has no value"
	case v.Type() != cty.Bool:
		return verdict.Error, "the condition must be true or false, but is " + v.Type().FriendlyName()
	case v.True():
		return verdict.Pass, "the condition holds"
	}
	return verdict.Fail, failure(a, ctx)
}

// failure returns the plan's message for an assert whose condition is false.
func failure(a *plan.Assert, ctx *hcl.EvalContext) string {
	const plain = "the condition does not hold"
	if a.ErrorMessage == nil {
		return plain
	}
	m, diags := a.ErrorMessage.Value(ctx)
	if diags.HasErrors() {
		return plain
	}
	m, marks := m.UnmarkDeep()
	if !m.IsKnown() || m.IsNull() || m.Type() != cty.String || m.AsString() == "" {
		return plain
	}
	if secret(marks) && slices.ContainsFunc(a.ErrorMessage.Variables(), func(t hcl.Traversal) bool { return t.RootName() == "result" }) {
		// Do not show a message that mixes a secret with a result. The output hides known secrets,
		// but could not find a secret that is changed in this text.
		return plain + ": " + withheld
	}
	return verdict.OneLine(m.AsString())
}

const withheld = "its error_message is not shown, because it contains both a result and a value from the environment or a sensitive variable"

// secret reports whether the plan marked a value as a secret. A mark of the type mark does not
// count, because this package sets it.
func secret(marks cty.ValueMarks) bool {
	for m := range marks {
		if _, own := m.(mark); !own {
			return true
		}
	}
	return false
}

// refersToSecret reports whether an expression uses a secret.
func refersToSecret(expr hcl.Expression, ctx *hcl.EvalContext) bool {
	return slices.ContainsFunc(expr.Variables(), func(t hcl.Traversal) bool {
		v, diags := t.TraverseAbs(ctx)
		if diags.HasErrors() {
			return false
		}
		_, marks := v.UnmarkDeep()
		return secret(marks)
	})
}

// explain returns the first error as one line. For a null it adds that the value was not measured.
// If summarily is true, the line is only HCL's summary, because the detail may quote a secret.
func explain(diags hcl.Diagnostics, summarily bool) string {
	for _, d := range diags {
		switch {
		case d.Severity != hcl.DiagError:
			continue
		case summarily:
			return d.Summary + " (the rest is not shown, because it could quote a value from the environment or a sensitive variable)"
		}
		text := verdict.OneLine(d.Summary + ": " + d.Detail)
		if d.EvalContext != nil && d.Expression != nil {
			for _, t := range d.Expression.Variables() {
				if v, more := t.TraverseAbs(d.EvalContext); !more.HasErrors() && v.IsKnown() && v.IsNull() {
					return text + " (a null is a value that was not measured)"
				}
			}
		}
		return text
	}
	return ""
}

// result returns the value of the variable result in asserts, of the type plan.ResultType.
func (j *judge) result() (cty.Value, error) {
	instances := newTree()
	for _, s := range j.promised.Servers {
		workloads := newTree()
		for _, w := range j.promised.Workloads {
			if !slices.Contains(w.Servers, s) {
				continue
			}
			levels := map[string]cty.Value{}
			typ, err := levelType(j.promised, s, w)
			if err != nil {
				return cty.NilVal, err
			}
			for name, t := range typ.AttributeTypes() {
				levels[name] = j.levelValue(levelKey{s.Address(), w.Address(), name}, w, t)
			}
			workloads.put(w.Name, w.Key, cty.ObjectVal(map[string]cty.Value{"level": cty.ObjectVal(levels)}))
		}
		instances.put(s.Name, s.Key, workloads.value())
	}
	return instances.value(), nil
}

// levelType returns the type that plan.ResultType declares for the levels of workload w on server
// s.
func levelType(p *plan.Plan, s *plan.Server, w *plan.Workload) (cty.Type, error) {
	t := plan.ResultType(p)
	for _, step := range []string{s.Name, s.Key, w.Name, w.Key, "level"} {
		if step == "" {
			continue
		}
		if !t.IsObjectType() || !t.HasAttribute(step) {
			return cty.NilType, fmt.Errorf("the object result has no attribute %q", step)
		}
		t = t.AttributeType(step)
	}
	return t, nil
}

// tree holds the values of the variable result. The map single is by name, and keyed is by name and
// for_each key.
type tree struct {
	single map[string]cty.Value
	keyed  map[string]map[string]cty.Value
}

func newTree() tree { return tree{map[string]cty.Value{}, map[string]map[string]cty.Value{}} }

func (t tree) put(name, key string, v cty.Value) {
	if key == "" {
		t.single[name] = v
		return
	}
	if t.keyed[name] == nil {
		t.keyed[name] = map[string]cty.Value{}
	}
	t.keyed[name][key] = v
}

func (t tree) value() cty.Value {
	all := maps.Clone(t.single)
	for name, v := range t.keyed {
		all[name] = cty.ObjectVal(v)
	}
	return cty.ObjectVal(all)
}

// levelValue returns the measurements at one level as a value for asserts. Without a valid
// measurement of the level, every number is null.
func (j *judge) levelValue(key levelKey, w *plan.Workload, typ cty.Type) cty.Value {
	l := j.levels[key]
	if !j.valid[key] {
		l = nil
	}
	var samples []*metric.Sample
	if l != nil {
		samples = l.MeasuredSamples()
	}
	attrs := map[string]cty.Value{}
	for name, t := range typ.AttributeTypes() {
		def, known := j.promised.Metric(name)
		switch {
		case t.IsListType():
			attrs[name] = positions(l)
		case t.IsObjectType():
			var d metric.Distribution
			if l != nil && known {
				d = observed(def, l, samples)
			}
			stats := map[string]cty.Value{}
			for stat := range t.AttributeTypes() {
				counted := def.Scope == metric.Counted || def.Scope == metric.PerReading
				if s, err := metric.ParseStat(stat); err == nil && l != nil && known && counted {
					stats[stat] = number(l.Stat(def, s, metric.Terms{}))
				} else {
					stats[stat] = number(statOf(d, stat))
				}
			}
			attrs[name] = cty.ObjectVal(stats)
		case l == nil:
			attrs[name] = number(metric.None("not measured"))
		case known:
			attrs[name] = number(l.Stat(def, metric.Stat{}, metric.Terms{
				Window: w.Policy.Window, Price: j.promised.PriceOf(l.Server), Good: sample.Good(w),
				One: j.levels[levelKey{l.Server, l.Workload, "1"}],
			}))
		default:
			attrs[name] = number(levelCount(l, w, name))
		}
	}
	return cty.ObjectVal(attrs)
}

// observed returns the distribution of a metric over requests or gaps. It is empty for a metric of
// another kind, and for a streaming metric without recorded chunk times.
func observed(def metric.Def, l *metric.Level, samples []*metric.Sample) metric.Distribution {
	if def.Scope != metric.PerRequest && def.Scope != metric.PerGap || def.Streams && l.Unstreamed() != "" {
		return metric.Distribution{}
	}
	return metric.Of(def, samples)
}

func statOf(d metric.Distribution, name string) metric.Value {
	stat, err := metric.ParseStat(name)
	if err != nil || len(d.Values) == 0 {
		return metric.None("not measured")
	}
	if v, ok := d.Stat(stat); ok {
		return metric.Some(v)
	}
	return metric.None("not measured")
}

// positions returns how often the server accepts a drafted token, for each position in the draft.
// The result is null if the server does not report this.
func positions(l *metric.Level) cty.Value {
	var rates []cty.Value
	if l != nil {
		for _, v := range l.AcceptRateAt() {
			rates = append(rates, cty.NumberFloatVal(v))
		}
	}
	if len(rates) == 0 {
		return cty.NullVal(cty.List(cty.Number)).Mark(notMeasured)
	}
	return cty.ListVal(rates)
}

// levelCount returns a count of a level by its name. Requests and failures are counts.
func levelCount(l *metric.Level, w *plan.Workload, name string) metric.Value {
	switch name {
	case "requests":
		return metric.Some(float64(l.Due()))
	case "completed":
		return metric.Some(float64(l.Completed()))
	case "failed":
		return metric.Some(float64(l.Due() - l.Completed()))
	case "goodput_share":
		return l.GoodputShare(sample.Good(w))
	}
	return metric.None("not measured")
}

func number(v metric.Value) cty.Value {
	switch {
	case !v.OK || math.IsNaN(v.V):
		return cty.NullVal(cty.Number).Mark(notMeasured)
	case math.IsInf(v.V, 1):
		return cty.PositiveInfinity
	case math.IsInf(v.V, -1):
		return cty.NegativeInfinity
	}
	return cty.NumberFloatVal(v.V)
}
