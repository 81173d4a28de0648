package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert"
)

// A gate on the built-in server, which makes 180 tok/s for one user with a TTFT
// of about 25 ms.
const gateOf = `
GATE
server "s" {
  simulator {}
}
workload "chat" {
  input_tokens  = 128
  output_tokens = 16
  load {
    concurrency = 1
    requests    = 50
  }
  sla {
    SLA
  }
}
`

func TestStrength(t *testing.T) {
	gate := func(gate, sla string) string {
		return writePlan(t, strings.NewReplacer("GATE", gate, "SLA", sla).Replace(gateOf))
	}
	const must = `gate { must_detect = { decode = "+25%" } }`
	weak, tight := `ttft = "mean < 10s"`, "ttft = \"mean < 27ms\"\nspeed = \"mean > 165 tok/s\""

	tokgate(t, "strength", gate("", weak), "--runs", "2").check(t, assert.ExitPass,
		"A server that decodes 10 times slower, or prefills 10 times slower, or takes 10 times as long before it begins", "By 42 simulated runs")
	tokgate(t, "strength", gate("", tight), "--runs", "2").check(t, assert.ExitPass, "decode × 1.25                     2 of 2")
	tokgate(t, "plan", gate("", weak)).check(t, assert.ExitPass, "What this gate would notice", "decodes 10 times slower")
	for _, command := range [][]string{{"plan"}, {"run", "--simulate", "--out", t.TempDir()}, {"strength"}} {
		tokgate(t, append(command, gate(must, weak))...).check(t, assert.ExitPlan, "Gate too weak", "decode × 1.25", "fails in 0 of 20 runs")
	}
	tokgate(t, "plan", gate(must, tight)).check(t, assert.ExitPass, "What this gate would notice")
}

// A recording is stretched and judged again, and says that this is approximate.
func TestStrengthOfARecording(t *testing.T) {
	path := writePlan(t, strings.NewReplacer("GATE", "", "SLA", `speed = "mean > 165 tok/s"`).Replace(gateOf))
	out := filepath.Join(t.TempDir(), "results")
	tokgate(t, "run", "--simulate", "--out", out, path).check(t, assert.ExitPass)
	tokgate(t, "strength", path, out, "--runs", "2").check(t, assert.ExitPass, "decode × 1.25                  2 of 2", "approximate", "A server that prefills 10 times slower would pass.")
}
