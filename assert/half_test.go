package assert

import (
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestHalfWords(t *testing.T) {
	const head = `
server "sim" {
  simulator {}
}
workload "chat" {
  input_tokens  = 1000
  output_tokens = 11
  load {
    concurrency = 30
    requests    = 300
  }
`
	for _, tt := range []struct{ name, rest, want string }{
		// 59 requests certify a p95, 299 a p99: 150 are half of 300.
		{"a p99 needs more than half", `sla { ttft = ["p95 < 8s", "p99 < 8s"] }`, "1 of 2 requirements could not be certified: ttft p99 < 8s of chat at 30 (needs 299 effective requests)"},
		{"a p95 does not", `sla { ttft = "p95 < 8s" }`, "1 requirement could still be certified, if farther from the limit"},
		{"exact statistics describe any run", `sla { ttft = "max < 8s" }`, ""},
		{"warnings do not count", "sla {\n severity = \"warn\"\n ttft = \"p95 < 8s\"\n }\n sla { success = \"every\" }", ""},
		{"estimates certify nothing", "gate { decide = \"estimate\" }\n sla { ttft = \"p95 < 8s\" }", ""},
		{"names only some", "sla {\n ttft = \"p99 < 8s\"\n e2e = \"p99 < 8s\"\n speed = \"p1 > 8 tok/s\"\n tpot = \"p99 < 8s\"\n }",
			"4 of 4 requirements could not be certified: ttft p99 < 8s of chat at 30 (needs 299 effective requests), e2e p99 < 8s of chat at 30 (needs 299 effective requests), speed p1 > 8 tok/s of chat at 30 (needs 299 effective requests) and 1 more"},
	} {
		must.Same(t, tt.name, tt.want, HalfWords(load(t, head+tt.rest+"\n}\n")))
	}
}
