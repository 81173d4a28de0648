package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report/inventory"
	"github.com/tokgate/tokgate/traffic"
)

type trafficOptions struct {
	format, column, html string
	columns              map[string]string
	block                int
	unit, from, to       time.Duration
}

func (a *app) trafficCommand() *cobra.Command {
	var o trafficOptions
	cmd := &cobra.Command{
		Use:   "traffic FILE",
		Short: "Show what a trace or a data set holds: rates, lengths, repeated prefixes, sessions",
		Long: `Shows what a traffic file holds, and sends nothing. For a trace (load { trace }): the
requests over time, the lengths of prompts and answers, the share of prompt tokens
that repeat the beginning of earlier requests, sessions and waits. For a data set
(prompt { dataset }): its rows, their turns, and how much of their beginnings they share.
The names in the file tell its format.`,
		Example: `  tokgate traffic plans/traces/mooncake-synthetic.jsonl
  tokgate traffic --from 10m --to 20m --html traffic.html trace.jsonl
  tokgate traffic --column question prompts.csv`,
		Args: needArgs(1, "tokgate traffic trace.jsonl"),
		RunE: func(_ *cobra.Command, args []string) error { return a.traffic(args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "", "`format` of the trace: "+strings.Join(formatNames(), ", "))
	f.StringVar(&o.column, "column", "", "`name` of the column with the prompts, if the data set is a CSV file")
	f.StringToStringVar(&o.columns, "columns", nil, "columns of a trace in another format: time=ts,input=prompt_tokens,output=completion_tokens; also session, type, delay, prefix and hash_ids")
	f.IntVar(&o.block, "block", 0, "tokens that one of hash_ids stands for")
	f.DurationVar(&o.unit, "unit", time.Second, "unit of the numbers in time and delay")
	f.DurationVar(&o.from, "from", 0, "leave out requests before this time since the first one")
	f.DurationVar(&o.to, "to", 0, "leave out requests after this time since the first one; 0: none")
	f.StringVar(&o.html, "html", "", "write a page (HTML) to this `file`")
	return cmd
}

func formatNames() []string {
	var names []string
	for _, f := range traffic.Formats {
		names = append(names, f.Name)
	}
	return names
}

func (a *app) traffic(path string, o trafficOptions) error {
	if o.format != "" && !slices.Contains(formatNames(), o.format) {
		return usageError("use "+strings.Join(formatNames(), ", "), "unknown --format %q", o.format)
	}
	v, err := holdings(path, o)
	if err != nil {
		return &exitError{code: verdict.ExitPlan, err: err}
	}
	if err := v.Text(a.Out); err != nil {
		return measureError(err)
	}
	if o.html == "" {
		return nil
	}
	if err := writeReport(o.html, v.HTML); err != nil {
		return measureError(err)
	}
	return nil
}

// A file without a known format of a trace is read as a data set.
func holdings(path string, o trafficOptions) (*inventory.Inventory, error) {
	if o.column == "" {
		columns, err := o.named()
		if err != nil {
			return nil, err
		}
		t, err := traffic.ReadTrace(path, o.format, columns)
		if err == nil {
			return ofTrace(t, o)
		}
		switch {
		case o.format != "" || !errors.Is(err, traffic.ErrFormat):
			return nil, err
		case strings.EqualFold(filepath.Ext(path), ".csv"):
			return nil, fmt.Errorf("%w; for a data set, name the column with the prompts: --column NAME", err)
		}
	}
	d, err := traffic.Read(path, traffic.Options{Column: o.column, Talks: true})
	if err != nil {
		return nil, err
	}
	return ofDataset(d), nil
}

func (o trafficOptions) named() (*traffic.Columns, error) {
	if len(o.columns) == 0 {
		return nil, nil
	}
	c := &traffic.Columns{Unit: o.unit, Pauses: o.unit, Block: o.block}
	names := c.Named()
	for name, column := range o.columns {
		if names[name] == nil {
			return nil, fmt.Errorf("--columns has no %q; it has %s", name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
		}
		*names[name] = column
	}
	for _, name := range []string{"time", "input", "output"} {
		if *names[name] == "" {
			return nil, fmt.Errorf("--columns has no %[1]s: add the name of its column, %[1]s=NAME", name)
		}
	}
	return c, nil
}

func ofTrace(t *traffic.Trace, o trafficOptions) (*inventory.Inventory, error) {
	r, err := t.Replay(traffic.Stretch{From: o.from, To: o.to})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Path, err)
	}
	v := &inventory.Inventory{Title: plan.TraceTitle(r)}
	fact := func(name, format string, args ...any) {
		v.Facts = append(v.Facts, inventory.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	fact("time", "%s, %.3g requests a second", plan.PlainDuration(r.Length().Round(time.Second)), r.Rate())
	if share := r.HitRate(r.First, 0); share > 0 {
		fact("repeated", "%.1f%% of the prompt tokens were the beginning of an earlier prompt", 100*share)
	} else if t.Block == 0 {
		fact("repeated", "not recorded: prompts will be unique")
	}
	if sessions, waiting := r.Sessions(); sessions > 0 {
		fact("sessions", "%s; %s wait for an earlier answer", verdict.Count(sessions, "sessions"), verdict.Count(waiting, "requests"))
	}
	if types := r.Types(); len(types) > 0 {
		fact("types", "%s", kindsOf(types))
	}
	if t.Empty > 0 {
		fact("left out", "%s without a prompt, an answer or a time", verdict.Count(t.Empty, "rows"))
	}
	input, output := inventory.Lengths{Name: "prompt, tokens"}, inventory.Lengths{Name: "answer, tokens"}
	for _, row := range r.Measured() {
		if row.Text == nil {
			input.Values = append(input.Values, float64(row.Input))
		}
		output.Values = append(output.Values, float64(row.Output))
	}
	v.Lengths = []inventory.Lengths{input, output}
	if len(input.Values) == 0 {
		v.Lengths = v.Lengths[1:]
	}
	rates, step := r.Rates()
	v.Rates, v.Step = rates, step.Seconds()
	if q := t.Quantum(); q > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("all times are multiples of %s, so a replay sends requests in bursts; spread = %q delays each request by a random time instead", plan.PlainDuration(q), plan.PlainDuration(q)))
	}
	return v, nil
}

func kindsOf(types map[string]int) string {
	const most = 8
	names := slices.SortedFunc(maps.Keys(types), func(a, b string) int {
		return cmp.Or(cmp.Compare(types[b],
			types[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names[:min(len(names), most)] {
		parts = append(parts, name+" "+strconv.Itoa(types[name]))
	}
	if rest := names[min(len(names), most):]; len(rest) > 0 {
		sum := 0
		for _, name := range rest {
			sum += types[name]
		}
		parts = append(parts, fmt.Sprintf("%s %d", verdict.Count(len(rest), "others"), sum))
	}
	return strings.Join(parts, ", ")
}

func ofDataset(d *traffic.Dataset) *inventory.Inventory {
	v := &inventory.Inventory{Title: fmt.Sprintf("%s (data set), %s", filepath.Base(d.Path), verdict.Count(len(d.Rows), "rows"))}
	chats, tools, answers := 0, 0, 0
	size, limit := inventory.Lengths{Name: "text, bytes"}, inventory.Lengths{Name: "max_tokens"}
	for i := range d.Rows {
		row := &d.Rows[i]
		if row.Messages != nil {
			chats++
		}
		if row.Tools != nil {
			tools++
		}
		if row.Answer != nil {
			answers++
		}
		if row.MaxTokens > 0 {
			limit.Values = append(limit.Values, float64(row.MaxTokens))
		}
		size.Values = append(size.Values, float64(len(row.Text())))
	}
	share, begins := 0.0, d.Beginnings()
	for i := range d.Rows {
		share += begins.Alike(i) / float64(len(d.Rows))
	}
	v.Facts = []inventory.Fact{
		{Name: "rows", Value: fmt.Sprintf("%d with messages, %d with a prompt", chats, len(d.Rows)-chats)},
		{Name: "members", Value: fmt.Sprintf("tools in %d, max_tokens in %d, an answer in %d", tools, len(limit.Values), answers)},
		{Name: "repeated", Value: fmt.Sprintf("on average, %.1f%% of the bytes of a row are also the beginning of another row", 100*share)},
	}
	v.Lengths = []inventory.Lengths{size}
	if len(limit.Values) > 0 {
		v.Lengths = append(v.Lengths, limit)
	}
	if talks, err := d.Talks(false); err == nil { // otherwise no row has several turns
		turns := inventory.Lengths{Name: "turns"}
		for i := range talks.Rows {
			turns.Values = append(turns.Values, float64(max(len(talks.Rows[i].Turns), 1)))
		}
		v.Lengths = append(v.Lengths, turns)
		v.Notes = append(v.Notes, `rows with several turns are conversations: replies = "recorded" or "own" of the prompt sends them turn by turn`)
	}
	return v
}
