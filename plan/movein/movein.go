// Package movein reads what other load generators are told to measure, and writes it as a plan: a
// command line of vLLM's, GuideLLM's or AIPerf's client, a recipe of perf-eval or srt-slurm, a file
// of prompts or a trace. What a plan cannot say stays in it as a comment with the reason.
//
// The formats were read at vllm-project/vllm@009e6d4a, vllm-project/guidellm@ee7a7745 (and the flags
// of its versions before "guidellm run"), ai-dynamo/aiperf@003fc0f1, vllm-project/perf-eval@bbd3fc71
// and NVIDIA/srt-slurm@c88ef731.
package movein

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/traffic"
)

// Benchmark is what another tool measures.
type Benchmark struct {
	Origin string // what was read, such as "a command line of vllm bench serve"
	// The server: Image with Args, Env and GPUs if the tool starts one, else the one at URL. "" for
	// both means that the source names none.
	URL, Image    string
	Args          []string
	Env, Headers  []Pair
	GPUs          int
	Engine, Model string   // Engine is a name of package engine
	ServedAs      string   // model id in requests; "" for the server's own
	Loads         []Load   // at least one
	Lost          []string // what a plan cannot say, each with the reason
	File          string   // path of the plan; set by Plan
}

// Pair is a name with an expression of the plan language.
type Pair struct{ Name, Value string }

// Load is one kind of request, and how requests arrive.
type Load struct {
	Name, Doc string
	API       string // "chat" or "completions"

	Input   int     // tokens of a prompt; 0 if a file has the lengths
	Output  int     // mean length of an answer in tokens; 0 if a file has the lengths
	Jitter  float64 // half the range of lengths as a share of the mean; 0 if all are equal
	Natural bool    // answers end by themselves, at the latest after Output tokens

	shared
	Dataset, Trace string // path of a file; "" if there is none

	// Exactly one of these sets the load, unless there is a trace.
	Concurrency []int
	Rates       []float64 // per second
	Burst       int       // requests sent at once

	Requests []int   // by level, or one number for all; nil if Seconds is set, or for a default
	Repeat   int     // how often the tool sends them; 0 for once
	Seconds  float64 // length of a level
	spread
	Warmup int // requests that are not measured; 0 for tokgate's own choice

	Request, Good []Pair
}

type shared struct{ Prefix, Groups int } // tokens that the prompts of a group share, and the groups

// spread is how the arrivals of a rate are spread.
type spread struct {
	Arrivals   string // "constant" or "gamma"; "" for Poisson
	Burstiness float64
}

// lose notes something that the plan cannot say.
func (b *Benchmark) lose(format string, args ...any) {
	b.Lost = append(b.Lost, fmt.Sprintf(format, args...))
}

// Read reads from: the path of a file, or else a command line. plan is the path of the plan to be
// written, to which paths in it are relative.
func Read(from, plan string) (*Benchmark, error) {
	info, err := os.Stat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(from, " \t\n"):
		return Line(from, plan)
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s; a command line has to be quoted as one argument", from)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", from)
	}
	switch strings.ToLower(filepath.Ext(from)) {
	case ".yaml", ".yml", ".sh", "", ".txt":
		if info.Size() > 1<<20 {
			return nil, fmt.Errorf("%s has %d bytes; a recipe or a script has at most 1 MiB", from, info.Size())
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if ext := filepath.Ext(from); strings.EqualFold(ext, ".yaml") || strings.EqualFold(ext, ".yml") {
			return Recipe(text)
		}
		return Line(string(text), plan)
	}
	return recorded(from, plan)
}

// recorded replays a trace, or sends the prompts of a file.
func recorded(path, plan string) (*Benchmark, error) {
	b := &Benchmark{Engine: "vllm"}
	l := Load{Name: "traffic", API: "chat"}
	trace, err := traffic.ReadTrace(path, "", nil)
	switch {
	case err == nil:
		b.Origin, l.Doc = "a trace of the format "+trace.Format, "recorded traffic, sent again at its times with its lengths"
		l.Trace = relative(path, plan)
	case !errors.Is(err, traffic.ErrFormat):
		return nil, err
	default:
		d, err := traffic.Read(path, traffic.Options{})
		if err != nil {
			return nil, fmt.Errorf("it is neither a trace of a known format nor a data set: %w", err)
		}
		b.Origin, l.Doc = fmt.Sprintf("a data set of %d rows", len(d.Rows)), "prompts of a file"
		l.Dataset, l.Natural, l.Output, l.Concurrency = relative(path, plan), true, 512, []int{1, 4}
	}
	b.Loads = []Load{l}
	return b, nil
}

// relative returns path as seen from the folder of the plan.
func relative(path, plan string) string {
	if filepath.IsAbs(path) {
		return filepath.ToSlash(path)
	}
	if rel, err := filepath.Rel(filepath.Dir(plan), path); err == nil {
		path = rel
	}
	return filepath.ToSlash(path)
}

var notName = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// named makes a name of the plan language from text.
func named(text string) string {
	name := strings.Trim(notName.ReplaceAllString(text, "-"), "-")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return "load-" + name
	}
	return name
}

//go:embed movein.hcl.tmpl
var source string

var page = template.Must(template.New("movein").Funcs(template.FuncMap{
	"quote":   quote,
	"comment": func(s string) string { return strings.Join(strings.Fields(s), " ") },
	"number":  func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) },
	"percent": func(f float64) string { return strconv.FormatFloat(100*f, 'f', 1, 64) },
	"list":    func(n []int) string { return strings.Join(strings.Fields(fmt.Sprint(n)), ", ") },
	"quotes": func(all []string) string {
		var out []string
		for _, s := range all {
			out = append(out, quote(s))
		}
		return strings.Join(out, ", ")
	},
}).Parse(source))

// quote writes a string of the plan language.
func quote(s string) string { return string(hclwrite.TokensForValue(cty.StringVal(s)).Bytes()) }

// Counts writes the argument requests; "" if the level has none.
func (l Load) Counts() string {
	times := func(n int) string {
		if l.Repeat > 1 {
			return fmt.Sprintf("%d * %d", l.Repeat, n)
		}
		return strconv.Itoa(n)
	}
	switch {
	case len(l.Requests) == 0:
		return ""
	case len(l.Requests) == 1 || len(l.Requests) != len(l.Concurrency):
		return times(l.Requests[0])
	}
	var byLevel []string
	for i, n := range l.Requests {
		byLevel = append(byLevel, fmt.Sprintf("%d = %s", l.Concurrency[i], times(n)))
	}
	return "{ " + strings.Join(byLevel, ", ") + " }"
}

// Plan writes the benchmark as a formatted plan for file, its path.
func (b *Benchmark) Plan(file string) ([]byte, error) {
	b.File = file
	var out bytes.Buffer
	if err := page.Execute(&out, b); err != nil {
		return nil, err
	}
	text, diags := decode.Format(out.Bytes(), file)
	if diags.HasErrors() {
		return nil, diags
	}
	return text, nil
}
