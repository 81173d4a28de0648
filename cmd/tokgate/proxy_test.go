package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

// tokgate reaches a server through the environment's proxy, unless the server is on the loopback
// interface. The test uses a child process, because net/http reads the proxy's address only once.
func TestProxy(t *testing.T) {
	const proxy = "127.0.0.1:3128"
	if os.Getenv("TOKGATE_TEST_PROXIED") != "" {
		proxied(t, proxy)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestProxy$")
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(strings.ToUpper(kv), "="); !strings.HasSuffix(name, "_PROXY") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "HTTP_PROXY=http://"+proxy, "TOKGATE_TEST_PROXIED=1")
	out, err := cmd.CombinedOutput()
	must.Hold(t, err == nil, "%v:\n%s", err, out)
}

func proxied(t *testing.T, proxy string) {
	for _, tt := range []struct {
		name    string
		through bool
	}{{"server.test", true}, {"on the loopback interface", false}} {
		t.Run(tt.name, inVirtualTime(func(t *testing.T) {
			server := simServer(t)
			var requests atomic.Int64
			frontAt(t, proxy, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				server.ServeHTTP(w, r)
			}).Start()
			url := server.URL()
			if tt.through {
				url = "http://" + tt.name
			}
			tokgate(t, "run", "--out", t.TempDir(), writePlan(t, fmt.Sprintf(smallPlan, url, `ttft = "p95 < 2s"`))).
				check(t, verdict.ExitPass, "20 of 20 requests completed")
			got := requests.Load() >= 20
			must.Hold(t, got == tt.through, "%d requests went through the proxy", requests.Load())
		}))
	}
}
