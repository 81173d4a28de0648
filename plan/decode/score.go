package decode

import (
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
	"github.com/tokgate/tokgate/traffic"
)

const taskItems = 2000

func readTask(p *body, name string, out *plan.Prompt) bool {
	short, ok := strings.CutPrefix(name, answers.TaskPrefix)
	if !ok {
		return false
	}
	task, known := answers.FindTask(short)
	if !known {
		var names []string
		for _, t := range answers.Tasks {
			names = append(names, answers.TaskPrefix+t.Name)
		}
		p.d.errorf(p.rangeOf("dataset"), sumDataset, "There is no built-in data set %q.%s The built-in ones are %s.", name, suggest.DidYouMean(name, names), strings.Join(names, ", "))
		return true
	}
	set := &traffic.Dataset{Path: name, Hash: name}
	for n := range taskItems {
		item := task.Item(plan.TaskSeed, n)
		set.Rows = append(set.Rows, traffic.Row{Line: n + 1, Prompt: item.Prompt("", ""), Answer: item.Want()})
	}
	out.Name, out.Task, out.Dataset = name, short, set
	return true
}

func readScore(b *body, w *plan.Workload) *answers.Rule {
	s := b.child("score")
	if s == nil {
		if task, ok := answers.FindTask(w.Prompt.Task); ok {
			return checkScore(b, w, &answers.Rule{Match: task.Match})
		}
		return nil
	}
	x, ok := s.item("match")
	if !ok || x.unknown() {
		return nil
	}
	if x.value.Type() == cty.String {
		match, _ := x.wordOf(answers.Matches)
		return checkScore(s, w, &answers.Rule{Match: match})
	}
	o := s.open("match", x)
	if o == nil || !o.given("regex") {
		return nil
	}
	pattern, err := regexp.Compile(o.text("regex"))
	if err != nil {
		x.errorf(sumScore, "The regular expression is not valid: %v.", err)
		return nil
	}
	rule := &answers.Rule{Pattern: pattern}
	if rule.Group, _ = o.integer("group"); rule.Group > pattern.NumSubexp() {
		x.errorf(sumScore, "group is %d, but the pattern has %d groups.", rule.Group, pattern.NumSubexp())
		return nil
	}
	return checkScore(s, w, rule)
}

func checkScore(b *body, w *plan.Workload, rule *answers.Rule) *answers.Rule {
	switch {
	case w.Prompt.Task != "" && w.Input > 0 && !w.API.Chats():
		b.d.errorf(b.rng, sumScore, `A built-in task with input_tokens needs an api that takes messages, such as "chat". Remove api or input_tokens.`)
	case w.Prompt.Task == "" && w.Prompt.Dataset != nil && w.Input > 0 && rule.NeedsAnswer():
		b.d.errorf(b.rng, sumScore, "With input_tokens tokgate cuts rows, and a cut row may lose what its answer depends on. Remove input_tokens.")
	case w.Prompt.Replies != "" && rule.NeedsAnswer():
		b.d.errorf(b.rng, sumScore, "A row has one right answer, but its conversation (replies) gets an answer in each turn. Remove replies, or the score block.")
	case !w.Output.Natural && w.Output.Mean > 0:
		b.d.errorf(b.rng, sumScore, "A score needs answers that end by themselves, not answers of a fixed length. Write output_tokens = { natural = true, max = %d }.", w.Output.Mean)
	case w.Prompt.Dataset == nil && rule.NeedsAnswer():
		b.d.errorf(b.rng, sumScore, `A score needs a data set with right answers. Write prompt { dataset = "items.jsonl" } with an answer in each row, or dataset = "%srecall".`, answers.TaskPrefix)
	case w.Prompt.Dataset != nil && rule.NeedsAnswer():
		for _, row := range w.Prompt.Dataset.Rows {
			if row.Answer == nil {
				b.d.errorf(b.rng, sumScore, "The row %s:%d has no answer to compare with. Add an answer to the row, or remove the score block.", w.Prompt.Dataset.Path, row.Line)
				break
			}
		}
	}
	return rule
}

// checkAnswers refuses an answers block for answers that are not natural.
func checkAnswers(b *body, w *plan.Workload) {
	if a := b.child("answers"); a != nil && !w.Output.Natural && w.Output.Mean > 0 {
		b.d.errorf(a.rng, sumConflict, "tokgate checks and stores only natural answers, not answers of a fixed length. Write output_tokens = { natural = true, max = %d }.", w.Output.Mean)
	}
}
