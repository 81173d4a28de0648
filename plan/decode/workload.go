package decode

import (
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
)

func (d *decoder) decodeWorkloads() {
	sc := scope{ctx: d.base, server: true}.child(map[string]cty.Value{"server": values(d.servers, serverType)})
	families(d, "workload", d.workloads, sc, &d.out.Workloads, d.decodeWorkload)
	d.decodeMixes()
}

func (d *decoder) decodeWorkload(name, key string, blk *hcl.Block, sc *scope) *plan.Workload {
	w := &plan.Workload{Name: name, Key: key, Range: blk.DefRange, Policy: d.out.Gate.Policy}
	b := d.open(workloadBlock, blk, sc, "workload."+w.Address())
	p := readPreset(b)
	w.Servers = readServers(b)
	readWords(b, w, p)
	mix := b.given("mix")
	b.bind(w)
	if mix {
		d.readMix(b, w)
	} else {
		readTokens(b, w, p)
		w.Prompt = readPrompt(b, w)
		w.Prompt.Inputs, _ = b.integer("inputs")
		readRequest(b, &w.Request)
		w.Score = readScore(b, w)
	}
	readLoads(b, w, p)
	if !mix {
		checkAnswers(b, w)
	}
	if g := b.child("good"); g != nil {
		w.Good = readBounds(g)
	}
	w.Capacity = readCapacity(b, w, p)
	readSLAs(b, w, p)
	d.checkTrace(b, w)
	d.checkTurns(w)
	d.checkAPI(b, w)
	d.checkContext(b.rangeOf("input_tokens"), w)
	d.checkExtension(w)
	if !mix { // a mix's capacity is checked later, when the thresholds of its parts are known
		d.checkCapacity(w)
	}
	if !d.isLoadless(w) {
		d.checkStages(w)
	}
	return w
}

// readRequest reads what the fields of a request do not hold.
func readRequest(b *body, out *plan.Request) {
	out.Headers = b.textMap("headers")
	r := b.child("request")
	if r == nil {
		return
	}
	for _, attr := range sortedAttributes(r.attrs) {
		if r.spec.attr(attr.Name) != nil {
			continue
		}
		if attr.Name == "headers" {
			b.d.errorf(attr.NameRange, sumConflict, "The request block holds fields of the body, so headers would not be sent as headers. Write headers = { … } in the workload itself, beside the request block.")
			continue
		}
		if owner := reservedFields[attr.Name]; owner != "" {
			b.d.errorf(attr.NameRange, sumConflict, "tokgate sets the request field %s itself: %s.", attr.Name, owner)
			continue
		}
		v, ok := b.d.eval(attr.Expr, r.scope)
		if !ok {
			continue
		}
		if v, ok = r.plain(attr.Expr, attr.Name, v); ok {
			if out.Extra == nil {
				out.Extra = map[string]cty.Value{}
			}
			out.Extra[attr.Name] = v
		}
	}
}

var reservedFields = map[string]string{
	"messages":              "it makes the prompts from input_tokens",
	"prompt":                "it makes the prompts from input_tokens",
	"input":                 "it makes the prompts from input_tokens",
	"stream":                "it streams every answer",
	"stream_options":        "it asks for the usage",
	"max_tokens":            "use output_tokens",
	"max_completion_tokens": "use output_tokens",
	"max_output_tokens":     "use output_tokens",
	"min_tokens":            "use output_tokens",
	"ignore_eos":            "use output_tokens",
	"n":                     "it measures one answer for each request",
}

// needs reports a missing length, except where a misspelt name may have set it.
func (b *body) needs(w *plan.Workload, name string) {
	if !b.stray {
		b.d.needs(w, b.rng, name)
	}
}

func (d *decoder) needs(w *plan.Workload, rng hcl.Range, names ...string) {
	of := map[string]string{"input_tokens": "prompt", "output_tokens": "answer"}
	for _, name := range names {
		d.errorf(rng, sumMissing, "workload.%s needs %s: the length of each %s.", w.Address(), name, of[name])
	}
}

func readTokens(b *body, w *plan.Workload, p *preset) {
	if b.replays() {
		return // checkTrace sets them
	}
	if p == nil && !b.loaded() && b.unset("input_tokens") && b.unset("output_tokens") && !b.hasDataset() {
		// No error yet: this workload may be part of a mix whose trace sets the lengths.
		b.d.lengthless[w] = b.rng
		return
	}
	if b.hasDataset() && !b.given("input_tokens") {
		w.Input = 0 // no common length, so each row of the data set keeps its own
	} else if n, ok := b.integer("input_tokens"); ok {
		w.Input = n
	} else if b.unset("input_tokens") {
		if p != nil && p.input > 0 {
			w.Input = p.input
			b.note("input_tokens", strconv.Itoa(p.input), p.why())
		} else {
			b.needs(w, "input_tokens")
		}
	}
	if w.API.Embeds() {
		return
	}
	if w.Output = readOutput(b); b.unset("output_tokens") {
		if p != nil && p.output > 0 {
			w.Output = plan.Output{Mean: p.output}
			b.note("output_tokens", strconv.Itoa(p.output), p.why())
		} else {
			b.needs(w, "output_tokens")
		}
	}
}

// readOutput reads output_tokens. Its forms are 1024, { mean = 1024, jitter = "5%" } and { natural
// = true, max = 600 }.
func readOutput(b *body) (out plan.Output) {
	o := b.object("output_tokens")
	if o == nil {
		return out
	}
	length := "mean"
	if out.Natural = o.boolean("natural"); out.Natural {
		length = "max"
	}
	out.Mean, _ = o.integer(length)
	if !o.bare && !out.Natural {
		out.Jitter, _ = get(o, "jitter", item.share)
	}
	return out
}
