package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
)

var busy = flag.Int("busy", 0, "how often TestBusy runs the demo and each search, and six times as often its comparison; 0: it is skipped")

const busySides = `
server "side" {
  for_each = toset(["a", "b"])
  simulator {}
}
workload "chat" {
  input_tokens  = 256
  output_tokens = { mean = 16, jitter = "25%" }
  load {
    concurrency = 8
    requests    = 800 # in eight rounds, on each server
  }
}
compare "unchanged" {
  control   = server.side["a"]
  candidate = server.side["b"]
  rounds    = 8
  tolerate {
    ttft       = "mean +5%"
    throughput = "-5%"
    e2e        = "mean +5%"
  }
}
`

// busySearch is a plan with a capacity search. The true capacity is known, because it was measured
// in virtual time with 10,000 requests per level. The format verbs are the threshold and the
// largest level.
const busySearch = `
server "demo" {
  simulator {}
}
workload "chat" {
  input_tokens  = 256
  output_tokens = { mean = 16, jitter = "25%%" }
  sla {
    at = "capacity"
    %s
  }
  capacity {
    from       = 2
    up_to      = %d
    resolution = "5%%"
    require    = 2
    budget     = "165s"
  }
}
`

// TestBusy counts the outcomes of runs over sockets on an overloaded machine, next to four busy
// loops.
func TestBusy(t *testing.T) {
	if *busy == 0 {
		t.Skip("hours: make busy")
	}
	program, dir := programFile(t, ""), t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name+".hcl")
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	for range 4 {
		// The busy loop ends with the test process, however that process ends.
		loop := osexec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("while kill -0 %d; do :; done", os.Getpid()))
		must.Do(t, loop.Start())
		t.Cleanup(func() { _ = loop.Wait() })
	}
	t.Log("| plan | runs | exit 0 | exit 3 | exit 4 | other | largest answer |")
	for _, c := range []struct {
		name, path string
		runs       int
		truth      int                          // the true capacity in requests in flight; 0 if the plan is not a search
		kept       func(codes map[int]int) bool // reports whether the counts are as promised
	}{
		{"demo", filepath.Join(repository, "plans", "demo.hcl"), *busy, 0, func(n map[int]int) bool { return 10*n[verdict.ExitPass] >= 9**busy }},
		{"an unchanged server, compared", file("sides", busySides), 6 * *busy, 0, func(n map[int]int) bool { return 10*n[verdict.ExitError] <= 6**busy && 2*n[verdict.ExitFail] <= *busy }},
		// The true mean is 352 ms at 12 requests in flight, and 373 ms at 13. So the capacity at a
		// limit of 362 ms is 12.
		{"a search whose truth is 12", file("twelve", fmt.Sprintf(busySearch, `e2e = "mean < 362ms"`, 32)), *busy, 12, func(n map[int]int) bool { return 10*n[verdict.ExitPass] >= 9**busy }},
		// The true p95 of TTFT is 506 ms with 47 requests in flight, and 534 ms with 48. So the
		// capacity for a limit of 520 ms is 47.
		{"a search whose truth is 47", file("fortyseven", fmt.Sprintf(busySearch, `ttft = "p95 < 520ms"`, 64)), *busy, 47, func(n map[int]int) bool { return 10*n[verdict.ExitPass] >= 9**busy }},
	} {
		codes, largest := map[int]int{}, 0
		for i := range c.runs {
			out := filepath.Join(dir, fmt.Sprint(c.name, i))
			said, err := osexec.Command(program, "run", "-q", "--out", out, c.path).CombinedOutput()
			code, exit := 0, (*osexec.ExitError)(nil)
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if codes[code]++; code != 0 {
				t.Logf("%s, exit %d: %s", c.name, code, said[strings.LastIndex(strings.TrimSpace(string(said)), "\n")+1:])
			}
			if c.truth > 0 {
				largest = max(largest, answered(t, out))
			}
		}
		t.Logf("| %s | %d | %d | %d | %d | %d | %d |", c.name, c.runs, codes[0], codes[3], codes[4], c.runs-codes[0]-codes[3]-codes[4], largest)
		must.Hold(t, c.kept(codes) && (c.truth <= 0 || largest <= c.truth), "%s: exit codes %v, largest answer %d", c.name, codes, largest)
	}
}

// answered returns the capacity that a run's search certified.
func answered(t *testing.T, out string) int {
	f := must.Get(os.Open(filepath.Join(out, "results.json")))(t)
	defer f.Close()
	doc := must.Get(report.ReadDocument(f))(t)
	return doc.Run.Capacities[0].Pass
}
