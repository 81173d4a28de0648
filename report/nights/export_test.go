package nights

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record/history"
)

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
			if err := write(&b, h); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.Bytes())
		})
	}
}

// The golden file shows the report of each morning after a night of an invented history. One night
// is bad by itself, and one regression lasts.
func TestMornings(t *testing.T) {
	var b bytes.Buffer
	if err := Mornings(&b, history.Demo()); err != nil {
		t.Fatal(err)
	}
	golden(t, "mornings.txt", b.Bytes())
}
