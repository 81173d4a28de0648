package page

import (
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/report"
)

// benchRow is a figure of vLLM's client.
type benchRow struct {
	name, unit string
	of         func(*report.VLLMBench) float64
}

// benchRows lists the figures in the order in which that client prints them.
func benchRows() []benchRow {
	rows := []benchRow{
		{"Successful requests", "", func(v *report.VLLMBench) float64 { return float64(v.Completed) }},
		{"Benchmark duration", " s", func(v *report.VLLMBench) float64 { return v.Duration }},
		{"Request throughput", " req/s", func(v *report.VLLMBench) float64 { return v.RequestThroughput }},
		{"Output token throughput", " tok/s", func(v *report.VLLMBench) float64 { return v.OutputThroughput }},
		{"Total token throughput", " tok/s", func(v *report.VLLMBench) float64 { return v.TotalThroughput }},
	}
	for _, f := range []struct {
		name string
		of   func(*report.VLLMBench) report.Spread
	}{
		{"TTFT", func(v *report.VLLMBench) report.Spread { return v.TTFT }}, {"TPOT", func(v *report.VLLMBench) report.Spread { return v.TPOT }},
		{"ITL", func(v *report.VLLMBench) report.Spread { return v.ITL }}, {"E2EL", func(v *report.VLLMBench) report.Spread { return v.E2EL }},
	} {
		for _, stat := range []struct {
			name string
			of   func(report.Spread) float64
		}{
			{"Mean", func(s report.Spread) float64 { return s.Mean }}, {"Median", func(s report.Spread) float64 { return s.Median }},
			{"P99", func(s report.Spread) float64 { return s.P99 }},
		} {
			rows = append(rows, benchRow{stat.name + " " + f.name, " ms", func(v *report.VLLMBench) float64 { return stat.of(f.of(v)) }})
		}
	}
	return rows
}

// vllmBench lists the figures by the definitions of vLLM's client, under the names that it prints.
func vllmBench(runs []Run) Section {
	s := Section{ID: "vllm-bench", Title: "For comparison: vllm bench serve",
		Lead: "These figures have that tool's definitions: completed requests only, throughput with ramp-up and drain. The verdicts use tokgate's own."}
	rows := benchRows()
	for _, r := range runs {
		tables := map[string]*Table{}
		var blocks []Block
		for i := range r.Cases {
			c := &r.Cases[i]
			if c.VLLMBench == nil || c.Probe != nil {
				continue
			}
			of := r.title(c.Workload) + r.serverSuffix(c.Server)
			t := tables[of]
			if t == nil {
				t = &Table{Caption: of, Columns: Heads("Figure")}
				for _, row := range rows {
					t.Rows = append(t.Rows, []Cell{text(row.name)})
				}
				tables[of] = t
				blocks = append(blocks, Block{Table: t})
			}
			t.Columns = append(t.Columns, Column{Head: Line(c.Name), Rank: len(t.Columns)})
			for j, row := range rows {
				digits := 2
				if j == 0 {
					digits = 0
				}
				said := "–"
				if v := row.of(c.VLLMBench); v > 0 {
					said = strconv.FormatFloat(v, 'f', digits, 64) + row.unit
				}
				t.Rows[j] = append(t.Rows[j], text(said))
			}
		}
		s.Blocks = append(s.Blocks, fold(strings.TrimSuffix("Figures by vLLM's definitions · "+r.Name, " · "), blocks...))
	}
	return s
}
