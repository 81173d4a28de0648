package decode

import (
	"maps"
	"regexp"
	"slices"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
	"github.com/zclconf/go-cty/cty"
)

var currencyName = regexp.MustCompile(`^[\p{L}\p{Sc}]{1,8}$`)

// decodePrices reads what servers cost; the servers are known by now.
func (d *decoder) decodePrices() {
	b := d.only(pricesBlock, "prices may be written once; it is already at %s.")
	if b == nil {
		return
	}
	p := &plan.Prices{PerHour: map[string]float64{}, Range: b.rng}
	b.bind(p)
	if p.Currency == unknownText || !currencyName.MatchString(p.Currency) {
		if p.Currency != unknownText {
			d.errorf(b.rangeOf("currency"), sumOutOfRange, `A currency is a short word such as "USD".`)
		}
		p.Currency = "USD"
	}
	b.perHour(p)
	if !b.given("per_hour") && !b.given("electricity") {
		d.errorf(b.rng, sumMissing, "prices says what something costs: per_hour = 2.5, electricity = 0.10.")
	}
	d.plan.Prices = p
}

// perHour reads a number for all servers, or an object by server.
func (b *body) perHour(p *plan.Prices) {
	v, ok := b.value("per_hour")
	rng := b.rangeOf("per_hour")
	if !ok || b.isUnknown(rng, "per_hour", v) {
		return
	}
	set := func(v cty.Value, to func(*plan.Server) bool) bool {
		if v.IsNull() || !v.IsKnown() || v.Type() != cty.Number {
			b.wrongType(rng, "per_hour", "a number, or an object of numbers by server: { vllm = 2.5 }", v)
			return false
		}
		price, _ := v.AsBigFloat().Float64()
		if price < 0 || price > maxPrice {
			b.d.errorf(rng, sumOutOfRange, "per_hour must be from 0 to %v.", maxPrice)
			return false
		}
		found := false
		for _, s := range b.d.plan.Servers {
			if to(s) {
				p.PerHour[s.Address()] = price
				found = true
			}
		}
		return found
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		set(v, func(*plan.Server) bool { return true })
		return
	}
	values := v.AsValueMap()
	if def, ok := values["default"]; ok && !set(def, func(*plan.Server) bool { return true }) {
		return
	}
	var names []string
	for _, s := range b.d.plan.Servers {
		names = append(names, s.Name, s.Address())
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name == "default" {
			continue
		}
		if !slices.Contains(names, name) {
			b.d.errorf(rng, sumServerReference, "The plan has no server %q.%s", name, suggest.DidYouMean(name, names))
			continue
		}
		set(values[name], func(s *plan.Server) bool { return s.Name == name })
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		set(values[name], func(s *plan.Server) bool { return s.Address() == name })
	}
}
