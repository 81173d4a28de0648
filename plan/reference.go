package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// Reference writes the reference of the language in Markdown, from the same
// data that the decoder reads: every block with its attributes and defaults,
// then metrics, presets and functions. What is not supported yet is named in
// one list at the end.
func Reference() string {
	var b strings.Builder
	var later []string
	writeBlock(&b, Schema, "", &later)
	writeMetrics(&b)
	writePresets(&b)
	writeFunctions(&b)
	b.WriteString("## Not supported yet\n\nThese are part of the language and answered with \"Not supported yet\": " + strings.Join(later, ", ") + ".\n")
	return b.String()
}

func writeBlock(b *strings.Builder, block *Block, path string, later *[]string) {
	if path == "" {
		b.WriteString("## The plan file\n\n")
	} else {
		header := path
		for _, l := range block.Labels {
			header += ` "` + strings.ToUpper(l) + `"`
		}
		fmt.Fprintf(b, "## %s\n\n", header)
	}
	b.WriteString(block.Doc)
	if block.Repeat {
		b.WriteString(" May be written more than once.")
	}
	if block.Free != "" {
		fmt.Fprintf(b, " Any %sattribute is %s.", map[bool]string{true: "other "}[len(block.Attrs) > 0], block.Free)
	}
	b.WriteString("\n\n")

	var rows []*Attr
	thresholds := false
	for _, a := range block.Attrs {
		switch _, isMetric := metric.Lookup(a.Name); {
		case a.Later && isMetric:
		case a.Later:
			*later = append(*later, "`"+strings.TrimPrefix(path+"."+a.Name, ".")+"`")
		case isMetric:
			thresholds = true // they have a table of their own
		default:
			rows = append(rows, a)
		}
	}
	if len(rows) > 0 {
		b.WriteString("| attribute | type | default | meaning |\n|---|---|---|---|\n")
		for _, a := range rows {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", a.Name, cell(a.Type), a.defaultText(), cell(a.Doc))
		}
		b.WriteString("\n")
	}
	if thresholds {
		b.WriteString("Every other attribute is a metric: see [Metrics](#metrics).\n\n")
	}
	for _, c := range block.Blocks {
		child := strings.TrimPrefix(path+"."+c.Name, ".")
		if c.Later {
			*later = append(*later, "`"+child+"`")
			continue
		}
		writeBlock(b, c, child, later)
	}
}

// defaultText is the cell of the defaults column.
func (a *Attr) defaultText() string {
	switch {
	case a.Required:
		return "required"
	case a.Default != "":
		return "`" + a.Default + "`"
	case a.Computed != "":
		return cell(a.Computed)
	}
	return "none"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func writeMetrics(b *strings.Builder) {
	b.WriteString("## Metrics\n\nA threshold is a statistic, a comparison, a number and its unit. Metrics of a whole level take no statistic. Those marked good may stand in a `good` block, without a statistic.\n\n")
	b.WriteString("| metric | threshold | units | good |\n|---|---|---|---|\n")
	for _, d := range metric.Defs {
		if d.Later {
			continue
		}
		good := ""
		if boundsRequest(d) {
			good = "yes"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", d.Name, strings.ReplaceAll(example(d, false), `"`, "`"), unitNames(d), good)
	}
	b.WriteString("\n")
}

func unitNames(d metric.Def) string {
	switch d.Unit {
	case metric.Seconds:
		return "us, ms, s, m, h"
	case metric.SecondsPerToken:
		return "us, ms, s, with or without /token"
	}
	names := slices.Sorted(maps.Keys(units[d.Unit]))
	if d.Name == "goodput" {
		names = append(names, "%")
	}
	return strings.Join(names, ", ")
}

func writePresets(b *strings.Builder) {
	b.WriteString("## Presets\n\n`preset = \"NAME\"` fills in what the workload does not set itself: lengths, thresholds on metrics that it does not bound, and, for those with a p99, enough requests to certify it: at least " + itoa(presetRequests) + " a level.\n\n")
	b.WriteString("| preset | input_tokens | output_tokens | thresholds | source |\n|---|---|---|---|---|\n")
	number := func(n int) string {
		if n == 0 {
			return "yours"
		}
		return itoa(n)
	}
	for _, p := range presets {
		var bounds []string
		for _, t := range p.bounds {
			bounds = append(bounds, fmt.Sprintf("`%s = %q`", t.metric, t.text))
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", p.name, number(p.input), number(p.output), strings.Join(bounds, ", "), p.source)
	}
	b.WriteString("\n")
}

func writeFunctions(b *strings.Builder) {
	names := append(slices.Collect(maps.Keys(pureFunctions)), "file")
	slices.Sort(names)
	b.WriteString("## Functions\n\nAs in Terraform, where they have the same name: ")
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("`" + n + "`")
	}
	b.WriteString(". `seconds(\"8s\")` is the number 8, for conditions, and `alltrue` or `anytrue` of nothing is an error in one. `file` reads text inside the repository, relative to the plan.\n\n")
}
