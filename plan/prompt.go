package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/traffic"
)

// Order is that in which the rows of a data set are sent.
type Order string

const (
	Shuffled Order = "shuffled" // by the seed
	InOrder  Order = "file"     // as they stand
)

// Prompt is where the prompts of a workload come from; the zero Prompt: they are
// synthetic, and unique from their first token on.
type Prompt struct {
	// Dataset holds real prompts; nil: there are none. They are as long as they are; with
	// Workload.Input each is cut, or goes on with the rows behind it, to so many tokens.
	Dataset *traffic.Dataset
	Name    string // of the data set, as the plan writes it
	// Task is the built-in one that the data set holds the items of, in its order; "":
	// none. With Workload.Input they are filled up to so many tokens.
	Task  string
	Order Order `plan:"order"`
	// Shared is with what synthetic prompts begin alike; HitRate is the share of
	// their tokens that it was worked out for, 0: it was not.
	Shared  traffic.Shared
	HitRate float64
	// Warm has the server be sent each shared prefix once before a level begins.
	Warm  bool          `plan:"warm"`
	Turns traffic.Turns // of a conversation; the zero Turns: one
	Range hcl.Range
}

// ByDrafts says whether a metric of a server that decodes speculatively depends on
// how many of its drafts are accepted, and so on the text.
func ByDrafts(name string) bool {
	switch name {
	case "speed", "request_speed", "tpot", "accept_rate", "accept_length":
		return true
	}
	return false
}

// TaskSeed is the seed of the items of built-in tasks: they are the same in every run.
const TaskSeed = 1

// String says where prompts come from: "prompts.jsonl, 120 rows, shuffled"; "synthetic".
func (p Prompt) String() string {
	if p.Turns.Several() {
		turns := p.Turns
		p.Turns = traffic.Turns{}
		return p.String() + ", in conversations of " + turns.String() + " turns"
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

// hash tells prompts of one kind from those of another; "" of synthetic, unique ones.
func (p Prompt) hash() string {
	if p.Dataset == nil && p.Shared.Groups == 0 && !p.Turns.Several() {
		return ""
	}
	text := fmt.Sprintf("%+v %v %+v", p.Shared, p.Warm, p.Turns)
	if p.Dataset != nil {
		text = fmt.Sprintf("%s %s", p.Dataset.Hash, p.Order)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
