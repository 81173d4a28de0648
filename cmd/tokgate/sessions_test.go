package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

var sessionSeconds = flag.Int("session-seconds", 6, "how many `seconds` of about 180 requests TestLongSessionsOnTheServer sends")

// Every turn of a conversation has the session of its first turn, and no other conversation has it, as
// the server reads them.
func TestLongSessionsOnTheServer(t *testing.T) {
	inBubble(func(t *testing.T) {
		backend := simServer(t)
		var mu sync.Mutex
		of, by, turns := map[string]string{}, map[string]string{}, 0 // sessions of conversations, and the reverse
		s := front(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/completions") {
				backend.ServeHTTP(w, r)
				return
			}
			body := must.Get(io.ReadAll(r.Body))(t)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			var in struct{ Messages []struct{ Content string } }
			must.Do(t, json.Unmarshal(body, &in))
			session, first := r.Header.Get("X-Session-Id"), in.Messages[0].Content
			mu.Lock()
			if known, ok := of[first]; ok && len(in.Messages) > 1 {
				turns++
				if known != session || session == "" {
					t.Errorf("a turn of the session %q has %q", known, session)
				}
			} else if other, taken := by[session]; session != "" {
				if of[first], by[session] = session, first; taken && other != first {
					t.Errorf("two conversations have the session %q", session)
				}
			}
			mu.Unlock()
			backend.ServeHTTP(w, r)
		})
		s.Start()
		src := strings.Replace(fmt.Sprintf(behindPlan, s.URL, fmt.Sprintf("{ url = %q }", backend.URL()), fmt.Sprintf(
			"prompt {\n turns = 4\n }\n load {\n users = 200\n duration = \"%ds\"\n think_time = \"1s\"\n }", *sessionSeconds), ""), "= 16, ", "= 4, ", 1)
		src = strings.Replace(src, fmt.Sprintf("replicas       = [{ url = %q }]", backend.URL()), "", 1)
		tokgate(t, "run", "--out", t.TempDir(), writePlan(t, src)).check(t, verdict.ExitPass, "PASS")
		if n := len(of) + turns; n < 150**sessionSeconds || turns < n/2 {
			t.Errorf("%d conversations with %d further turns", len(of), turns)
		}
		t.Logf("%d conversations with %d further turns", len(of), turns)
	})(t)
}

// The key, the headers and the query of an endpoint go to its front ends alone, and neither they nor a
// session are in any output.
func TestSecretsBehindAGateway(t *testing.T) {
	inBubble(func(t *testing.T) {
		f := newFarm(t)
		secrets := func(r *http.Request) string {
			return r.Header.Get("Authorization") + r.Header.Get("X-Gateway-Key") + r.URL.Query().Get("api-key") + r.Header.Get("X-Session-Id")
		}
		f.before = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			if said := secrets(r); said != "" && r.Header.Get("Via") == "" {
				t.Errorf("a replica got %q for %s", said, r.URL)
			}
			return false
		}
		prometheus := front(t, func(w http.ResponseWriter, r *http.Request) {
			if said := secrets(r); said != "" {
				t.Errorf("Prometheus got %q", said)
			}
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"4"]}}`)
		})
		prometheus.Start()
		var sessions sync.Map
		var n atomic.Int64
		var urls [2]string
		for i := range urls {
			s := front(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer sk-246" || r.Header.Get("X-Gateway-Key") != "literal-135" || r.URL.Query().Get("api-key") != "token-357" {
					t.Errorf("%s without the key, the header or the query: %v", r.URL, r.Header)
				}
				if session := r.Header.Get("X-Session-Id"); session != "" {
					sessions.Store(session, true)
				}
				if r.Method == http.MethodPost && tenth(n.Add(1)) {
					http.Error(w, "no quota for "+r.Header.Get("Authorization")+r.Header.Get("X-Gateway-Key")+" at "+r.URL.String(), http.StatusInternalServerError)
					return
				}
				f.serve(w, r)
			})
			s.Start()
			urls[i] = s.URL
		}
		src := fmt.Sprintf(behindPlan, "URL", fmt.Sprintf("{ url = %q }, { url = %q }, { url = %q }, { url = %q }", f.replicas[0], f.replicas[1], f.replicas[2], f.replicas[3]), closed, "")
		src = strings.NewReplacer(`url            = "URL"`, fmt.Sprintf("urls = [%q, %q]\n api_key = \"sk-246\"\n url_query = { api-key = \"token-357\" }", urls[0], urls[1]),
			`"for-the-gateway"`, `"literal-135"`).Replace(src)
		src = strings.Replace(src, "\n}\nworkload", fmt.Sprintf("\n  telemetry {\n prometheus {\n url = %q\n series \"copies\" { promql = \"4\" }\n }\n }\n}\nworkload", prometheus.URL), 1)
		dir := t.TempDir()
		r := tokgate(t, "run", "--out", dir, writePlan(t, src))
		r.check(t, verdict.ExitPass, "no quota for", "copies")
		secretless(t, "stdout", r.out)
		secretless(t, "stderr", r.err)
		said := r.out + r.err
		must.Do(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				src := must.Get(os.ReadFile(name))(t)
				secretless(t, name, string(src))
				said += string(src)
			}
			return err
		}))
		count := 0
		sessions.Range(func(session, _ any) bool {
			count++
			must.Hold(t, !strings.Contains(said, session.(string)), "the session %s is in an output", session)
			return true
		})
		must.Hold(t, count >= 60, "%d sessions", count)
	})(t)
}
