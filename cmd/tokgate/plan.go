package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func (a *app) planCommand() *cobra.Command {
	var in inputs
	cmd := &cobra.Command{
		Use:   "plan FILE|FOLDER...",
		Short: "Show what a run would do: cases, requests, tokens, requirements, defaults",
		Long: `Prints the expansion of a plan before anything starts: every case (server,
workload, level) with its requests and tokens, every requirement with the
number of requests that can certify it, and every default that was filled in.
Secrets may be unset.`,
		Example: `  tokgate plan plans/demo.hcl
  tokgate plan chat.hcl --var image=vllm/vllm-openai:v0.19.1`,
		Args:              needPlans,
		ValidArgsFunction: completePlans,
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := planFiles(args, false)
			if err != nil {
				return err
			}
			plans, err := a.loadAll(files, in, false)
			if err != nil {
				return err
			}
			for i, p := range plans {
				if i > 0 {
					fmt.Fprintln(a.Out)
				}
				printPlan(a.Out, p)
			}
			return nil
		},
	}
	in.flags(cmd.Flags())
	return cmd
}

func printPlan(out io.Writer, p *plan.Plan) {
	fmt.Fprintf(out, "%s: %s\n", p.Path, planSize(p))

	last := readLastRun(p.Path)
	printCases(out, p, last)
	printSearches(out, p)

	if findings := assert.Certify(p); len(findings) > 0 {
		fmt.Fprintln(out, "\nRequirements")
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  workload\tlevel\trequirement\tplanned\tneeded to certify\t")
		for _, f := range findings {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", f.Workload, f.Level, f.Requirement, f.Planned, f.Needed, f.Remark)
		}
		w.Flush()
	}
	printComparisons(out, p)
	if len(p.Asserts) > 0 {
		fmt.Fprintln(out, "\nAsserts (point estimates)")
		for _, as := range p.Asserts {
			fmt.Fprintf(out, "  %s\n", as.Name)
		}
	}
	if len(p.Defaults) > 0 {
		fmt.Fprintln(out, "\nDefaults filled in")
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, d := range p.Defaults {
			fmt.Fprintf(w, "  %s\t= %s\t%s\n", d.Path, d.Value, d.Why)
		}
		w.Flush()
	}
	budget := "none"
	if p.Gate.Budget > 0 {
		budget = plan.PlainDuration(p.Gate.Budget)
	}
	fmt.Fprintf(out, "\nTime: %s · budget: %s\n", last.total(p), budget)
	if cost := last.cost(p); cost != "" {
		fmt.Fprintf(out, "Cost: %s\n", cost)
	}
}

// printCases prints every case with its requests and tokens.
func printCases(out io.Writer, p *plan.Plan, last *lastRun) {
	if len(exec.Cases(p)) == 0 {
		return
	}
	fmt.Fprintln(out, "\nCases")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  server\tworkload\tlevel\trounds\trequests\tinput tokens\toutput tokens\ttime")
	var requests, input, output int
	for _, c := range exec.Cases(p) {
		n := c.Level.Requests
		inTokens, outTokens := n*c.Workload.Input, n*c.Workload.Output.Mean
		took := "unknown"
		if d, ok := last.of(c); ok {
			took = roundTime(d)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", c.Server.Address(), c.Workload.Address(), c.Level.Name,
			c.Level.Rounds, grouped(n), grouped(inTokens), grouped(outTokens), took)
		requests, input, output = requests+n, input+inTokens, output+outTokens
	}
	fmt.Fprintf(w, "  total\t\t\t\t%s\t%s\t%s\t\n", grouped(requests), grouped(input), grouped(output))
	w.Flush()
	fmt.Fprintln(out, "  Warm-up requests, and those that keep a level up while its last ones finish, come on top.")
}

// printSearches prints the capacity searches: how far each may go, and what it
// is to decide.
func printSearches(out io.Writer, p *plan.Plan) {
	searches := exec.Searches(p)
	if len(searches) == 0 {
		return
	}
	fmt.Fprintln(out, "\nCapacity searches")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  server\tworkload\tover\tfrom\tup to\trequired\tbudget")
	for _, c := range searches {
		s := c.Workload.Capacity
		over, required, budget := "requests in flight", "measured only", "none"
		if s.Over == metric.Burst {
			over = "requests at once"
		}
		if s.Require > 0 {
			required = strconv.Itoa(s.Require)
		}
		if s.Budget > 0 {
			budget = plan.PlainDuration(s.Budget)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%d\t%s\t%s\n", c.Server.Address(), c.Workload.Address(), over, s.From, s.UpTo, required, budget)
	}
	w.Flush()
}

// printComparisons prints what each comparison requires and how likely an
// unchanged candidate is to pass.
func printComparisons(out io.Writer, p *plan.Plan) {
	if len(p.Compares) == 0 {
		return
	}
	fmt.Fprintln(out, "\nComparisons")
	for _, c := range p.Compares {
		if c.Skip != "" {
			fmt.Fprintf(out, "  compare.%s: %s\n", c.Name, c.Skip)
		}
	}
	for _, x := range assert.Chances(p) {
		fmt.Fprintf(out, "  %s\n", x)
		if len(x.Changes) == 0 {
			continue
		}
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "    workload\tlevel\trequired\tan unchanged candidate passes")
		for _, c := range x.Changes {
			fmt.Fprintf(w, "    %s\t%s\t%s %s\t%.0f%%\n", c.Workload, c.Level, c.Change.Metric.Name, c.Change.Text, 100*c.Passes)
		}
		w.Flush()
	}
}

// grouped writes n with a thin grouping for people: 1,234,567.
func grouped(n int) string {
	s := strconv.Itoa(n)
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}
