package server

import (
	"fmt"
	"strings"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/prompt"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// datasets holds what one start of a server was sent of the data sets of its workloads. Workloads may send
// the same rows, so they know of each other's.
type datasets struct {
	rows   map[*plan.Workload]rowPrompts
	begins map[string]*traffic.Beginnings
}

func newDatasets() datasets {
	return datasets{map[*plan.Workload]rowPrompts{}, map[string]*traffic.Beginnings{}}
}

// begin returns the rows of a workload from the first on.
func (d datasets) begin(w *plan.Workload) rowPrompts {
	p := w.Prompt
	key := fmt.Sprintf("%s %v %q", p.Dataset.Hash, p.Replies != "", p.System.Text)
	if p.Task != "" {
		key += fmt.Sprint(w.Input) // the filler around an item
	}
	if d.begins[key] == nil {
		d.begins[key] = p.Dataset.Beginnings()
	}
	return rowPrompts{prompt.NewRows(p.Dataset, d.begins[key], p.Order == plan.Shuffled, w.Seed()), p.Replies == plan.Own}
}

type rowPrompts struct {
	rows *prompt.Rows
	own  bool // conversations repeat the server's own answers
}

func (rowPrompts) Exact() bool { return true }

func (p rowPrompts) Prompt(id exec.PromptID) (client.Prompt, error) {
	return p.rows.Prompt(id.Phase, p.number(id))
}

func (p rowPrompts) number(id exec.PromptID) int {
	n := id.First + id.Order
	if strings.HasPrefix(id.Level, metric.SaturationName) {
		n %= p.rows.Spare()
	}
	return n
}

// Again reports whether another request has the same row, and may have been sent first.
func (p rowPrompts) Again(of client.Prompt) bool { return p.rows.Again(of) }

// Turns returns how many turns a conversation has.
func (p rowPrompts) Turns(id exec.PromptID) int { return p.rows.Turns(id.Phase, p.number(id)) }

// Next implements exec.Talker.
func (p rowPrompts) Next(id exec.PromptID, sent client.Prompt, said exec.Reply) (client.Prompt, error) {
	var own *string
	if p.own {
		own = &said.Text
	}
	out := p.rows.Next(id.Turn, sent, own)
	if out.Shared == 0 {
		out.Before = before(said, p.own)
	}
	return out, nil
}

// before returns how many tokens of the next prompt of a conversation a cache may hold: the prompt that
// was sent before, and the answer, if it is repeated as the server made it.
func before(said exec.Reply, own bool) int {
	if !own || said.Reasoned || said.Input == 0 {
		return said.Input
	}
	return said.Input + said.Output
}
