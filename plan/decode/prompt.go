package decode

import (
	"path/filepath"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// readPrompt reads the prompt block of a workload: where its prompts come from.
func readPrompt(b *body, w *plan.Workload) plan.Prompt {
	p := b.child("prompt")
	if p == nil {
		return plan.Prompt{}
	}
	out := plan.Prompt{Range: p.rng, Turns: readTurns(p, w)}
	if !p.given("dataset") {
		for _, name := range []string{"order", "column"} {
			if p.given(name) {
				b.d.errorf(p.attrs[name].NameRange, sumConflict, `%s applies only to a data set. Remove it, or write dataset = "prompts.jsonl".`, name)
			}
		}
		readShared(p, w, &out)
		return out
	}
	for _, name := range ofSharing {
		if p.given(name) {
			b.d.errorf(p.attrs[name].NameRange, sumConflict, "%s applies only to generated prompts, but this workload has a data set. Remove one of the two.", name)
		}
	}
	out.Order = plan.Order(p.oneOf("order", string(plan.Shuffled), string(plan.InOrder)))
	if v, ok := p.value("dataset"); !ok || p.isUnknown(p.rangeOf("dataset"), "dataset", v) {
		return out
	}
	if out.Name = p.text("dataset"); readTask(p, out.Name, &out) {
		return out
	}
	b.d.opts.Reading(func() {
		if out.Dataset = b.d.dataset(p); out.Dataset != nil {
			checkRows(p, w, out.Dataset)
		}
	})
	return out
}

// dataset reads a data set, once: later calls return the same data set.
func (d *decoder) dataset(b *body) *traffic.Dataset {
	path, column := b.pathOf("dataset"), b.text("column")
	key := [2]string{path, column}
	if set, ok := d.datasets[key]; ok {
		return set
	}
	var set *traffic.Dataset
	f, err := b.file("dataset")
	if err == nil {
		set, err = traffic.ReadFile(f, path, traffic.Options{Column: column})
		f.Close()
	}
	if err != nil {
		d.errorf(b.rangeOf("dataset"), sumDataset, "The data set cannot be used: %v.", err)
	} else {
		d.hash.add("data set", filepath.Base(path), []byte(set.Hash))
	}
	d.datasets[key] = set
	return set
}

// checkRows reports rows of a data set that the workload cannot use. Its API may not accept them,
// or they cannot be cut to input_tokens.
func checkRows(b *body, w *plan.Workload, set *traffic.Dataset) {
	if w.Input > 0 {
		for i := range set.Rows {
			if _, err := set.Rows[i].Question(); err != nil {
				b.d.errorf(b.rangeOf("dataset"), sumDataset, "The row %s:%d cannot be made as long as input_tokens: %v.", set.Path, set.Rows[i].Line, err)
				return
			}
		}
	}
	if w.API == plan.Chat {
		return
	}
	for _, row := range set.Rows {
		what := ""
		switch {
		case row.Messages != nil:
			what = "messages"
		case row.Tools != nil:
			what = "tools"
		case row.ResponseFormat != nil:
			what = "a response_format"
		default:
			continue
		}
		b.d.errorf(b.rangeOf("dataset"), sumDataset, `The row %s:%d has %s, which api = "completions" cannot send. Write api = "chat".`, set.Path, row.Line, what)
		return
	}
}

// ofSharing lists the attributes that exist only for generated prompts.
var ofSharing = []string{"shared_prefix", "hit_rate", "warm", "turns"}

// readShared reads how many tokens the beginnings of prompts share. The plan sets this by
// shared_prefix or hit_rate.
func readShared(p *body, w *plan.Workload, out *plan.Prompt) {
	switch {
	case p.given("shared_prefix") && p.given("hit_rate"):
		p.d.errorf(p.attrs["hit_rate"].NameRange, sumConflict, "hit_rate and shared_prefix exclude each other, because hit_rate sets the shared prefix itself. Remove one of them.")
		return
	case p.given("shared_prefix"):
		readPrefix(p, w, out)
	case p.given("hit_rate"):
		v, ok := p.value("hit_rate")
		rate, ok2 := 0.0, false
		if ok {
			rate, ok2 = p.asFraction(p.rangeOf("hit_rate"), "hit_rate", v)
		}
		if !ok2 || w.Input == 0 {
			return
		}
		if !(rate > 0 && rate < 1) {
			p.d.errorf(p.rangeOf("hit_rate"), sumOutOfRange, `hit_rate must be above "0%%" and below "100%%".`)
			return
		}
		shared, err := traffic.ForHitRate(w.Input, rate)
		if err != nil {
			p.d.errorf(p.rangeOf("hit_rate"), sumOutOfRange, "hit_rate: %v.", err)
			return
		}
		out.Shared, out.HitRate = shared, rate
	case p.given("warm"):
		p.d.errorf(p.attrs["warm"].NameRange, sumConflict, "warm applies only to shared prefixes. Remove it, or set shared_prefix or hit_rate.")
		return
	default:
		return
	}
	out.Warm = p.boolean("warm")
}

// prefixKeys lists the keys of shared_prefix.
var prefixKeys = []string{"tokens", "groups"}

// readPrefix reads shared_prefix, such as { tokens = 2048, groups = 20 }.
func readPrefix(p *body, w *plan.Workload, out *plan.Prompt) {
	const name = "shared_prefix"
	rng := p.rangeOf(name)
	v, ok := p.value(name)
	switch {
	case !ok || p.isUnknown(rng, name, v):
		return
	case !v.Type().IsObjectType() && !v.Type().IsMapType():
		p.wrongType(rng, name, "an object: { tokens = 2048, groups = 20 }", v)
		return
	}
	set := settings(p, name, v, prefixKeys)
	if _, ok := set["tokens"]; !ok {
		p.d.errorf(rng, sumMissing, "%[1]s needs the number of shared tokens, such as %[1]s = { tokens = 2048 }.", name)
		return
	}
	tokens, ok := p.asInteger(rng, name+".tokens", set["tokens"], 1, maxTokens)
	groups := int64(1)
	if g, given := set["groups"]; given {
		groups, ok = p.asInteger(rng, name+".groups", g, 1, maxCount)
	}
	if most := w.Input - traffic.LeastUnique; ok && w.Input > 0 && int(tokens) > most {
		p.d.errorf(rng, sumOutOfRange, "%s: at most %d of the %d input_tokens can be shared, because prompts must differ in the rest. Share fewer tokens, or raise input_tokens.", name, max(most, 0), w.Input)
		return
	}
	if ok {
		out.Shared = traffic.Shared{Groups: int(groups), Tokens: int(tokens)}
	}
}

// hasDataset reports whether the prompts of the workload come from a data set.
func (b *body) hasDataset() bool {
	p := b.child("prompt")
	return p != nil && p.given("dataset")
}
