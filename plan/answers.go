package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/traffic"
)

// Stores returns what is recorded of the answers of w. The plan's answers block
// decides; without one the text is recorded if the plan judges what the answers say.
func (p *Plan) Stores(w *Workload) Store {
	switch {
	case !w.Output.Natural:
		return StoreNone
	case w.Answers.Store != "":
		return w.Answers.Store
	case p.judgesAnswers(w):
		return StoreText
	}
	return StoreNone
}

func (p *Plan) judgesAnswers(w *Workload) bool {
	asks := func(t *Threshold) bool { return t.Metric.OfAnswers }
	return w.Score != nil || slices.ContainsFunc(w.Good, asks) ||
		slices.ContainsFunc(w.SLAs, func(s *SLA) bool { return slices.ContainsFunc(s.Thresholds, asks) }) ||
		slices.ContainsFunc(p.Compares, func(c *Compare) bool {
			return slices.ContainsFunc(c.Claims, func(claim *Claim) bool {
				return slices.Contains(claim.Workloads, w) && slices.ContainsFunc(claim.Changes,
					func(ch *ChangeBound) bool { return ch.Metric.OfAnswers })
			})
		})
}

// Fields returns the extra fields of the body of w's requests, as JSON values by name. A nil value
// removes the field from the body. Without extra fields the result is nil.
func (w *Workload) Fields() (map[string]any, error) {
	if len(w.Request.Extra) == 0 {
		return nil, nil
	}
	fields := map[string]any{}
	for name, v := range w.Request.Extra {
		if v.IsNull() {
			fields[name] = nil
			continue
		}
		v, _ = v.UnmarkDeep() // the value is only sent to the server and never printed
		raw, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			return nil, fmt.Errorf("the request field %q is not valid JSON: %w", name, err)
		}
		fields[name] = json.RawMessage(raw)
	}
	return fields, nil
}

// Ask returns the requirements on the answer to the request with the given row. Rows count from 1;
// row 0 means no row. An error names a requirement that cannot be read, and is therefore not
// checked.
func (w *Workload) Ask(row int) (*answers.Ask, error) {
	fields, err := w.Fields()
	if err != nil {
		return &answers.Ask{}, err
	}
	if r := w.row(row); r != nil {
		for name, v := range r.Fields() {
			if fields == nil {
				fields = map[string]any{}
			}
			fields[name] = v
		}
	}
	return answers.Read(fields)
}

// Found examines the answer to the request with the given row. If the workload has a score block,
// Found also decides whether the answer is right.
func (w *Workload) Found(ask *answers.Ask, said answers.Said, row int) metric.Answer {
	found := ask.Look(said)
	if row > 0 {
		found.Item = strconv.Itoa(row)
	}
	if w.Score != nil {
		found.Right = w.Score.Right(said, found, w.Expected(row))
	}
	return found
}

// Expected is the right answer of a row as JSON; nil if the row has none.
func (w *Workload) Expected(row int) json.RawMessage {
	if r := w.row(row); r != nil {
		return r.Answer
	}
	return nil
}

// row returns row n of the data set, counted from 1; nil if it has no row n.
func (w *Workload) row(n int) *traffic.Row {
	if set := w.Prompt.Dataset; set != nil && n > 0 && n <= len(set.Rows) {
		return &set.Rows[n-1]
	}
	return nil
}
