package decode_test

import (
	"fmt"

	"github.com/tokgate/tokgate/plan/decode"
)

// Reading a plan fills in every default. A diagnostic names the place of a mistake
// and how to fix it.
func Example() {
	p, diags := decode.File(decode.Options{Path: "gate.hcl", Source: []byte(`
server "vllm" {
  endpoint { url = "http://127.0.0.1:8000" }
}
workload "chat" {
  input_tokens  = 1024
  output_tokens = 256
  load { concurrency = [1, 8] }
  sla { ttft = "p95 < 2 sec" }
}
`)})
	w := p.Workloads[0]
	for _, level := range w.Loads[0].Levels {
		fmt.Printf("%s at %s: %d requests in %d batches\n", w.Address(), level.Name, level.Requests, level.Rounds)
	}
	for _, d := range diags {
		fmt.Printf("%s: %s %s\n", d.Subject, d.Summary, d.Detail)
	}
	// Output:
	// chat at 1: 200 requests in 20 batches
	// chat at 8: 200 requests in 20 batches
	// gate.hcl:9,16-29: Wrong unit ttft: unknown unit "sec". Write 2s.
}
