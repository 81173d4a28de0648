package decode

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// docs/language.md contains the reference of the language. Two HTML comments mark its beginning and
// its end.
func TestReference(t *testing.T) {
	const path, begin, end = "../../docs/language.md", "<!-- reference -->\n", "<!-- /reference -->"
	src := must.Get(os.ReadFile(path))(t)
	head, rest, _ := strings.Cut(string(src), begin)
	_, tail, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no part for it", path)
	}
	golden(t, path, head+begin+reference()+end+tail)
}

// docs/policy.md contains the table of policy settings. Two HTML comments mark its beginning and
// its end.
func TestPolicyReference(t *testing.T) {
	const path, begin, end = "../../docs/policy.md", "<!-- policy -->\n", "<!-- /policy -->"
	src := must.Get(os.ReadFile(path))(t)
	head, rest, _ := strings.Cut(string(src), begin)
	_, tail, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no part for it", path)
	}
	var b strings.Builder
	for _, block := range policySchema.Blocks {
		fmt.Fprintf(&b, "**`%s`**: %s\n\n| attribute | what |\n|---|---|\n", block.Name, block.Doc)
		for _, a := range block.Attrs {
			fmt.Fprintf(&b, "| `%s` | %s |\n", a.Name, a.Doc)
		}
		b.WriteString("\n")
	}
	golden(t, path, head+begin+b.String()+end+tail)
}

// The example policy of docs/policy.md is valid.
func TestPolicyOfTheDocs(t *testing.T) {
	src := must.Get(os.ReadFile("../../docs/policy.md"))(t)
	_, rest, _ := strings.Cut(string(src), "# policy.hcl\n")
	text, _, ok := strings.Cut(rest, "```")
	p, diags := Policy("policy.hcl", func(string) ([]byte, error) { return []byte(text), nil })
	if !ok || diags.HasErrors() || len(p.Allow) != 6 || len(p.Require) != 2 || len(p.Keep.Patterns) != 1 {
		t.Errorf("%+v %v", p, diags)
	}
}

// The language reference contains all that the schema contains. Each default in it can be
// evaluated.
func TestSchemaAndReferenceAgree(t *testing.T) {
	text := reference()
	d := newDecoder(Options{Path: "test.hcl"})
	var walk func(b *Block, path string)
	walk = func(b *Block, path string) {
		if b.Doc == "" {
			t.Errorf("%s has no doc", path)
		}
		seen := map[string]bool{}
		for _, a := range b.Attrs {
			if a.Doc == "" || a.Type == "" {
				t.Errorf("%s.%s has no doc or type", path, a.Name)
			}
			if seen[a.Name] {
				t.Errorf("%s.%s is declared twice", path, a.Name)
			}
			seen[a.Name] = true
			if a.Required && (a.Default != "" || a.Computed != "") {
				t.Errorf("%s.%s is required and has a default", path, a.Name)
			}
			if a.Default != "" {
				d.constant(a.Default) // panics on a bad default
			}
			if !strings.Contains(text, a.Name+"`") {
				t.Errorf("%s.%s is not in the reference", path, a.Name)
			}
		}
		for _, c := range b.Blocks {
			if seen[c.Name] {
				t.Errorf("%s.%s is declared twice", path, c.Name)
			}
			seen[c.Name] = true
			walk(c, path+"."+c.Name)
		}
	}
	walk(schema, "plan")
	for _, p := range presets {
		if !strings.Contains(text, "`"+p.name+"`") {
			t.Errorf("preset %s is not in the reference", p.name)
		}
	}
}

// The decoder reads every attribute of the schema. It must reject a list of the wrong type for
// each.
func TestDecoderReadsEverySetting(t *testing.T) {
	var walk func(b *Block, wrap func(string) string)
	walk = func(b *Block, wrap func(string) string) {
		for _, a := range b.Attrs {
			src := wrap(beside(b, a) + a.Name + " = [[{}]]\n")
			_, diags := File(Options{Path: "test.hcl", Source: []byte(src)})
			at, found := strings.Index(src, a.Name+" = [["), false
			for _, d := range diags {
				found = found || d.Subject != nil && d.Subject.Start.Byte >= at && d.Subject.Start.Byte < at+len(a.Name+" = [[{}]]")
			}
			if !found && !readsAnything[b.Name+"."+a.Name] {
				t.Errorf("%s.%s = [[{}]] is accepted: does the decoder read it?\n%s", b.Name, a.Name, src)
			}
		}
		for _, c := range b.Blocks {
			walk(c, func(body string) string {
				labels := ""
				for range c.Labels {
					labels += ` "x"`
				}
				return wrap(c.Name + labels + " {\n" + body + "}\n")
			})
		}
	}
	walk(schema, func(body string) string { return body })
}

// beside returns what a plan must set beside an attribute.
func beside(b *Block, a *Attr) string {
	if len(a.With) == 0 {
		return ""
	}
	if _, _, outside := inBlock(a.With[0]); outside {
		return "" // it holds by default
	}
	name, _, _ := strings.Cut(a.With[0], " = ")
	return beside(b, b.attr(name)) + b.example(a.With[0]) + "\n"
}

// readsAnything lists the settings that accept any value, even [[{}]].
var readsAnything = map[string]bool{"variable.default": true}

// reference writes the reference of the language in Markdown, from the schema that the decoder
// reads. It lists every block with its attributes and defaults. Metrics, presets and functions
// follow.
func reference() string {
	var b strings.Builder
	writeBlock(&b, schema, "")
	writeMetrics(&b)
	writePresets(&b)
	writeFunctions(&b)
	return b.String()
}

func writeBlock(b *strings.Builder, block *Block, path string) {
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
	list := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	switch {
	case block.One != nil && block.Any != nil:
		fmt.Fprintf(b, " It needs at most one of %s; without it, %s.", list(block.One), list(block.Any))
	case block.One != nil:
		fmt.Fprintf(b, " It needs exactly one of %s.", list(block.One))
	case len(block.Any) == 1:
		fmt.Fprintf(b, " It needs %s.", list(block.Any))
	case block.Any != nil:
		fmt.Fprintf(b, " It needs at least one of %s.", list(block.Any))
	}
	for _, c := range block.Not {
		fmt.Fprintf(b, " Not with `%s`.", c.With)
	}
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
		def, isMetric := metric.Lookup(a.Name)
		switch isMetric = isMetric && !def.Paired; {
		case isMetric:
			thresholds = true // the reference lists thresholds in a separate table
		default:
			rows = append(rows, a)
		}
	}
	if len(rows) > 0 {
		b.WriteString("| attribute | type | default | meaning |\n|---|---|---|---|\n")
		for _, a := range rows {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", a.Name, cell(a.Type), a.defaultText(), cell(a.Doc+a.together()))
			for _, k := range a.Keys {
				fmt.Fprintf(b, "| `%s.%s` | %s | %s | %s |\n", a.Name, k.Name, cell(k.Type), k.defaultText(), cell(k.Doc+k.together()))
			}
		}
		b.WriteString("\n")
	}
	if thresholds {
		b.WriteString("Every other attribute is a metric: see [Metrics](#metrics).\n\n")
	}
	for _, c := range block.Blocks {
		child := strings.TrimPrefix(path+"."+c.Name, ".")
		writeBlock(b, c, child)
	}
}

func writeMetrics(b *strings.Builder) {
	b.WriteString("## Metrics\n\nA threshold is a statistic, a comparison, a number and its unit. Metrics of a whole level take no statistic. Those marked good may stand in a `good` block, without a statistic.\n\n")
	b.WriteString("| metric | threshold | units | good |\n|---|---|---|---|\n")
	for _, d := range metric.Defs {
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
	b.WriteString("## Presets\n\n`preset = \"NAME\"` fills in what the workload does not set itself: lengths, thresholds on metrics that it does not bound, and, for those with a p99, enough requests to certify it: at least " + strconv.Itoa(presetRequests) + " a level.\n\n")
	b.WriteString("| preset | input_tokens | output_tokens | thresholds | source |\n|---|---|---|---|---|\n")
	number := func(n int) string {
		if n == 0 {
			return "yours"
		}
		return strconv.Itoa(n)
	}
	for _, p := range presets {
		var bounds []string
		for _, t := range p.bounds {
			bounds = append(bounds, fmt.Sprintf("`%s = %q`", t.name, t.text))
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
	b.WriteString(". `seconds(\"8s\")` is the number 8, for conditions, and `alltrue` or `anytrue` of nothing is an error in one. `file` reads text, relative to the plan; a file outside the repository needs `--files`. `nonsensitive(env.NAME)` opens a value that is no secret: without it, only text of a server, of a request or of an `error_message` may be made of `env.NAME` or a sensitive variable.\n\n")
}
