package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
)

// What the plan says of the largest rate plans the probes, and certifies nothing: the server carries 11.6
// req/s.
func TestLargestRateOfThePlan(t *testing.T) {
	const text = `
server "s" {
  simulator {}
}
workload "chat" {
  input_tokens  = 256
  output_tokens = { mean = 96, jitter = "25%" }
  sla {
    ttft  = "p95 < 5s"
    speed = "mean > 5 tok/s"
  }
  capacity {
    over         = "rate"
    up_to        = "40 req/s"
    require      = "REQUIRED req/s"
    budget       = "10m"
    largest_rate = "LARGEST req/s"
  }
}`
	for _, tt := range []struct {
		name, required, largest string
		code                    int
	}{
		{"as it is", "6", "12", verdict.ExitPass},
		{"too high", "13", "30", verdict.ExitFail},
		{"too low", "3", "6", verdict.ExitPass},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := writePlan(t, strings.NewReplacer("REQUIRED", tt.required, "LARGEST", tt.largest).Replace(text))
			r := tokgate(t, "run", "--simulate", "--out", filepath.Join(t.TempDir(), "out"), path)
			r.check(t, tt.code, "the plan requires "+tt.required+" req/s")
			if strings.Contains(r.err, "saturation") {
				t.Errorf("the server was saturated:\n%s", r.err)
			}
			tokgate(t, "plan", path).check(t, verdict.ExitPass, "the server is not saturated")
		})
	}
	path := writePlan(t, strings.Replace(strings.NewReplacer("REQUIRED", "6", `largest_rate = "LARGEST req/s"`, "").Replace(text), "sla {", "load {\n rate = \"4 req/s\"\n}\n  sla {", 1))
	tokgate(t, "plan", path).check(t, verdict.ExitPass, "256 requests are kept in flight for 1m")
}
