package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
)

// gateOf is a gate on the built-in server, which has 180 tok/s for one user and a TTFT of about 25
// ms.
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

func gateOn(t *testing.T, gate, sla string) string {
	return writePlan(t, strings.NewReplacer("GATE", gate, "SLA", sla).Replace(gateOf))
}

const (
	weakSLA  = `ttft = "mean < 10s"`
	tightSLA = "ttft = \"mean < 27ms\"\nspeed = \"mean > 165 tok/s\""
)

func TestStrength(t *testing.T) {
	tokgate(t, "strength", gateOn(t, "", weakSLA), "--runs", "1").check(t, verdict.ExitPass,
		"A server that decodes 10 times slower, or prefills 10 times slower, or takes 10 times as long before it begins", "By 21 simulated runs")
}

// TestLongStrength makes more than a hundred simulated runs, which share nothing but the
// plan. TestStrength makes some under the race detector.
func TestLongStrength(t *testing.T) {
	const must = `gate { must_detect = { decode = "+25%" } }`
	tokgate(t, "strength", gateOn(t, "", tightSLA), "--runs", "2").check(t, verdict.ExitPass, "decode × 1.25                     2 of 2")
	said := tokgateWith(t, t.Context(), []string{"COLUMNS=80"}, "", "plan", gateOn(t, "", weakSLA))
	said.check(t, verdict.ExitPass, "What this gate would notice", "decodes 10 times slower")
	fits(t, "plan", said.out, 80)
	for _, command := range [][]string{{"plan"}, {"run", "--simulate", "--out", t.TempDir()}} {
		tokgate(t, append(command, gateOn(t, must, weakSLA))...).check(t, verdict.ExitPlan, "Gate too weak", "decode × 1.25", "fails in only 0 of 20 simulated runs")
	}
	tokgate(t, "strength", "--runs", "3", gateOn(t, must, weakSLA)).check(t, verdict.ExitPlan, "Gate too weak", "decode × 1.25", "fails in only 0 of 3 simulated runs")
	tokgate(t, "plan", gateOn(t, must, tightSLA)).check(t, verdict.ExitPass, "What this gate would notice")
}

// All reports say which regressions the gate would notice. They estimate this from the run that
// they report.
func TestReportsTellStrength(t *testing.T) {
	for sla, want := range map[string]string{
		`ttft = "mean < 10s"`: "A server that decodes 10 times slower, or prefills 10 times slower would pass.",
		"ttft = \"mean < 27ms\"\nspeed = \"mean > 165 tok/s\"": "Every regression that was planted is noticed.",
		`ttft = "mean < 1ms"`: "The unchanged server does not pass",
	} {
		out := t.TempDir()
		path := writePlan(t, strings.NewReplacer("GATE", "", "SLA", sla).Replace(gateOf))
		r := tokgate(t, "run", "--simulate", "--out", out, path)
		if words := strings.Join(strings.Fields(r.out), " "); !strings.Contains(words, "What this gate would notice "+want) {
			t.Errorf("nothing says %q:\n%s", want, r.out)
		}
		for _, file := range []string{"report.md", "report.html", "results.json", "comment.md"} {
			if !strings.Contains(read(t, filepath.Join(out, file)), want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
	}
}

// The strength of a gate can be estimated from a recording, whose times are stretched before it is
// judged again. The result says that it is approximate.
func TestStrengthOfARecording(t *testing.T) {
	path := gateOn(t, "", `speed = "mean > 165 tok/s"`)
	out := filepath.Join(t.TempDir(), "results")
	tokgate(t, "run", "--simulate", "--out", out, path).check(t, verdict.ExitPass)
	tokgate(t, "strength", path, out, "--runs", "2").check(t, verdict.ExitPass, "decode × 1.25                  2 of 2", "an approximation", "A server that prefills 10 times slower would pass.")
}
