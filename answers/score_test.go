package answers

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

func TestRight(t *testing.T) {
	code := regexp.MustCompile(`code: (\w+)`)
	call := Call{Name: "look", Arguments: `{"city": "Ulm", "days": 2}`}
	for _, tt := range []struct {
		name string
		rule Rule
		said Said
		want string
		form metric.Answer
		hit  metric.Found
	}{
		{"the last number", Rule{Match: "number"}, Said{Text: "3 times 4 is 12."}, `"12"`, metric.Answer{}, metric.Yes},
		{"of a GSM8K answer", Rule{Match: "number"}, Said{Text: "so 1,234.50"}, `"x = 4\n#### 1234.5"`, metric.Answer{}, metric.Yes},
		{"as a number", Rule{Match: "number"}, Said{Text: "-7"}, `-7`, metric.Answer{}, metric.Yes},
		{"another number", Rule{Match: "number"}, Said{Text: "12 or 13"}, `12`, metric.Answer{}, metric.No},
		{"no number", Rule{Match: "number"}, Said{Text: "none"}, `12`, metric.Answer{}, metric.No},
		{"exact", Rule{Match: "exact"}, Said{Text: " Paris\n"}, `"Paris"`, metric.Answer{}, metric.Yes},
		{"not exact", Rule{Match: "exact"}, Said{Text: "It is Paris"}, `"Paris"`, metric.Answer{}, metric.No},
		{"contains", Rule{Match: "contains"}, Said{Text: "It is Paris"}, `"Paris"`, metric.Answer{}, metric.Yes},
		{"everything contains nothing", Rule{Match: "contains"}, Said{Text: "It is Paris"}, `""`, metric.Answer{}, metric.No},
		{"choice", Rule{Match: "choice"}, Said{Text: "A cat is no dog. The answer is (B)."}, `"B"`, metric.Answer{}, metric.Yes},
		{"choice first", Rule{Match: "choice"}, Said{Text: "C) since A is wrong"}, `"c"`, metric.Answer{}, metric.Yes},
		{"choice alone", Rule{Match: "choice"}, Said{Text: "**D**"}, `"D"`, metric.Answer{}, metric.Yes},
		{"regex", Rule{Pattern: code, Group: 1}, Said{Text: "code: x, no, code: y"}, `"y"`, metric.Answer{}, metric.Yes},
		{"regex without a match", Rule{Pattern: code, Group: 1}, Said{Text: "y"}, `"y"`, metric.Answer{}, metric.No},
		{"JSON alike", Rule{Match: "json_schema"}, Said{Text: `{"b":1.0,"a":[2]}`}, `{"a": [2], "b": 1}`, metric.Answer{}, metric.Yes},
		{"JSON as a string", Rule{Match: "json_schema"}, Said{Text: `{"b":1}`}, `"{\"b\": 1}"`, metric.Answer{}, metric.Yes},
		{"JSON against its schema", Rule{Match: "json_schema"}, Said{Text: `{"b":1}`}, ``, metric.Answer{JSON: metric.No}, metric.No},
		{"the call", Rule{Match: "tool_call"}, Said{Calls: []Call{call}}, `{"name": "look", "arguments": {"days": 2, "city": "Ulm"}}`, metric.Answer{Call: metric.Yes}, metric.Yes},
		{"another argument", Rule{Match: "tool_call"}, Said{Calls: []Call{call}}, `{"name": "look", "arguments": {"city": "Rom"}}`, metric.Answer{Call: metric.Yes}, metric.No},
		{"a call that is not valid", Rule{Match: "tool_call"}, Said{Calls: []Call{call}}, ``, metric.Answer{Call: metric.No}, metric.No},
		{"reasoning in the text", Rule{Match: "exact"}, Said{Text: "<think>hm</think>\nParis"}, `"Paris"`, metric.Answer{}, metric.Yes},
		{"cut", Rule{Match: "contains"}, Said{Text: "Paris", Cut: true}, `"Paris"`, metric.Answer{}, metric.No},
	} {
		must.Same(t, tt.name, tt.hit, tt.rule.Right(tt.said, tt.form, json.RawMessage(tt.want)))
	}
}

// Solve gives the right answer if it reads the whole prompt of a task, with or without filler. If
// it reads only half of the prompt, it misses facts in the second half.
func TestSolve(t *testing.T) {
	words := strings.Repeat(" water", 2000)
	for _, task := range Tasks {
		right, half, seen := 0, 0, map[string]bool{}
		const n = 200
		for i := range n {
			item := task.Item(1, i)
			cut := int(item.Depth * 2000)
			prompt := item.Prompt(words[:6*cut], words[6*cut:])
			seen[prompt] = true
			rule := Rule{Match: task.Match}
			if text, ok := Solve(prompt, 1); ok && rule.Right(Said{Text: text}, metric.Answer{}, item.Want()) == metric.Yes {
				right++
			}
			if text, ok := Solve(prompt, 0.5); ok && rule.Right(Said{Text: text}, metric.Answer{}, item.Want()) == metric.Yes {
				half++
			}
			again := task.Item(1, i)
			must.Need(t, again == item, "%s: item %d is not the same again", task.Name, i)
		}
		must.Hold(t, right == n && len(seen) >= n*9/10, "%s: %d of %d right, %d different", task.Name, right, n, len(seen))
		// The fact that answers the question lies at a depth of 10, 20, … or 90 % of the prompt.
		// Solve reads only the first half of the prompt, so it finds about half of these facts.
		asked := task.Item(1, 0).Fact != ""
		must.Hold(t, (!asked || half >= n/3 && half <= n*2/3) && (asked || half == n), "%s: %d of %d right by the first half", task.Name, half, n)
	}
	_, ok := Solve("Hello", 1)
	must.Hold(t, !ok, "another prompt was solved")
}

func FuzzSolve(f *testing.F) {
	for _, task := range Tasks {
		f.Add(task.Item(1, 1).Prompt(" a", " b"), 0.5)
	}
	f.Fuzz(func(t *testing.T, prompt string, share float64) {
		if share >= 0 && share <= 1 {
			Solve(prompt, share)
		}
		Rule{Match: "choice"}.Right(Said{Text: prompt}, metric.Answer{}, json.RawMessage(prompt))
		Rule{Match: "number"}.Right(Said{Text: prompt}, metric.Answer{}, json.RawMessage(prompt))
	})
}
