package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/sim"
)

// starvedPlan requires a TTFT that the server meets. A generator with too little CPU time measures
// a longer TTFT, so the run must blame the generator. %q is the server's URL.
const starvedPlan = `
gate {
  decide = "estimate"
}
server "s" {
  endpoint { url = %q }
  ready { timeout = "30s" }
}
workload "w" {
  input_tokens  = 64
  output_tokens = { mean = 32, jitter = "20%%" }
  load {
    concurrency = 24
    requests    = 24
    seeds       = [1]
  }
  sla {
    ttft  = "p95 < 40ms"
    speed = "mean > 0.01 tok/s"
  }
}
`

// A load generator with too little CPU time reads answers late, so its run must be invalid. Here
// the generator is a child process with one processor, which it shares with code that never yields.
// The server is the test process, so it has enough CPU time.
func TestStarvedGenerator(t *testing.T) {
	if url := os.Getenv("TOKGATE_TEST_STARVED"); url != "" {
		starve(t, url)
		return
	}
	server := startSim(t, sim.Options{})
	cmd := exec.Command(os.Args[0], "-test.run=^TestStarvedGenerator$", "-test.v")
	cmd.Env = append(os.Environ(), "TOKGATE_TEST_STARVED="+server.URL(), "GOMAXPROCS=1")
	// A child that hangs ends with the test.
	timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil, "%v:\n%s", err, out)
	if said := string(out); !strings.Contains(said, "exit code 4\n") || !strings.Contains(said, "the generator") {
		t.Errorf("a starved generator's run was taken for the server's:\n%s", said)
	}
}

// starve runs the plan next to goroutines that use all CPU time that they can get.
func starve(t *testing.T, url string) {
	var stop atomic.Bool
	defer stop.Store(true)
	for range 3 {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	// Use Main, because it observes the load generator. The function tokgate of the other tests
	// does not.
	code := Main(t.Context(), []string{"run", "--out", t.TempDir(), writePlan(t, fmt.Sprintf(starvedPlan, url))},
		os.Environ(), Streams{In: strings.NewReader(""), Out: os.Stdout, Err: os.Stdout})
	fmt.Printf("exit code %d\n", code)
}
