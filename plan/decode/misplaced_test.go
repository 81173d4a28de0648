package decode

import (
	"strings"
	"testing"
)

func TestMisplacedSettings(t *testing.T) {
	for _, row := range []struct{ src, want string }{
		{"sla {\n}\n", "It belongs in workload."},
		{"workload \"w\" {\n  concurrency = 1\n}\n", "It belongs in workload.load."},
		{"workload \"w\" {\n  load {\n    input_tokens = 1\n  }\n}\n", "It belongs in workload."},
		{"server \"s\" {\n  url = \"x\"\n}\n", "It belongs in server.endpoint."},
		{"server \"s\" {\n  workload \"w\" {\n  }\n}\n", "It belongs in the top level of the plan."},
		{"workload \"w\" {\n  ttft = \"p95 < 2s\"\n}\n", "It belongs in workload.sla or workload.good."},
		{"workload \"w\" {\n  sla {\n    ttft_p95 = \"2s\"\n  }\n}\n", "Write the statistic inside the threshold: ttft = \"p95 < 2s\" or \"mean < 2s\"."},
		{"workload \"w\" {\n  sla {\n    nonsense = 1\n  }\n}\n", `An argument named "nonsense" is not expected here.`},
	} {
		_, diags := File(Options{Path: "p.hcl", Source: []byte(row.src)})
		var details []string
		for _, d := range diags {
			if strings.HasPrefix(d.Summary, "Unsupported") {
				details = append(details, d.Detail)
			}
		}
		if len(details) != 1 || !strings.HasSuffix(details[0], row.want) {
			t.Errorf("%q: %q, want one that ends in %q", row.src, details, row.want)
		}
	}
}
