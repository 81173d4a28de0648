package decode

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// These are summaries of HCL's diagnostics. They mean little to people who do not know HCL's
// grammar.
const (
	hclMissingNewline      = "Missing newline after argument"
	hclMultiLineString     = "Invalid multi-line string"
	hclUnsupportedBlock    = "Unsupported block type"
	hclUnsupportedArgument = "Unsupported argument"
	hclMissingArgument     = "Missing required argument"

	hclInvalidCharacter  = "Invalid character"
	hclInvalidExpression = "Invalid expression"
)

// slips maps the commonest errors of HCL's parser to tokgate's own text: what is wrong, and how to
// write it. If the function detail returns "", HCL's text is kept.
var slips = map[string]struct {
	summary string
	detail  func(src []byte, at hcl.Range) string
}{
	hclMissingNewline:                          {"", missingNewline},
	hclMultiLineString:                         {"Missing closing quote", constantDetail("The closing quote is missing: a string ends on the line on which it begins. Text of several lines is written <<EOT … EOT.")},
	hclInvalidCharacter:                        {"", invalidCharacter},
	hclInvalidExpression:                       {"Missing value", missingValue},
	"Invalid single-argument block definition": {"One argument a line", oneLine},
	"Argument definition required":             {"One argument a line", oneLine},
	"Argument or block definition required":    {"Neither an argument nor a block", neither},
	"Invalid argument name":                    {"Name in quotes", constantDetail("Write names without quotes: input_tokens = 256, load { … }.")},
	"Unexpected comma after argument":          {"Comma after an argument", constantDetail("Remove the comma. An argument ends at the end of its line.")},
	"Unclosed configuration block":             {"Missing closing brace", unclosed},
	"Attribute redefined":                      {"Argument set twice", setTwice},
	"Invalid block definition":                 {"Brace on another line", looseBrace},
}

func constantDetail(detail string) func([]byte, hcl.Range) string {
	return func([]byte, hcl.Range) string { return detail }
}

func explainSyntax(src []byte, diags hcl.Diagnostics) hcl.Diagnostics {
	var out hcl.Diagnostics
	for i, diag := range diags {
		if diag.Subject == nil {
			out = append(out, diag)
			continue
		}
		if i > 0 && consequent(diags[i-1], diag) {
			continue
		}
		multiLine := diag.Summary == hclMultiLineString
		if slip, ok := slips[diag.Summary]; ok {
			if detail := slip.detail(src, *diag.Subject); detail != "" {
				diag.Detail = detail
				if slip.summary != "" {
					diag.Summary = slip.summary
				}
			}
		}
		if out = append(out, diag); multiLine {
			break // after an unclosed string, HCL also reports later lines
		}
	}
	return out
}

// consequent reports whether an error is only the result of an invalid character before it on the
// same line.
func consequent(before, diag *hcl.Diagnostic) bool {
	return before.Summary == hclInvalidCharacter && before.Subject != nil && before.Subject.Start.Line == diag.Subject.Start.Line &&
		slices.Contains([]string{hclInvalidExpression, hclInvalidCharacter, hclMissingNewline}, diag.Summary)
}

var (
	// unquoted matches an argument whose value has neither quotes nor brackets.
	unquoted = regexp.MustCompile(`^\s*([A-Za-z_][\w-]*)\s*=\s*([^"{}\[\]()#/=]*[^"{}\[\]()#/\s=])\s*(?:#.*|//.*)?$`)
	// another matches a second argument that follows the first on the same line.
	another = regexp.MustCompile(`=\s*(?:\[[^\]]*\]|"[^"]*"|\S+)\s+([A-Za-z_][\w-]*)\s*=[^=]`)
	// thousands matches a number with an abbreviated unit, such as 4k.
	thousands = regexp.MustCompile(`^(\d+)\s*[kK]$`)
)

func missingNewline(src []byte, at hcl.Range) string {
	line := sourceLine(src, at.Start.Byte)
	if m := another.FindStringSubmatch(line); m != nil {
		return "Write " + m[1] + " = … on a new line."
	}
	m := unquoted.FindStringSubmatch(line)
	switch {
	case m == nil:
		return "An argument ends at the end of its line. Write the next one on a new line."
	case thousands.MatchString(m[2]):
		return inThousands(m[2])
	default:
		return "Put text, or a number with its unit, in quotes: " + m[1] + ` = "` + m[2] + `".`
	}
}

func inThousands(s string) string {
	n := thousands.FindStringSubmatch(strings.TrimSpace(s))[1]
	return "Write " + n + "000, or " + n + " * 1024."
}

func invalidCharacter(src []byte, at hcl.Range) string {
	rest := src[min(max(at.Start.Byte, 0), len(src)):]
	switch {
	case bytes.HasPrefix(rest, []byte("'")):
		return `Put text in double quotes ("), not in single ones.`
	case bytes.HasPrefix(rest, []byte("“")), bytes.HasPrefix(rest, []byte("”")):
		return `Put text in straight quotes ("), not in typographic ones.`
	case bytes.HasPrefix(rest, []byte(";")):
		return "Remove the semicolon. An argument ends at the end of its line."
	}
	return ""
}

var noValue = regexp.MustCompile(`^\s*([A-Za-z_][\w-]*)\s*=\s*(?:#.*|//.*)?$`)

func missingValue(src []byte, at hcl.Range) string {
	if m := noValue.FindStringSubmatch(sourceLine(src, at.Start.Byte)); m != nil {
		return m[1] + " has no value. Write a value after the equals sign."
	}
	return ""
}

var (
	header  = regexp.MustCompile(`^\s*([A-Za-z_][^={]*?)\s*\{`)
	unequal = regexp.MustCompile(`[{,]\s*([A-Za-z_][\w-]*)\s*(?::|\s"|\s\d)`)
)

func oneLine(src []byte, at hcl.Range) string {
	line := sourceLine(src, at.Start.Byte)
	if m := unequal.FindStringSubmatch(line); m != nil {
		return "Write " + m[1] + " = …, with an equals sign."
	}
	if m := header.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("A block on one line can have only one argument. End the line after %s {. Write each argument or block on its own line, and the closing } on the last line.", m[1])
	}
	return ""
}

var (
	colon    = regexp.MustCompile(`^(?:.*\{)?\s*"?([A-Za-z_][\w-]*)"?\s*:\s*(.*?)\s*,?\s*\}?\s*$`)
	compares = regexp.MustCompile(`^(?:.*\{)?\s*([A-Za-z_][\w-]*)\s*(==|<=|>=|<|>)`)
	noEquals = regexp.MustCompile(`^(?:.*\{)?\s*([A-Za-z_][\w-]*)\s+("[^"]*"|[\d.]+|true|false)\s*\}?\s*$`)
)

func neither(src []byte, at hcl.Range) string {
	line := sourceLine(src, at.Start.Byte)
	trimmed := strings.TrimSpace(line)
	if m := colon.FindStringSubmatch(line); m != nil {
		if m[2] == "" || strings.HasPrefix(m[2], "{") {
			return "Write a block with braces and without a colon: " + m[1] + " { … }."
		}
		return "Write an equals sign, not a colon: " + m[1] + " = " + m[2] + "."
	}
	if m := compares.FindStringSubmatch(line); m != nil {
		if m[2] == "==" {
			return "Write one equals sign: " + m[1] + " = …."
		}
		return fmt.Sprintf("Write the comparison inside the quotes: %s = %q.", m[1], m[2]+" …")
	}
	if m := noEquals.FindStringSubmatch(line); m != nil {
		return "Write an equals sign: " + m[1] + " = " + m[2] + "."
	}
	switch {
	case looseBrace(src, at) != "" && at.Start.Line > 1:
		return looseBrace(src, at)
	case strings.HasPrefix(trimmed, "}"):
		return "This closing brace has no opening brace. Remove it, or look above for a brace that closes a block too early."
	case strings.HasPrefix(trimmed, "{") && at.Start.Line == 1:
		return "This looks like JSON. The name of a plan in JSON must end in .hcl.json."
	}
	return ""
}

// unclosed guesses from the indentation which block lacks its closing brace. It looks for a line
// that is not indented further than the head of its block, and does not close the block. If several
// blocks have such a line, it returns the innermost.
func unclosed(src []byte, _ hcl.Range) string {
	type open struct {
		line, indent int
		head         string
	}
	var blocks []open
	last := 0 // the last line with code
	guess := func(b open) string {
		closing := map[byte]string{'{': "}", '[': "]"}[b.head[len(b.head)-1]]
		return fmt.Sprintf("%s (line %d) is not closed. The indentation suggests a missing %s after line %d.", strings.TrimSpace(b.head[:len(b.head)-1]), b.line, closing, last)
	}
	for i, line := range strings.Split(strings.ToValidUTF8(string(src), "\uFFFD"), "\n") {
		text := strings.TrimSpace(line)
		if text == "" || text[0] == '#' {
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		closing := text[0] == '}' || text[0] == ']'
		if n := len(blocks); n > 0 && indent <= blocks[n-1].indent {
			if !closing || indent < blocks[n-1].indent {
				return guess(blocks[n-1])
			}
			blocks = blocks[:n-1]
		}
		if strings.HasSuffix(text, "{") || strings.HasSuffix(text, "[") {
			blocks = append(blocks, open{i + 1, indent, text})
		}
		last = i + 1
	}
	if n := len(blocks); n > 0 {
		return guess(blocks[n-1])
	}
	return "This block is not closed. Add the missing } before the end of the file."
}

func setTwice(src []byte, at hcl.Range) string {
	if at.Start.Byte < 0 || at.End.Byte > len(src) || at.Start.Byte > at.End.Byte {
		return ""
	}
	name := string(src[at.Start.Byte:at.End.Byte])
	first := regexp.MustCompile(`(?m)^\s*`+regexp.QuoteMeta(name)+`\s*=`).FindAllIndex(src[:at.Start.Byte], -1)
	if len(first) == 0 {
		return name + " is already set in this block. Remove one of the two."
	}
	line := 1 + bytes.Count(src[:first[len(first)-1][1]], []byte("\n"))
	return fmt.Sprintf("%s is already set in line %d. Remove one of the two.", name, line)
}

// looseBrace is the hint for a block whose opening brace is not on the line of its name, but on the
// line below.
func looseBrace(src []byte, at hcl.Range) string {
	if at.Start.Byte < 0 || at.Start.Byte > len(src) {
		return ""
	}
	_, below, _ := bytes.Cut(src[at.Start.Byte:], []byte("\n"))
	if bytes.HasPrefix(bytes.TrimSpace(below), []byte("{")) || bytes.HasPrefix(src[at.Start.Byte:], []byte("{")) {
		return "Write the opening brace on the same line as the name of the block, as in load {."
	}
	return ""
}
