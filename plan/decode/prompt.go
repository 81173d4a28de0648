package decode

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

func readPrompt(b *body, w *plan.Workload) plan.Prompt {
	p := b.child("prompt")
	if p == nil {
		return plan.Prompt{}
	}
	out := plan.Prompt{Range: p.rng, Turns: readTurns(p)}
	if p.given("system") {
		readSystem(p, w, &out)
	}
	if !p.given("dataset") {
		readShared(p, w, &out)
		return out
	}
	if out.Order = plan.Order(p.oneOf("order")); p.given("replies") {
		out.Replies = plan.Replies(p.oneOf("replies"))
	}
	if x, ok := p.item("dataset"); !ok || x.unknown() {
		return out
	}
	if out.Name = p.text("dataset"); readTask(p, out.Name, &out) {
		if out.Replies != "" {
			p.d.errorf(p.rangeOf("replies"), sumConflict, "The items of a built-in task are single requests. Remove replies.")
			out.Replies = ""
		}
		return out
	}
	b.d.opts.Bounded(func() {
		if out.Dataset = b.d.dataset(p, out.Replies != ""); out.Dataset == nil {
			return
		}
		if text := out.System.Text; text != "" {
			set, err := out.Dataset.After(text)
			if err != nil {
				b.d.errorf(p.rangeOf("system"), sumConflict, "The system prompt cannot be sent: %v.", err)
				return
			}
			out.Dataset = set
		}
		readReplies(p, w, &out)
		checkRows(p, w, out.Dataset)
	})
	return out
}

// readReplies makes conversations of the rows of a data set.
func readReplies(p *body, w *plan.Workload, out *plan.Prompt) {
	if out.Replies == "" {
		return
	}
	if w.API != plan.Chat {
		p.d.errorf(p.rangeOf("replies"), sumConflict, `Conversations (replies) need api = "chat".`)
		return
	}
	if w.Input > 0 {
		p.d.errorf(p.rangeOf("replies"), sumConflict, "The turns of recorded conversations (replies) have their own lengths. Remove input_tokens, or replies.")
		return
	}
	set, err := out.Dataset.Talks(out.Replies == plan.Own)
	if err != nil {
		p.d.errorf(p.rangeOf("replies"), sumDataset, `Its rows cannot be sent turn by turn: %v. Change the file, or remove replies.`, err)
		return
	}
	out.Dataset, out.Turns = set, set.Turns()
}

// dataset reads a data set; talks says whether its rows are conversations.
func (d *decoder) dataset(b *body, talks bool) *traffic.Dataset {
	path, column := b.pathOf("dataset"), b.text("column")
	key := dataKey{path, column, talks}
	if set, ok := d.datasets[key]; ok {
		return set
	}
	var set *traffic.Dataset
	f, err := b.file("dataset")
	if err == nil {
		set, err = traffic.ReadFile(f, path, traffic.Options{Column: column, Talks: talks})
		f.Close()
	}
	if err != nil {
		d.errorf(b.rangeOf("dataset"), sumDataset, "The data set cannot be used: %v.", err)
	} else {
		d.hash.add("data set", filepath.Base(path), []byte(set.Hash))
	}
	d.datasets[key] = set
	return set
}

func checkRows(b *body, w *plan.Workload, set *traffic.Dataset) {
	if w.Input > 0 {
		for i := range set.Rows {
			if _, err := set.Rows[i].Question(); err != nil {
				b.d.errorf(b.rangeOf("dataset"), sumDataset, "The row %s:%d cannot be made as long as input_tokens: %v.", set.Path, set.Rows[i].Line, err)
				return
			}
		}
	}
	if w.API == plan.Chat {
		return
	}
	for _, row := range set.Rows {
		what := ""
		switch {
		case row.Messages != nil && !w.API.Chats():
			what = "messages"
		case row.Messages != nil && !plain(row.Messages):
			what = "calls or results of tools"
		case row.Tools != nil:
			what = "tools"
		case row.ResponseFormat != nil:
			what = "a response_format"
		default:
			continue
		}
		b.d.errorf(b.rangeOf("dataset"), sumDataset, `The row %s:%d has %s, which api = %q cannot send. Write api = "chat".`, set.Path, row.Line, what, w.API)
		return
	}
}

// plain reports whether messages have the same form in all APIs of conversations: only texts of the
// system, the user and the model.
func plain(messages json.RawMessage) bool {
	var list []struct {
		Role    string
		Content any
		Calls   any `json:"tool_calls"`
	}
	if json.Unmarshal(messages, &list) != nil {
		return false
	}
	for _, m := range list {
		if _, text := m.Content.(string); !text || m.Calls != nil || m.Role != "system" && m.Role != "user" && m.Role != "assistant" {
			return false
		}
	}
	return true
}

func readShared(p *body, w *plan.Workload, out *plan.Prompt) {
	switch {
	case p.given("shared_prefix"):
		readPrefix(p, w, out)
	case p.given("hit_rate"):
		rate, ok := get(p, "hit_rate", item.share)
		if !ok || w.Input == 0 {
			return
		}
		shared, err := traffic.ForHitRate(w.Input, rate)
		if err != nil {
			p.d.errorf(p.rangeOf("hit_rate"), sumOutOfRange, "hit_rate: %v.", err)
			return
		}
		out.Shared, out.HitRate = shared, rate
	case out.System.Groups == 0:
		return
	}
	out.Warm = p.boolean("warm")
}

// readSystem reads the system prompt. Before the rows of a data set it is a text, which becomes a part of
// each row.
func readSystem(p *body, w *plan.Workload, out *plan.Prompt) {
	o := p.object("system")
	if o == nil {
		return
	}
	system := plan.System{Groups: 1}
	o.bind(&system)
	switch {
	case p.given("dataset") && system.Tokens > 0:
		p.d.errorf(o.rng, sumConflict, "Before the rows of a data set the system prompt is a text, such as system = { text = file(\"system.txt\") }. For generated prompts remove dataset.")
	case p.given("dataset") && w.Input > 0:
		p.d.errorf(o.rng, sumConflict, "Rows of a data set are cut to input_tokens as a whole, so a system prompt would count in it. Remove input_tokens, or system.")
	case strings.HasPrefix(p.text("dataset"), answers.TaskPrefix):
		p.d.errorf(o.rng, sumConflict, "The items of a built-in task are sent as they are, without a system prompt. Remove one of the two.")
	case system.Tokens > 0 || system.Text != "":
		out.System = system
	case !o.stray && !o.given("tokens") && !o.given("text"):
		p.d.errorf(o.rng, sumMissing, "system needs tokens or text, such as { tokens = 2048 }.")
	}
}

func readPrefix(p *body, w *plan.Workload, out *plan.Prompt) {
	o := p.object("shared_prefix")
	if o == nil {
		return
	}
	shared := traffic.Shared{Groups: 1}
	o.bind(&shared)
	if most := w.Input - traffic.LeastUnique; w.Input > 0 && shared.Tokens > most {
		p.d.errorf(o.rng, sumOutOfRange, "shared_prefix: at most %d of the %d input_tokens can be shared, because prompts must differ in the rest. Share fewer tokens, or raise input_tokens. What comes on top of them is a system prompt: system = { tokens = %d }.", max(most, 0), w.Input, shared.Tokens)
		return
	}
	if shared.Tokens > 0 {
		out.Shared = shared
	}
}

func (b *body) hasDataset() bool {
	p := b.child("prompt")
	return p != nil && p.given("dataset")
}
