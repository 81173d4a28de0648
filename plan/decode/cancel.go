package decode

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/plan"
)

var cancelBlock = &Block{
	Name: "cancel",
	Doc: "Clients that leave: tokgate closes the connection of some requests before their answers end. They come on top of those that stay, which keep their number, prompts, lengths and, at a rate, their times. Requests of clients that leave are never judged, and no failures. " +
		"In a mix, a cancel block of the mix is that of all its parts.",
	Attrs: []*Attr{
		{Name: "share", Type: "share", Required: true, Doc: "The share of clients that leave in all requests that are sent, at most 90%. It is exact over a level, up to one request.", Example: `"5%"`, Bounds: Bounds{Max: plan.MostCancelled, Above: true}},
		{Name: "after", Type: "duration", Doc: "How long after sending its request a client leaves: while the request waits, or while the answer streams.", Example: `"2s"`, Bounds: Bounds{Min: millisecond, Max: hour}},
		{Name: "after_tokens", Type: "number", Doc: "After how many chunks with tokens a client leaves. A chunk is usually one token.", Bounds: Bounds{Min: 1, Max: maxTokens}, Not: []Clash{{"after", "a client leaves once. Remove one of them"}}},
	},
	Any: []string{"after", "after_tokens"},
}

// checkCancel refuses clients that leave a replay: every row of a trace is a request of its own.
func (d *decoder) checkCancel(w *plan.Workload, rng hcl.Range) {
	if w.Cancel != nil && w.Root().Replays() != nil {
		d.errorf(rng, sumConflict, "workload.%s replays a trace, and sends only the requests of its rows. For clients that leave, use a rate.", w.Root().Address())
	}
}
