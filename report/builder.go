package report

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

type builder struct {
	run      *metric.Run
	levels   []*metric.Level // of the run, with those of the parts of mixes
	declared *plan.Plan      // the plan; nil if it is not available
	redact   *strings.Replacer
}

// redactor returns a replacer of the plan's secrets. It leaves out secrets below four bytes: they
// protect nothing, and replacing them would damage numbers and words.
func redactor(p *plan.Plan, with string) *strings.Replacer {
	if p == nil {
		return strings.NewReplacer()
	}
	with = cmp.Or(with, "[redacted]")
	// Sort the longest secret first. If a secret begins with a shorter one, it must be removed as a
	// whole.
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

// clean makes text from outside valid UTF-8 and removes the plan's secrets. Each output escapes the
// text for its own format.
func (b *builder) clean(s string) string { return strings.ToValidUTF8(b.redact.Replace(s), "\uFFFD") }

// cleaned returns a deep copy of v, in which f has replaced all strings, even the keys of maps.
// Strings of a type of their own, such as a kind of verdict, are tokgate's words and stay.
func cleaned[T any](v T, f func(string) string) T {
	c := cleaner{f, map[any]reflect.Value{}}
	c.walk(reflect.ValueOf(&v).Elem())
	return v
}

type cleaner struct {
	clean  func(string) string
	copies map[any]reflect.Value // by the pointer to the original
}

// walk cleans a variable, which shares nothing with the original but what it points to.
func (c cleaner) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() && v.Len() > 0 {
			v.SetString(c.clean(v.String()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				listed(f, v.Type().Field(i).Tag.Get("json"))
				c.walk(f)
			}
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		out, known := c.copies[v.Interface()]
		if !known {
			out = reflect.New(v.Type().Elem())
			out.Elem().Set(v.Elem())
			c.copies[v.Interface()] = out
			c.walk(out.Elem())
		}
		v.Set(out)
	case reflect.Slice:
		if v.IsNil() || scalar(v.Type().Elem()) {
			return
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(out, v)
		for i := range out.Len() {
			c.walk(out.Index(i))
		}
		v.Set(out)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for k, x := range v.Seq2() {
			key, value := reflect.New(k.Type()).Elem(), reflect.New(x.Type()).Elem()
			key.Set(k)
			value.Set(x)
			c.walk(key)
			c.walk(value)
			out.SetMapIndex(key, value)
		}
		v.Set(out)
	}
}

// listed makes an empty list or map of a nil one that is always in JSON, so that it is not null.
func listed(v reflect.Value, tag string) {
	if tag == "" || tag == "-" || strings.Contains(tag, ",omit") {
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	}
}

// scalar reports whether values of a type hold no text.
func scalar(t reflect.Type) bool { return t.Kind() <= reflect.Complex128 }

// workloadAt returns the plan's workload with the given address; nil if there is no such workload.
func (b *builder) workloadAt(address string) *plan.Workload {
	if b.declared != nil {
		for _, w := range b.declared.Workloads {
			if w.Address() == address {
				return w
			}
		}
	}
	return nil
}

// window returns the part of a round in which the workload's rates are computed.
func (b *builder) window(workload string) metric.Window {
	if w := b.workloadAt(workload); w != nil {
		return cmp.Or(w.Policy.Window, metric.Steady)
	}
	return metric.Steady
}

// levelValue returns the value of a metric of the whole level. The plan says which requests are
// good.
func (b *builder) levelValue(def metric.Def, l *metric.Level) metric.Value {
	var good func(*metric.Sample) bool
	if w := b.workloadAt(l.Workload); w != nil {
		good = sample.Good(w)
	} else if b.declared == nil && def.Name == "goodput" {
		return metric.None("the plan, which defines good requests, is not available")
	}
	var one *metric.Level
	for _, x := range b.levels {
		if x.Server == l.Server && x.Workload == l.Workload && x.Kind == metric.ClosedLoop && x.N == 1 {
			one = x
		}
	}
	if def.Source == metric.Prices {
		if b.declared == nil {
			return metric.None("the plan, which has the prices, is not available")
		}
		return l.Cost(def.Name, b.declared.PriceOf(l.Server), l.Windows(b.window(l.Workload)))
	}
	return l.Value(def.Name, b.window(l.Workload), good, one)
}
