//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

var (
	realAnswers     = flag.String("real-answers", "", "gate answers of the model of make tinymodel on vLLM for the rows of the table whose names match this `pattern`")
	realAnswersSame = flag.Int("real-answers-same", 20, "gates of the model against itself, those that are there already included")
	realAnswersPage = flag.String("real-answers-page", "", "put the table of all rows that are there into this `page`, docs/engines-tried.md")
)

// spoiltRow describes one test of a gate: the fault of the candidate, and how to start it.
type spoiltRow struct {
	name, how string
	model     string // name of the candidate's model; "": the control's model
	flags     []string
	layer     string // name of the check that must fail; "": none may fail
	same      bool   // the server equals the control; it is gated many times, with fewer prompts
}

var spoilt = []spoiltRow{
	{name: "none", how: "the same again", same: true},
	{name: "bf16 for fp32", how: "`--dtype bfloat16`", flags: []string{"--dtype", "bfloat16"}},
	{name: "weights of four bits", how: "rounded by row", model: "int4"},
	{name: "weights of four bits, cut", how: "by row, not rounded", model: "int4-cut", layer: "the control reads"},
	{name: "another rope base", how: "500,000 for 10,000", layer: "the control reads",
		flags: []string{"--hf-overrides", `{"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}`}},
	{name: "garbage from token 32", how: "a logits processor", layer: "the control reads", flags: []string{"--logits-processors", "garbage:Garbage"}},
	{name: "a wrong chat template", how: "one without roles", layer: "tasks", flags: []string{"--chat-template", "{dir}/wrong.jinja"}},
	{name: "context cut to half", how: "a window of 256 tokens", layer: "tasks",
		flags: []string{"--hf-overrides", `{"layer_types": ["sliding_attention", "sliding_attention"], "sliding_window": 256}`}},
}

// TestRealAnswers gates a trained model, with planted faults that an engine may have. `make
// real-answers` runs it. It skips gates that already have results in its folder, so the table may
// take several runs.
func TestRealAnswers(t *testing.T) {
	if *realDir == "" || *realAnswers == "" {
		t.Skip("make real-answers")
	}
	wanted := regexp.MustCompile(*realAnswers)
	r := newTrial(t, "answers")
	plugins := must.Get(filepath.Abs(filepath.Join(repository, "plans", "real")))(t)
	r.environ = append(r.environ, "PYTHONPATH="+plugins)
	control, end := "", func() {}
	defer func() { end() }()
	for i := range spoilt {
		s := &spoilt[i]
		if due := r.missing(s); len(due) > 0 && wanted.MatchString(s.name) {
			if control == "" {
				control, end = r.taught("taught")
			}
			r.gates(s, control, due)
		}
	}
	table := r.spoiltTable()
	fmt.Print("\n" + table)
	if *realAnswersPage == "" {
		return
	}
	page := read(t, *realAnswersPage)
	const begin, over = "<!-- answers -->\n", "<!-- /answers -->"
	before, rest, ok := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, over)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", *realAnswersPage)
	}
	err := os.WriteFile(*realAnswersPage, []byte(before+begin+table+over+after), 0o644)
	must.Hold(t, err == nil, "%v", err)
}

// gateName returns the name of gate n of the row, with n counted from 0. The results folder of the
// gate is named after it.
func (s *spoiltRow) gateName(n int) string { return s.name + ", gate " + strconv.Itoa(n+1) }

// missing lists the numbers of the row's gates that must still be run: they have no result yet, or
// an error.
func (r *trial) missing(s *spoiltRow) (due []int) {
	gates := 1
	if s.same {
		gates = *realAnswersSame
	}
	for n := range gates {
		if doc, err := r.gate(s, n); err != nil || doc.Outcome == verdict.Error {
			due = append(due, n)
		}
	}
	return due
}

// gate returns the results of gate n of a row.
func (r *trial) gate(s *spoiltRow, n int) (*report.Document, error) {
	raw, err := os.ReadFile(filepath.Join(r.folder(s.gateName(n)), "results.json"))
	if err != nil {
		return nil, err
	}
	var doc report.Document
	return &doc, json.Unmarshal(raw, &doc)
}

// taught starts vLLM with a model that `make tinymodel` trained, and returns the server's URL.
func (r *trial) taught(model string, flags ...string) (url string, end func()) {
	words := []string{"vllm", "serve", filepath.Join(r.dir, model), "--host", "127.0.0.1", "--port", "{port}", "--served-model-name", "taught",
		"--max-model-len", "1024", "--max-num-seqs", "8", "--enforce-eager"}
	if !slices.Contains(flags, "--dtype") {
		words = append(words, "--dtype", "float32")
	}
	for _, f := range flags {
		words = append(words, strings.ReplaceAll(f, "{dir}", r.dir))
	}
	return r.serve("/health", words...)
}

// gates runs those gates of a row whose numbers are in the list due. It starts the candidate once
// for all of them.
func (r *trial) gates(s *spoiltRow, control string, due []int) {
	candidate, end := r.taught(cmp.Or(s.model, "taught"), s.flags...)
	defer end()
	for _, n := range due {
		cmd, out := r.command(s.gateName(n), "answers.hcl", "TOKGATE_VAR_url="+control, "TOKGATE_VAR_candidate="+candidate,
			"TOKGATE_VAR_prompts="+strconv.Itoa(s.prompts()), "TOKGATE_VAR_items="+strconv.Itoa(s.items()))
		r.run(s.gateName(n), cmd, out, nil)
	}
}

// prompts returns the number of prompts that the control scores.
func (s *spoiltRow) prompts() int {
	if s.same {
		return 50
	}
	return 200
}

// items returns the number of recall items in each of five rounds. A gate can certify nothing with
// fewer than 25 items in all rounds together.
func (s *spoiltRow) items() int {
	if s.same {
		return 6
	}
	return 20
}

// redBy names the kinds of checks that made a gate fail, such as "form".
func redBy(doc *report.Document) (layers []string) {
	for _, c := range doc.Comparisons {
		for _, x := range c.Changes {
			layer := "form"
			switch {
			case x.Outcome != verdict.Fail || x.Severity != "error":
				continue
			case x.Level == "answers":
				layer = "the control reads"
			case x.Metric.Name == "accuracy":
				layer = "tasks"
			}
			if !slices.Contains(layers, layer) {
				layers = append(layers, layer)
			}
		}
	}
	return layers
}

// spoiltTable returns the table of all gates that were run. A gate with a planted fault must fail
// by the check that its row names. Of the gates without a fault, one in twenty may fail.
func (r *trial) spoiltTable() string {
	var b strings.Builder
	b.WriteString("| planted in the candidate | how | gates | odd answers | answer_nll, nats a token | agreement | recall right | red by | the gate |\n|---|---|---|---|---|---|---|---|---|\n")
	for i := range spoilt {
		s := &spoilt[i]
		gates, by, ends := 0, []string{}, map[verdict.Outcome]int{}
		var odd, nll, alike extent
		var right [2]extent
		for n := range 1000 {
			doc, err := r.gate(s, n)
			if err != nil {
				break
			}
			gates++
			ends[doc.Outcome]++
			by = append(by, redBy(doc)...)
			for _, c := range doc.Comparisons {
				for _, x := range c.Changes {
					switch x.Metric.Name {
					case "odd_answers":
						odd.add(x.Candidate)
					case "answer_nll":
						nll.add(x.Change)
					case "agreement":
						alike.add(x.Candidate)
					case "accuracy":
						right[0].add(x.Control)
						right[1].add(x.Candidate)
					}
				}
			}
		}
		if gates == 0 {
			continue
		}
		switch {
		case s.layer != "" && !slices.Contains(by, s.layer):
			r.t.Errorf("%s is not red by what is to see it: %s", s.name, s.layer)
		case s.layer == "" && 20*ends[verdict.Fail] > gates:
			r.t.Errorf("%s is red in %d of %d", s.name, ends[verdict.Fail], gates)
		}
		slices.Sort(by)
		var outcomes []string
		for _, o := range []verdict.Outcome{verdict.Pass, verdict.Inconclusive, verdict.Fail, verdict.Error} {
			if ends[o] > 0 {
				outcomes = append(outcomes, fmt.Sprintf("%s %d", o, ends[o]))
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s of %d | %s | %s | %s → %s | %s | %s |\n", s.name, s.how, gates, odd.text("%.0f", 1), s.prompts(), nll.text("%+.3f", 1), alike.text("%.1f %%", 100),
			right[0].text("%.0f %%", 100), right[1].text("%.0f %%", 100), cmp.Or(strings.Join(slices.Compact(by), ", "), "–"), strings.Join(outcomes, ", "))
	}
	return b.String()
}

// extent collects values from several gates. Its method text returns their range.
type extent struct{ list []float64 }

func (s *extent) add(v metric.Value) {
	if v.OK {
		s.list = append(s.list, v.V)
	}
}

func (s *extent) text(format string, scale float64) string {
	if len(s.list) == 0 {
		return "–"
	}
	low, high := fmt.Sprintf(format, scale*slices.Min(s.list)), fmt.Sprintf(format, scale*slices.Max(s.list))
	if low == high {
		return low
	}
	return low + " to " + high
}
