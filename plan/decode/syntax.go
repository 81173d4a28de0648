package decode

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// HCL's own summaries that say little to whoever does not know its grammar.
const (
	hclMissingNewline   = "Missing newline after argument"
	hclMultiLineString  = "Invalid multi-line string"
	hclUnterminated     = "Unterminated template string"
	hclUnsupportedBlock = "Unsupported block type"

	hclInvalidCharacter  = "Invalid character"
	hclInvalidExpression = "Invalid expression"
)

var (
	// unquoted is an argument whose value has neither quotes nor brackets.
	unquoted = regexp.MustCompile(`^\s*([A-Za-z_][\w-]*)\s*=\s*([^"{}\[\]()#/]*[^"{}\[\]()#/\s])\s*(?:#.*|//.*)?$`)
	// thousands is a number as people abbreviate it.
	thousands = regexp.MustCompile(`^(\d+)\s*[kK]$`)
)

// explainSyntax says of what the parser did not understand how it is written,
// where that can be told, and drops what only follows from a string that does
// not end.
func explainSyntax(src []byte, diags hcl.Diagnostics) hcl.Diagnostics {
	for i, diag := range diags {
		if diag.Subject == nil {
			continue
		}
		switch diag.Summary {
		case hclInvalidCharacter:
			// That there is then no value follows.
			if n := i + 1; n < len(diags) && diags[n].Summary == hclInvalidExpression && diags[n].Subject != nil && diags[n].Subject.Start.Line == diag.Subject.Start.Line {
				return explainSyntax(src, slices.Delete(slices.Clone(diags), n, n+1))
			}
		case hclMultiLineString:
			diag.Detail = "The closing quote is missing: a string ends on the line on which it begins. Text of several lines is written <<EOT … EOT."
			// Every further line is one more error until the next quote.
			return slices.Concat(diags[:i:i], hcl.Diagnostics{diag})
		case hclMissingNewline:
			line := sourceLine(src, diag.Subject.Start.Byte)
			m := unquoted.FindStringSubmatch(line)
			switch {
			case m == nil:
			case thousands.MatchString(m[2]):
				diag.Detail += " " + inThousands(m[2])
			default:
				diag.Detail += " Text, and a number with its unit, stand in quotes: " + m[1] + ` = "` + m[2] + `".`
			}
		}
	}
	return diags
}

// inThousands says how "4K" is written.
func inThousands(s string) string {
	n := thousands.FindStringSubmatch(strings.TrimSpace(s))[1]
	return "Write " + n + "000, or " + n + " * 1024."
}
