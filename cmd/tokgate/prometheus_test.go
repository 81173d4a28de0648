package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

// promPlan asks a Prometheus server for two series. Its endpoint has a key, which Prometheus must not
// get.
const promPlan = `
server "s" {
  endpoint {
    url     = %q
    api_key = "key-of-the-endpoint"
    headers = { X-Team = "team-of-the-endpoint" }
  }
  telemetry {
    interval = "100ms"
    prometheus {
      url     = %q
      headers = { X-Scope-OrgID = "tenant" }
      series "copies" {
        promql = "count(up == 1)"
      }
      series "queue" {
        promql = "sum(queue_length)"
        unit   = "requests"
        better = "lower"
      }
    }
  }
}
workload "w" {
  input_tokens  = 64
  output_tokens = 16
  load {
    concurrency = 4
    requests    = 120
  }
  sla {
    success = "every"
    %s
  }
}
assert "steady" {
  condition     = %s
  error_message = "the number of copies changed"
}
`

// A planted series is judged like a metric; a silent or empty one passes nothing.
func TestPrometheus(t *testing.T) {
	for _, tt := range []struct {
		name   string
		sla    string
		answer func(query string, n int64) string // "" is a server that is gone
		code   int
		words  []string
	}{
		{"planted", `copies = "max <= 4"` + "\n" + `queue = ["max < 10 requests", "min < 3 requests"]`, func(query string, n int64) string {
			if query == "count(up == 1)" {
				return promAnswer("4")
			}
			return promAnswer(fmt.Sprint(2 + n%3))
		}, verdict.ExitPass, []string{"By Prometheus", "4 = 4 in 42 readings", "4 requests < 10 requests"}},
		{"too many", `queue = "max < 10 requests"`, func(string, int64) string { return promAnswer("12") }, verdict.ExitFail, []string{"12 requests > 10 requests"}},
		{"silent", `queue = "max < 10 requests"`, func(string, int64) string { return "" }, verdict.ExitError, []string{"queue max has no value", "Prometheus at http"}},
		{"stale", `queue = "max < 10 requests"`, func(string, int64) string { return promAnswer("3") }, verdict.ExitError, []string{"no sample that is recent enough"}},
		{"silent, but nothing depends on it", ``, func(query string, _ int64) string {
			if query == "count(up == 1)" {
				return promAnswer("4")
			}
			return promAnswer("")
		}, verdict.ExitPass, []string{"By Prometheus"}},
	} {
		t.Run(tt.name, inBubble(func(t *testing.T) {
			var asked atomic.Int64
			prom := front(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization")+r.Header.Get("X-Team") != "" || r.Header.Get("X-Scope-OrgID") != "tenant" {
					t.Errorf("Prometheus got %v", r.Header)
				}
				query := r.URL.Query()
				switch young := query.Get("lookback_delta") == "60"; {
				case r.URL.Path == "/api/v1/status/flags":
					fmt.Fprint(w, `{"status":"success","data":{"query.lookback-delta":"10m"}}`)
					return
				case r.URL.Path != "/api/v1/query", young == (query.Get("time") == "1764000540"): // ten minutes less one later
					t.Errorf("asked for %s", r.URL)
				case !young && tt.name == "stale":
					fmt.Fprint(w, promAnswer(""))
					return
				}
				answer := tt.answer(query.Get("query"), asked.Add(1))
				if answer == "" {
					panic(http.ErrAbortHandler)
				}
				fmt.Fprint(w, answer)
			})
			prom.Start()
			dir, condition := t.TempDir(), "result.s.w.level[4].requests > 0"
			if tt.code == verdict.ExitPass {
				condition = "result.s.w.level[4].copies.min == result.s.w.level[4].copies.max"
			}
			r := tokgate(t, "run", "--out", dir, "--csv", filepath.Join(dir, "levels.csv"), writePlan(t, fmt.Sprintf(promPlan, simServer(t).URL(), prom.URL, tt.sla, condition)))
			r.check(t, tt.code, tt.words...)
			table := string(must.Get(os.ReadFile(filepath.Join(dir, "levels.csv")))(t))
			if !strings.Contains(table, "copies_mean,copies_min,copies_max,queue_mean") {
				t.Errorf("levels.csv lacks the series: %.200s", table)
			}
		}))
	}
}

func promAnswer(value string) string {
	result := ""
	if value != "" {
		result = fmt.Sprintf(`{"metric":{},"value":[1764000000,%q]}`, value)
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + result + `]}}`
}

// A series that no server of a workload has is found before the load.
func TestPrometheusUnknownSeries(t *testing.T) {
	src := fmt.Sprintf(promPlan, "http://127.0.0.1:1", "http://127.0.0.1:2", `copies = "max <= 4"`, "result.s.w.level[4].requests > 0")
	src += "server \"other\" {\n endpoint { url = \"http://127.0.0.1:3\" }\n}\n"
	tokgate(t, "validate", writePlan(t, src)).check(t, verdict.ExitPlan, "copies of other will have no value: its telemetry has no series of this name")
}
