package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/prompt"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

type virtualPrompts struct {
	limit    int // tokens of its context
	datasets map[*plan.Workload]rowPrompts
}

func (v virtualPrompts) prompts(ctx context.Context, w *plan.Workload, salt uint64) (exec.Prompts, error) {
	if w.Prompt.Dataset == nil {
		if err := fits(w, v.limit, systemTokens(w.Prompt.System)); err != nil {
			return nil, err
		}
		return names{w, salt}, nil
	}
	if err := fits(w, v.limit, 0); err != nil {
		return nil, err
	}
	if _, ok := v.datasets[w]; !ok {
		rows := newRows(w)
		if err := v.fit(ctx, w, rows.rows); err != nil {
			return nil, err
		}
		v.datasets[w] = rows
	}
	return virtualRows{v.datasets[w], w}, nil
}

func (v virtualPrompts) fit(ctx context.Context, w *plan.Workload, rows *prompt.Rows) error {
	count := func(_ context.Context, p client.Prompt) (int, error) { return sim.CountChat(p.Text, p.Messages) }
	if w.Input == 0 || w.Prompt.Task != "" {
		return rowsFit(ctx, w, prompt.Options{Tokenizer: count}, v.limit)
	}
	if err := answersFit(w, v.limit); err != nil {
		return err
	}
	return rows.Short(ctx, count, w.Input, w.Rows())
}

// names makes prompts for the simulator, which reads only their length. So the text of a prompt is
// only a unique name. The field Input of the request says how long the prompt is.
type names struct {
	workload *plan.Workload
	salt     uint64
}

func (names) Exact() bool { return true }

func (n names) Prompt(id exec.PromptID) (client.Prompt, error) {
	if id.Recorded != nil {
		return n.recorded(id)
	}
	p := client.Prompt{Text: fmt.Sprintf("%x %s %s %d %d %s %d", n.salt, n.workload.Address(), id.Level, id.Seed, id.Round, id.Phase, id.Order)}
	input := n.workload.Input + id.Longer
	if id.Longer > 0 {
		p.Tokens = input
	}
	if shared := prefixOf(n.workload, n.salt, id); shared.Tokens > 0 {
		tokens := shared.Tokens + shared.More
		p.Parts = []metric.Piece{
			{Key: hashOf("%x %s group %d", n.salt, n.workload.Address(), shared.Group), Tokens: tokens},
			{Key: keyOf(p.Text), Tokens: input - tokens},
		}
		p.Shared = float64(tokens) / float64(input)
	} else if system := n.workload.Prompt.System; system.Groups > 0 {
		tokens := systemTokens(system)
		p.Parts = []metric.Piece{
			{Key: hashOf("%x %s system %d", n.salt, n.workload.Address(), systemOf(n.workload, n.salt, id)), Tokens: tokens},
			{Key: keyOf(p.Text), Tokens: input},
		}
		p.Tokens = tokens + input
		p.Shared = float64(tokens) / float64(p.Tokens)
	} else if n.workload.Prompt.Turns.Several() {
		p.Parts = []metric.Piece{{Key: keyOf(p.Text), Tokens: input}}
	}
	return p, nil
}

// systemTokens returns what a system prompt adds to a prompt, as the built-in server counts.
func systemTokens(s plan.System) int {
	if s.Text == "" {
		return s.Tokens
	}
	message, _ := json.Marshal([]map[string]string{{"role": "system", "content": s.Text}}) // cannot fail
	with, _ := sim.CountChat("", message)
	without, _ := sim.CountChat("", json.RawMessage("[]"))
	return with - without
}

func (n names) recorded(id exec.PromptID) (p client.Prompt, err error) {
	r := id.Recorded
	p.Text = fmt.Sprintf("%x %s %s %d %d %s %d", n.salt, n.workload.Address(), id.Level, id.Seed, id.Round, id.Phase, id.Order)
	if r.Text != nil {
		p.Tokens, err = sim.CountChat(r.Text.Prompt, r.Text.Messages)
		return p, err
	}
	round := hashOf("%x %s %s %d %d", n.salt, n.workload.Root().Address(), id.Level, id.Seed, id.Round)
	for _, part := range r.Parts {
		p.Parts = append(p.Parts, metric.Piece{Key: part.Key ^ round, Tokens: part.Tokens})
		p.Tokens += part.Tokens
	}
	return p, nil
}

func (n names) Next(id exec.PromptID, sent client.Prompt, _ string, tokens int) (client.Prompt, error) {
	own, err := n.Prompt(id)
	out := grown(n.workload, sent, tokens)
	out.Text = own.Text
	out.Parts = append(slices.Clone(sent.Parts), sim.AnswerPiece(sent.Parts, tokens), metric.Piece{Key: keyOf(own.Text), Tokens: n.workload.Input})
	return out, err
}

// virtualRows takes prompts from a data set. It counts their tokens as the built-in server does.
type virtualRows struct {
	rowPrompts
	workload *plan.Workload
}

func (r virtualRows) Prompt(id exec.PromptID) (client.Prompt, error) {
	p, err := r.rowPrompts.Prompt(id)
	if err == nil && r.workload.Prompt.Task != "" {
		p.Text, p.Tokens = virtualItem(r.workload, p.Row)
		return p, nil
	}
	switch {
	case err != nil:
	case r.workload.Input > 0:
		p.Tokens = r.workload.Input
	case r.workload.API == plan.Chat:
		p.Tokens, err = sim.CountChat(p.Text, p.Messages)
	default:
		p.Tokens = len(sim.Tokenize(nil, p.Text))
	}
	if p.Tokens == 0 {
		p.Tokens = 1
	}
	// The row number identifies the prompt. The simulator does not read the text.
	return client.Prompt{Text: fmt.Sprintf("row %d", p.Row), Tokens: p.Tokens, Output: p.Output, Row: p.Row, Shared: p.Shared, Fields: p.Fields}, err
}
