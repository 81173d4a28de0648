package main

import (
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// gatewayPlan gates an endpoint behind a company's gateway. Its secrets have every form that a plan
// allows.
const gatewayPlan = `
variable "key" {
  type      = string
  sensitive = true
}
server "s" {
  engine = "vllm"
  endpoint {
    url     = %q
    api_key = var.key
    ca_file = "ca.pem"
    headers = { X-Team = env.TEAM_TOKEN, X-Gateway-Key = "literal-135" }
  }
}
workload "w" {
  input_tokens  = 64
  output_tokens = 8
  load {
    concurrency = 4
    requests    = 40
    seeds       = [1, 2]
  }
  sla {
    success = "observed >= 50%%"
  }
}
`

const (
	gatewayKey   = `sk-"quoted"\and<long>-246`
	gatewayToken = "team-token-357"
)

// The run works through a gateway. The gateway has a private certificate authority, speaks HTTP/1.1
// or HTTP/2, compresses without being asked, redirects, requires an API key, and repeats the key in
// its answers. No secret is in any file or on the screen.
func TestLongGateway(t *testing.T) {
	for _, major := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", major), inBubble(func(t *testing.T) {
			backend := simServer(t)
			var streams, redirects atomic.Int64
			gateway := front(t, func(w http.ResponseWriter, r *http.Request) {
				secrets := []string{r.Header.Get("Authorization"), r.Header.Get("X-Team"), r.Header.Get("X-Gateway-Key")}
				if r.ProtoMajor != major || secrets[0] != "Bearer "+gatewayKey || secrets[1] != gatewayToken || secrets[2] == "" {
					t.Errorf("%s %s with %q", r.Proto, r.URL.Path, secrets)
				}
				rest, moved := strings.CutPrefix(r.URL.Path, "/moved")
				switch {
				case r.Method == http.MethodPost && !moved:
					redirects.Add(1)
					http.Redirect(w, r, "/moved"+r.URL.Path, http.StatusTemporaryRedirect)
					return
				case strings.HasSuffix(rest, "/completions") && tenth(streams.Add(1)):
					http.Error(w, fmt.Sprintf("no quota for %q", secrets), http.StatusInternalServerError)
					return
				}
				if moved {
					r.URL.Path = rest
				}
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				defer z.Close()
				backend.ServeHTTP(flushed{w, z}, r)
			})
			gateway.EnableHTTP2 = major == 2
			gateway.StartTLS()

			path := writePlan(t, fmt.Sprintf(gatewayPlan, gateway.URL))
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: gateway.Certificate().Raw})
			must.Do(t, os.WriteFile(filepath.Join(filepath.Dir(path), "ca.pem"), ca, 0o600))
			dir := t.TempDir()
			environ := []string{"TEAM_TOKEN=" + gatewayToken, "TOKGATE_VAR_key=" + gatewayKey}
			r := tokgateWith(t, t.Context(), environ, "", "run", "--out", dir, "--csv", filepath.Join(dir, "levels.csv"), path)
			r.check(t, 0, "PASS", "no quota for")
			must.Hold(t, redirects.Load() >= 40, "%d redirects", redirects.Load())
			secretless(t, "stdout", r.out)
			secretless(t, "stderr", r.err)
			files := 0
			err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				files++
				src, err := os.ReadFile(name)
				secretless(t, name, string(src))
				return err
			})
			must.Hold(t, err == nil && files >= 5, "%d files, %v", files, err)
		}))
	}
}

// flushed is a response writer that compresses every write and sends it at once.
type flushed struct {
	http.ResponseWriter
	z *gzip.Writer
}

func (f flushed) Write(b []byte) (int, error) { return f.z.Write(b) }

func (f flushed) WriteHeader(code int) {
	f.Header().Del("Content-Length")
	f.ResponseWriter.WriteHeader(code)
}

func (f flushed) Flush() {
	_ = f.z.Flush()
	f.ResponseWriter.(http.Flusher).Flush()
}

// secretless fails if s contains a recognisable piece of a secret, however it is quoted.
func secretless(t *testing.T, name, s string) {
	t.Helper()
	for _, part := range []string{"-246", "quoted", "token-357", "literal-135"} {
		if i := strings.Index(s, part); i >= 0 {
			t.Errorf("%s holds a secret: %q", name, s[max(0, i-60):min(len(s), i+20)])
		}
	}
}

// tenth selects every tenth request. It leaves out the first 20 requests, which identify the
// server.
func tenth(n int64) bool { return n > 20 && n%10 == 0 }
