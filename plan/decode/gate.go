package decode

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

func (d *decoder) decodeGate() {
	b := d.single(gateBlock)
	g := &d.out.Gate
	g.Policy = plan.Policy{Confidence: 0.95, Decide: plan.Certified, OnInconclusive: plan.Stop,
		Window: metric.Steady, Clusters: plan.ClustersWave}
	if b == nil {
		b = &body{d: d, spec: gateBlock, scope: &scope{ctx: d.base}, path: "gate"}
	} else {
		g.Range = b.rng
	}
	b.bind(&g.Policy)
	if g.MaxRequests == 0 {
		b.note("max_requests", gateBlock.attr("max_requests").Computed, "")
	}
	if !b.given("budget") {
		b.note("budget", "none", "")
	}
	b.bind(g)
	readMustDetect(b, g)
}

// "+25%" is read as the factor 1.25.
func readMustDetect(b *body, g *plan.Gate) {
	o := b.object("must_detect")
	if o == nil {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(o.attrs)) {
		size, ok := get(o, kind, item.words)
		if !ok {
			continue
		}
		text, plus := strings.CutPrefix(size, "+")
		text, percent := strings.CutSuffix(text, "%")
		more, err := strconv.ParseFloat(text, 64)
		if !plus || !percent || err != nil || !(more >= 1 && more <= 900) {
			b.d.errorf(o.rng, sumOutOfRange, `must_detect %s = %q is not valid. Write how much longer this part takes, from "+1%%" to "+900%%".`, kind, size)
			continue
		}
		g.MustDetect = append(g.MustDetect, plan.Detect{Kind: kind, Factor: 1 + more/100, Range: o.rng})
	}
}

func (d *decoder) single(spec *Block) *body {
	blocks := d.blocks[spec.Name]
	if len(blocks) == 0 {
		return nil
	}
	for _, more := range blocks[1:] {
		d.errorf(more.DefRange, sumDuplicateBlock, "A plan has at most one `%s` block. The first is at %s.", spec.Name, blocks[0].DefRange)
	}
	return d.open(spec, blocks[0], &scope{ctx: d.base}, spec.Name)
}

func (d *decoder) decodeHistory() {
	b := d.single(historyBlock)
	if b == nil {
		return
	}
	h := &plan.History{Range: b.rng}
	b.bind(h)
	if b.isSet("folder") && h.Folder == "" {
		d.errorf(b.rangeOf("folder"), sumOutOfRange, `folder must name a folder, such as "perf/history".`)
	} else if _, err := d.within("", h.Folder); err != nil && h.Folder != "" {
		d.errorf(b.rangeOf("folder"), sumOutOfRange, "The folder cannot be used: %s.", err)
	}
	d.out.History = h
}

var currencyName = regexp.MustCompile(`^[\p{L}\p{Sc}]{1,8}$`)

// It is called after the servers are read.
func (d *decoder) decodePrices() {
	b := d.single(pricesBlock)
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
	readPerHour(b, p)
	d.out.Prices = p
}

func readPerHour(b *body, p *plan.Prices) {
	x, ok := b.item("per_hour")
	if !ok || x.unknown() {
		return
	}
	set := func(v cty.Value, to func(*plan.Server) bool) bool {
		one := x
		if one.value = v; v.IsNull() || v.Type() != cty.Number {
			one.wrongType("a number, or an object of numbers by server: { vllm = 2.5 }")
			return false
		}
		price, ok := one.number()
		if !ok {
			return false
		}
		found := false
		for _, s := range b.d.out.Servers {
			if to(s) {
				p.PerHour[s.Address()] = price
				found = true
			}
		}
		return found
	}
	if !x.isObject() {
		set(x.value, func(*plan.Server) bool { return true })
		return
	}
	values := x.value.AsValueMap()
	if def, ok := values["default"]; ok && !set(def, func(*plan.Server) bool { return true }) {
		return
	}
	var names []string
	for _, s := range b.d.out.Servers {
		names = append(names, s.Name, s.Address())
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name == "default" {
			continue
		}
		if !slices.Contains(names, name) {
			x.errorf(sumServerReference, "The plan has no server %q.%s", name, suggest.DidYouMean(name, names))
			continue
		}
		set(values[name], func(s *plan.Server) bool { return s.Name == name })
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		set(values[name], func(s *plan.Server) bool { return s.Address() == name })
	}
}
