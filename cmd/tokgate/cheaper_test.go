package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
)

// Each lever of docs/cheaper.md has its figure: the time under load of a simulated run, and the number
// of requests that it sends, without the lever and with it.
func TestLongCheaper(t *testing.T) {
	gate := func(load, sla, more string) string {
		return fmt.Sprintf(`
server "s" {
  simulator {}
}
workload "chat" {
  input_tokens  = 256
  output_tokens = { mean = 64, jitter = "50%%" }
  load {
    %s
  }
  sla { %s }
}
%s`, load, sla, more)
	}
	at32 := func(waves int) string { return fmt.Sprintf("concurrency = 32\n waves = %d", waves) }
	const near, far = `e2e = "p95 < 3.1s"`, `e2e = "p95 < 3.5s"`
	search := func(resolution, from string) string {
		return strings.NewReplacer(`resolution = 8 `, `resolution = `+resolution+" ", `from       = 8`, `from = `+from).
			Replace(read(t, "../../plans/capacity.hcl"))
	}
	compared := func(requests string) string {
		return gate("concurrency = 8\n"+requests, `success = "every"`, `
server "copy" {
  simulator { seed = 2 }
}
compare "them" {
  control   = server.s
  candidate = server.copy
  changed   = ["simulator"]
  tolerate {
    e2e = "mean +5%"
  }
}`)
	}
	var out strings.Builder
	out.WriteString("| lever | without: load, requests | with it |\n|---|---|---|\n")
	for _, row := range []struct{ lever, without, with string }{
		{"a limit 23 % above the truth, not 9 %", gate(at32(20), near, ""), gate(at32(20), far, "")},
		{"no `history`, which measures all", gate(at32(20), far, `history { folder = "nights" }`), gate(at32(20), far, "")},
		{"`waves = 10` instead of 20, the limit 9 % above", gate(at32(20), near, ""), gate(at32(10), near, "")},
		{"p95 instead of p99, at half the limit", gate(at32(20), `e2e = "p99 < 6s"`, ""), gate(at32(20), `e2e = "p95 < 6s"`, "")},
		{"a mean instead of a p95, 8 in flight", gate("concurrency = 8", `e2e = "p95 < 4s"`, ""), gate("concurrency = 8", `e2e = "mean < 4s"`, "")},
		{"`--only chat/32` of two levels", gate("concurrency = [8, 32]", far, ""), gate(at32(20), far, "")},
		{"a search with `resolution = 8` instead of 1", search("1", "8"), search("8", "8")},
		{"`from` near the answer", search("8", "8"), search("8", "16")},
		{"one level, no search", search("8", "16"), gate("concurrency = 16", `e2e = "p95 < 3.5s"`, "")},
		{"a comparison with legs of 50 requests, not 200", compared(""), compared("requests = 600")},
	} {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", row.lever, loadOf(t, row.without), loadOf(t, row.with))
	}
	currentDoc(t, "cheaper.md", "levers", out.String())
}

// loadOf simulates a plan, and says how long its servers were under load.
func loadOf(t *testing.T, src string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "plan.hcl")
	must.Do(t, os.WriteFile(path, []byte(src), 0o600))
	said := tokgate(t, "run", "--simulate", "--out", filepath.Join(dir, "out"), path)
	var results struct{ Spent report.Spent }
	raw, err := os.ReadFile(filepath.Join(dir, "out", "results.json"))
	if err = errors.Join(err, json.Unmarshal(raw, &results)); err != nil || results.Spent.Load == 0 {
		t.Fatalf("%v\n%s%s", err, said.out, said.err)
	}
	return fmt.Sprintf("%v, %d", time.Duration(results.Spent.Load*float64(time.Second)).Round(time.Second), results.Spent.Sent)
}
