package answers

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tokgate/tokgate/metric"
)

// Matches lists the ways to compare an answer with the right one.
var Matches = []string{"number", "exact", "contains", "choice", "json_schema", "tool_call"}

// Rule decides whether an answer is right.
type Rule struct {
	Match   string         // one of Matches; "" if Pattern decides
	Pattern *regexp.Regexp // matches text that contains the answer; the last match counts
	Group   int            // the group of Pattern that is used; 0 means the whole match
}

// NeedsAnswer reports whether the rule needs the right answer in the data set.
func (r Rule) NeedsAnswer() bool { return r.Match != "json_schema" && r.Match != "tool_call" }

// Right reports whether an answer is right. The argument want is the right answer as JSON. The
// argument form holds the results of earlier checks, such as whether the answer is valid JSON.
// Reasoning in the text, up to the last </think>, is ignored.
func (r Rule) Right(s Said, form metric.Answer, want json.RawMessage) metric.Found {
	text := s.Text
	if i := strings.LastIndex(text, "</think>"); i >= 0 {
		text = text[i+len("</think>"):]
	}
	text = strings.TrimSpace(text)
	right := rightText(want)
	switch {
	case s.Cut:
		return metric.No
	case r.Pattern != nil:
		return metric.FoundIf(r.found(text) == right)
	}
	switch r.Match {
	case "number":
		got, ok := lastNumber(text)
		wanted, known := lastNumber(right)
		return metric.FoundIf(ok && known && got.Cmp(wanted) == 0)
	case "exact":
		return metric.FoundIf(text == right)
	case "contains":
		return metric.FoundIf(right != "" && strings.Contains(text, right))
	case "choice":
		return metric.FoundIf(right != "" && choice(text) == strings.ToUpper(right))
	case "json_schema":
		got, ok := value(text)
		return metric.FoundIf(ok && form.JSON != metric.No && equalValue(got, want))
	case "tool_call":
		return metric.FoundIf(form.Call == metric.Yes && calls(s.Calls, want))
	}
	return metric.No
}

func (r Rule) found(text string) string {
	all := r.Pattern.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	return strings.TrimSpace(all[len(all)-1][r.Group])
}

// rightText returns a right answer as text. A JSON string loses its quotes, and other values stay
// as they are.
func rightText(want json.RawMessage) string {
	var s string
	if json.Unmarshal(want, &s) == nil {
		return strings.TrimSpace(s)
	}
	return strings.TrimSpace(string(want))
}

var numbers = regexp.MustCompile(`-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?`)

// lastNumber returns the last number in a text. Commas may separate thousands.
func lastNumber(text string) (*big.Rat, bool) {
	all := numbers.FindAllString(text, -1)
	if len(all) == 0 {
		return nil, false
	}
	return new(big.Rat).SetString(strings.ReplaceAll(all[len(all)-1], ",", ""))
}

var (
	answered = regexp.MustCompile(`(?i:answer|choice|option)(?i:\s+is)?\W{0,5}([A-J])\b`)
	opened   = regexp.MustCompile(`^\W{0,3}([A-J])(?:\W|$)`)
	letters  = regexp.MustCompile(`\b([A-J])\b`)
)

// choice returns the letter that an answer to a multiple-choice question chooses. It looks for a
// letter after the last word "answer", "choice" or "option", and then at the beginning of the
// answer. If neither has one, it takes the last single letter from A to J.
func choice(text string) string {
	for _, pattern := range []*regexp.Regexp{answered, opened, letters} {
		if all := pattern.FindAllStringSubmatch(text, -1); len(all) > 0 {
			return all[len(all)-1][1]
		}
	}
	return ""
}

// equalValue reports whether the value got equals the JSON value want. An empty want equals any
// value.
func equalValue(got any, want json.RawMessage) bool {
	if len(want) == 0 {
		return true
	}
	v, ok := value(string(want))
	// The data set may give the JSON value as a string that contains JSON.
	if text, quoted := v.(string); quoted {
		if inner, isJSON := value(text); isJSON {
			v = inner
		}
	}
	return ok && jsonschema.Equal(got, v)
}

// calls reports whether the first tool call equals want, which has the form {"name": …,
// "arguments": {…}}. An empty want equals any tool call.
func calls(made []Call, want json.RawMessage) bool {
	if len(want) == 0 {
		return true
	}
	var wanted struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(want, &wanted) != nil || len(made) == 0 || made[0].Name != wanted.Name {
		return false
	}
	got, ok := value(made[0].Arguments)
	return ok && equalValue(got, wanted.Arguments)
}
