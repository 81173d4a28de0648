package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/assert"
)

// A server that is reached through a proxy is reached through it; one on the
// loopback interface is not. net/http reads the proxy's address once in a
// process's life, so the run is a child's.
func TestProxy(t *testing.T) {
	if url := os.Getenv("TOKGATE_TEST_PROXIED"); url != "" {
		r := tokgate(t, "run", "--out", t.TempDir(), writePlan(t, fmt.Sprintf(smallPlan, url, `ttft = "p95 < 2s"`)))
		r.check(t, assert.ExitPass, "20 of 20 requests completed")
		return
	}
	server := simServer(t)
	var proxied atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "server.test" {
			http.Error(w, "not for this proxy", http.StatusBadGateway)
			return
		}
		proxied.Add(1)
		server.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	for url, through := range map[string]bool{"http://server.test": true, server.URL(): false} {
		proxied.Store(0)
		cmd := exec.Command(os.Args[0], "-test.run=^TestProxy$")
		for _, kv := range os.Environ() {
			if name, _, _ := strings.Cut(strings.ToUpper(kv), "="); !strings.HasSuffix(name, "_PROXY") {
				cmd.Env = append(cmd.Env, kv)
			}
		}
		cmd.Env = append(cmd.Env, "HTTP_PROXY="+proxy.URL, "TOKGATE_TEST_PROXIED="+url)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v:\n%s", url, err, out)
		}
		if got := proxied.Load() >= 20; got != through {
			t.Errorf("%s: %d requests went through the proxy", url, proxied.Load())
		}
	}
}
