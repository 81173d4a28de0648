package formats

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/report"
)

var brSchema = flag.String("benchmark-report-schema", "", "llm-d's br_v0_2_1_json_schema.json, a `file`, to hold reports against")

// Each line is a Benchmark Report: valid by llm-d's schema, if it is there, and one for each level
// that completed a request.
func TestBenchmarkReport(t *testing.T) {
	var valid *jsonschema.Resolved
	if *brSchema != "" {
		raw, err := os.ReadFile(*brSchema)
		must.Do(t, err)
		var s jsonschema.Schema
		must.Do(t, json.Unmarshal(raw, &s))
		if valid, err = s.Resolve(nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"pass", "rich", "mix"} {
		d, want := recorded(t, name), 0
		for _, c := range d.Cases {
			if c.VLLMBench != nil {
				want++
			}
		}
		var b bytes.Buffer
		must.Do(t, report.BenchmarkReport(&b, d))
		lines := bytes.Split(bytes.TrimSpace(b.Bytes()), []byte("\n"))
		must.Hold(t, len(lines) == want && want != 0, "%s: %d reports, want %d", name, len(lines), want)
		uids := map[string]bool{}
		for _, line := range lines {
			var one map[string]any
			must.Do(t, json.Unmarshal(line, &one))
			uids[one["run"].(map[string]any)["uid"].(string)] = true
			if valid != nil {
				err := valid.Validate(one)
				must.Hold(t, err == nil, "%s: %v", name, err)
			}
		}
		must.Hold(t, len(uids) == want, "%s: %d uids of %d reports", name, len(uids), want)
	}
	var b bytes.Buffer
	err := report.BenchmarkReport(&b, &report.Document{})
	must.Hold(t, err == nil && b.Len() <= 0, "of nothing: %q, %v", b.String(), err)
}
