package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// Answer is a bad answer, next to the answer that it is compared with. Both texts come from
// servers. The middle of a long text is left out.
type Answer struct {
	Comparison string   `json:"comparison,omitempty"` // comparison that found the answer bad; otherwise ""
	Server     string   `json:"server"`
	Workload   string   `json:"workload"`
	Level      string   `json:"level"`
	Round      int      `json:"round"`              // 0-based
	Order      int      `json:"order"`              // number of the request in its round, from 0
	Row        int      `json:"row,omitempty"`      // row of the data set, from 1; 0 if it has none
	Metrics    []string `json:"metrics"`            // metrics by which the answer is bad
	Why        string   `json:"why,omitempty"`      // why the control's scores are odd; otherwise ""
	Expected   string   `json:"expected,omitempty"` // the right answer; "" if the row has none
	Control    *string  `json:"control,omitempty"`  // the control's answer; null if none was recorded
	Said       string   `json:"said"`
}

// mostAnswers is the largest number of answers that are shown for a workload on a server, or for a
// comparison.
const mostAnswers = 5

// Where names the request.
func (a *Answer) Where() string {
	at := fmt.Sprintf("round %d, request %d", a.Round+1, a.Order+1)
	switch {
	case a.Why != "":
		at = fmt.Sprintf("prompt %d", a.Order+1)
	case a.Row > 0:
		at = fmt.Sprintf("row %d", a.Row)
	}
	return at
}

// Bad explains what is bad about the answer.
func (a *Answer) Bad() string {
	if a.Why != "" {
		return a.Why
	}
	var words []string
	for _, name := range a.Metrics {
		words = append(words, badWords[name])
	}
	return strings.Join(words, ", ")
}

var badWords = map[string]string{
	"stop_rate": "did not end by itself", "empty": "empty", "repetition": "repeats itself", "invalid_text": "invalid text",
	"valid_json": "no valid JSON", "valid_tool_call": "no valid tool call", "accuracy": "wrong",
}

func (a *Answer) quote() string {
	said := fmt.Sprintf("got %q", shorten(a.Said))
	switch {
	case a.Expected != "":
		said = fmt.Sprintf("expected %q, %s", shorten(a.Expected), said)
	case a.Control != nil:
		said += fmt.Sprintf("; the control: %q", shorten(*a.Control))
	}
	return exampleOf + a.Where() + ": " + said
}

func shorten(s string) string { return middleOut(s, 60, 60) }

// middleOut leaves out the middle of a long text. It keeps the beginning and the end, where answers
// are often garbled.
func middleOut(s string, head, tail int) string {
	r := []rune(s)
	if len(r) <= head+tail {
		return s
	}
	return string(r[:head]) + " … " + string(r[len(r)-tail:])
}

// said returns the text of an answer, followed by its tool calls.
func (b *builder) said(s *metric.Said) string {
	out := s.Text
	for _, c := range s.Calls {
		out += fmt.Sprintf(" %s(%s)", c.Name, c.Arguments)
	}
	return middleOut(b.clean(strings.TrimPrefix(out, " ")), 400, 200)
}

func (b *builder) answer(s *metric.Sample, metrics []string) Answer {
	out := Answer{Server: s.Server, Workload: s.Workload, Level: s.Level, Round: s.Round, Order: s.Order, Row: s.Row, Metrics: metrics,
		Said: b.said(s.Said)}
	if w := b.workloadAt(s.Workload); w != nil {
		var text string
		want := w.Expected(s.Row)
		if json.Unmarshal(want, &text) != nil {
			text = string(want)
		}
		out.Expected = middleOut(b.clean(text), 400, 200)
	}
	return out
}

func (b *builder) answers(v assert.Verdicts) (out []Answer) {
	for i := range b.run.Servers {
		for _, w := range b.workloads() {
			out = append(out, b.worst(b.run.Servers[i].Address, w, b.judgedBy(w, v))...)
		}
	}
	return out
}

func (b *builder) workloads() (out []string) {
	for _, l := range b.levels {
		if !slices.Contains(out, l.Workload) {
			out = append(out, l.Workload)
		}
	}
	return out
}

// judgedBy returns the metrics that can make an answer of the workload bad. It leaves out stop_rate
// if the plan does not bound it, because an answer of natural length may reach its token limit.
func (b *builder) judgedBy(workload string, v assert.Verdicts) (out []metric.Def) {
	for _, def := range metric.Defs {
		bounded := slices.ContainsFunc(v.List, func(v verdict.Verdict) bool {
			return v.Workload == workload && v.Threshold != nil && v.Threshold.Metric.Name == def.Name
		})
		if def.OfAnswers && (def.Name != "stop_rate" || bounded) {
			out = append(out, def)
		}
	}
	return out
}

func (b *builder) worst(server, workload string, defs []metric.Def) (out []Answer) {
	type bad struct {
		sample  *metric.Sample
		metrics []string
	}
	var found []bad
	for _, l := range b.levels {
		if l.Server != server || l.Workload != workload {
			continue
		}
		if slices.ContainsFunc(l.Rounds, func(r *metric.Round) bool { return r.Stored != nil }) {
			continue // the texts of answers are not in memory
		}
		for _, s := range l.MeasuredSamples() {
			if s.Said == nil || s.Said.Hash != "" {
				continue
			}
			x := bad{sample: s}
			for _, def := range defs {
				if s.Bad(def) {
					x.metrics = append(x.metrics, def.Name)
				}
			}
			if len(x.metrics) > 0 {
				found = append(found, x)
			}
		}
	}
	slices.SortStableFunc(found, func(x, y bad) int { return len(y.metrics) - len(x.metrics) })
	for _, x := range found[:min(len(found), mostAnswers)] {
		out = append(out, b.answer(x.sample, x.metrics))
	}
	return out
}

// lost returns the candidate's answers that lost most against the control's answers to the same
// prompts.
func (b *builder) lost(c *compare.Comparison) (out []Answer) {
	shown := map[bool]int{} // number of answers shown, with and without a reason from scores
	for _, x := range c.Lost {
		read := x.Why != ""
		if shown[read]++; shown[read] > mostAnswers {
			continue
		}
		a := b.answer(x.Candidate, x.Metrics)
		a.Comparison, a.Why = c.Name, x.Why
		if said := x.Control.Said; said != nil && said.Hash == "" {
			text := b.said(said)
			a.Control = &text
		}
		out = append(out, a)
	}
	return out
}

// exampleOf begins a sentence that quotes an answer.
const exampleOf = "for example "

// AnswersOf lists the bad answers of a comparison; those of the workloads if its name is "".
func (d *Document) AnswersOf(comparison string) (list []Answer) {
	for _, a := range d.Answers {
		if a.Comparison == comparison {
			list = append(list, a)
		}
	}
	return list
}

// quote returns a sentence that quotes a bad answer, for a failed verdict on answers. It returns ""
// without a bad answer.
func (d *Document) quote(v *verdict.Verdict) string {
	name := v.Metric
	if v.Threshold != nil {
		name = v.Threshold.Metric.Name
	}
	if v.Outcome != verdict.Fail {
		return ""
	}
	for _, a := range d.AnswersOf(v.Comparison) {
		at := a.Server == v.Server && a.Workload == v.Workload && (v.Level == "" || v.Level == a.Level)
		if slices.Contains(a.Metrics, name) && (at || a.Why != "") {
			return a.quote()
		}
	}
	return ""
}
