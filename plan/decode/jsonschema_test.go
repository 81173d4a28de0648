package decode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tokgate/tokgate/internal/must"
)

func resolvedSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	must.Do(t, json.Unmarshal(JSONSchema(), &s))
	r := must.Get(s.Resolve(nil))(t)
	return r
}

func TestJSONSchema(t *testing.T) { golden(t, "../schema/plan.schema.json", string(JSONSchema())) }

// The schema accepts every valid plan in JSON syntax.
func TestJSONSchemaTakesPlans(t *testing.T) {
	schema := resolvedSchema(t)
	files, err := filepath.Glob("testdata/ok/*.hcl.json")
	must.Need(t, err == nil && len(files) != 0, "%d files, %v", len(files), err)
	for _, file := range files {
		src := must.Get(os.ReadFile(file))(t)
		if err := validateJSON(t, schema, string(src)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func validateJSON(t *testing.T, schema *jsonschema.Resolved, src string) error {
	t.Helper()
	var v any
	must.Do(t, json.Unmarshal([]byte(src), &v))
	return schema.Validate(v)
}

// The schema and the decoder agree on every small change of a plan.
func TestJSONSchemaAgreesWithTheDecoder(t *testing.T) {
	const base = `{
  "server": {"s": {"endpoint": {"url": "http://127.0.0.1:8000"}}},
  "workload": {"w": {
    "input_tokens": 1024,
    "output_tokens": 128,
    "load": {"concurrency": [1, 8]},
    "sla": {"ttft": "p95 < 2s"}
  }}
}`
	schema := resolvedSchema(t)
	for _, tt := range []struct {
		old, new      string
		right, schema bool
	}{
		{``, ``, true, true},
		{`"input_tokens": 1024`, `"input_tokens": "1024"`, false, false},
		{`"input_tokens": 1024`, `"input_tokens": "${1000 + 24}"`, true, true},
		{`"input_tokens": 1024`, `"input_tokens": "many"`, false, false},
		{`"input_tokens": 1024`, `"input_tokens": [1024]`, false, false},
		{`"input_tokens"`, `"input_tokenz"`, false, false},
		{`"sla"`, `"slo"`, false, false},
		{`"ttft"`, `"tftt"`, false, true}, // it may be the name of a series
		{`"ttft": "p95 < 2s"`, `"tftt": {}`, false, false},
		{base, strings.NewReplacer(`:8000"}`, `:8000"}, "telemetry": {"prometheus": {"url": "http://127.0.0.1:9090", "series": {"queue": {"promql": "1"}}}}`,
			`"ttft": "p95 < 2s"`, `"queue": ["max < 5", "mean < 2"]`).Replace(base), true, true},
		{`"p95 < 2s"`, `2`, false, false},
		{`"p95 < 2s"`, `["p95 < 2s", "mean < 1s"]`, true, true},
		{`"p95 < 2s"`, `"< 2s"`, false, true}, // the schema does not parse thresholds
		{`"sla": {`, `"sla": {"at": 8, `, true, true},
		{`"sla": {`, `"sla": {"at": ["8"], `, true, true},
		{`"sla": {`, `"sla": {"severity": null, `, true, true},
		{`[1, 8]`, `8`, true, true},
		{`[1, 8]`, `"8"`, false, false},
		{`[1, 8]}`, `[1, 8], "timeout": "90s"}`, true, true},
		{`[1, 8]}`, `[1, 8], "timeout": "1m30s"}`, true, true},
		{`[1, 8]}`, `[1, 8], "timeout": "1.5h"}`, true, true},
		{`[1, 8]}`, `[1, 8], "timeout": 90}`, false, false},
		{`[1, 8]}`, `[1, 8], "timeout": "90"}`, false, false},
		{`[1, 8]}`, `[1, 8], "warmup": "auto"}`, true, true},
		{`[1, 8]}`, `[1, 8], "warmup": "none"}`, false, false},
		{`[1, 8]}`, `[1, 8], "requests": {"1": 60, "default": 300}}`, true, true},
		{`{"concurrency": [1, 8]}`, `[{"concurrency": [1]}, {"concurrency": 8}]`, true, true},
		{`{"concurrency": [1, 8]}`, `true`, false, false},
		{`{"url": "http://127.0.0.1:8000"}`, `{}`, false, false},
		{`{"url": `, `{"//": "here", "url": `, true, true},
		{`{"s": {`, `{"//": "here", "s": {`, false, false},
		{`"server": {"s": {"endpoint": {"url": "http://127.0.0.1:8000"}}}`, `"server": [{"s": [{"endpoint": [{"url": "http://127.0.0.1:8000"}]}]}]`, true, true},
		{`"http://127.0.0.1:8000"}`, `"http://127.0.0.1:8000", "headers": {"a": "b"}}`, true, true},
		{`"http://127.0.0.1:8000"}`, `"http://127.0.0.1:8000", "headers": "a"}`, false, false},
		{`"server":`, `"gate": {"measure_only": true, "confidence": 0.9}, "server":`, true, true},
		{`{"s": {"endpoint": {"url": "http://127.0.0.1:8000"}}}`, `{"s": {"simulator": {}}, "t": {"simulator": {}}}, "compare": {"c": {"control": "${server.s}", "candidate": "${server.t}", "tolerate": {"ttft": "p95 +10%"}}}`, true, true},
		{`{"s": {"endpoint": {"url": "http://127.0.0.1:8000"}}}`, `{"s": {"simulator": {}}, "t": {"simulator": {}}}, "compare": {"c": {"control": {}, "candidate": "${server.t}", "tolerate": {"ttft": "p95 +10%"}}}`, false, false},
		{`"server":`, `"gate": {"measure_only": "yes"}, "server":`, false, false},
		{`"server":`, `"gate": {"measure_only": true, "confidence": 95}, "server":`, false, false},
		// What goes with what.
		{`[1, 8]}`, `[1, 8], "burst": 8}`, false, false},
		{`[1, 8]}`, `[1, 8], "burst": null}`, true, true},
		{`{"concurrency": [1, 8]}`, `{"requests": 60}`, false, false},
		{`[1, 8]}`, `[1, 8], "ramp_up": "1m"}`, false, false},
		{`[1, 8]}`, `[1, 8], "ramp_up": null}`, true, true},
		{`[1, 8]}`, `[1, 8], "ramp_up": "${null}"}`, true, true},
		{`[1, 8]}`, `[1, 8], "requests": 60, "duration": "1m"}`, false, false},
		{`"concurrency": [1, 8]}`, `"rate": "4 req/s", "arrivals": "gamma", "burstiness": 0.5}`, true, true},
		{`"concurrency": [1, 8]}`, `"rate": "4 req/s", "arrivals": "gamma"}`, false, false},
		{`"concurrency": [1, 8]}`, `"rate": "4 req/s", "arrivals": "poisson", "burstiness": 0.5}`, false, false},
		{`"concurrency": [1, 8]}`, `"rate": "4 req/s", "arrivals": "${lower(\"gamma\")}", "burstiness": 0.5}`, true, true},
		{`128`, `{"mean": 128, "jitter": "10%"}`, true, true},
		{`128`, `{"maen": 128}`, false, false},
		{`128`, `{"natural": true}`, false, false},
		{`128`, `{"natural": true, "max": 128}`, true, true},
		{`128`, `{"natural": true, "max": 128, "jitter": 0.1}`, false, false},
		{`"load":`, `"prompt": [], "load":`, true, true},
		{`"load":`, `"prompt": {"warm": true}, "load":`, false, false},
		{`"load":`, `"prompt": {"warm": true, "hit_rate": "80%"}, "load":`, true, true},
	} {
		src := strings.Replace(base, tt.old, tt.new, 1)
		must.Need(t, tt.old == "" || src != base, "the plan does not hold %s", tt.old)
		_, diags := File(Options{Path: "test.hcl.json", Source: []byte(src)})
		right := !diags.HasErrors()
		must.Hold(t, right == tt.right, "%s: the decoder says %v, want %v: %v", tt.new, right, tt.right, diags)
		err := validateJSON(t, schema, src)
		must.Hold(t, (err == nil) == tt.schema, "%s: the schema says %v", tt.new, err)
	}
}
