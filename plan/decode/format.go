package decode

import (
	"bytes"
	"encoding/json"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format writes a plan in its canonical layout. The native syntax has HCL's indentation, spaces and
// aligned equals signs. JSON has an indentation of two spaces. Format changes only white space, and
// formatting twice changes nothing more. If the source does not parse, Format returns diagnostics.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	_, diags := parse(src, filename)
	if diags.HasErrors() {
		return nil, diags
	}
	if isJSON(filename) {
		var out bytes.Buffer
		if err := json.Indent(&out, bytes.TrimSpace(src), "", "  "); err != nil {
			return src, diags // only HCL can read this source, not encoding/json: keep it unchanged
		}
		out.WriteByte('\n')
		return out.Bytes(), diags
	}
	out := src
	for range 4 {
		next := hclwrite.Format(out)
		if bytes.Equal(next, out) {
			if sameTokens(src, out, filename) {
				return out, diags
			}
			break
		}
		out = next
	}
	// Keep the plan as it is: the formatter changed more than white space, or would change its own
	// output again.
	return src, diags
}

func sameTokens(a, b []byte, filename string) bool {
	x, _ := hclsyntax.LexConfig(a, filename, hcl.InitialPos)
	y, _ := hclsyntax.LexConfig(b, filename, hcl.InitialPos)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i].Type != y[i].Type || !bytes.Equal(x[i].Bytes, y[i].Bytes) {
			return false
		}
	}
	return true
}
