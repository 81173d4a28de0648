package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

// Several recorded runs are shown side by side in one page and one Markdown file. A format for a
// single run is refused before anything is written.
func TestLongReportTogether(t *testing.T) {
	path := writePlan(t, simulatedPlan)
	before, after, out := filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "after"), t.TempDir()
	tokgate(t, "run", "--simulate", "--out", before, path).check(t, verdict.ExitPass)
	if err := os.CopyFS(after, os.DirFS(before)); err != nil { // simulations repeat
		t.Fatal(err)
	}
	page, summary := filepath.Join(out, "together.html"), filepath.Join(out, "together.md")
	tokgate(t, "report", before, after, "--html", page, "--markdown", summary).check(t, verdict.ExitPass, "TTFT p95", "before", "after", "PASS")
	for file, words := range map[string][]string{
		page:                                 {`<header class="simulated">`, "before", "after", `id="system"`, "What differs between the runs"},
		summary:                              {"Simulated", "| before |", "| after |", "### Throughput"},
		filepath.Join(before, "report.html"): {`<header class="simulated">`, "Content-Security-Policy", `id="plan"`},
	} {
		text := read(t, file)
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not hold %q", filepath.Base(file), w)
			}
		}
	}
	for _, flag := range []string{"--json", "--junit", "--csv"} {
		tokgate(t, "report", before, after, flag, filepath.Join(out, "x")).check(t, verdict.ExitPlan, "several runs cannot share")
	}
	// Both commands judge and report have the flag --html.
	again := filepath.Join(out, "again.html")
	tokgate(t, "judge", before, path, "--html", again).check(t, verdict.ExitPass)
	must.Hold(t, strings.Contains(read(t, again), "<!DOCTYPE html>"), "judge wrote no page")
}
