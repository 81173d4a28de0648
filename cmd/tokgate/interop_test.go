package main

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// interopPlans lists the plans that start a server themselves. program is the server's program,
// which must be on the PATH.
var interopPlans = []struct{ program, file string }{
	{"llama-server", "llama.cpp.hcl"},
	{"sglang", "sglang.hcl"},
	{"transformers", "transformers.hcl"},
	{"vllm", "vllm.hcl"},
}

func interopPlan(file string) string { return filepath.Join("..", "..", "plans", "interop", file) }

// TestInterop runs the plans of plans/interop on real servers, and prints what works. It uses the
// server at TOKGATE_VAR_url, or all known servers that are on the PATH. `make interop` runs it.
func TestInterop(t *testing.T) {
	if os.Getenv("TOKGATE_INTEROP") == "" {
		t.Skip("make interop")
	}
	var sockets server.Network
	var rows []interopRow
	if url := os.Getenv("TOKGATE_VAR_url"); url != "" {
		name := os.Getenv("TOKGATE_VAR_engine") + " at " + url
		rows = append(rows, interop(t, sockets, name, interopPlan("endpoint.hcl"), os.Environ()))
	} else {
		for _, p := range interopPlans {
			if _, err := osexec.LookPath(p.program); err != nil {
				t.Logf("%s is not on the PATH", p.program)
				continue
			}
			rows = append(rows, interop(t, sockets, p.program, interopPlan(p.file), os.Environ()))
		}
	}
	fmt.Print("\n" + interopTable(rows) + "\n")
}

// The interoperability table is right for the built-in server, without faults and with faults.
func TestLongInteropTable(t *testing.T) {
	all := interopRow{version: "tokgate-sim-1", cells: []string{"ok", "ok", "ok", "ok", "ok", "told, none hit", "ok", "ok", "ok", "ok", "0 of 612"}}
	for _, tt := range []struct {
		engine string
		rules  []string
		change map[string]string
	}{
		{"vllm", nil, nil},
		{"openai", []string{"early-stop"}, map[string]string{"exact output": "80 of 80 not as asked, such as 3 instead of 32"}},
	} {
		t.Run(tt.engine, inBubble(func(t *testing.T) {
			s := simServer(t, tt.rules...)
			got := interop(t, inMemory, "it", interopPlan("endpoint.hcl"), []string{"TOKGATE_VAR_url=" + s.URL(), "TOKGATE_VAR_engine=" + tt.engine})
			for i, name := range interopColumns {
				want := all.cells[i]
				if w, ok := tt.change[name]; ok {
					want = w
				}
				must.Hold(t, got.cells[i] == want, "%s %v: %s is %q, want %q", tt.engine, tt.rules, name, got.cells[i], want)
			}
		}))
	}
	for _, p := range interopPlans {
		tokgate(t, "validate", interopPlan(p.file), "--var", "model=m").check(t, 0)
	}
}

// interopRow lists what works on one server.
type interopRow struct {
	name, version string
	cells         []string // in order of interopColumns
}

var interopColumns = []string{
	"chat", "completions", "exact input", "exact output", "usage", "cache", "natural", "stop", "burst", "long", "reconnects",
}

func interop(t *testing.T, network server.Network, name, plan string, environ []string) interopRow {
	t.Helper()
	dir := t.TempDir()
	r := tokgateOver(t, t.Context(), network, environ, "", "run", "--quiet", "--out", dir, plan)
	run, problems, err := record.Read(dir)
	must.Need(t, err == nil && len(problems) <= 0, "%s: %v %v\n%s%s", name, err, problems, r.out, r.err)
	t.Logf("%s: exit %d\n%s", name, r.code, r.out)
	return interopOf(name, run)
}

// interopOf returns the row for a run of the plans.
func interopOf(name string, run *metric.Run) interopRow {
	row := interopRow{name: name, cells: make([]string, len(interopColumns))}
	for _, s := range run.Servers {
		row.version = s.Fingerprint["version"]
		if s.Error != "" {
			row.cells[0] = s.Error
			return row
		}
	}
	levels := map[string]*metric.Level{}
	for _, l := range run.Levels {
		levels[l.Workload] = l
	}
	exact := slices.Concat(samples(levels["chat"]), samples(levels["completions"]))
	all := exact
	for _, w := range []string{"long", "natural", "stop", "burst", "many"} {
		all = slices.Concat(all, samples(levels[w]))
	}
	reconnects := 0
	for _, s := range all {
		reconnects += s.Reconnects
	}
	row.cells = []string{
		completed(levels["chat"]),
		completed(levels["completions"]),
		asked(slices.Concat(exact, samples(levels["long"])), func(s *metric.Sample) (int, int) { return s.Usage.Input, s.InputAsked }),
		asked(exact, func(s *metric.Sample) (int, int) { return s.Usage.Output, s.OutputAsked }),
		share(all, "told none", func(s *metric.Sample) bool { return s.Usage != nil }),
		cached(all),
		completed(levels["natural"]),
		stopped(levels["stop"]),
		completed(levels["burst"]),
		completed(levels["long"]),
		fmt.Sprintf("%d of %d", reconnects, len(all)),
	}
	if lost := completed(levels["many"]); lost != "ok" {
		row.cells[len(row.cells)-1] += "; " + lost
	}
	return row
}

// samples returns the measured requests.
func samples(l *metric.Level) []*metric.Sample {
	var list []*metric.Sample
	if l != nil {
		for _, r := range l.Rounds {
			for _, s := range r.Samples {
				if s.Phase == metric.Measured {
					list = append(list, s)
				}
			}
		}
	}
	return list
}

// completed writes how many requests of a level completed, and the reason for the first failure.
func completed(l *metric.Level) string {
	switch {
	case l == nil:
		return "not run"
	case l.Skipped != "":
		return l.Skipped
	}
	for _, r := range l.Rounds {
		if r.Stopped != "" {
			return r.Stopped
		}
	}
	why := ""
	for _, s := range samples(l) {
		if s.Failure != nil && why == "" {
			why = s.Failure.Message
		}
	}
	return share(samples(l), why, func(s *metric.Sample) bool { return s.Failure == nil })
}

func share(list []*metric.Sample, otherwise string, is func(*metric.Sample) bool) string {
	n := 0
	for _, s := range list {
		if is(s) {
			n++
		}
	}
	switch {
	case len(list) == 0:
		return "none"
	case n == len(list):
		return "ok"
	}
	return strings.TrimSuffix(fmt.Sprintf("%d of %d: %s", n, len(list), otherwise), ": ")
}

// asked compares two token counts of each request: the count that the server reported, and the
// count that was requested.
func asked(list []*metric.Sample, counts func(*metric.Sample) (got, want int)) string {
	all, wrong, example := 0, 0, ""
	for _, s := range list {
		if s.Failure != nil || s.Usage == nil {
			continue
		}
		all++
		if got, want := counts(s); got != want {
			if wrong++; example == "" {
				example = fmt.Sprintf("%d instead of %d", got, want)
			}
		}
	}
	switch {
	case all == 0:
		return "not told"
	case wrong == 0:
		return "ok"
	}
	return fmt.Sprintf("%d of %d not as asked, such as %s", wrong, all, example)
}

// cached writes the largest number of tokens that one request had from a prompt cache.
func cached(list []*metric.Sample) string {
	most := -1
	for _, s := range list {
		if s.Usage != nil {
			most = max(most, s.Usage.Cached)
		}
	}
	switch most {
	case -1:
		return "not told"
	case 0:
		return "told, none hit"
	}
	return fmt.Sprintf("told, at most %d hit", most)
}

// stopped writes how many answers ended at a stop sequence, before their length limit.
func stopped(l *metric.Level) string {
	if c := completed(l); c != "ok" {
		return c
	}
	return share(samples(l), "the rest went on", func(s *metric.Sample) bool {
		return s.Finish == "stop" && s.Usage != nil && s.Usage.Output < s.OutputAsked
	})
}

func interopTable(rows []interopRow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| server | version | %s |\n|---|---|%s\n", strings.Join(interopColumns, " | "), strings.Repeat("---|", len(interopColumns)))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.name, r.version, strings.Join(r.cells, " | "))
	}
	return b.String()
}
