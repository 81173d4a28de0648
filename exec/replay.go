package exec

import (
	"fmt"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// Recorded describes what to send for one request of a trace.
type Recorded struct {
	Input, Output int            // in tokens; an Input of 0 means that Text keeps its length
	Parts         []traffic.Part // of its prompt
	Text          *traffic.Row   // the recorded text; if nil, text is made up from Parts
	// Shared is the number of tokens that the prompt shares, from its beginning, with another
	// prompt of the replay. It is 0 for requests after the measured ones.
	Shared int
}

// replay is the recorded traffic of a window, as it is sent again. The first row that is sent has
// the number 0.
type replay struct {
	*load.Replay
	rows       *traffic.Replay
	speed      float64
	context    int   // context of the server in tokens; 0 if not known
	first      int   // index in rows of the first row to send
	shared     []int // the field Shared of each row, up to the last measured row; see Recorded
	children   map[int][]int
	answered   map[int]bool
	ripe       map[int]bool // rows that are due, but wait for an earlier answer
	waits      map[int]func() bool
	lengthened int // number of prompts that could not be made as short as recorded
}

// scaled divides a recorded duration by the speed of the replay.
func (r *replay) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) / r.speed) }

// follows returns the parent of row i: the row whose answer row i waits for. If the parent is not
// in the replay, ok is false.
func (r *replay) follows(i int) (parent int, ok bool) {
	parent = r.rows.Rows[r.first+i].Parent - r.first
	return parent, parent >= 0
}

// recorded describes the row of the trace that a request replays; nil without a row.
func (r *replay) recorded(phase metric.Phase, order int) *Recorded {
	i := r.Index(phase, order)
	if i < 0 {
		return nil
	}
	row := &r.rows.Rows[r.first+i]
	out := &Recorded{Text: row.Text}
	out.Input, out.Output, _ = row.Fit(r.context)
	if i < len(r.shared) {
		out.Shared = r.shared[i]
	}
	if row.Text == nil {
		out.Parts = traffic.Cut(r.rows.Parts(r.first+i), out.Input)
	}
	return out
}

// notes describes what was replayed, and where it differs from the recording.
func (r *replay) notes() []string {
	out := []string{"replayed " + plan.TraceTitle(r.rows)}
	cut := 0
	for i := range r.Due {
		if _, _, ok := r.rows.Rows[r.first+r.Warm+i].Fit(r.context); ok {
			cut++
		}
	}
	if cut > 0 {
		out = append(out, fmt.Sprintf("%d of %d requests were cut to the server's context of %d tokens", cut, r.Due, r.context))
	}
	if r.lengthened > 0 {
		out = append(out, fmt.Sprintf("%d prompts are shorter than what the server puts around every prompt: they are as short as possible", r.lengthened))
	}
	if n := r.rows.Empty; n > 0 {
		out = append(out, fmt.Sprintf("%d rows of the trace are left out, such as those of requests that failed", n))
	}
	if share := r.rows.HitRate(r.first, r.context); share > 0 && r.Due == r.rows.Due {
		out = append(out, fmt.Sprintf("a cache that forgets nothing would find %s of its prompt tokens", metric.Format(metric.Ratio, share)))
	}
	return out
}

// fitted completes the prompt of a recorded request. It also counts the prompts that are longer
// than recorded.
func (r *replay) fitted(p client.Prompt, of *Recorded) client.Prompt {
	p.Output = of.Output
	if of.Text == nil {
		if p.Tokens > of.Input {
			r.lengthened++
		}
		p.Shared = min(p.Shared+float64(of.Shared)/float64(p.Tokens), 1)
	} else {
		p.Shared = 1 // not known: earlier requests may have sent a part of the recorded text
	}
	return p
}
