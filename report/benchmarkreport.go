package report

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// benchmarkReport is a level as llm-d's Benchmark Report, a format of several tools' results. The
// schema was read at llm-d/llm-d-benchmark@8bc9f1dd, br_v0_2_1_json_schema.json. A report has room
// for figures only, so the verdicts stay in results.json.
type benchmarkReport struct {
	Version string `json:"version"`
	Run     struct {
		UID         string   `json:"uid"` // the same for the same level of the same run
		Description string   `json:"description"`
		Keywords    []string `json:"keywords,omitempty"`
		Time        brTime   `json:"time"`
	} `json:"run"`
	Scenario struct {
		Load struct {
			Metadata struct{} `json:"metadata"`
			Native   struct {
				Config map[string]string `json:"config"` // server, workload and level of the plan
			} `json:"native"`
			Standardized brLoad `json:"standardized"`
		} `json:"load"`
	} `json:"scenario"`
	Results struct {
		RequestPerformance struct {
			Aggregate struct {
				Requests struct {
					Total    int `json:"total"`
					Failures int `json:"failures"`
				} `json:"requests"`
				Latency    map[string]brStatistics `json:"latency,omitempty"`
				Throughput map[string]brStatistics `json:"throughput,omitempty"`
			} `json:"aggregate"`
		} `json:"request_performance"`
	} `json:"results"`
}

type brTime struct {
	Start    *time.Time `json:"start,omitempty"` // nil if the run is simulated
	End      *time.Time `json:"end,omitempty"`
	Duration string     `json:"duration"`
}

type brLoad struct {
	Tool        string   `json:"tool"`
	ToolVersion string   `json:"tool_version"`
	Source      string   `json:"source"`
	Input       brLength `json:"input_seq_len"`
	Output      brLength `json:"output_seq_len"`
	RateQPS     float64  `json:"rate_qps,omitempty"`
	Concurrency int      `json:"concurrency,omitempty"`
}

type brLength struct {
	Distribution string  `json:"distribution"`
	Value        float64 `json:"value"` // mean, in tokens
}

// brStatistics has a unit, a mean, and percentiles by name.
type brStatistics map[string]any

// brMetrics are the metrics of requests that the format has a place for.
var brMetrics = []struct{ of, name, units string }{
	{"ttft", "time_to_first_token", "s"}, {"tpot", "time_per_output_token", "s/token"}, {"itl", "inter_token_latency", "s/token"}, {"e2e", "request_latency", "s"},
}

// BenchmarkReport writes a report for each level that completed a request, one a line.
func BenchmarkReport(w io.Writer, d *Document) error {
	out := json.NewEncoder(w)
	for i := range d.Cases {
		if c := &d.Cases[i]; c.VLLMBench != nil {
			if err := out.Encode(benchmarkReportOf(d, c)); err != nil {
				return err
			}
		}
	}
	return nil
}

func benchmarkReportOf(d *Document, c *Case) *benchmarkReport {
	r := &benchmarkReport{Version: "0.2.1"}
	name := fmt.Sprintf("%s on %s at %s", c.Workload, c.Server, c.Name)
	r.Run.UID = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, d.Run.Started, d.Plan.Path, name, c.begin())))[:32]
	if r.Run.Description = name; d.Run.Simulated {
		r.Run.Keywords = []string{"simulated"}
	}
	if !d.Run.Started.IsZero() {
		start := d.Run.Started.Add(time.Duration(c.begin() * float64(time.Second)))
		end := start.Add(time.Duration(c.Took() * float64(time.Second)))
		r.Run.Time.Start, r.Run.Time.End = &start, &end
	}
	r.Run.Time.Duration = "PT" + strconv.FormatFloat(c.Took(), 'f', -1, 64) + "S"
	load := &r.Scenario.Load
	load.Native.Config = map[string]string{"plan": d.Plan.Path, "server": c.Server, "workload": c.Workload, "level": c.Name}
	load.Standardized = brLoad{
		Tool: "tokgate", ToolVersion: d.Run.Tool, Source: "random", RateQPS: c.Rate,
		Input:  brLength{"other", float64(c.InputTokens) / float64(max(c.Completed, 1))},
		Output: brLength{"other", float64(c.OutputTokens) / float64(max(c.Completed, 1))},
	}
	if c.Rows != nil {
		load.Standardized.Source = "sampled"
	}
	if c.Kind == "closed" || c.Kind == "burst" {
		load.Standardized.Concurrency = c.N
	}
	a := &r.Results.RequestPerformance.Aggregate
	a.Requests.Total, a.Requests.Failures = c.Completed+c.Failed, c.Failed
	a.Latency = map[string]brStatistics{}
	for _, m := range brMetrics {
		if s := c.Summary(m.of); s != nil && s.Mean.OK {
			a.Latency[m.name] = statisticsOf(s, m.units)
		}
	}
	rate := func(v float64, units string) brStatistics { return brStatistics{"units": units, "mean": v} }
	v := c.VLLMBench
	a.Throughput = map[string]brStatistics{
		"request_rate": rate(v.RequestThroughput, "queries/s"), "output_token_rate": rate(v.OutputThroughput, "tokens/s"),
		"total_token_rate": rate(v.TotalThroughput, "tokens/s"), "input_token_rate": rate(v.TotalThroughput-v.OutputThroughput, "tokens/s"),
	}
	return r
}

// statisticsOf leaves out what is infinite because requests failed.
func statisticsOf(s *Summary, units string) brStatistics {
	out := brStatistics{"units": units, "mean": s.Mean.V}
	add := func(name string, n metric.Value) {
		if n.OK && !math.IsInf(n.V, 0) {
			out[name] = n.V
		}
	}
	add("min", s.Min)
	add("max", s.Max)
	if p := s.Percentiles; p != nil {
		for name, n := range map[string]metric.Value{"p1": p.P1, "p5": p.P5, "p10": p.P10, "p25": p.P25, "p50": p.P50, "p75": p.P75, "p90": p.P90, "p95": p.P95,
			"p99": p.P99, "p99p9": p.P999} {
			add(name, n)
		}
	}
	return out
}
