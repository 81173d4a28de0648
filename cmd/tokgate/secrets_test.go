//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

// spilled is contained in every secret below and in no other text. Quoting and encoding keep it
// unchanged.
const spilled = "sp1ll"

// secretsPlan has secrets in every form that a plan allows. Its verbs stand for the server's
// command and the endpoint's URL.
const secretsPlan = `
gate {
  decide = "estimate"
}
history {
  folder = "nights"
}
variable "key" {
  type      = string
  sensitive = true
}
locals {
  derived = "${var.key}-and-more"
}
server "s" {
  process {
    command = ["sh", "-c", %s, "sh", "--api-key", "arg-sp1ll-literal", "--hf-token=joined-sp1ll-literal", var.key]
    env = {
      HF_TOKEN      = env.HUB_TOKEN
      WANDB_API_KEY = "env-sp1ll-literal"
      DERIVED       = local.derived
      FROM_KEY      = var.key
      MIXED         = "prefix ${env.MIXED_PART}"
      CERT         = env.CERT
    }
  }
  ready { timeout = "1m" }
}
server "e" {
  engine = "vllm"
  endpoint {
    url     = %q
    api_key = "key-sp1ll-\"quoted\"<literal>"
    headers = {
      X-Team        = env.TEAM
      X-Gateway-Key = "header-sp1ll-literal"
      X-Other       = local.derived
    }
  }
}
workload "w" {
  input_tokens  = 64
  output_tokens = { natural = true, max = 8 }
  answers { store = "text" }
  load {
    concurrency = [1, 2]
    requests    = { 1 = 6, default = %d }
    seeds       = [1, 2]
  }
  sla {
    at      = 2
    ttft    = "p95 < 60s"
    success = "rate >= 95%%"
  }
}
`

// secretsEnviron is the environment that a CI job gives to its step.
var secretsEnviron = []string{
	"TOKGATE_VAR_key=" + `var-"sp1ll"\<1>&é`, "HUB_TOKEN=hub-sp1ll-token", "MIXED_PART=mixed sp1ll/part%", "TEAM=team:sp1ll",
	"CERT=-----BEGIN KEY-----\nfirst-sp1ll-line-of-some-length\nsecond-sp1ll-line-of-some-length\n-----END KEY-----",
}

// gossip starts a server that reveals the secrets in requests: it repeats them in error messages,
// headers and model names. It returns the server's URL.
func gossip(t *testing.T, failing bool) string {
	t.Helper()
	backend := simServer(t)
	var streams atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told := fmt.Sprint(r.Header)
		must.Hold(t, strings.Contains(told, "key-sp1ll") && strings.Contains(told, "team:sp1ll"), "%s came with %s", r.URL.Path, told)
		w.Header().Set("X-Heard", strings.ToValidUTF8(told, ""))
		switch {
		case r.URL.Path == "/version":
			fmt.Fprintf(w, `{"version": %q}`, r.Header.Get("Authorization"))
		case r.URL.Path == "/metrics":
			http.Error(w, told, http.StatusForbidden)
		case failing && strings.HasSuffix(r.URL.Path, "/completions") && streams.Add(1) > 8 && streams.Load()%3 == 0:
			http.Error(w, "no quota for "+told+" or "+r.Header.Get("Authorization"), http.StatusTooManyRequests)
		default:
			backend.ServeHTTP(gossiper{w, told}, r)
		}
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// gossiper is a ResponseWriter that writes a secret before the first word of every answer.
type gossiper struct {
	http.ResponseWriter
	told string
}

func (g gossiper) Write(b []byte) (int, error) {
	quoted, _ := json.Marshal(strings.ToValidUTF8(g.told, "") + " The")
	_, err := g.ResponseWriter.Write(bytes.ReplaceAll(b, []byte(`"The"`), quoted))
	return len(b), err
}

func (g gossiper) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// Flush lets streams through.
func (g gossiper) Flush() { _ = http.NewResponseController(g.ResponseWriter).Flush() }

// TestSecretsStay checks that no file and no output has a secret, however the run ends. A secret is
// a value that the plan declares as secret, or sends to authenticate.
//
// The server is a real process. It gets the secrets in its arguments and its environment, and
// prints them. tokgate is a real process too, because a crash could reveal secrets.
func TestSecretsStay(t *testing.T) {
	const tell = `env; echo "$0 $@"; echo "$@" >&2; `
	for _, tt := range []struct {
		name    string
		shell   string
		failing bool
		words   []string
	}{
		{"pass", tell + `exec SERVE`, false, []string{"24 of 24 requests completed"}},
		{"fail", tell + `exec SERVE --fault "error-event:from=8,share=0.5,text=no quota for $HF_TOKEN $WANDB_API_KEY"`, true, []string{"no quota for"}},
		{"the server breaks", tell + `echo "$CERT $DERIVED $MIXED, not on port {port}"; exit 3`, false, []string{"--api-key [redacted]", "exit status 3"}},
		{"the server dies", tell + `SERVE --fault die:from=12; echo "died with $@" >&2; exit 3`, false, []string{"--hf-token=[redacted]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := secretsLife(t, tt.shell, gossip(t, tt.failing), 24)
			l.start("--csv", filepath.Join(l.out, "levels.csv"))
			l.unspilled("run", l.says(tt.words...))
			for _, args := range [][]string{
				{"judge", l.out, filepath.Join(l.dir, "test.hcl")}, {"report", l.out, "--html", filepath.Join(l.dir, "again.html"), "--markdown", filepath.Join(l.dir, "again.md")},
				{"history", "show", filepath.Join(l.dir, "nights")},
			} {
				l.quiet(args...)
			}
			if tt.name == "pass" {
				l.kept("answers.jsonl", "[redacted]", " The")
			}
			l.nothingSpilled(12)
		})
	}
}

// Commands that read a plan with secrets, but start no server, write no secret.
func TestSecretsStayInPlans(t *testing.T) {
	t.Parallel()
	l := secretsLife(t, `exec SERVE`, "http://127.0.0.1:1", 24)
	path := filepath.Join(l.dir, "test.hcl")
	for _, args := range [][]string{
		{"plan", path}, {"validate", path}, {"validate", "--json", path}, {"run", "--simulate", "--out", filepath.Join(l.dir, "simulated"), path},
	} {
		l.quiet(args...)
	}
	l.nothingSpilled(1) // only the plan: a server given as a command cannot be simulated
}

// quiet runs a command. It may end in any way, but must not reveal a secret.
func (l *life) quiet(args ...string) {
	l.t.Helper()
	cmd := osexec.Command(l.program, args...)
	cmd.Env = l.environ
	said, _ := cmd.CombinedOutput()
	l.unspilled(strings.Join(args, " "), string(said))
}

// A killed tokgate leaves notes about its servers. The next run reads them, and must print no
// secret.
func TestSecretsStayInNotes(t *testing.T) {
	t.Parallel()
	l := secretsLife(t, `env; SERVE`, gossip(t, false), 4000)
	l.start("--only", "s/w")
	l.waitForLoad()
	l.killBoth()
	_, said := l.wait()
	l.unspilled("run", said)
	l.nothingSpilled(4)
	l.start("--only", "s/w")
	l.waitFor("removing what a killed run left behind")
	l.signal(syscall.SIGTERM)
	l.unspilled("run again", l.check(verdict.ExitInterrupted))
	l.nothingSpilled(8)
}

// A diagnostic quotes lines of the plan. It must not quote a secret.
func TestSecretsStayInDiagnostics(t *testing.T) {
	for name, src := range map[string]string{
		"a line that cannot be read":     strings.Replace(secretsPlan, `api_key = "key-sp1ll-`, `api_key = "literal-sp1ll" api_key = "key-sp1ll-`, 1),
		"a header that is none":          strings.Replace(secretsPlan, "X-Gateway-Key =", `"X-Gateway Key" =`, 1),
		"a value of another type":        strings.Replace(secretsPlan, "ready { timeout = \"1m\" }", "ready { timeout = local.derived }", 1),
		"a value in a condition":         secretsPlan + "assert \"a\" {\n  condition = local.derived\n  error_message = \"no\"\n}\n",
		"a mistake on the line of a key": strings.Replace(secretsPlan, `WANDB_API_KEY = "env-sp1ll-literal"`, `WANDB_API_KEY = 1, HF_TOKEN = "env-sp1ll-literal"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			path := writePlan(t, fmt.Sprintf(src, `"true"`, "http://127.0.0.1:1", 8))
			for _, args := range [][]string{{"validate", path}, {"validate", "--json", path}, {"run", path}} {
				r := tokgateWith(t, t.Context(), secretsEnviron, "", args...)
				r.check(t, verdict.ExitPlan)
				(&life{t: t}).unspilled(args[0], r.out+r.err)
			}
		})
	}
}

// secretsLife prepares tokgate to run secretsPlan as a step of GitHub Actions.
func secretsLife(t *testing.T, shell, endpoint string, requests int) *life {
	l := newLife(t)
	command := strconv.Quote(strings.ReplaceAll(shell, "SERVE", l.program+" sim --listen 127.0.0.1:{port}"))
	must.Do(t, os.WriteFile(filepath.Join(l.dir, "test.hcl"), fmt.Appendf(nil, secretsPlan, command, endpoint, requests), 0o644))
	l.environ = append(append(l.environ, secretsEnviron...), "GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+l.dir,
		"GITHUB_OUTPUT="+filepath.Join(l.dir, ".output"), "GITHUB_STEP_SUMMARY="+filepath.Join(l.dir, ".summary"))
	return l
}

// nothingSpilled searches all files except the plan for secrets. At least the given number of files
// must exist.
func (l *life) nothingSpilled(least int) {
	l.t.Helper()
	files := 0
	err := filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "test.hcl" {
			return err
		}
		files++
		src, err := os.ReadFile(path)
		l.unspilled(path, d.Name()+" "+string(src))
		return err
	})
	if err != nil || files < least {
		l.t.Errorf("%d files, %v", files, err)
	}
}

// kept checks that a file of the run contains the given words.
func (l *life) kept(name string, words ...string) {
	l.t.Helper()
	src, err := os.ReadFile(filepath.Join(l.out, name))
	for _, word := range words {
		if err != nil || !strings.Contains(string(src), word) {
			l.t.Errorf("%s lacks %q: %v", name, word, err)
		}
	}
}

func (l *life) unspilled(name, s string) {
	l.t.Helper()
	for shown := 0; shown < 5; shown++ {
		i := strings.Index(s, spilled)
		if i < 0 {
			return
		}
		l.t.Errorf("%s holds a secret: %q", name, bytes.ToValidUTF8([]byte(s[max(0, i-80):min(len(s), i+30)]), nil))
		s = s[i+len(spilled):]
	}
}
