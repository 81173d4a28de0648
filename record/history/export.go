package history

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// exported is the header of the CSV export.
var exported = []string{"run", "started", "commit", "ref", "runner", "url", "server", "workload", "level", "metric", "stat", "asked", "value", "n"}

// formula marks a text that a spreadsheet would read as a formula.
const formula = "'"

// CSV writes a row for each figure of each night, with values in base units.
func CSV(w io.Writer, h metric.History) error {
	out := csv.NewWriter(w)
	_ = out.Write(exported)
	for _, n := range h.Nights {
		j := metric.Job{}
		if n.Job != nil {
			j = *n.Job
		}
		for _, f := range n.Figures {
			row := []string{n.Run, n.Started.UTC().Format(time.RFC3339), j.Commit, j.Ref, j.Runner, j.URL,
				f.Server, f.Workload, f.Level, f.Metric, f.Stat, f.Asked, strconv.FormatFloat(f.Value, 'g', -1, 64), strconv.Itoa(f.N)}
			for i, c := range row {
				if strings.HasPrefix(c, "=") || strings.HasPrefix(c, "+") || strings.HasPrefix(c, "@") {
					row[i] = formula + c
				}
			}
			_ = out.Write(row) // kept for Error
		}
	}
	out.Flush()
	return out.Error()
}

// JSON writes the nights and the pins as the history file has them.
func JSON(w io.Writer, h metric.History) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	h.Nights, h.Pins = append([]metric.Night{}, h.Nights...), append([]metric.Pin{}, h.Pins...)
	return enc.Encode(h)
}

// OpenMetrics writes every figure as a gauge with the time of its night
// (prometheus.io/docs/specs/om/open_metrics_spec). All samples of a series are in one block, in the
// order of the nights. If two nights began in the same second, only the later night is written.
func OpenMetrics(w io.Writer, h metric.History) error {
	type sample struct {
		at    int64
		value float64
	}
	series := map[metric.Trend][]sample{}
	for _, n := range h.Nights {
		at := n.Started.Unix()
		for _, f := range n.Figures {
			list := series[f.Trend]
			if len(list) > 0 && list[len(list)-1].at == at {
				list = list[:len(list)-1]
			}
			series[f.Trend] = append(list, sample{at, f.Value})
		}
	}
	var keys []metric.Trend
	for k := range series {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b metric.Trend) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Level, b.Level),
			cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Stat, b.Stat), cmp.Compare(a.Asked, b.Asked))
	})
	label := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace
	var b strings.Builder
	b.WriteString("# TYPE tokgate_night gauge\n# HELP tokgate_night A figure of a night, in base units.\n")
	for _, k := range keys {
		labels := fmt.Sprintf(`server="%s",workload="%s",level="%s",metric="%s",stat="%s",asked="%s"`,
			label(k.Server), label(k.Workload), label(k.Level), label(k.Metric), label(k.Stat), label(k.Asked))
		for _, s := range series[k] {
			fmt.Fprintf(&b, "tokgate_night{%s} %g %d\n", labels, s.value, s.at)
		}
	}
	b.WriteString("# EOF\n")
	_, err := io.WriteString(w, b.String())
	return err
}
