package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/traffic"
)

// Order is the order in which the rows of a data set are sent.
type Order string

const (
	Shuffled Order = "shuffled" // by the seed
	InOrder  Order = "file"     // as they stand
)

// Replies says what later turns of recorded conversations repeat as the answers of turns before them.
type Replies string

const (
	RecordedReplies Replies = "recorded" // the answers of the recording
	Own             Replies = "own"      // the server's own answers
)

// Prompt is the source of a workload's prompts. The zero Prompt makes synthetic prompts. All of
// them begin with the same two words, and are unique after that.
type Prompt struct {
	// Dataset holds real prompts; nil if prompts are synthetic. The rows keep their own length,
	// unless Workload.Input is set. Then each row is cut to that number of tokens, or extended by
	// the next rows.
	Dataset *traffic.Dataset
	Name    string // name of the data set, as the plan writes it
	// Task names the built-in task of the data set; "" if there is none. If Workload.Input is set,
	// the task's items are extended to that number of tokens.
	Task  string
	Order Order `plan:"order"`
	// Replies makes each row of the data set a conversation; "" makes it a single request.
	Replies Replies `plan:"replies"`
	// Shared describes the prefixes that synthetic prompts share. HitRate is the
	// cache hit rate that Shared was computed from; 0 if the plan gives the prefixes
	// themselves.
	Shared  traffic.Shared
	HitRate float64
	// Warm sends each shared prefix once before a level begins.
	Warm  bool          `plan:"warm"`
	Turns traffic.Turns // turns of a conversation, with Replies those of the rows; the zero Turns is one turn
	// Inputs is the number of texts of a request for embeddings, each of Workload.Input tokens; 0 means
	// one.
	Inputs int
	// System is what every conversation begins with. Its tokens come on top of Workload.Input.
	System System
	Range  hcl.Range
}

// System is a system prompt. The zero System is none.
type System struct {
	Text   string `plan:"text"`   // "": tokgate makes Groups different ones, of Tokens tokens each
	Tokens int    `plan:"tokens"` // what it adds to a prompt, by the server's count; 0 with a Text
	Groups int    `plan:"groups"` // 1 with a Text
}

// Prefixes returns how many different beginnings the prompts have; 0 if they share none.
func (p Prompt) Prefixes() int { return max(p.Shared.Groups, p.System.Groups) }

// ByDrafts reports whether a metric depends on how many drafts of speculative decoding are
// accepted. Such a metric depends on the text.
func ByDrafts(name string) bool {
	switch name {
	case "speed", "request_speed", "tpot", "accept_rate", "accept_length":
		return true
	}
	return false
}

// TaskSeed is the seed of the items of built-in tasks. It is constant, so every run asks the same
// items.
const TaskSeed = 1

// String describes the source, such as "prompts.jsonl, 120 rows, shuffled" or "synthetic".
func (p Prompt) String() string {
	if p.Turns.Several() {
		turns := p.Turns
		p.Turns = traffic.Turns{}
		said := ""
		if p.Replies != "" {
			said = ", with " + string(p.Replies) + " replies"
		}
		return p.String() + ", in conversations of " + turns.String() + " turns" + said
	}
	if p.System.Groups > 0 {
		system := p.System.String()
		p.System = System{}
		return p.String() + ", after " + system
	}
	switch {
	case p.HitRate > 0:
		return fmt.Sprintf("synthetic, %v%% of their tokens shared", 100*p.HitRate)
	case p.Shared.Groups > 0:
		return fmt.Sprintf("synthetic, %d tokens shared in %d groups", p.Shared.Tokens, p.Shared.Groups)
	case p.Dataset == nil:
		return "synthetic"
	}
	return fmt.Sprintf("%s, %d rows, %s", p.Name, len(p.Dataset.Rows), p.Order)
}

// String describes the system prompt, such as "a system prompt of 2048 tokens".
func (s System) String() string {
	switch {
	case s.Text != "":
		return fmt.Sprintf("a system prompt of %d bytes", len(s.Text))
	case s.Groups > 1:
		return fmt.Sprintf("one of %d system prompts of %d tokens", s.Groups, s.Tokens)
	}
	return fmt.Sprintf("a system prompt of %d tokens", s.Tokens)
}

// It is "" for synthetic prompts that share nothing and have a single turn.
func (p Prompt) hash() string {
	if p.Dataset == nil && p.Prefixes() == 0 && !p.Turns.Several() {
		return ""
	}
	text := fmt.Sprintf("%+v %v %+v", p.Shared, p.Warm, p.Turns)
	if p.Dataset != nil {
		rows := fmt.Sprintf("%s %s", p.Dataset.Hash, p.Order)
		if p.Shared.Groups == 0 && !p.Warm && !p.Turns.Several() {
			text = rows // as it always was, so that older recordings can be judged
		} else {
			text = rows + " " + text
		}
	}
	if p.System.Groups > 0 {
		text += fmt.Sprintf(" %+v", p.System)
	}
	if p.Replies != "" {
		text += " " + string(p.Replies)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
