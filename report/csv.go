package report

import (
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// levelStats lists the statistics of LevelsCSV, in order.
var levelStats = []string{"mean", "min", "p1", "p5", "p50", "p90", "p95", "p99", "max"}

// statsOf returns the statistics that a table shows for metrics of the given scope. Readings have
// no percentiles, and buckets have no minimum and maximum. A metric of the whole level has one
// value, in a column with only the name of the metric.
func statsOf(scope metric.Scope) []string {
	switch scope {
	case metric.PerLevel:
		return []string{""}
	case metric.PerReading:
		return []string{"mean", "min", "max"}
	case metric.Counted:
		return slices.DeleteFunc(slices.Clone(levelStats), func(s string) bool { return s == "min" || s == "max" })
	}
	return levelStats
}

// LevelsCSV writes one row for each case, including the probes of capacity searches. Values are in
// base units with all digits: ttft_p95 in seconds, throughput in tokens per second. A missing value
// is an empty cell, and an infinite value is "+Inf".
func LevelsCSV(w io.Writer, d *Document) error {
	out := csv.NewWriter(w)
	head := []string{"run", "started", "plan", "simulated", "server", "workload", "level", "kind", "n", "probe", "skipped",
		"due", "completed", "failed", "reconnects", "at_s", "duration_s", "window_s", "input_tokens", "output_tokens"}
	defs := slices.Concat(metric.Defs, d.Run.Queried())
	for _, def := range defs {
		for _, stat := range statsOf(def.Scope) {
			head = append(head, strings.TrimSuffix(def.Name+"_"+stat, "_"))
		}
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for i := range d.Cases {
		c := &d.Cases[i]
		row := []string{field(d.Run.ID), d.Date(time.RFC3339), field(d.Plan.Path), strconv.FormatBool(d.Run.Simulated),
			field(c.Server), field(c.Workload), field(c.Name), string(c.Kind), strconv.FormatFloat(c.Load(), 'f', -1,
				64), field(c.purpose()), field(c.Skipped),
			strconv.Itoa(c.Due()), strconv.Itoa(c.Completed), strconv.Itoa(c.Failed), strconv.Itoa(c.Reconnects),
			allDigits(metric.Some(c.begin())), allDigits(metric.Some(c.Took())), allDigits(metric.Some(c.Window)),
			strconv.Itoa(c.InputTokens), strconv.Itoa(c.OutputTokens)}
		for _, def := range defs {
			for _, stat := range statsOf(def.Scope) {
				row = append(row, allDigits(c.Summary(def.Name).Stat(stat)))
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// SamplesCSV writes one row for each request of the run, including warm-up and fillers. Rows are
// ordered by level, by round, and by the end of the request. Times are seconds from the start of
// the run. A cell is empty if the event did not happen or the value is missing.
func SamplesCSV(w io.Writer, run *metric.Run) error {
	out := csv.NewWriter(w)
	head := []string{"simulated", "server", "workload", "level", "round", "slot", "order", "phase",
		"scheduled_s", "sent_s", "headers_s", "first_s", "first_answer_s", "last_s", "end_s"}
	var values []metric.Def
	for _, def := range metric.Defs {
		// Leave out request_speed. For one request it equals speed.
		if def.Scope == metric.PerRequest && def.Name != "request_speed" {
			values = append(values, def)
			head = append(head, def.Name)
		}
	}
	head = append(head, "chunks", "first_tokens", "input_asked", "output_asked", "input", "output", "cached",
		"finish", "status", "reconnects", "failure", "message", "url")
	if err := out.Write(head); err != nil {
		return err
	}
	for _, l := range run.Levels {
		for _, r := range l.Rounds {
			for _, s := range r.All() {
				if err := out.Write(append([]string{strconv.FormatBool(run.Simulated)}, sampleRow(s, values)...)); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

func sampleRow(s *metric.Sample, values []metric.Def) []string {
	row := []string{field(s.Server), field(s.Workload), field(s.Level), strconv.Itoa(s.Round), strconv.Itoa(s.Slot),
		strconv.Itoa(s.Order), string(s.Phase), allDigits(metric.Some(s.Scheduled.Seconds()))}
	for _, t := range []time.Duration{s.Sent, s.Headers, s.First, s.FirstAnswer, s.Last, s.End} {
		row = append(row, offset(t))
	}
	// An offset of 0 usually means that the event did not happen. But the first request of a run
	// may really be sent at 0.
	if s.Sent == 0 && s.Scheduled == 0 && (s.Headers > 0 || s.First > 0) {
		row[8] = "0"
	}
	for _, def := range values {
		v, ok := s.Value(def.Name)
		row = append(row, allDigits(metric.Value{V: v, OK: ok}))
	}
	row = append(row, strconv.Itoa(s.Chunks), strconv.Itoa(s.FirstTokens), strconv.Itoa(s.InputAsked), strconv.Itoa(s.OutputAsked))
	if u := s.Usage; u != nil {
		cached := ""
		if u.Cached >= 0 {
			cached = strconv.Itoa(u.Cached)
		}
		row = append(row, strconv.Itoa(u.Input), strconv.Itoa(u.Output), cached)
	} else {
		row = append(row, "", "", "")
	}
	status := ""
	if s.Status != 0 {
		status = strconv.Itoa(s.Status)
	}
	row = append(row, field(s.Finish), status, strconv.Itoa(s.Reconnects))
	if s.Failure == nil {
		return append(row, "", "", field(s.Front))
	}
	return append(row, field(string(s.Failure.Kind)), field(s.Failure.Message), field(s.Front))
}

// offset writes an offset in seconds. It writes "" if the event did not happen.
func offset(t time.Duration) string {
	if t == 0 {
		return ""
	}
	return allDigits(metric.Some(t.Seconds()))
}

// allDigits formats a number with all its digits.
func allDigits(n metric.Value) string {
	if !n.OK || math.IsNaN(n.V) {
		return ""
	}
	return strconv.FormatFloat(n.V, 'f', -1, 64)
}

// field makes foreign text safe for a cell of a CSV file. It returns one line that a spreadsheet
// does not execute as a formula (OWASP, CSV injection).
func field(s string) string {
	s = text.Line(s)
	if strings.IndexAny(s, "=+-@") == 0 {
		return "'" + s
	}
	return s
}
