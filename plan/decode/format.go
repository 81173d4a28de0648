package decode

import (
	"bytes"
	"encoding/json"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format lays a plan out in the one canonical way: indentation, spaces and
// aligned equals signs of the native syntax, two spaces of indentation of the
// JSON one. It changes white space only, and formatting twice changes nothing.
// A source that does not parse is refused with diagnostics.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	_, diags := parse(src, filename)
	if diags.HasErrors() {
		return nil, diags
	}
	if isJSON(filename) {
		var out bytes.Buffer
		if err := json.Indent(&out, bytes.TrimSpace(src), "", "  "); err != nil {
			return src, diags // read by HCL, unknown to encoding/json: left alone
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
	// The formatter does not settle, or touched more than white space: a
	// plan's meaning goes before its looks.
	return src, diags
}

// sameTokens reports whether two sources differ in white space between tokens
// only.
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
