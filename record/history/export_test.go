package history

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestExport(t *testing.T) {
	key := metric.Trend{Server: "vllm", Workload: "a\"b\\c\nd", Level: "30", Metric: "ttft", Stat: "p95"}
	at := time.Date(2026, 10, 1, 3, 0, 0, 0, time.UTC)
	h := metric.History{
		Nights: []metric.Night{
			{Run: "=r0", Started: at, Job: &metric.Job{Commit: "abc", URL: "https://ci/7"}, Figures: []metric.Figure{{Trend: key, Value: 0.25, N: 200}}},
			{Run: "r1", Started: at.AddDate(0, 0, 1), Figures: []metric.Figure{{Trend: key, Value: 1e-7}}},
		},
		Pins: []metric.Pin{{Run: "r1", At: at.AddDate(0, 0, 1), Why: "wanted"}},
	}
	for name, write := range map[string]func(io.Writer, metric.History) error{
		"export.csv": CSV, "export.json": JSON, "export.openmetrics": OpenMetrics,
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			must.Do(t, write(&b, h))
			path := filepath.Join("testdata", name)
			if *update {
				must.Do(t, os.WriteFile(path, b.Bytes(), 0o644))
			}
			want := must.Get(os.ReadFile(path))(t)
			must.Same(t, "", string(want), b.String())
		})
	}
}
