package decode

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"go.yaml.in/yaml/v3"
)

// Limits on the arguments and the result of a plan's functions. They are checked before the call,
// because a large result would use up the memory.
const (
	// limit on the elements of a list made from text, and on YAML nodes with aliases expanded
	maxParts   = 200_000
	maxMatched = 1 << 18 // bytes of a text that is matched against a pattern
	maxPattern = 1 << 12 // bytes of a pattern
	maxSteps   = 1 << 27 // limit on a pattern's instructions times the bytes of the text
)

// light adds a limit to a function: its arguments together may have at most maxValueBytes.
func light(f function.Function) function.Function {
	return bounded(f, func(args []cty.Value) error {
		size := 0
		for i, a := range args {
			if size = valueSize(a, size, 0); size > maxValueBytes {
				return function.NewArgErrorf(i, "the arguments have more than %d bytes together", maxValueBytes)
			}
		}
		return nil
	})
}

func tooLong(arg int) error {
	return function.NewArgErrorf(arg, "the result would have more than %d bytes", maxValueBytes)
}

func tooMany(arg int) error {
	return function.NewArgErrorf(arg, "the result would have more than %d parts", maxParts)
}

func text(v cty.Value) string {
	if !known(v, cty.String) {
		return ""
	}
	return v.AsString()
}

func smallReplace(args []cty.Value) error {
	in, old, by := text(args[0]), text(args[1]), text(args[2])
	n, more := 0, 0
	if len(old) > 1 && old[0] == '/' && old[len(old)-1] == '/' {
		old = old[1 : len(old)-1]
		if err := cheapPattern(1, old, in); err != nil {
			return err
		}
		if re, err := regexp.Compile(old); err == nil {
			n = len(re.FindAllStringIndex(in, -1))
		}
		// each reference to a group, such as $1, inserts at most the whole text
		more = strings.Count(by, "$") * len(in)
	} else {
		n = strings.Count(in, old)
	}
	if len(in)+n*len(by)+more > maxValueBytes {
		return tooLong(2)
	}
	return nil
}

// At worst, each of its instructions runs for each byte of the text.
func cheapPattern(arg int, pattern, in string) error {
	if len(pattern) > maxPattern {
		return function.NewArgErrorf(arg, "a pattern has at most %d bytes", maxPattern)
	}
	if len(in) > maxMatched {
		return function.NewArgErrorf(arg, "a pattern is applied to at most %d bytes", maxMatched)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil // the function's own error message is clearer
	}
	if prog, err := syntax.Compile(parsed.Simplify()); err == nil && len(prog.Inst)*len(in) > maxSteps {
		return function.NewArgErrorf(arg, "the pattern is too complex for a text of %d bytes", len(in))
	}
	return nil
}

func smallMatch(args []cty.Value) error { return cheapPattern(0, text(args[0]), text(args[1])) }

func smallJoin(args []cty.Value) error {
	size, n := 0, 0
	for _, list := range args[1:] {
		if list.IsNull() || !list.IsKnown() || !list.CanIterateElements() {
			continue
		}
		for it := list.ElementIterator(); it.Next(); n++ {
			_, e := it.Element()
			if e, _ = e.Unmark(); e.Type() == cty.String && e.IsKnown() && !e.IsNull() {
				size += len(e.AsString())
			}
		}
	}
	if size+n*len(text(args[0])) > maxValueBytes {
		return tooLong(0)
	}
	return nil
}

// It assumes that each verb prints the longest argument, quoted. A list argument gives one text per
// element.
func smallFormat(args []cty.Value) error {
	if err := narrowFormat(args); err != nil {
		return err
	}
	longest, texts := 0, 1
	for _, a := range args[1:] {
		longest = max(longest, valueSize(a, 0, 0))
		if !a.IsNull() && a.IsKnown() && (a.Type().IsListType() || a.Type().IsTupleType()) {
			texts = max(texts, a.LengthInt())
		}
	}
	format := text(args[0])
	// Divide, because the product might overflow.
	if one := len(format) + strings.Count(format, "%")*longest; one > maxValueBytes/texts {
		return tooLong(0)
	}
	return nil
}

func smallIndent(args []cty.Value) error {
	if err := smallNumber(0, 1000)(args); err != nil || !known(args[0], cty.Number) {
		return err
	}
	width, _ := args[0].AsBigFloat().Int64()
	if in := text(args[1]); len(in)+strings.Count(in, "\n")*int(max(width, 0)) > maxValueBytes {
		return tooLong(1)
	}
	return nil
}

func fewPieces(args []cty.Value) error {
	if strings.Count(text(args[1]), text(args[0])) > maxParts {
		return tooMany(1)
	}
	return nil
}

// It counts their separators.
func fewElements(args []cty.Value) error {
	n := 0
	for _, c := range []byte(text(args[0])) {
		if c == ',' || c == '[' || c == '{' || c == '\n' {
			n++
		}
	}
	if n > maxParts {
		return tooMany(0)
	}
	return shallowText(args)
}

// The nodes behind an alias count again for each use of the alias.
func fewNodes(args []cty.Value) error {
	if err := fewElements(args); err != nil || !strings.Contains(text(args[0]), "*") {
		return err
	}
	var doc yaml.Node
	if yaml.Unmarshal([]byte(text(args[0])), &doc) != nil {
		return nil // the function's own error message is clearer
	}
	if nodes(&doc, map[*yaml.Node]int{}) > maxParts {
		return tooMany(0)
	}
	return nil
}

// The nodes behind an alias count for each use of the alias. A node with an alias for itself would
// be endless, and counts as more than maxParts.
func nodes(n *yaml.Node, counted map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if count, ok := counted[n]; ok {
		return count
	}
	counted[n] = maxParts + 1
	count := 1
	for _, child := range n.Content {
		count = min(count+nodes(child, counted), maxParts+1)
	}
	counted[n] = count
	return count
}

// The function that gets the list compares every pair of them.
func fewToCompare(args []cty.Value) error {
	if a := args[0]; !a.IsNull() && a.IsKnown() && a.CanIterateElements() && a.LengthInt() > 5000 {
		return function.NewArgErrorf(0, "the list has more than 5000 elements")
	}
	return nil
}
