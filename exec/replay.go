package exec

import (
	"fmt"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/shape"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// Recorded describes what to send for one request of a trace.
type Recorded struct {
	Input, Output int            // in tokens; an Input of 0 means that Text keeps its length
	Parts         []metric.Piece // of its prompt
	Text          *traffic.Row   // the recorded text; if nil, text is made up from Parts
	// Shared is the number of tokens that the prompt shares, from its beginning, with an earlier
	// prompt of the replay, and Bound with any other. They are 0 for requests after the measured ones.
	Shared, Bound int
}

// replay is the recorded traffic of a window, as it is sent again.
type replay struct {
	*shape.Trace
	context    int       // context of the server in tokens; 0 if not known
	shared     [2][]int  // the fields Shared and Bound of each row, up to the last measured row; see Recorded
	texts      []float64 // of each of these rows: the share of its recorded text that rows before it sent too
	lengthened int       // number of prompts that could not be made as short as recorded
}

func newReplay(t *shape.Trace, context int) *replay {
	end := t.First + t.Warm + t.Due
	r := &replay{Trace: t, context: context, texts: t.Rows.TextsRepeated(t.First, end)}
	for i, all := range []bool{false, true} {
		r.shared[i] = t.Rows.Repeats(t.First, end, context, all)
	}
	return r
}

func (r *replay) recorded(phase metric.Phase, order int) *Recorded {
	i, row := r.Row(phase, order)
	out := &Recorded{Text: row.Text}
	out.Input, out.Output, _ = row.Fit(r.context)
	if i < len(r.shared[0]) {
		out.Shared, out.Bound = r.shared[0][i], r.shared[1][i]
	}
	if row.Text == nil {
		out.Parts = traffic.Cut(r.Rows.Parts(r.First+i), out.Input)
	}
	return out
}

// notes describes what was replayed, and where it differs from the recording.
func (r *replay) notes() []string {
	out := []string{"replayed " + plan.TraceTitle(r.Rows)}
	cut := 0
	for i := range r.Due {
		if _, _, ok := r.Rows.Rows[r.First+r.Warm+i].Fit(r.context); ok {
			cut++
		}
	}
	if cut > 0 {
		out = append(out, fmt.Sprintf("%d of %d requests were cut to the server's context of %d tokens", cut, r.Due, r.context))
	}
	if r.lengthened > 0 {
		out = append(out, fmt.Sprintf(
			"%d prompts are shorter than what the server puts around every prompt: they are as short as possible", r.lengthened))
	}
	if n := r.Rows.Empty; n > 0 {
		out = append(out, fmt.Sprintf("%d rows of the trace are left out, such as those of requests that failed", n))
	}
	if share := r.Rows.HitRate(r.First, r.context); share > 0 && r.Due == r.Rows.Due {
		out = append(out, fmt.Sprintf("a cache that forgets nothing would find %s of its prompt tokens", metric.Format(metric.Ratio, share)))
	}
	return out
}

// fitted completes the prompt of a recorded request. It also counts the prompts that are longer
// than recorded.
func (r *replay) fitted(p client.Prompt, of *Recorded, phase metric.Phase, order int) client.Prompt {
	p.Output = of.Output
	if of.Text == nil {
		if p.Tokens > of.Input {
			r.lengthened++
		}
		around := p.Shared // what the server puts around every prompt
		p.Shared = min(float64(of.Shared)/float64(p.Tokens), 1)
		p.Bound = min(around+float64(of.Bound)/float64(p.Tokens), 1)
		return p
	}
	if i, _ := r.Row(phase, order); i < len(r.texts) {
		p.Shared = r.texts[i]
	}
	p.Bound = 1 // tokens of recorded texts are not known, nor which of them the server's template repeats
	return p
}
