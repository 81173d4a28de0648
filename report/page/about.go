package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	clean "github.com/tokgate/tokgate/report/text"
)

func differences(runs []Run) Section {
	s := Section{ID: "runs", Title: "What differs between the runs",
		Lead: "The curves of the runs are drawn together. A difference between two curves means something only if little else differs between the runs. The facts below differ."}
	t := &Table{Words: true, Caption: "Facts that differ", Columns: Heads("Fact")}
	for _, r := range runs {
		t.Columns = append(t.Columns, Heads(r.Name)...)
	}
	add := func(i int, key, value string) {
		if value != "" {
			t.row(key, "–")[i+1] = text(value)
		}
	}
	for i, r := range runs {
		add(i, "plan", Line(r.Plan.Path))
		add(i, "plan's SHA-256", Line(clean.Bytes(r.Plan.Hash, 12)))
		add(i, "tokgate", Line(r.Run.Tool))
		add(i, "load generator", Line(r.Host))
		add(i, "simulated", fmt.Sprint(r.Run.Simulated))
		for _, server := range r.Run.Servers {
			for _, key := range server.Fingerprint.Keys() {
				add(i, Line(server.Address+" "+key), Line(server.Fingerprint[key]))
			}
			add(i, Line(server.Address+" streams read by"), Line(server.Path))
		}
	}
	t.Rows = slices.DeleteFunc(t.Rows, func(row []Cell) bool { return len(slices.Compact(slices.Clone(row[1:]))) == 1 })
	if len(t.Rows) == 0 {
		s.Blocks = []Block{{Text: "No recorded fact differs except the time."}}
	} else {
		s.Blocks = []Block{{Table: t}}
	}
	return s
}

// consistency lists figures of a report that contradict each other. A contradiction is a mistake in
// tokgate.
func consistency(runs []Run) Section {
	s := Section{ID: "consistency", Title: "Do the figures agree?",
		Lead: "tokgate checks whether the figures of a report agree with each other. The figures below disagree. Find out why before you use them."}
	for _, r := range runs {
		var list []string
		for _, f := range report.Check(r.Document) {
			if r.Name != "" {
				f = r.Name + ": " + f
			}
			list = append(list, Line(f))
		}
		s.Blocks = append(s.Blocks, Block{List: list[:min(len(list), 50)]})
	}
	return s
}

func strength(runs []Run) Section {
	s := Section{ID: "strength", Title: report.StrengthTitle,
		Lead: "A gate is useful only if a regression turns it red. Each regression below was planted on its own."}
	for _, r := range runs {
		g := r.Strength
		if g == nil {
			continue
		}
		if r.Name != "" {
			s.Blocks = append(s.Blocks, Block{Heading: r.Name})
		}
		s.Blocks = append(s.Blocks, Block{Text: Line(g.Says)})
		if len(g.Planted) == 0 {
			continue
		}
		t := &Table{Words: true, Caption: "What was planted, and the outcome of the gate", Columns: Heads("Planted", "The gate")}
		for _, p := range g.Planted[:min(len(g.Planted), 50)] {
			t.Rows = append(t.Rows, Row(p.Regression, p.Word()))
		}
		s.Blocks = append(s.Blocks, fold(verdict.Count(len(t.Rows), "regressions")+" planted, and the outcome of the gate", Block{Text: "By " + Line(g.Basis) + "."}, Block{Table: t}))
	}
	return s
}

func environment(runs []Run) Section {
	s := Section{ID: "environment", Title: "Configuration", Lead: "What was measured, on which server, and by which load generator. To repeat the run, use the same seeds and salt: they make the same prompts."}
	for _, r := range runs {
		var facts []Block
		caption := "The run"
		if r.Name != "" {
			caption = r.Name
		}
		t := &Table{Words: true, Caption: caption, Columns: Heads("Fact", "Value")}
		add := func(key, value string) {
			if value != "" {
				t.Rows = append(t.Rows, []Cell{text(key), text(Line(value))})
			}
		}
		add("tokgate", r.Run.Tool)
		add("run", r.Run.ID)
		add("started", r.When())
		add("plan", r.Plan.Path)
		add("plan's SHA-256", r.Plan.Hash)
		if r.Plan.Budget > 0 {
			add("budget", clean.Clock(r.Plan.Budget))
		}
		add("load generator", r.Host)
		add("prompt salt", fmt.Sprint(r.Run.Salt))
		add("prompt seeds", seeds(r))
		add("loads", loads(r))
		if c := r.Run.Calibration; c != nil {
			add("generator's own delay", fmt.Sprintf("p50 %s, p99 %s at %s and %s chunks/s, measured while no other load ran",
				metric.Format(metric.Seconds, c.Delay50.Seconds()), metric.Format(metric.Seconds, c.Delay99.Seconds()),
				verdict.Count(c.Streams, "streams"), metric.Format(metric.Count, c.Rate)))
		}
		for _, w := range r.Run.Workers {
			add("worker "+w.Name, sentBy(w))
		}
		facts = append(facts, Block{Table: t})
		for _, server := range r.Run.Servers {
			t := &Table{Words: true, Caption: "Server " + r.title(server.Address), Columns: Heads("Fact", "Value")}
			for _, key := range server.Fingerprint.Keys() {
				t.Rows = append(t.Rows, Row(key, server.Fingerprint[key]))
			}
			if server.Path != "" {
				t.Rows = append(t.Rows, []Cell{text("streams read by"), text(Line(server.Path))})
			}
			if server.Error != "" {
				t.Rows = append(t.Rows, []Cell{text("error"), {Text: Line(server.Error), Class: "error"}})
			}
			if len(t.Rows) == 0 {
				t.Rows = [][]Cell{{text("what it is"), text("unknown: the server reported nothing")}}
			}
			facts = append(facts, Block{Table: t})
			if server.Log != "" {
				facts = append(facts, Block{Log: &Log{"End of the log of " + r.title(server.Address), clean.Block(clean.Tail(server.Log, 8000))}})
			}
		}
		s.Blocks = append(s.Blocks, fold(strings.TrimSpace("Every fact of the run and its servers "+r.Name), facts...))
	}
	return s
}

// sentBy says what one of several processes sent.
func sentBy(w metric.Worker) string {
	words := fmt.Sprintf("%s; its clock was within ±%s", verdict.Count(w.Requests, "requests"), metric.Format(metric.Seconds, w.Offset.Seconds()))
	if w.Quiet > 0 {
		words += ", and nothing was heard from it for " + metric.Format(metric.Seconds, w.Quiet.Seconds())
	}
	return words
}

func seeds(r Run) string {
	var list []string
	for i := range r.Cases {
		for _, x := range r.Cases[i].Rounds {
			if s := fmt.Sprint(x.Seed); !slices.Contains(list, s) && len(list) < 40 {
				list = append(list, s)
			}
		}
	}
	return strings.Join(list, ", ")
}

// loads returns the smallest and the largest measured load, in words.
func loads(r Run) string {
	var parts []string
	for _, kind := range everyKind {
		low, high, n := 0.0, 0.0, 0
		for i := range r.Cases {
			c := &r.Cases[i]
			if c.Kind != kind || c.Skipped != "" {
				continue
			}
			if n++; n == 1 {
				low = c.Load()
			}
			low, high = min(low, c.Load()), max(high, c.Load())
		}
		switch {
		case n > 0 && low == high:
			parts = append(parts, fmt.Sprintf("%.4g %s", low, kinds[kind]))
		case n > 0:
			parts = append(parts, fmt.Sprintf("%.4g to %.4g %s", low, high, kinds[kind]))
		}
	}
	return strings.Join(parts, "; ")
}

func definitions(runs []Run) Section {
	s := Section{ID: "definitions", Title: "How this was measured, and what the words mean",
		Lead: "Tools define these metrics differently, so compare figures of two tools only if their definitions agree. These are tokgate's definitions."}
	used := map[string]bool{}
	for _, r := range runs {
		for i := range r.Cases {
			for _, m := range r.Cases[i].Metrics {
				if m.Why == "" {
					used[m.Metric] = true
				}
			}
		}
		for i := range r.Verdicts {
			if th := r.Verdicts[i].Threshold; th != nil {
				used[th.Metric.Name] = true
			}
		}
	}
	var defs []Definition
	for _, d := range metric.Defs {
		if used[d.Name] {
			defs = append(defs, Definition{"def-" + d.Name, d.Title, string(d.Unit), d.Doc, d.NoValue})
		}
	}
	s.Blocks = []Block{{List: methods(runs)}, fold("Definitions of "+verdict.Count(len(defs), "metrics"), Block{Definitions: defs})}
	return s
}

func methods(runs []Run) []string {
	out := []string{
		"Requests in flight (closed loop): the number stays the same, because each slot sends its next request when its last request has ended. Requests at once (burst): all are sent at the same instant.",
		"Requests per second (open loop): each request is sent at its due time, even if earlier requests are still running. The wait of a request counts from its due time.",
		"Percentiles are nearest-rank over all requests due: p95 is the value that 95 of 100 requests stay within. A failed request counts as worse than every other request, so a percentile that falls on a failed request is ∞. The sign – means that there is no value.",
		"Times are taken when the bytes arrive, before anything is parsed. The throughput of a level leaves out the warm-up, the ramp at the start and the drain at the end.",
		"The numbers of tokens are from the server's own usage.",
		"K is 1000, M is 1,000,000. Figures are shown with three significant digits; results.json has all digits.",
	}
	certified := false
	for _, r := range runs {
		certified = certified || r.Plan.Decide == "certified"
	}
	if certified {
		out = append(out, "A threshold passes or fails only if a statistical test decides it at the plan's confidence. Otherwise it is inconclusive. An interval has two one-sided bounds, each at that confidence.")
	}
	return out
}

// source shows the text of the plan.
func source(r Run) Section {
	s := Section{ID: "plan", Title: "The plan", Lead: "The plan, line by line, with the outcome of each requirement."}
	left := mostLines
	for i, src := range r.Plan.Sources {
		v := Source{File: Line(src.File)}
		lines := r.sources[i]
		shown := lines[:min(len(lines), left)]
		left -= len(shown)
		v.Left = len(lines) - len(shown)
		for j, l := range shown {
			v.Lines = append(v.Lines, SourceLine{ID: fmt.Sprintf("%sL%d-%d", r.ID, i+1, j+1), Number: j + 1, Tokens: paint(l)})
		}
		for j := range r.Verdicts {
			x := &r.Verdicts[j]
			if x.File == src.File && x.Line > 0 && x.Line <= len(v.Lines) {
				at := &v.Lines[x.Line-1]
				at.Checks = gathered(at.Checks, check(r, x), checkLabel(x), Line(r.level(x.Workload, x.Level)))
			}
		}
		s.Blocks = append(s.Blocks, fold(fmt.Sprintf("%s, %s", v.File, verdict.Count(len(lines), "lines")), Block{Source: &v}))
	}
	return s
}

// gathered adds a check to the checks of one line of the plan. A check that passed at several
// levels gets one entry for all of them, and so does a check that was skipped at several levels.
func gathered(list []Check, c Check, label, level string) []Check {
	if c.Class != "pass" && c.Class != "none" {
		return append(list, c)
	}
	c.Message, c.Notes = "", nil
	if level != "" {
		c.Title, c.Message = label, "at "+level
	}
	for i := range list {
		if list[i].Class == c.Class && list[i].Where == c.Where && list[i].Title == c.Title && list[i].Message != "" && c.Message != "" {
			list[i].Message += ", " + level
			return list
		}
	}
	return append(list, c)
}

// paint splits a line of HCL into comments, strings and other text, to color the line.
func paint(l string) []Token {
	var out []Token
	add := func(class, s string) {
		if s != "" {
			out = append(out, Token{class, s})
		}
	}
	start := 0
	for i := 0; i < len(l); i++ {
		switch {
		case l[i] == '"':
			end := i + 1
			for end < len(l) && l[end] != '"' {
				if l[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(l))
			add("", l[start:i])
			add("str", l[i:end])
			start, i = end, end-1
		case l[i] == '#', strings.HasPrefix(l[i:], "//"):
			add("", l[start:i])
			add("com", l[i:])
			return out
		}
	}
	add("", l[start:])
	return out
}
