package decode

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/plan"
)

var cancelBlock = &Block{
	Name: "cancel", Not: []Clash{{"load.trace", "a trace sends only the requests of its rows. For clients that leave, use a rate"}, ofAnswers[0]},
	Doc: "Clients that leave: tokgate closes the connection of some requests before their answers end. They come on top of those that stay, which keep their number, prompts, lengths and, at a rate, their times. Requests of clients that leave are never judged, and no failures. " +
		"In a mix, a cancel block of the mix is that of all its parts.",
	Attrs: []*Attr{
		{Name: "share", Type: "share", Required: true, Doc: "The share of clients that leave in all requests that are sent, at most 90%. It is exact over a level, up to one request.", Example: `"5%"`, Bounds: Bounds{Max: plan.MostCancelled, Above: true}},
		{Name: "after", Type: "duration", Doc: "How long after sending its request a client leaves: while the request waits, or while the answer streams.", Example: `"2s"`, Bounds: Bounds{Min: millisecond, Max: hour}},
		{Name: "after_tokens", Type: "number", Doc: "After how many chunks with tokens a client leaves. A chunk is usually one token.", Bounds: Bounds{Min: 1, Max: maxTokens}, Not: []Clash{{"after", "a client leaves once. Remove one of them"}}},
	},
	Any: []string{"after", "after_tokens"},
}

var residueBlock = &Block{
	Name: "residue",
	Doc:  "Checks what the server keeps of a level: running and waiting requests, and memory of the KV cache, must return to what they were before, tokens must not be made for clients that left, and a request alone must be as fast as before. A workload with a cancel block is checked without this block too. On an endpoint, which others may use, the check only warns, and has no value if others did. Not with stages, a trace, or servers that take turns.",
	Attrs: []*Attr{
		{Name: "settle", Type: "duration", Default: `"30s"`, Doc: "How long after the level the server may take.", Bounds: Bounds{Min: second, Max: hour}},
		{Name: "burst", Type: "bool", Default: `false`, Doc: "Also asks how many requests the server still takes: sends 256 at once before the load and after it, and compares how many are answered together."},
		{Name: "severity", Type: "string", Default: `"error"`, Doc: "What happens if something is left. `error`: the gate fails. `warn`: the report shows it.", OneOf: severities},
	},
}

// checkCancel refuses clients that leave a replay: every row of a trace is a request of its own.
func (d *decoder) checkCancel(w *plan.Workload, rng hcl.Range) {
	if w.Cancel != nil && w.Root().Replays() != nil {
		d.errorf(rng, sumConflict, "workload.%s replays a trace, and sends only the requests of its rows. For clients that leave, use a rate.", w.Root().Address())
	}
}

// checkResidues refuses residues that nothing would check.
func (d *decoder) checkResidues() {
	for _, w := range d.out.Workloads {
		if w.Residue != nil && len(d.out.Residuals(w)) == 0 {
			d.errorf(w.Residue.Range, sumConflict, "No level of workload.%s is checked for a residue. It needs a load of its own, without stages or a trace, on a server that takes no turns in a comparison. Remove the block, or move it to such a workload.", w.Address())
		}
	}
}
