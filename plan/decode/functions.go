package decode

import (
	"maps"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// pureFunctions have the names and the behaviour of Terraform's functions. Functions that read a
// clock, the network or random numbers are left out. So a plan that is loaded twice is the same
// plan.
var pureFunctions = map[string]function.Function{
	"abs":             stdlib.AbsoluteFunc,
	"alltrue":         everyTrue(true),
	"anytrue":         everyTrue(false),
	"can":             tryfunc.CanFunc,
	"ceil":            stdlib.CeilFunc,
	"chomp":           stdlib.ChompFunc,
	"chunklist":       stdlib.ChunklistFunc,
	"coalesce":        stdlib.CoalesceFunc,
	"coalescelist":    stdlib.CoalesceListFunc,
	"compact":         stdlib.CompactFunc,
	"concat":          stdlib.ConcatFunc,
	"contains":        stdlib.ContainsFunc,
	"csvdecode":       bounded(stdlib.CSVDecodeFunc, fewElements),
	"distinct":        bounded(stdlib.DistinctFunc, fewToCompare),
	"element":         stdlib.ElementFunc,
	"flatten":         stdlib.FlattenFunc,
	"floor":           stdlib.FloorFunc,
	"format":          bounded(stdlib.FormatFunc, smallFormat),
	"formatlist":      bounded(stdlib.FormatListFunc, smallFormat),
	"indent":          bounded(stdlib.IndentFunc, smallIndent),
	"index":           stdlib.IndexFunc,
	"join":            bounded(stdlib.JoinFunc, smallJoin),
	"jsondecode":      bounded(stdlib.JSONDecodeFunc, fewElements),
	"jsonencode":      stdlib.JSONEncodeFunc,
	"keys":            stdlib.KeysFunc,
	"length":          stdlib.LengthFunc,
	"log":             stdlib.LogFunc,
	"lookup":          stdlib.LookupFunc,
	"lower":           stdlib.LowerFunc,
	"max":             stdlib.MaxFunc,
	"merge":           stdlib.MergeFunc,
	"min":             stdlib.MinFunc,
	"parseint":        stdlib.ParseIntFunc,
	"pow":             bounded(stdlib.PowFunc, smallNumber(1, 1000)),
	"range":           stdlib.RangeFunc,
	"regex":           bounded(stdlib.RegexFunc, smallMatch),
	"regexall":        bounded(stdlib.RegexAllFunc, smallMatch),
	"replace":         bounded(stdlib.ReplaceFunc, smallReplace),
	"reverse":         stdlib.ReverseListFunc,
	"seconds":         secondsFunc,
	"setintersection": stdlib.SetIntersectionFunc,
	"setproduct":      bounded(stdlib.SetProductFunc, smallProduct),
	"setsubtract":     stdlib.SetSubtractFunc,
	"setunion":        stdlib.SetUnionFunc,
	"signum":          stdlib.SignumFunc,
	"slice":           stdlib.SliceFunc,
	"sort":            stdlib.SortFunc,
	"split":           bounded(stdlib.SplitFunc, fewPieces),
	"strrev":          stdlib.ReverseFunc,
	"substr":          stdlib.SubstrFunc,
	"sum":             sumFunc,
	"title":           stdlib.TitleFunc,
	"tobool":          stdlib.MakeToFunc(cty.Bool),
	"tolist":          stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
	"tomap":           stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
	"tonumber":        bounded(stdlib.MakeToFunc(cty.Number), shortNumber),
	"toset":           stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
	"tostring":        stdlib.MakeToFunc(cty.String),
	"trim":            stdlib.TrimFunc,
	"trimprefix":      stdlib.TrimPrefixFunc,
	"trimspace":       stdlib.TrimSpaceFunc,
	"trimsuffix":      stdlib.TrimSuffixFunc,
	"try":             tryfunc.TryFunc,
	"upper":           stdlib.UpperFunc,
	"values":          stdlib.ValuesFunc,
	"yamldecode":      bounded(yaml.YAMLDecodeFunc, fewNodes),
	"zipmap":          stdlib.ZipmapFunc,
}

// lightFunctions are the pure functions, which refuse too large arguments. Only the functions can
// and try accept arguments of any size, because these are expressions, not values.
var lightFunctions = func() map[string]function.Function {
	all := map[string]function.Function{}
	for name, f := range pureFunctions {
		if name != "can" && name != "try" {
			f = light(f)
		}
		all[name] = f
	}
	return all
}()

// functions returns the functions of the language. All are pure, except file(), which depends on
// the plan's folder, and nonsensitive(), which records what it opens.
func (d *decoder) functions() map[string]function.Function {
	all := maps.Clone(lightFunctions)
	all["file"] = d.fileFunc()
	all["nonsensitive"] = d.nonsensitiveFunc()
	return all
}

func bounded(f function.Function, check func(args []cty.Value) error) function.Function {
	spec := &function.Spec{
		Description: f.Description(),
		Params:      f.Params(),
		VarParam:    f.VarParam(),
		Type:        f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return f.Call(args)
		},
	}
	spec.Type = func(args []cty.Value) (cty.Type, error) {
		if err := check(args); err != nil {
			return cty.DynamicPseudoType, err
		}
		return f.ReturnTypeForValues(args)
	}
	return function.New(spec)
}

var wideVerb = regexp.MustCompile(`%[^a-zA-Z%]*(\d{4}|\*)`)

func narrowFormat(args []cty.Value) error {
	if known(args[0], cty.String) && wideVerb.MatchString(args[0].AsString()) {
		return function.NewArgErrorf(0, "widths and precisions have at most three digits")
	}
	return nil
}

func smallNumber(arg, limit int) func([]cty.Value) error {
	return func(args []cty.Value) error {
		if known(args[arg], cty.Number) {
			if f, _ := args[arg].AsBigFloat().Float64(); f > float64(limit) || f < -float64(limit) {
				return function.NewArgErrorf(arg, "must be between -%d and %d", limit, limit)
			}
		}
		return nil
	}
}

func smallProduct(args []cty.Value) error {
	product := 1
	for i, a := range args {
		if a.IsNull() || !a.IsKnown() || !a.CanIterateElements() {
			continue
		}
		if product *= max(a.LengthInt(), 1); product > 10_000 {
			return function.NewArgErrorf(i, "the product has more than 10,000 elements")
		}
	}
	return nil
}

func shortNumber(args []cty.Value) error {
	if known(args[0], cty.String) {
		if diag := checkNumber(args[0].AsString(), hcl.Range{}); diag != nil {
			return function.NewArgErrorf(0, "numbers have at most %d digits and an exponent below 1000", maxDigits)
		}
	}
	return nil
}

// shallowText refuses a JSON or YAML text that is nested too deeply. It counts brackets, and the
// indentation of YAML's block style.
func shallowText(args []cty.Value) error {
	if !known(args[0], cty.String) {
		return nil
	}
	depth, indent := 0, 0
	line := true
	for _, c := range args[0].AsString() {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '\n':
			line, indent = true, 0
			continue
		case ' ', '-', '?', ':':
			if line {
				indent++
			}
		default:
			line = false
		}
		if depth > maxDepth || indent > 4*maxDepth {
			return function.NewArgErrorf(0, "the text is nested more than %d deep", maxDepth)
		}
	}
	return nil
}

func known(v cty.Value, ty cty.Type) bool {
	return v.Type() == ty && v.IsKnown() && !v.IsNull() && !v.IsMarked()
}

// Times in results are in seconds.
var secondsFunc = function.New(&function.Spec{
	Description: `The seconds of a duration: seconds("8s") is 8.`,
	Params:      []function.Parameter{{Name: "duration", Type: cty.String}},
	Type:        function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		dur, err := time.ParseDuration(args[0].AsString())
		if err != nil {
			return cty.UnknownVal(cty.Number), function.NewArgErrorf(0, `%q is not a valid duration. Write one such as "8s" or "250ms"`, args[0].AsString())
		}
		return cty.ParseNumberVal(strconv.FormatFloat(dur.Seconds(), 'f', -1, 64))
	},
})

var sumFunc = function.New(&function.Spec{
	Description: "The sum of a list of numbers. The sum of an empty list is 0.",
	Params:      []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type:        function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if !args[0].CanIterateElements() {
			return cty.UnknownVal(cty.Number), function.NewArgErrorf(0, "a list of numbers is required")
		}
		sum := cty.Zero
		for it := args[0].ElementIterator(); it.Next(); {
			_, e := it.Element()
			n, err := convert.Convert(e, cty.Number)
			if err != nil || n.IsNull() {
				return cty.UnknownVal(cty.Number), function.NewArgErrorf(0, "every element must be a number")
			}
			sum = sum.Add(n)
		}
		return sum, nil
	},
})

// A null element is an error, because a missing result must count as neither true nor false.
func everyTrue(all bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := false
			for it := args[0].ElementIterator(); it.Next(); {
				_, e := it.Element()
				switch {
				case !e.IsKnown():
					unknown = true
				case e.IsNull():
					return cty.UnknownVal(cty.Bool), function.NewArgErrorf(0, "an element is null")
				case e.True() != all:
					return cty.BoolVal(!all), nil
				}
			}
			if unknown {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(all), nil
		},
	})
}

func (d *decoder) fileFunc() function.Function {
	cache := map[string]string{}
	return function.New(&function.Spec{
		Description: "The content of a text file. The path is relative to the plan. The file is in the repository, or in a folder that --files allows.",
		Params:      []function.Parameter{{Name: "path", Type: cty.String}},
		Type:        function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			fail := func(format string, a ...any) (cty.Value, error) {
				return cty.UnknownVal(cty.String), function.NewArgErrorf(0, format, a...)
			}
			file, err := d.within(d.dir, args[0].AsString())
			if err != nil {
				return fail("%v", err)
			}
			text, ok := cache[file.path]
			if !ok {
				data, err := d.read(file)
				switch {
				case err != nil:
					return fail("%s", readError(args[0].AsString(), err))
				case len(data) > maxValueBytes/2:
					return fail("%q has more than %d bytes", args[0].AsString(), maxValueBytes/2)
				case !utf8.Valid(data):
					return fail("%q is not UTF-8 text", args[0].AsString())
				}
				text = string(data)
				cache[file.path] = text
				d.hash.add("file", args[0].AsString(), data)
			}
			return cty.StringVal(text), nil
		},
	})
}
