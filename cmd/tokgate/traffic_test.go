package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

// The gate in docs/traffic.md passes an unchanged server. It fails a server without a prefix cache,
// or with half of its cache.
func TestLongPlantedCache(t *testing.T) {
	plan := ""
	for _, m := range fencedPlan.FindAllStringSubmatch(read(t, filepath.Join(repository, "docs", "traffic.md")), -1) {
		if strings.TrimSpace(m[1]) == "rag.hcl" {
			plan = m[2]
		}
	}
	t.Chdir(t.TempDir())
	for _, tt := range []struct {
		name, profile string
		code          int
	}{
		{"as it is", `{"base": "prefix-cache"}`, verdict.ExitPass},
		{"half", `{"base": "prefix-cache", "prefix_cache": {"block_tokens": 16, "capacity_tokens": 131072}}`, verdict.ExitFail},
		{"off", `{"base": "default"}`, verdict.ExitFail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := strings.Replace(plan, `"prefix-cache"`, `"./profile.json"`, 1)
			for name, text := range map[string]string{"rag.hcl": src, "profile.json": tt.profile} {
				must.Do(t, os.WriteFile(name, []byte(text), 0o600))
			}
			r := tokgate(t, "run", "--simulate", "rag.hcl")
			if r.code != tt.code || tt.code == verdict.ExitFail && !strings.Contains(r.out, "FAIL    sla.cache_hit_rate") {
				t.Errorf("exit code %d, want %d\n%s", r.code, tt.code, r.out)
			}
		})
	}
}

func TestTraffic(t *testing.T) {
	traces := filepath.Join(plansDir, "traces")
	page := filepath.Join(t.TempDir(), "page.html")
	tokgate(t, "traffic", "--html", page, filepath.Join(traces, "mooncake-synthetic.jsonl")).check(t, verdict.ExitPass,
		"mooncake-synthetic.jsonl (mooncake), 890 requests", "40.6% of the prompt tokens", "0:30", `spread = "3s"`)
	text := read(t, page)
	must.Hold(t, strings.Count(text, "<svg") == 3 && strings.Contains(text, "890 requests"), "%v", text)
	own := filepath.Join(traces, "gateway-synthetic.csv")
	tokgate(t, "traffic", "--columns", "time=ts,input=prompt_tokens,output=completion_tokens,type=route", "--to", "2m", own).check(t, verdict.ExitPass, "/v1/chat ", "not recorded")
	tokgate(t, "traffic", own).check(t, verdict.ExitPlan, "no known format has its 5 columns. Name them", "name the column with the prompts: --column")
	tokgate(t, "traffic", "--columns", "time=ts,output=completion_tokens", own).check(t, verdict.ExitPlan, "--columns has no input")
	tokgate(t, "traffic", "--columns", "when=ts", own).check(t, verdict.ExitPlan, `--columns has no "when"`)
	tokgate(t, "traffic", "--format", "moon", own).check(t, verdict.ExitPlan, `unknown --format "moon"`)
	bad := filepath.Join("..", "..", "plan", "decode", "testdata", "bad", "lib")
	tokgate(t, "traffic", filepath.Join(bad, "prompts.jsonl")).check(t, verdict.ExitPass, "prompts.jsonl (data set), 2 rows")
	// Three turns and one: two on average.
	talks := filepath.Join(t.TempDir(), "talks.json")
	must.Do(t, os.WriteFile(talks, []byte(`[{"conversations":[{"from":"human","value":"1"},{"from":"gpt","value":"a"},{"from":"human","value":"2"},{"from":"gpt","value":"b"},`+
		`{"from":"human","value":"3"}]},{"conversations":[{"from":"human","value":"4"},{"from":"gpt","value":"c"}]}]`), 0o600))
	tokgate(t, "traffic", talks).check(t, verdict.ExitPass, "talks.json (data set), 2 rows", "turns           2   1    1    3    3    3", `replies = "recorded"`)
	tokgate(t, "traffic", filepath.Join(bad, "trace-broken.jsonl")).check(t, verdict.ExitPlan, "trace-broken.jsonl:2: it has 4 hash_ids")
}
