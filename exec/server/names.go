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
	block    int // tokens of a block of its prefix cache; 0: it has none
	datasets datasets
}

func (v virtualPrompts) prompts(ctx context.Context, w *plan.Workload, salt uint64) (exec.Prompts, error) {
	if w.Prompt.Dataset == nil {
		if err := fits(w, v.limit, systemTokens(w.Prompt.System)); err != nil {
			return nil, err
		}
		return names{w, salt, v.block}, nil
	}
	if err := fits(w, v.limit, 0); err != nil {
		return nil, err
	}
	if _, ok := v.datasets.rows[w]; !ok {
		rows := v.datasets.begin(w)
		if err := v.fit(ctx, w, rows.rows); err != nil {
			return nil, err
		}
		v.datasets.rows[w] = rows
	}
	return virtualRows{v.datasets.rows[w], w, v.block}, nil
}

func (v virtualPrompts) fit(ctx context.Context, w *plan.Workload, rows *prompt.Rows) error {
	count := func(_ context.Context, p client.Prompt) (int, error) { return sim.CountChat(p.Text, p.Messages) }
	if w.Input == 0 || w.Prompt.Task != "" {
		return rowsFit(ctx, w, prompt.Options{Tokenizer: count}, v.limit)
	}
	if err := answersFit(w, v.limit); err != nil {
		return err
	}
	if err := rows.Short(ctx, count, w.Input, w.Rows()); err != nil || v.block == 0 {
		return err
	}
	rows.FitLater(count, w.Input)
	return nil
}

// names makes prompts for the simulator, which reads only their length. So the text of a prompt is
// only a unique name. The field Input of the request says how long the prompt is.
type names struct {
	workload *plan.Workload
	salt     uint64
	block    int // see virtualPrompts
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
		ids, err := sim.ChatTokens(r.Text.Prompt, r.Text.Messages)
		p.Tokens, p.Parts = len(ids), piecesOf(ids, n.block)
		return p, err
	}
	round := hashOf("%x %s %s %d %d", n.salt, n.workload.Root().Address(), id.Level, id.Seed, id.Round)
	for _, part := range r.Parts {
		p.Parts = append(p.Parts, metric.Piece{Key: part.Key ^ round, Tokens: part.Tokens})
		p.Tokens += part.Tokens
	}
	return p, nil
}

func (n names) Next(id exec.PromptID, sent client.Prompt, said exec.Reply) (client.Prompt, error) {
	own, err := n.Prompt(id)
	out := grown(n.workload, sent, said)
	out.Text = own.Text
	next := metric.Piece{Key: keyOf(own.Text), Tokens: n.workload.Input}
	out.Parts = append(slices.Clone(sent.Parts), sim.AnswerPiece(sent.Parts, said.Output), next)
	return out, err
}

// piecesOf returns the pieces of a prompt of the given tokens; nil if the server has no prefix cache.
func piecesOf(ids []int, block int) []metric.Piece {
	if block == 0 {
		return nil
	}
	return sim.Pieces(ids, block)
}

// virtualRows takes prompts from a data set. Their tokens are those of the built-in server.
type virtualRows struct {
	rowPrompts
	workload *plan.Workload
	block    int // see virtualPrompts
}

func (r virtualRows) Prompt(id exec.PromptID) (client.Prompt, error) {
	p, err := r.rowPrompts.Prompt(id)
	if err != nil {
		return p, err
	}
	if r.workload.Prompt.Task != "" {
		if r.workload.Input == 0 {
			p, err = r.named(p)
		}
		p.Text, p.Tokens = virtualItem(r.workload, p.Row)
		return p, err
	}
	if p, err = r.named(p); r.workload.Input > 0 {
		p.Tokens = r.workload.Input
	}
	if r.workload.Prompt.Replies == "" {
		p.Messages = nil
	}
	return p, err
}

// named returns the prompt p with its tokens. The number of its row stands for the text, which the
// simulator does not read.
func (r virtualRows) named(p client.Prompt) (client.Prompt, error) {
	var ids []int
	var err error
	if r.workload.API == plan.Chat {
		ids, err = sim.ChatTokens(p.Text, p.Messages)
	} else {
		ids = sim.Tokenize(nil, p.Text)
	}
	p.Text, p.Tokens, p.Parts = fmt.Sprintf("row %d", p.Row), max(len(ids), 1), piecesOf(ids, r.block)
	return p, err
}

// Next implements exec.Talker. The server's own answers are pieces without text.
func (r virtualRows) Next(id exec.PromptID, sent client.Prompt, said exec.Reply) (client.Prompt, error) {
	p, err := r.rowPrompts.Next(id, sent, said)
	if err != nil {
		return p, err
	}
	out, err := r.named(p)
	if r.own && err == nil {
		var ids []int
		ids, err = sim.AfterAnswer(r.rows.Added(id.Turn, sent))
		out.Tokens = sent.Tokens + said.Output + len(ids)
		said := []metric.Piece{sim.AnswerPiece(sent.Parts, said.Output)}
		if out.Parts = slices.Concat(sent.Parts, said, piecesOf(ids, r.block)); r.block == 0 {
			out.Parts = nil
		}
	}
	out.Text = fmt.Sprintf("%s turn %d", out.Text, id.Turn)
	return out, err
}
