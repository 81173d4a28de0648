package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/tokgate/tokgate/engine"
)

const unknownText = "(unknown)"

const (
	sumFlagName  = "Invalid flag name"
	sumFlagValue = "Invalid flag value"
)

type problem struct{ summary, detail string }

func problemf(summary, format string, args ...any) *problem {
	return &problem{summary, fmt.Sprintf(format, args...)}
}

var flagName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// CommandLine turns flags into the words of an engine's command line, followed by
// args unchanged:
//
//	true           --x
//	false          --no-x where the engine has it, else an error
//	null           nothing
//	number, text   --x v; --x=v for text that starts with a dash, which argparse would take for a flag
//	list           --x v w …; an object in it is JSON
//	object         --x {"…":…}
//
// Names of one letter get one dash. Problems are reported at the flag.
func CommandLine(name string, flags []Flag, args []string) ([]string, hcl.Diagnostics) {
	e := engine.Of(name)
	var words []string
	var diags hcl.Diagnostics
	for _, f := range flags {
		w, p := flagWords(e, f)
		if p != nil {
			rng := f.Range
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: p.summary, Detail: p.detail, Subject: &rng})
			continue
		}
		words = append(words, w...)
	}
	return append(words, args...), diags
}

func flagWords(e engine.Engine, f Flag) ([]string, *problem) {
	switch {
	case strings.HasPrefix(f.Name, "-"):
		return nil, problemf(sumFlagName, "Write the flag without dashes: %s = …", strings.TrimLeft(f.Name, "-"))
	case !flagName.MatchString(f.Name) || len(f.Name) > 128:
		return nil, problemf(sumFlagName, "%q is not a valid flag name: use letters, digits, - and _.", f.Name)
	case f.Value == cty.NilVal || f.Value.IsNull():
		return nil, nil
	}
	flag, v := strings.Repeat("-", min(len(f.Name), 2))+f.Name, f.Value
	if !v.IsWhollyKnown() {
		return []string{flag, unknownText}, nil
	}
	switch ty := v.Type(); {
	case ty == cty.Bool && v.True():
		return []string{flag}, nil
	case ty == cty.Bool:
		return falseFlag(e, f.Name)
	case ty.IsPrimitiveType():
		word, p := primitiveWord(f.Name, v)
		if ty == cty.String && strings.HasPrefix(word, "-") && e.Flags.Equals && len(f.Name) > 1 {
			return []string{flag + "=" + word}, p
		}
		return []string{flag, word}, p
	case ty.IsObjectType() || ty.IsMapType():
		word, p := jsonWord(f.Name, v)
		return []string{flag, word}, p
	case ty.IsTupleType() || ty.IsListType() || ty.IsSetType():
		return listWords(flag, f.Name, v)
	}
	return nil, problemf(sumFlagValue, "%s cannot be %s.", f.Name, v.Type().FriendlyName())
}

func primitiveWord(name string, v cty.Value) (string, *problem) {
	word, _ := convert.Convert(v, cty.String)
	if strings.ContainsRune(word.AsString(), 0) {
		return "", problemf(sumFlagValue, "%s: a command line cannot contain a NUL byte.", name)
	}
	return word.AsString(), nil
}

func listWords(flag, name string, v cty.Value) ([]string, *problem) {
	if v.LengthInt() == 0 {
		return nil, problemf(sumFlagValue, "%s: the list is empty. Add a value, or write null to leave the flag out.", name)
	}
	words := []string{flag}
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		word, p := listWord(name, e)
		if p != nil {
			return nil, p
		}
		words = append(words, word)
	}
	return words, nil
}

func falseFlag(e engine.Engine, name string) ([]string, *problem) {
	if bare, ok := strings.CutPrefix(name, "no-"); ok {
		return nil, problemf(sumFlagValue, "%s = false is a double negation. Write %s = true.", name, bare)
	}
	if slices.Contains(e.Flags.Negated, "*") || slices.Contains(e.Flags.Negated, name) {
		return []string{"--no-" + name}, nil
	}
	who := e.Name
	if who == engine.Plain {
		who = "A server of unknown engine"
	}
	return nil, problemf(sumFlagValue, "%s has no flag --no-%s. Write null to leave the flag out. The engine may have another flag that turns it off, such as disable-%s.", who, name, strings.TrimPrefix(name, "enable-"))
}

func listWord(name string, v cty.Value) (string, *problem) {
	if v.IsNull() {
		return "", problemf(sumFlagValue, "%s: a list cannot contain null.", name)
	}
	if v.Type().IsPrimitiveType() {
		word, err := convert.Convert(v, cty.String)
		if err != nil || strings.ContainsRune(word.AsString(), 0) {
			return "", problemf(sumFlagValue, "%s: an element of a list must be text, a number, true or false, but this one is %s.", name, v.Type().FriendlyName())
		}
		return word.AsString(), nil
	}
	return jsonWord(name, v)
}

func jsonWord(name string, v cty.Value) (string, *problem) {
	data, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return "", problemf(sumFlagValue, "%s cannot be written as JSON: %v.", name, err)
	}
	return string(data), nil
}

// PortPlaceholder stands for a port in the command of a process. tokgate replaces it by the port on
// which the server must listen.
const PortPlaceholder = "{port}"
