package decode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// A condition in the schema is the name of an attribute or block of the same block, which holds if
// the plan sets it: rate. Or it also names a value: arrivals = "gamma". What is in another block has
// the name of that block before it: load.trace. It is an enclosing block, or stands in one.

// inBlock returns the block that a condition names, and what must hold there.
func inBlock(condition string) (block, rest string, ok bool) {
	name, _, _ := strings.Cut(condition, " = ")
	if block, _, ok = strings.Cut(name, "."); ok {
		rest = condition[len(block)+1:]
	}
	return block, rest, ok
}

// holds reports whether a condition holds in the block. A value that is null or unknown holds not.
func (b *body) holds(condition string) bool {
	if block, rest, ok := inBlock(condition); ok {
		for at := b; at != nil; at = at.parent {
			switch {
			case at.spec.Name == block:
				return at.holds(rest)
			case at.spec.block(block) != nil:
				return slices.ContainsFunc(at.children(block), func(c *body) bool { return c.holds(rest) })
			}
		}
		return false
	}
	name, want, isValue := strings.Cut(condition, " = ")
	if !isValue {
		return len(b.blocks[name]) > 0 || b.given(name)
	}
	if !b.given(name) {
		return b.spec.attr(name).Default == want
	}
	ctx, ok := b.d.context(b.attrs[name].Expr, b.scope)
	if !ok {
		return false
	}
	v, diags := b.attrs[name].Expr.Value(ctx)
	return !diags.HasErrors() && !hasMark(v, sensitive) && v.IsWhollyKnown() && b.d.unmark(v).RawEquals(b.d.constant(want))
}

// checkTogether reports what does not go together in the block, and what is missing in it, by the
// columns of the schema.
func (b *body) checkTogether() {
	var missing []*Attr
	fits := true
	for _, a := range b.spec.Attrs {
		if !a.conditional() && b.of == nil {
			continue // if it is required, HCL reports that it is missing
		}
		given := b.given(a.Name)
		if !given && !a.Required {
			continue
		}
		switch why := b.misfit(a); {
		case given && why != "":
			b.d.errorf(b.attrs[a.Name].NameRange, sumConflict, "%s", why)
			fits = false
		case !given && why == "" && (len(a.With) == 0 || slices.ContainsFunc(a.With, b.holds)):
			missing = append(missing, a)
		}
	}
	if len(missing) > 0 && fits && !b.stray {
		b.missing(missing[0])
	}
	for _, c := range b.spec.Blocks {
		if len(b.blocks[c.Name]) > 0 {
			if why := b.clash(c.Name, c.Not); why != "" {
				b.d.errorf(b.blocks[c.Name][0].DefRange, sumConflict, "%s", why)
			}
		}
	}
	b.checkChoice()
}

func (b *body) misfit(a *Attr) string {
	if why := b.clash(a.Name, a.Not); why != "" || len(a.With) == 0 || slices.ContainsFunc(a.With, b.holds) {
		return why
	}
	if b.stray || b.spec.One != nil && !slices.ContainsFunc(b.spec.One, b.holds) {
		return "" // what it goes with may be misspelt, or is missing
	}
	text := fmt.Sprintf("%s goes only with %s. Remove it", b.label(a.Name), choices(a.With))
	for _, condition := range slices.Sorted(maps.Keys(a.Else)) {
		if b.holds(condition) {
			return text + a.Else[condition] + "."
		}
	}
	instead := ""
	if i := slices.IndexFunc(b.spec.One, b.holds); i >= 0 && slices.Contains(b.spec.One, a.With[0]) {
		instead = " instead of " + b.spec.One[i]
	}
	return text + ", or write " + b.spec.example(a.With[0]) + instead + "."
}

func (b *body) clash(name string, not []Clash) string {
	for _, c := range not {
		if b.holds(c.With) {
			return fmt.Sprintf("%s does not go with %s: %s.", b.label(name), c.With, c.Why)
		}
	}
	return ""
}

func (b *body) missing(a *Attr) {
	i := slices.IndexFunc(a.With, b.holds)
	switch {
	case i < 0 && b.of == nil:
		b.d.errorf(b.rng, sumMissing, "The %s block needs %s, such as %s.", b.spec.Name, a.Name, a.example())
		return
	case i < 0:
		b.d.errorf(b.rng, sumMissing, "%s needs %s, such as %s.", b.of.name, a.Name, b.of.attr.Example)
		return
	}
	name, _, _ := strings.Cut(a.With[i], " = ")
	b.d.errorf(b.rangeOf(name), sumMissing, "%s needs %s, such as %s.", b.label(a.With[i]), a.Name, a.example())
}

func (b *body) checkChoice() {
	first := ""
	for _, name := range append(slices.Clone(b.spec.One), b.spec.Any...) {
		switch {
		case !b.holds(name):
		case first == "":
			first = name
		case slices.Contains(b.spec.One, name):
			b.d.errorf(b.nameRange(name), sumConflict, "A %[1]s block has only one of %[2]s. Write one %[1]s block for each.", b.spec.Name, choices(b.spec.One))
		}
	}
	if first == "" && len(b.spec.One)+len(b.spec.Any) > 0 && !b.stray {
		var examples []string
		for _, name := range append(slices.Clone(b.spec.One), b.spec.Any...) {
			examples = append(examples, b.spec.example(name))
		}
		b.d.errorf(b.rng, sumMissing, "A %s block needs %s.", b.spec.Name, choices(examples))
	}
}

func (b *body) nameRange(name string) hcl.Range {
	if a := b.attrs[name]; a != nil {
		return a.NameRange
	}
	return b.blocks[name][0].DefRange
}

func (s *Block) example(condition string) string {
	if a := s.attr(condition); a != nil {
		return a.example()
	}
	if s.block(condition) != nil {
		if strings.ContainsAny(condition[:1], "aeiou") {
			return "an " + condition + " block"
		}
		return "a " + condition + " block"
	}
	if block, rest, ok := inBlock(condition); ok {
		return rest + " in the " + block + " block"
	}
	return condition
}

func (a *Attr) example() string { return a.Name + " = " + a.Example }
