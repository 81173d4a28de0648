package decode

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/tokgate/tokgate/internal/must"
)

func manyLevels(n int) []byte {
	var b strings.Builder
	b.WriteString("server \"s\" {\n  endpoint { url = \"http://127.0.0.1:8000\" }\n}\n")
	b.WriteString("workload \"w\" {\n  input_tokens = 128\n  output_tokens = 16\n  load {\n    concurrency = [\n")
	for i := range n {
		fmt.Fprintf(&b, "      %d,\n", i+1)
	}
	b.WriteString("    ]\n    requests = { 1 = 60, default = 50000 }\n  }\n  sla { ttft = \"p95 < 8s\" }\n}\n")
	b.WriteString("assert \"last\" {\n  condition = result.s.w.level[" + fmt.Sprint(n) + "].failed == 0\n  error_message = \"x\"\n}\n")
	return []byte(b.String())
}

// megabyte returns a plan of about 1 MB, with thousands of workloads, variables and locals.
func megabyte() []byte {
	var b strings.Builder
	b.WriteString("server \"s\" {\n  endpoint { url = \"http://127.0.0.1:8000\" }\n}\n")
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, `variable "v%[1]d" {
  type    = number
  default = %[1]d
}
locals {
  l%[1]d = var.v%[1]d + 128
}
workload "w%[1]d" {
  input_tokens  = local.l%[1]d
  output_tokens = { mean = 64, jitter = "5%%" }
  load {
    concurrency = [1, 2, 4, 8]
    requests    = { 1 = 60, default = 300 }
  }
  sla {
    at    = [4, 8]
    ttft  = "p95 < ${local.l%[1]d}s"
    speed = ["mean > 15 tok/s", "p5 > 10 tok/s"]
  }
}
`, i)
	}
	return []byte(b.String())
}

func TestLongLargePlansLoad(t *testing.T) {
	p, diags := File(Options{Path: "levels.hcl", Source: manyLevels(2000)})
	must.Hold(t, !diags.HasErrors() && len(p.Workloads[0].Loads[0].Levels) == 2000, "2,000 levels: %v", diags)
	p, diags = File(Options{Path: "megabyte.hcl", Source: megabyte()})
	must.Hold(t, !diags.HasErrors() && len(p.Workloads) >= 1000, "a plan of 1 MB: %d workloads, %v", len(p.Workloads), diags)
}

// The tokens of a source count only if it has many brackets, operators or digits, or a number with an
// exponent.
func TestSimple(t *testing.T) {
	for src, want := range map[string]bool{
		"x = " + strings.Repeat("[", 100):              true,
		"x = " + strings.Repeat("[", 101):              false,
		"x " + strings.Repeat("+", 1000):               true,
		"x " + strings.Repeat("+", 1001):               false,
		"x " + strings.Repeat("+", 951) + "<<" + `"${`: true,
		"x " + strings.Repeat("1", 400):                true,
		"x " + strings.Repeat("1", 401):                false,
		"x " + strings.Repeat("1.", 200) + "1":         false,
		"[" + strings.Repeat("10, ", 10_000) + "]":     true,
		"x = 1e5": false, "x = 1.E5": false, "x = e5": true,
	} {
		must.Hold(t, simple([]byte(src)) == want, "%.40q: want %v", src, want)
	}
}

// A plan of blocks is parsed in parts. A mistake in one has the parser see the whole.
func TestParts(t *testing.T) {
	whole := string(megabyte())
	must.Hold(t, parseParts([]byte(whole), "p.hcl") != nil, "a plan of blocks is not parsed in parts")
	must.Hold(t, parseParts([]byte(whole+"}\n"), "p.hcl") == nil, "a loose brace is overlooked")
}

// BenchmarkLoad loads plans. It reports the ratio of the time to that of HCL's parser alone, and as
// peak-MiB the memory that the first load took from the system.
func BenchmarkLoad(b *testing.B) {
	small := must.Get(os.ReadFile("testdata/ok/chatbot.hcl"))(b)
	for _, row := range []struct {
		name string
		src  []byte
	}{{"one gate", small}, {"10000 levels", manyLevels(10_000)}, {"1 MB", megabyte()}} {
		b.Run(row.name, func(b *testing.B) {
			b.SetBytes(int64(len(row.src)))
			held := func() float64 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return float64(m.Sys-m.HeapReleased) / (1 << 20)
			}
			debug.FreeOSMemory()
			before := held()
			_, diags := File(Options{Path: "bench.hcl", Source: row.src})
			must.Need(b, !diags.HasErrors(), "%v", diags)
			peak := held() - before
			var parse, load time.Duration
			for b.Loop() {
				begin := time.Now()
				_, diags := hclsyntax.ParseConfig(row.src, "bench.hcl", hcl.InitialPos)
				must.Need(b, !diags.HasErrors(), "%v", diags)
				parse += time.Since(begin)
				begin = time.Now()
				File(Options{Path: "bench.hcl", Source: row.src})
				load += time.Since(begin)
			}
			b.ReportMetric(peak, "peak-MiB")
			b.ReportMetric(load.Seconds()/float64(b.N)*1e3, "load-ms")
			b.ReportMetric(float64(load)/float64(parse), "parse-ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// A hostile plan gets a diagnostic within a short time, and does not crash tokgate.
func TestLongHostileSources(t *testing.T) {
	deep := func(open, middle, shut string, n int) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(shut, n)
	}
	doubling := "locals {\n  a0 = \"0123456789abcdef\"\n"
	for i := range 60 {
		doubling += fmt.Sprintf("  a%d = \"${local.a%d}${local.a%d}\"\n", i+1, i, i)
	}
	nested := "locals {\n  a0 = []\n"
	for i := range 300 {
		nested += fmt.Sprintf("  a%d = [local.a%d]\n", i+1, i)
	}
	bomb := func(x string) string {
		return "locals {\n  a = \"" + strings.Repeat("a", 100_000) + "\"\n  x = " + x + "\n}\n"
	}
	aliases := "a0: &a0 [1]\n"
	for i := range 9 {
		aliases += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	for _, row := range []struct{ name, file, src, want string }{
		{"too large", "p.hcl", strings.Repeat("# comment\n", maxFileBytes/10+1), sumTooLarge},
		{"parentheses", "p.hcl", "x = " + deep("(", "1", ")", 20_000), sumTooDeep},
		{"lists", "p.hcl", "x = " + deep("[", "", "]", 20_000), sumTooDeep},
		{"objects", "p.hcl", "x = " + deep("{a=", "1", "}", 20_000), sumTooDeep},
		{"blocks", "p.hcl", deep("a {\n", "", "}\n", 20_000), sumTooDeep},
		{"templates", "p.hcl", "x = " + deep("\"${", "1", "}\"", 20_000), sumTooDeep},
		{"directives", "p.hcl", "x = \"" + deep("%{ if true }", "", "%{ endif }", 20_000) + "\"", sumTooDeep},
		{"never closed", "p.hcl", "x = " + strings.Repeat("(", 20_000), sumTooDeep},
		{"negations", "p.hcl", "x = " + strings.Repeat("!", 20_000) + "true", sumTooDeep},
		{"minuses", "p.hcl", "x = " + strings.Repeat("-", 20_000) + "1", sumTooDeep},
		{"sums", "p.hcl", "x = 1" + strings.Repeat("+1", 20_000), sumTooDeep},
		{"conditionals", "p.hcl", "x = " + strings.Repeat("true?1:", 20_000) + "1", sumTooDeep},
		{"attributes", "p.hcl", "x = a" + strings.Repeat(".a", 20_000), sumTooDeep},
		{"splats", "p.hcl", "x = a" + strings.Repeat("[*]", 20_000), sumTooDeep},
		{"JSON arrays", "p.json", `{"locals":{"x":` + deep("[", "", "]", 20_000) + "}}", sumTooDeep},
		{"JSON never closed", "p.json", strings.Repeat("[", 20_000), sumTooDeep},
		{"JSON template", "p.json", `{"locals":{"x":"${` + deep("(", "1", ")", 20_000) + `}"}}`, sumTooDeep},
		{"JSON escapes", "p.json", `{"locals":{"x":"${` + deep(`\u0028`, "1", `\u0029`, 50_000) + `}"}}`, sumTooDeep},
		{"JSON number", "p.json", `{"locals":{"x":1e999999999}}`, sumNumberRange},
		{"number", "p.hcl", "locals {\n  x = \"${1e999999999}\"\n}\n", sumNumberRange},
		{"long number", "p.hcl", "locals {\n  x = " + strings.Repeat("9", 20_000) + "\n}\n", sumNumberRange},
		{"doubling", "p.hcl", doubling + "}\n", sumValueTooLarge},
		{"nested value", "p.hcl", nested + "}\n", sumValueTooLarge},
		{"wide format", "p.hcl", "locals {\n  x = format(\"%999999999d\", 1)\n}\n", "Invalid function argument"},
		{"wide argument", "p.hcl", "locals {\n  x = format(\"%*d\", 999999999, 1)\n}\n", "Invalid function argument"},
		{"indent", "p.hcl", "locals {\n  x = indent(999999999, \"a\\nb\")\n}\n", "Invalid function argument"},
		{"power", "p.hcl", "locals {\n  x = pow(10, 999999999)\n}\n", "Invalid function argument"},
		{"product", "p.hcl", "locals {\n  x = setproduct(range(1000), range(1000), range(1000))\n}\n", "Invalid function argument"},
		{"decoded JSON", "p.hcl", "locals {\n  x = jsondecode(join(\"\", [for i in range(1000) : \"[[[[[\"]))\n}\n", "Invalid function argument"},
		{"decoded YAML", "p.hcl", "locals {\n  x = yamldecode(join(\"\", [for i in range(1000) : \"- - - - \"]))\n}\n", "Invalid function argument"},
		{"replaced", "p.hcl", bomb(`replace(local.a, "a", local.a)`), "Invalid function argument"},
		{"replaced by a pattern", "p.hcl", bomb(`replace(local.a, "/a/", local.a)`), "Invalid function argument"},
		{"replaced by groups", "p.hcl", bomb(`replace(local.a, "/.*/", "` + strings.Repeat("$${0}", 5000) + `")`), "Invalid function argument"},
		{"joined", "p.hcl", bomb(`join(local.a, range(1000))`), "Invalid function argument"},
		{"formatted", "p.hcl", bomb(`format("` + strings.Repeat("%[1]s", 5000) + `", local.a)`), "Invalid function argument"},
		{"a list formatted", "p.hcl", bomb(`formatlist("%s%d", local.a, range(1000))`), "Invalid function argument"},
		{"indented", "p.hcl", bomb(`indent(1000, replace(local.a, "a", "\n"))`), "Invalid function argument"},
		{"split", "p.hcl", bomb(`split("", format("%s%s%s", local.a, local.a, local.a))`), "Invalid function argument"},
		{"matched", "p.hcl", bomb(`regexall("(a|aa|aaa|aaaa){1000}b", local.a)`), "Invalid function argument"},
		{"concatenated", "p.hcl", bomb("concat(" + strings.Repeat("[local.a],", 500) + "[])"), "Invalid function argument"},
		{"compared each with each", "p.hcl", "locals {\n  x = distinct(flatten([for i in range(6) : [for j in range(1000) : i * 1000 + j]]))\n}\n", "Invalid function argument"},
		{"aliases", "p.hcl", "locals {\n  x = yamldecode(<<EOT\n" + aliases + "EOT\n)\n}\n", "Invalid function argument"},
		{"an alias of itself", "p.hcl", "locals {\n  x = yamldecode(\"a: &a [*a]\")\n}\n", "Invalid function argument"},
		{"a few aliases", "p.hcl", "locals {\n  x = yamldecode(\"a: &a [1, 2]\\nb: *a\\nc: *a\\n\").c[1]\n}\nserver \"s\" {\n  simulator {}\n}\nworkload \"w\" {\n  input_tokens = local.x\n  output_tokens = 1\n  load { concurrency = 1 }\n  sla { success = \"every\" }\n}\n", ""},
		{"many levels", "p.hcl", "locals {\n  r = range(1000)\n}\nserver \"s\" {\n  simulator {}\n}\nworkload \"w\" {\n  input_tokens = 1\n  output_tokens = 1\n  load { concurrency = [for p in setproduct(local.r, range(10)) : p[0] * 10 + p[1] + 1] }\n  sla { success = \"every\" }\n}\n", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, diags := File(Options{Path: row.file, Source: []byte(row.src)})
			must.Need(t, p != nil && len(diags) <= maxDiagnostics, "plan %v, %d diagnostics", p, len(diags))
			if row.want == "" {
				must.Hold(t, !diags.HasErrors(), "%v", diags)
				return
			}
			for _, d := range diags {
				if d.Summary == row.want {
					return
				}
			}
			t.Errorf("no diagnostic %q among %d: %v", row.want, len(diags), diags)
		})
	}
}

// A chain of more than 64 files, each including the next, is too long. A file that is included
// twice counts once.
func TestIncludeLimits(t *testing.T) {
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("f%d.hcl", i)] = fmt.Sprintf("include = [\"f%d.hcl\", \"f%d.hcl\"]\n", i+1, i+1)
	}
	files["f100.hcl"] = ""
	read := func(path string) ([]byte, error) {
		if src, ok := files[path]; ok {
			return []byte(src), nil
		}
		return nil, os.ErrNotExist
	}
	p, diags := File(Options{Path: "f0.hcl", Root: ".", ReadFile: read})
	must.Hold(t, len(diags) == 1 && diags[0].Summary == sumTooLarge && len(p.Files) == maxFiles, "%d files, %v", len(p.Files), diags)
}
