package decode

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
)

var percentileStep = regexp.MustCompile(`^p\d+$`)

func (d *decoder) checkResult(t hcl.Traversal, typ cty.Type) bool {
	path := "result"
	for i := 1; i < len(t); i++ {
		rng := t[i].SourceRange()
		name := plan.StepName(t, i)
		if index, ok := t[i].(hcl.TraverseIndex); ok && percentileStep.MatchString(plan.StepName(t, i-1)) &&
			index.Key.Type() == cty.Number {
			d.errorf(hcl.RangeBetween(t[i-1].SourceRange(), rng), sumPercentileIndex, `HCL reads the .%[2]s of %[1]s.%[2]s as an index of a list. Put a percentile with a decimal point in brackets and quotes: ["%[1]s.%[2]s"].`, plan.StepName(t, i-1), name)
			return false
		}
		if d.enoughErrors() {
			return false
		}
		if typ.IsListType() {
			if _, ok := t[i].(hcl.TraverseIndex); !ok {
				d.errorf(rng, sumResultReference, "%s is a list: write %s[0].", path, path)
				return false
			}
			typ, path = typ.ElementType(), path+"["+name+"]"
			continue
		}
		if !typ.IsObjectType() {
			d.errorf(rng, sumResultReference, "%s is a number and has no attributes.", path)
			return false
		}
		if name == "" || !typ.HasAttribute(name) {
			have := slices.Sorted(maps.Keys(typ.AttributeTypes()))
			hint := suggest.DidYouMean(name, have)
			if hint == "" {
				hint = " It has " + choices(have) + "."
			}
			d.errorf(rng, sumResultReference, "%s has no %q.%s", path, name, hint)
			return false
		}
		typ = typ.AttributeType(name)
		if strings.ContainsAny(name, " .") || !isIdentifierStart(name) {
			path += `["` + name + `"]`
		} else {
			path += "." + name
		}
	}
	return true
}

func isIdentifierStart(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9')
}
