package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
)

// crowded is the profile of a server that runs 4 requests at a time and decodes speculatively.
const crowded = `{
  "name": "crowded", "description": "four seats", "model": "tokgate-sim", "max_model_len": 2048, "policy": "mixed", "overhead_ms": 1,
  "prefill": {"us_per_token": 20},
  "decode": {"base_ms": 4, "per_seq_ms": 0.2},
  "limits": {"max_batched_tokens": 2048, "max_seqs": 4, "kv_tokens": 2048},
  "speculation": {"accept": [0.8, 0.5]}
}`

const crowdedPlan = `
gate {
  decide = "estimate"
}
prices {
  currency = "EUR"
  per_hour = 3.6
}
server "s" {
  simulator { profile = "crowded.json" }
}
workload "w" {
  input_tokens  = 200
  output_tokens = 40
  load {
    concurrency = 12
    requests    = 120
    seeds       = [1, 2, 3, 4, 5]
  }
  sla {
    waiting                 = "max < 4 requests"
    running                 = "max <= 4 requests"
    kv_usage                = "max < 99%"
    preemptions             = "< 1"
    accept_length           = "> 1.5 tokens"
    queue_wait              = "mean < 10s"
    cost_per_million_tokens = "< 1000 EUR"
  }
}
assert "drafts" {
  condition     = result.s.w.level[12].accept_rate_at[0] > result.s.w.level[12].accept_rate_at[1] && result.s.w.level[12].kv_usage.max > 0.4
  error_message = "No."
}
`

// TestInside reads the metrics of a server with too few slots, over HTTP and
// simulated.
func TestInside(t *testing.T) {
	for _, how := range []string{"over HTTP", "simulated"} {
		t.Run(how, inBubble(func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"crowded.json": crowded, "p.hcl": crowdedPlan} {
				must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
			out := filepath.Join(dir, "out")
			args := []string{"run", "-q", "--out", out, filepath.Join(dir, "p.hcl")}
			if how == "simulated" {
				args = append(args, "--simulate")
			}
			r := tokgate(t, args...)
			must.Need(t, r.code == 1, "exit %d\n%s%s", r.code, r.out, r.err)
			// Every report explains the failed threshold with the state of the server at
			// the time.
			const then = "the server then: the queue held up to "
			for _, name := range []string{"junit.xml", "report.md", "results.json", "report.html"} {
				raw := must.Get(os.ReadFile(filepath.Join(out, name)))(t)
				must.Hold(t, strings.Contains(string(raw), then), "%s does not say what the server was doing", name)
			}
			must.Hold(t, strings.Contains(strings.Join(strings.Fields(r.out), " "), then) && strings.Contains(r.out, "Waiting max"), "the terminal says\n%s", r.out)
			f := must.Get(os.Open(filepath.Join(out, "results.json")))(t)
			defer f.Close()
			doc := must.Get(report.ReadDocument(f))(t)
			for _, v := range doc.Verdicts {
				want := verdict.Pass
				if v.Name == "sla.waiting.max at 12" {
					want = verdict.Fail
				}
				must.Hold(t, v.Outcome == want, "%s: %s: %s", v.Name, v.Outcome, v.Message)
			}
			c := &doc.Cases[0]
			// Twelve requests share four slots, so at most eight wait, and several wait
			// most of the time.
			w := c.Summary("waiting")
			must.Hold(t, w.Max.V <= 8 && w.Max.V >= 5 && w.Mean.V >= 3, "waiting %+v", w)
			s := c.Summary("accept_rate[1]")
			must.Hold(t, s != nil && s.Value.V > 0 && s.Value.V < 0.8, "accept_rate[1] %+v", s)
			if s := c.Summary("cost_per_million_tokens"); s.Unit != "EUR/Mtok" || !s.Value.OK {
				t.Errorf("costs %+v", s)
			}
			found := map[string]int{}
			for _, s := range c.Series {
				found[s.Metric] = len(s.At)
				must.Hold(t, len(s.At) == len(s.Values), "%s has %d times and %d values", s.Metric, len(s.At), len(s.Values))
			}
			must.Hold(t, found["waiting"] >= 5 && found["kv_usage"] >= 5 && found["preemptions"] >= 1, "series %v", found)
			// Judging the recorded metrics again gives the same result.
			again := tokgate(t, "judge", "--json", filepath.Join(dir, "again.json"), out, filepath.Join(dir, "p.hcl"))
			must.Hold(t, again.code == 1, "judged again: exit %d\n%s%s", again.code, again.out, again.err)
			raw := must.Get(os.ReadFile(filepath.Join(dir, "again.json")))(t)
			var second report.Document
			must.Do(t, json.Unmarshal(raw, &second))
			for i, v := range second.Verdicts {
				if v.Name != doc.Verdicts[i].Name || v.Outcome != doc.Verdicts[i].Outcome || v.Message != doc.Verdicts[i].Message {
					t.Errorf("judged again, %s: %s, was %s", v.Name, v.Message, doc.Verdicts[i].Message)
				}
			}
		}))
	}
}
