package movein

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// tools are the clients whose command lines are read, by the words that begin one.
var tools = []struct {
	words []string
	read  func(*options, *Benchmark)
}{
	{[]string{"vllm", "bench", "serve"}, vllmBench},
	{[]string{"benchmark_serving.py"}, vllmBench}, // its name in older releases
	{[]string{"guidellm", "benchmark", "run"}, guidellm},
	{[]string{"guidellm", "benchmark"}, guidellm},
	{[]string{"guidellm", "run"}, guidellm},
	{[]string{"aiperf", "profile"}, aiperf},
}

// Line reads the first command line of a known tool in text, which may be a script. Paths in it
// become relative to plan.
func Line(text, plan string) (*Benchmark, error) {
	for _, words := range commands(text) {
		for _, t := range tools {
			for i := range words {
				end := i + len(t.words)
				if end > len(words) || path.Base(words[i]) != t.words[0] || !slices.Equal(words[i+1:end], t.words[1:]) {
					continue
				}
				o := newOptions(words[end:], plan)
				b := &Benchmark{Origin: "a command line of `" + strings.Join(t.words, " ") + "`", Engine: "vllm"}
				t.read(o, b)
				o.leave(b)
				return b, o.err
			}
		}
	}
	var names []string
	for _, t := range tools {
		names = append(names, "`"+strings.Join(t.words, " ")+"`")
	}
	return nil, fmt.Errorf("it has no command line of a known tool: %s", strings.Join(names, ", "))
}

// commands splits text into commands and their words, as a shell does: quotes, backslashes, comments,
// and lines that go on behind a backslash. It does not expand variables.
func commands(text string) [][]string {
	var all [][]string
	var words []string
	var word strings.Builder
	var quoted rune // the quote that is open; 0 if none
	begun := false  // whether word has begun, if only with an empty string
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		c := runes[i]
		switch {
		case c == '\\' && quoted != '\'' && i+1 < len(runes):
			if i++; runes[i] != '\n' {
				begun = true
				word.WriteRune(runes[i])
			}
		case quoted != 0 && c == quoted:
			quoted = 0
		case quoted != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quoted, begun = c, true
		case c == '#' && !begun:
			for i+1 < len(runes) && runes[i+1] != '\n' {
				i++
			}
		case strings.ContainsRune("\n;|&<>", c):
			end()
			all, words = append(all, words), nil
		case c == ' ' || c == '\t' || c == '\r':
			end()
		default:
			begun = true
			word.WriteRune(c)
		}
	}
	end()
	return append(all, words)
}

// options are the flags of a command line. The readers of the tools take what they know; the rest
// is what a plan cannot say.
type options struct {
	values map[string][]string // by name without dashes, with - for _; a flag without a value has none
	order  []string
	plan   string
	err    error // the first problem
}

// newOptions reads flags: each word that begins with a dash, and the words behind it. No tool that
// is read here has arguments without a flag.
func newOptions(words []string, plan string) *options {
	o := &options{values: map[string][]string{}, plan: plan}
	name := ""
	for _, w := range words {
		if _, err := strconv.ParseFloat(w, 64); strings.HasPrefix(w, "-") && len(w) > 1 && err != nil {
			var value string
			var has bool
			name, value, has = strings.Cut(strings.TrimLeft(w, "-"), "=")
			name = strings.ReplaceAll(name, "_", "-")
			if _, known := o.values[name]; !known {
				o.order = append(o.order, name)
				o.values[name] = nil
			}
			if has {
				o.values[name] = append(o.values[name], value)
			}
			continue
		}
		if name != "" {
			o.values[name] = append(o.values[name], w)
		}
	}
	return o
}

// take removes the flags of these names, and returns the values of the first that is there.
func (o *options) take(names ...string) (values []string, found bool) {
	for _, name := range names {
		if v, ok := o.values[name]; ok {
			delete(o.values, name)
			for _, s := range v {
				if strings.Contains(s, "$") && o.err == nil {
					o.err = fmt.Errorf("--%s is %q; write the value in place of the shell's variable", name, s)
				}
			}
			if !found {
				values, found = v, true
			}
		}
	}
	return values, found
}

// text returns the value of the first of these flags that is there, or fallback.
func (o *options) text(fallback string, names ...string) string {
	if v, _ := o.take(names...); len(v) > 0 {
		return v[len(v)-1] // the last one counts, if a flag comes twice
	}
	return fallback
}

// numbers returns a list, with commas or blanks between numbers; nil if no such flag is there.
func (o *options) numbers(names ...string) []float64 {
	var all []float64
	values, _ := o.take(names...)
	for _, v := range values {
		for _, s := range strings.Split(v, ",") {
			n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
			if (err != nil || math.IsNaN(n) || n < 0 || n > 1e12 && !math.IsInf(n, 1)) && o.err == nil {
				o.err = fmt.Errorf("--%s is %q, but not a number", names[0], s)
			}
			all = append(all, n)
		}
	}
	return all
}

// number returns one number, or fallback.
func (o *options) number(fallback float64, names ...string) float64 {
	if all := o.numbers(names...); len(all) > 0 {
		return all[len(all)-1]
	}
	return fallback
}

// whole returns whole numbers; nil if no such flag is there.
func (o *options) whole(names ...string) []int {
	var all []int
	for _, n := range o.numbers(names...) {
		if (n != math.Trunc(n) || n > 1e9) && o.err == nil {
			o.err = fmt.Errorf("--%s is %v, but not a whole number", names[0], n)
			return nil
		}
		all = append(all, int(n))
	}
	return all
}

// count returns one whole number, or fallback.
func (o *options) count(fallback int, names ...string) int {
	if all := o.whole(names...); len(all) > 0 {
		return all[len(all)-1]
	}
	return fallback
}

// fields returns the members of an object as expressions: JSON is valid in a plan.
func (o *options) fields(names ...string) []Pair {
	values, _ := o.take(names...)
	var all []Pair
	for _, v := range values {
		var members map[string]json.RawMessage
		if name, value, ok := strings.Cut(v, ":"); ok && !strings.HasPrefix(v, "{") {
			if !json.Valid([]byte(value)) {
				value = quote(value)
			}
			members = map[string]json.RawMessage{name: json.RawMessage(value)}
		} else if err := json.Unmarshal([]byte(v), &members); err != nil && o.err == nil {
			o.err = fmt.Errorf("--%s is no JSON object", names[0])
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			o.fail(!hclsyntax.ValidIdentifier(name), "--%s has a field %q, which a plan cannot name", names[0], name)
			all = append(all, Pair{name, expression(members[name])})
		}
	}
	return all
}

// leave notes the flags that nobody took.
func (o *options) leave(b *Benchmark) {
	for _, name := range o.order {
		if v, ok := o.values[name]; ok {
			b.lose("%s: no counterpart in a plan", strings.TrimSpace("--"+name+" "+strings.Join(v, " ")))
		}
	}
}

// drop forgets flags that concern the tool's own output, or its tokenizer: the server counts tokens.
func (o *options) drop(names ...string) {
	for _, name := range names {
		delete(o.values, name)
	}
}
