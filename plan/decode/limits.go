package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Limits of a plan. People write far smaller plans. The limits keep a hostile file from using up
// the stack or the memory.
const (
	maxFileBytes  = 4 << 20
	maxFiles      = 64
	maxDepth      = 100     // nested brackets and templates: the parser and the evaluator are recursive
	maxOperators  = 1000    // operators in an expression, at one depth of nesting
	maxDigits     = 400     // digits of a number
	maxExponent   = 4       // largest number of digits in a number's exponent
	maxValueBytes = 4 << 20 // largest size of an evaluated value, in bytes
	maxInstances  = 10_000  // instances of all for_each together
	maxLevels     = 100_000
)

// The parser and the evaluator are recursive, so they would use up their stack. checkComplexity
// itself reads tokens without recursion.
func checkComplexity(src []byte, filename string, start hcl.Pos) hcl.Diagnostics {
	if simple(src) {
		return nil
	}
	tokens, _ := hclsyntax.LexConfig(src, filename, start)
	return checkTokens(tokens)
}

// simple reports whether a source is within the limits because it has few brackets, quotes and operators
// altogether, and no large number. Most blocks are simple, and so need not be read twice.
func simple(src []byte) bool {
	opened, operators, digits := 0, 0, 0
	for _, c := range src {
		switch c {
		case '{', '[', '(', '"', '<':
			opened++
		case '+', '-', '*', '/', '%', '!', '&', '|', '?', '=', '>', '.', ':':
			operators++
		}
		switch {
		case c >= '0' && c <= '9', c == '.' && digits > 0:
			digits++
		case c|0x20 == 'e' && digits > 0:
			return false // perhaps an exponent
		default:
			digits = 0
		}
		if opened > maxDepth || opened+operators > maxOperators || digits > maxDigits {
			return false
		}
	}
	return true
}

func checkTokens(tokens hclsyntax.Tokens) hcl.Diagnostics {
	type frame struct {
		open      hclsyntax.TokenType
		operators int
	}
	stack := []frame{{open: hclsyntax.TokenOBrace}}
	for _, t := range tokens {
		top := &stack[len(stack)-1]
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			// At each directive of a template, such as %{if}, the parser calls itself. So a
			// directive counts as an operator.
			top.operators++
			if len(stack) > maxDepth {
				return hcl.Diagnostics{complexity(t.Range, fmt.Sprintf("Brackets and templates may be nested at most %d levels deep.", maxDepth))}
			}
			stack = append(stack, frame{open: t.Type})
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
		case hclsyntax.TokenComma:
			top.operators = 0
		case hclsyntax.TokenNewline:
			if top.open == hclsyntax.TokenOBrace {
				top.operators = 0
			}
		case hclsyntax.TokenNumberLit:
			if d := checkNumber(string(t.Bytes), t.Range); d != nil {
				return hcl.Diagnostics{d}
			}
		case hclsyntax.TokenPlus, hclsyntax.TokenMinus, hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPercent,
			hclsyntax.TokenBang, hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenQuestion, hclsyntax.TokenEqualOp,
			hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan,
			hclsyntax.TokenGreaterThanEq, hclsyntax.TokenDot, hclsyntax.TokenDoubleColon:
			top.operators++
		}
		if top := &stack[len(stack)-1]; top.operators > maxOperators {
			return hcl.Diagnostics{complexity(t.Range, fmt.Sprintf("An expression may have at most %d operators and parts.", maxOperators))}
		}
	}
	return nil
}

// checkNumber refuses a number such as 1e999999999, whose digits would use up the memory.
func checkNumber(s string, rng hcl.Range) *hcl.Diagnostic {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if len(mantissa) <= maxDigits && len(strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")) <= maxExponent-1 {
		return nil
	}
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: sumNumberRange, Detail: "Numbers have at most 400 digits and an exponent below 1000.", Subject: rng.Ptr()}
}

func complexity(rng hcl.Range, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: sumTooDeep, Detail: detail, Subject: &rng}
}

// Each string is checked as a template.
func checkJSON(src []byte, filename string) hcl.Diagnostics {
	if at := jsonDepthExceeded(src); at >= 0 {
		return hcl.Diagnostics{complexity(jsonRange(src, filename, at), fmt.Sprintf("Objects and arrays may be nested at most %d levels deep.", maxDepth))}
	}
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	for {
		tok, err := dec.Token()
		if err != nil {
			// This is the end of the text, or a syntax error. The HCL parser reports a syntax error
			// in better words and does not evaluate the text.
			return nil
		}
		var diags hcl.Diagnostics
		switch t := tok.(type) {
		case json.Number:
			if d := checkNumber(t.String(), hcl.Range{}); d != nil {
				diags = hcl.Diagnostics{d}
			}
		case string:
			tokens, _ := hclsyntax.LexTemplate([]byte(t), filename, hcl.InitialPos)
			diags = checkTokens(tokens)
			if !diags.HasErrors() && !strings.ContainsAny(t, "\n") {
				// In JSON, HCL reads references and types as expressions, and all other strings as
				// templates.
				tokens, _ = hclsyntax.LexExpression([]byte(t), filename, hcl.InitialPos)
				diags = checkTokens(tokens)
			}
		}
		if diags.HasErrors() {
			diags[0].Subject = jsonRange(src, filename, int(dec.InputOffset())-1).Ptr()
			return diags
		}
	}
}

// jsonDepthExceeded returns the offset of the first bracket that is nested too deeply; −1 if there
// is none.
func jsonDepthExceeded(src []byte) int {
	depth, quoted, escaped := 0, false, false
	for i, c := range src {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

func jsonRange(src []byte, filename string, offset int) hcl.Range {
	offset = max(min(offset, len(src)-1), 0)
	start := hcl.Pos{
		Line:   1 + bytes.Count(src[:offset], []byte("\n")),
		Column: offset - bytes.LastIndexByte(src[:offset], '\n'),
		Byte:   offset,
	}
	end := start
	end.Column++
	end.Byte++
	return hcl.Range{Filename: filename, Start: start, End: end}
}

func isJSON(filename string) bool { return strings.HasSuffix(filename, ".json") }

// Bounds on values in a plan; times in nanoseconds.
const (
	leastRate  = 0.001 // requests per second, at which a level of a few requests takes less than a day
	maxRate    = 100_000
	maxCount   = 100_000_000 // largest number of requests
	maxTokens  = 100_000_000 // largest number of tokens of a prompt or answer
	maxInteger = 1 << 53     // the largest integer that every JSON reader keeps exact
	maxLevel   = 1_000_000   // largest number of requests in flight, or in one burst
	maxGPUs    = 64          // no machine has more GPUs
	maxPrice   = 1e9
	maxPort    = 65535

	millisecond = float64(time.Millisecond)
	second      = float64(time.Second)
	hour        = float64(time.Hour)
	day         = 24 * hour
	// maxDuration is longer than any run, and far from an overflow. The constant minInterval is the
	// shortest interval between readings, long enough that reading adds no load.
	maxDuration = 30 * day
	minInterval = 100 * millisecond
)
