package decode

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// oneOfEach holds the smallest load block of each shape.
var oneOfEach = map[string]string{
	"concurrency": "concurrency = [1, 2]",
	"burst":       "burst = [1, 2]",
	"users":       "users = [1, 2]",
	"stage":       "stage \"low\" {\n rate = \"2 req/s\"\n duration = \"1m\"\n }\n stage \"high\" {\n rate = \"3 req/s\"\n duration = \"1m\"\n }",
	"rate":        "rate = [\"1 req/s\", \"2 req/s\"]",
	"trace":       "trace = \"t.csv\"\n speedup = [1, 2]",
}

// TestEveryShape checks what each shape of a load must do. Its levels count against the bound on the
// levels of a plan. And what sets the length of a level, duration and requests, is either refused
// beside the shape, or the schema names the shape among those with which it goes.
func TestEveryShape(t *testing.T) {
	must.Hold(t, len(shapes) == len(loadBlock.One), "%d shapes are read, and the schema has %d: %q", len(shapes), len(loadBlock.One), loadBlock.One)
	dir := t.TempDir()
	const trace = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:00,5,5\n2024-01-01 00:00:01,5,5\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "t.csv"), []byte(trace), 0o600))
	for _, s := range shapes {
		example, ok := oneOfEach[s.name]
		if !ok || !slices.Contains(loadBlock.One, s.name) {
			t.Errorf("the shape %s needs an example in oneOfEach, and a place in the list One of the load block", s.name)
			continue
		}
		decoded := func(more string) *decoder {
			lengths := "input_tokens = 10\noutput_tokens = 10"
			if s.name == "trace" {
				lengths = ""
			}
			d := newDecoder(Options{
				Path: filepath.Join(dir, "plan.hcl"), Source: fmt.Appendf(nil, `
server "s" {
  endpoint { url = "http://127.0.0.1:1" }
}
gate { measure_only = true }
workload "w" {
  %s
  load {
    %s
    %s
  }
}
`, lengths, example, more),
			})
			d.opts.Bounded = func(read func()) { read() }
			d.load()
			return d
		}
		d := decoded("")
		levels := 0
		for _, w := range d.out.Workloads {
			for _, l := range w.Loads {
				levels += len(l.Levels)
			}
		}
		must.Hold(t, !d.diags.HasErrors() && levels == 2, "%s: %d levels, want 2: %v", s.name, levels, d.diags)
		must.Hold(t, d.levels == levels, "%s: %d of %d levels count against the bound on levels; use addLevels or countLevel", s.name, d.levels, levels)
		for _, more := range []string{`duration = "1m"`, "requests = 500"} {
			name := more[:len("duration")]
			if d := decoded(more); !d.diags.HasErrors() && !slices.Contains(loadBlock.attr(name).With, s.name) {
				t.Errorf("%s is accepted beside %s, but the schema does not say that it goes with it", name, s.name)
			}
		}
	}
}
