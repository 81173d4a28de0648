package decode

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/metric"
)

var quotedName = regexp.MustCompile(`"([^"]+)"`)

var otherNames = map[string]string{
	"latency":           "Use e2e for the time of the whole request, or ttft for the time to its first token.",
	"duration":          "Use e2e for the time of a whole request.",
	"ttfb":              "Use ttft, the time to the first token.",
	"tps":               "Use speed for the tokens per second of one request, or throughput for those of the whole server.",
	"tokens_per_second": "Use speed for the tokens per second of one request, or throughput for those of the whole server.",
	"rps":               "Use request_rate.",
	"qps":               "Use request_rate.",
	"errors":            `Use success, such as success = "every" or success = "rate >= 99%".`,
	"error_rate":        `Use success, such as success = "every" or success = "rate >= 99%".`,
	"failures":          `Use success, such as success = "every" or success = "rate >= 99%".`,
}

func withoutMisspelt(diags hcl.Diagnostics) hcl.Diagnostics {
	var misspelt []string
	for _, diag := range diags {
		if _, meant, ok := strings.Cut(diag.Detail, `Did you mean "`); ok {
			misspelt = append(misspelt, meant)
		}
	}
	return slices.DeleteFunc(diags, func(diag *hcl.Diagnostic) bool {
		m := quotedName.FindStringSubmatch(diag.Detail)
		return diag.Summary == hclMissingArgument && m != nil && slices.ContainsFunc(misspelt,
			func(meant string) bool { return strings.HasPrefix(meant, m[1]+`"`) })
	})
}

func (d *decoder) explainUnsupported(diags hcl.Diagnostics, spec *Block) {
	for _, diag := range diags {
		if diag.Summary != hclUnsupportedArgument && diag.Summary != hclUnsupportedBlock {
			continue
		}
		m := quotedName.FindStringSubmatch(diag.Detail)
		if m == nil {
			continue
		}
		name := m[1]
		if diag.Summary == hclUnsupportedArgument && spec.block(name) != nil {
			diag.Detail = name + " is a block, not an argument. Write it without an equals sign: " + name + " { … }."
			continue
		}
		if strings.Contains(diag.Detail, "Did you mean") {
			continue
		}
		if lower := strings.ToLower(name); lower != name && (spec.attr(lower) != nil || spec.block(lower) != nil) {
			diag.Detail += ` Did you mean "` + lower + `"?`
			continue
		}
		if i := strings.LastIndexByte(name, '_'); i > 0 && (spec == slaBlock || spec == goodBlock) {
			if def, ok := metric.Lookup(name[:i]); ok {
				diag.Detail += " Write the statistic inside the threshold: " + def.Name + " = " + example(def, spec == goodBlock) + "."
				continue
			}
		}
		if meant, ok := otherNames[name]; ok && (spec == slaBlock || spec == goodBlock) {
			diag.Detail += " " + meant
			continue
		}
		if places := belongs(spec, name, diag.Summary == hclUnsupportedBlock); len(places) > 0 {
			diag.Detail += " It belongs in " + choices(places) + "."
		}
	}
}

// belongs lists the blocks that may hold an attribute or a block of this name. It searches spec and
// the blocks inside it, and if that finds none, the whole language. A block of the plan itself may
// have the name of an attribute, such as workload.
func belongs(spec *Block, name string, block bool) []string {
	if block && schema.block(name) != nil {
		return []string{"the top level of the plan"}
	}
	if spec != schema {
		if places := whereIs(spec, spec.Name, name); len(places) > 0 {
			return places
		}
	}
	return whereIs(schema, "", name)
}

func whereIs(b *Block, path, name string) []string {
	var places []string
	if path != "" && (b.attr(name) != nil || b.block(name) != nil) {
		places = append(places, path)
	}
	for _, c := range b.Blocks {
		places = append(places, whereIs(c, strings.TrimPrefix(path+"."+c.Name, "."), name)...)
	}
	if path == "" && b.block(name) != nil {
		places = append(places, "the top level of the plan")
	}
	return slices.Compact(places)
}
