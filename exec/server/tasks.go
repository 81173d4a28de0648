package server

import (
	"context"
	"math"
	"strings"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/prompt"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// itemsOf returns the items of a workload's built-in task, one for each row.
func itemsOf(w *plan.Workload) []answers.Item {
	task, _ := answers.FindTask(w.Prompt.Task)
	out := make([]answers.Item, len(w.Prompt.Dataset.Rows))
	for i := range out {
		out[i] = task.Item(plan.TaskSeed, i)
	}
	return out
}

// taskPrompts makes prompts from the items of a built-in task. Filler words bring a prompt to the
// length that the workload sets.
type taskPrompts struct {
	rowPrompts
	*prompt.Items
	tokens int
}

func (p taskPrompts) Exact() bool { return p.Items.Exact() }

func (p taskPrompts) Prompt(id exec.PromptID) (made client.Prompt, err error) {
	if made, err = p.rowPrompts.Prompt(id); err == nil {
		made.Text, err = p.Items.Prompt(made.Row-1, p.tokens)
		made.Shared = math.Floor(made.Shared) // filler follows the beginning that items have in common
	}
	return made, err
}

// tasks returns the prompts of w's task. In the first call the server counts their tokens.
func (r *reached) tasks(ctx context.Context, w *plan.Workload, m *prompt.Maker, o prompt.Options) (exec.Prompts, error) {
	if known, ok := r.items[w]; ok {
		return known, nil
	}
	r.state("counting the tokens of the items of " + w.Prompt.Name)
	items, err := clock.Await(ctx, r.Clock, func(ctx context.Context) (*prompt.Items, error) {
		return prompt.NewItems(ctx, m, o, itemsOf(w))
	})
	if err != nil {
		return nil, err
	}
	r.items[w] = taskPrompts{r.datasets.begin(w), items, w.Input}
	return r.items[w], nil
}

// virtualItem returns an item of a task for the built-in server in virtual time. The text has only
// a few filler words, to save time. The result tokens is the token count of the full text.
func virtualItem(w *plan.Workload, row int) (text string, tokens int) {
	const words = 40
	task, _ := answers.FindTask(w.Prompt.Task)
	item := task.Item(plan.TaskSeed, row-1)
	if w.Input == 0 {
		text = item.Prompt("", "")
		tokens, _ = sim.CountChat(text, nil)
		return text, tokens
	}
	before := int(item.Depth * words)
	return item.Prompt(strings.Repeat(" water", before), strings.Repeat(" water", words-before)), w.Input
}
