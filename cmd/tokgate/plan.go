package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/strength"
)

func (a *app) planCommand() *cobra.Command {
	var in inputs
	cmd := &cobra.Command{
		Use:   "plan FILE|FOLDER...",
		Short: "Show what a run would do: cases, requests, tokens, requirements, defaults",
		Long: `Prints what a run would do, and starts nothing: every case (server, workload,
level) with its requests and tokens, every requirement with the number of requests
that can certify it, every default, the time and the cost. Secrets may be unset.
Without --base, base.server.NAME is the plan's own server.`,
		Example: `  tokgate plan plans/demo.hcl
  tokgate plan chat.hcl --var image=vllm/vllm-openai:v0.19.1`,
		Args:              needPlans,
		ValidArgsFunction: completePlans,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := planFiles(args, false)
			if err != nil {
				return err
			}
			in.self = true
			plans, err := a.loadAll(files, in, false)
			if err != nil {
				return err
			}
			if err := a.needDemanded(cmd.Context(), plans); err != nil {
				return err
			}
			width := a.terminal(a.Out).width
			for i, p := range plans {
				if i > 0 {
					fmt.Fprintln(a.Out)
				}
				last := readLastRun(p.Path)
				heed(p, resultsDir("", p.Path, false, false))
				x := &expansion{a.Out, width, p, last, startTimes(p, last)}
				x.print()
				if err := x.strength(cmd.Context()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	in.flags(cmd.Flags())
	in.policyFlag(cmd.Flags())
	return cmd
}

type expansion struct {
	out   io.Writer
	width int // columns
	p     *plan.Plan
	last  *lastRun
	start map[*plan.Server]startTime
}

func (x *expansion) print() {
	x.para("", x.p.Path+": "+planSize(x.p))
	x.price()
	x.cases()
	x.searches()
	x.saturations()
	x.preparation()
	x.requirements()
	x.comparisons()
	if len(x.p.Asserts) > 0 {
		x.title("Asserts (point estimates)")
		for _, as := range x.p.Asserts {
			x.para("  ", as.Name)
		}
	}
	x.defaults()
	budget := "none"
	if x.p.Gate.Budget > 0 {
		budget = plan.PlainDuration(x.p.Gate.Budget)
	}
	fmt.Fprintln(x.out)
	x.para("", fmt.Sprintf("Time: %s · budget: %s", x.last.total(x.p, x.start), budget))
	if starts := startsOf(x.p, x.start); starts != "" {
		x.para("", "Starts: "+starts)
	}
	if n := needsOf(x.p, x.last); n.streams > 0 {
		x.para("", "Needs: "+n.String())
	}
	for _, d := range advise(planning, x.p, x.last) {
		x.para("", "Warning: "+d.Detail)
	}
}

// price says first what the run costs, what it sends for that, and what half of it would still show.
func (x *expansion) price() {
	cost := x.last.takes(x.p, x.start)
	parts := []string{cost.price(x.p), tariff(x.p)}
	if said := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · "); said != "" {
		x.para("", "Price: "+said)
	}
	if cost.most.measured > 0 {
		x.para("", "Requests: "+cost.requests())
	}
	if said := assert.HalfWords(x.p); said != "" {
		x.para("", "With half of the requests: "+said)
	}
}

func (x *expansion) title(s string) { fmt.Fprintf(x.out, "\n%s\n", s) }

func (x *expansion) para(lead, s string) { para(x.out, x.width, lead, s) }

type block struct {
	workloads, servers []string
	rows               [][]string
}

type blocks []*block

func (b *blocks) add(workload, server string, row ...string) {
	i := slices.IndexFunc(*b, func(o *block) bool { return o.workloads[0] == workload && o.servers[0] == server })
	if i < 0 {
		i = len(*b)
		*b = append(*b, &block{workloads: []string{workload}, servers: []string{server}})
	}
	(*b)[i].rows = append((*b)[i].rows, row)
}

// merged joins blocks with the same rows. It first joins the servers of one workload. Then it joins
// workloads that run on the same servers.
func (b blocks) merged() blocks {
	var byServer, out blocks
	same := func(list blocks, o *block, alike func(*block) bool) *block {
		i := slices.IndexFunc(list, func(m *block) bool { return alike(m) && slices.EqualFunc(m.rows, o.rows, slices.Equal[[]string]) })
		if i < 0 {
			return nil
		}
		return list[i]
	}
	for _, o := range b {
		if m := same(byServer, o, func(m *block) bool { return m.workloads[0] == o.workloads[0] }); m != nil {
			m.servers = append(m.servers, o.servers...)
		} else {
			byServer = append(byServer, o)
		}
	}
	for _, o := range byServer {
		if m := same(out, o, func(m *block) bool { return slices.Equal(m.servers, o.servers) }); m != nil {
			m.workloads = append(m.workloads, o.workloads...)
		} else {
			out = append(out, o)
		}
	}
	return out
}

func (b blocks) table(numbers []int, head ...string) table {
	t := table{numbers: numbers}
	for i, o := range b.merged() {
		t.rows = append(t.rows, []string{strings.Join(o.workloads, ", ") + " on " + strings.Join(o.servers, ", ")})
		if i == 0 {
			t.rows = append(t.rows, head)
		}
		t.rows = append(t.rows, o.rows...)
	}
	return t
}

func (x *expansion) cases() {
	cases := exec.Cases(x.p)
	if len(cases) == 0 {
		return
	}
	x.title("Cases")
	var b blocks
	var requests, input, output, warmups int
	least := ""
	for _, c := range cases {
		n := c.Level.Requests
		inTokens, outTokens, sized := tokensOf(c)
		took := "unknown"
		if d, ok := x.last.duration(c); ok {
			if took = roundTime(d); legs(x.p, c) > 1 {
				took = roundTime(d/time.Duration(legs(x.p, c))) + " a leg"
			}
		}
		more := ""
		if c.Level.Duration > 0 {
			more, least = "+", "at least "
		}
		in := grouped(inTokens) + more
		if !sized {
			in, least = "as they are", "at least "
		}
		b.add(c.Workload.Address(), c.Server.Address(), c.Level.Name,
			strconv.Itoa(c.Level.Rounds), grouped(n)+more, in, grouped(outTokens)+more, took)
		requests, input, output = requests+n, input+inTokens, output+outTokens
		warmups += exec.Warmups(c)
	}
	rounds := "Rounds"
	if windows := slices.ContainsFunc(cases, func(c exec.Case) bool { return c.Level.Batches }); windows {
		rounds = "Rounds/batches"
		if !slices.ContainsFunc(cases, func(c exec.Case) bool { return !c.Level.Batches }) {
			rounds = "Batches"
		}
	}
	b.table([]int{0, 1, 2, 3, 4, 5}, "Level", rounds, "Requests", "Input tokens", "Output tokens", "Time").write(x.out, x.width)
	warm := "warm-up requests"
	if warmups > 0 {
		warm = grouped(warmups) + " warm-up requests"
	}
	x.para("  ", fmt.Sprintf("Together %s%s requests, %s input tokens and %s output tokens. Not included: %s, and requests that keep up the load while the last ones finish.",
		least, grouped(requests), grouped(input), grouped(output), warm))
	x.residues(cases)
}

func legs(p *plan.Plan, c exec.Case) int {
	n, _ := exec.Legs(p, c)
	return n
}

func (x *expansion) searches() {
	searches := exec.Searches(x.p)
	if len(searches) == 0 {
		return
	}
	x.title("Capacity searches")
	var b blocks
	for _, c := range searches {
		s := c.Workload.Capacity
		over, required, budget := "requests in flight", "none", "none"
		levels := span(s.From, s.UpTo)
		switch s.Over {
		case metric.Burst:
			over = "requests at once"
		case metric.Users:
			over = "users"
		case metric.OpenLoop:
			over, levels = "requests a second", "up to "+s.Amount(s.UpTo)
		case metric.Speedup:
			over, levels = "speedup of the trace", s.Amount(s.From)+"–"+s.Amount(s.UpTo)
		}
		if s.Require > 0 {
			required = s.Amount(s.Require)
		}
		if s.Budget > 0 {
			budget = plan.PlainDuration(s.Budget)
		}
		low, high := s.Level(s.From).Requests, s.Level(s.UpTo).Requests
		first, most := span(low, high), span(c.Workload.MostRequests(low), c.Workload.MostRequests(high))
		if s.Over == metric.Users {
			window := s.Load.People.Window
			first, most = "as come in "+plan.PlainDuration(window), "in "+plan.PlainDuration(4*window)
		}
		b.add(c.Workload.Address(), c.Server.Address(), over, levels, required, first, most, budget)
	}
	b.table([]int{1, 2, 3, 4}, "Over", "Levels", "Required", "Requests", "At most", "Budget").write(x.out, x.width)
}

func span(low, high int) string {
	if low == high {
		return grouped(low)
	}
	return grouped(low) + "–" + grouped(high)
}

func (x *expansion) requirements() {
	needs := map[[3]string]assert.Finding{}
	for _, f := range assert.Certify(x.p) {
		needs[[3]string{f.Workload, f.Level, f.Requirement}] = f
	}
	// Levels with the same requirement share one row. It has the position of the first of them.
	type row struct{ workload, server, holds, needed string }
	levels := map[row][]string{}
	var order []row
	for _, v := range assert.Awaited(x.p) {
		r, level := row{workload: v.Workload, server: v.Server}, "capacity"
		switch {
		case v.Kind == verdict.KindCapacity && v.Required():
			r.holds = x.limit(v.Workload)
		case v.Kind == verdict.KindSLA:
			r.holds = strings.TrimSpace(v.Threshold.Metric.Name + " " + v.Threshold.Text)
			if v.Level != "" {
				level = v.Level
			}
			r.needed = need(needs[[3]string{v.Workload, level, r.holds}])
			if v.Threshold.Implied {
				r.holds += " (implied)"
			}
			if v.Severity == verdict.SeverityWarn {
				r.holds += " (warns)"
			}
		default:
			continue
		}
		if levels[r] == nil {
			order = append(order, r)
		}
		levels[r] = append(levels[r], level)
	}
	if len(order) == 0 {
		return
	}
	x.title("Requirements")
	var b blocks
	for _, r := range order {
		b.add(r.workload, r.server, joinLevels(levels[r]), r.holds, r.needed)
	}
	b.table(nil, "At", "Must hold", "Needed to certify").write(x.out, x.width)
	x.para("  ", "In addition, every case must be measured validly, and no server may change before the end of the run.")
}

// joinLevels joins the names of levels with commas. Neighbours with the same kind of load share its
// name: "burst 1, 2, 4".
func joinLevels(levels []string) string {
	out, of := "", ""
	for i, l := range levels {
		kind, n, ok := strings.Cut(l, " ")
		if i > 0 {
			out += ", "
		}
		if ok && i > 0 && kind == of {
			out += n
		} else {
			out += l
		}
		of = kind
	}
	return out
}

func (x *expansion) limit(workload string) string {
	for _, w := range x.p.Workloads {
		if w.Address() == workload && w.Capacity.Require > 0 {
			return "the limit is at least " + w.Capacity.Amount(w.Capacity.Require)
		}
	}
	return "some level passes"
}

func need(f assert.Finding) string {
	parts := []string{f.Needed}
	for _, more := range []string{f.Extended, f.Remark} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, ", ")
}

func (x *expansion) comparisons() {
	if len(x.p.Compares) == 0 {
		return
	}
	x.title("Comparisons")
	for _, c := range x.p.Compares {
		if c.Skip != "" {
			x.para("  ", fmt.Sprintf("compare.%s: %s", c.Name, c.Skip))
		}
	}
	for _, c := range compare.Chances(x.p, x.last.recorded()...) {
		x.para("  ", c.String())
		if c.Compare.Heeded != "" {
			x.para("  ", "compare."+c.Compare.Name+": "+c.Compare.Heeded)
		}
		x.answers(c.Compare)
		t := table{[]int{1, 3}, [][]string{{"Workload", "At", "Required", "Chance to pass if unchanged"}}}
		for _, ch := range c.Changes {
			t.rows = append(t.rows, []string{ch.Workload, ch.Level, ch.Change.Metric.Name + " " + ch.Change.Text,
				fmt.Sprintf("%.0f%%", 100*ch.Passes)})
		}
		workloads, read := compare.Readings(x.p, c.Compare)
		for _, ch := range read {
			t.rows = append(t.rows, []string{workloads, "answers", ch.Metric.Name + " " + ch.Text, "not known"})
		}
		if len(t.rows) > 1 {
			t.write(x.out, x.width)
		}
	}
}

func (x *expansion) answers(c *plan.Compare) {
	prompts, again := exec.Asks(c)
	if prompts == 0 {
		return
	}
	all, tokens, embedded := 2*prompts+again, 0, 0
	for _, w := range c.Workloads(x.p) {
		if w.API.Embeds() {
			embedded = max(embedded, w.Prompt.Inputs, 1)
		}
		for _, part := range w.Whole() {
			tokens = max(tokens, min(c.Answers.MaxTokens, part.Output.Max()))
		}
	}
	if embedded > 0 {
		x.para("  ", fmt.Sprintf("embeddings: those of up to %s requests are kept until the run ends, to compare their angles: %s for each 1,024 numbers of a vector",
			grouped(all), metric.Format(metric.Bytes, float64(all*embedded*4*1024))))
	}
	if tokens == 0 {
		return
	}
	text := fmt.Sprintf("answers: %s prompts on both servers, %s of them again on the control: %s answers of at most %s. The control then reads each of them, and the candidate a quarter of its own (prefill alone)",
		grouped(prompts), grouped(again), grouped(all), verdict.Count(tokens, "tokens"))
	if n := exec.Samples(x.p, c); n > 0 {
		text += fmt.Sprintf(". It also reads %s measured answers of each server: %s more requests, prefill alone", grouped(n), grouped(2*n))
	}
	x.para("  ", text)
}

func (x *expansion) defaults() {
	if len(x.p.Defaults) == 0 {
		return
	}
	x.title("Defaults filled in")
	for _, s := range settle(x.p) {
		table{rows: append([][]string{{s.block}}, s.rows...)}.write(x.out, x.width)
	}
}

// Limits on what `tokgate plan` simulates. It simulates only plans with few tokens, and only a few
// runs; the strength command makes more runs.
const (
	briefTokens = 40_000 // estimated tokens of one run: of answers, plus 1/16 of those of prompts
	briefRuns   = 5
	mostTokens  = 400_000 // no simulation above this number; above briefTokens only one run
)

func (x *expansion) strength(ctx context.Context) error {
	p, tokens := x.p, 0
	for _, c := range exec.Cases(p) {
		in, out, _ := tokensOf(c)
		tokens += in/16 + out
	}
	if p.Gate.MeasureOnly || slices.ContainsFunc(p.Servers, func(s *plan.Server) bool { return cannotSimulate(p, s) != nil }) {
		return nil
	}
	x.title("What this gate would notice")
	timed := slices.ContainsFunc(exec.Cases(p), func(c exec.Case) bool { return c.Level.Duration > 0 })
	if tokens > mostTokens || timed || len(exec.Searches(p)) > 0 {
		x.para("  ", "tokgate strength "+p.Path+" simulates it, some hundred runs of the plan.")
		return nil
	}
	stored, err := baselines(p)
	if err != nil {
		return err
	}
	var list []strength.Regression
	for _, r := range strength.All() {
		if r.Size >= 1.25 {
			list = append(list, r)
		}
	}
	runs := briefRuns
	if tokens > briefTokens {
		runs = 1
	}
	r, err := strength.Measure(list, runs, simulated(ctx, p, stored))
	if err != nil {
		return measureError(err)
	}
	x.para("  ", r.Headline()+" By "+r.Basis()+"; tokgate strength "+p.Path+" plants more.")
	return nil
}
