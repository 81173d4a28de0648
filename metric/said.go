package metric

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Said is a server's answer to one request, kept for natural answers, without secrets. Calls hold
// what the model wrote, valid or not. All of it is foreign text.
type Said struct {
	Text      string     `json:"text,omitempty"` // what a reader sees
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []ToolCall `json:"calls,omitempty"`
	Cut       bool       `json:"cut,omitempty"`    // it went on, and the rest was not kept
	AtLimit   bool       `json:"-"`                // it ended at the limit of tokens: Sample.Finish says so
	Hash      string     `json:"sha256,omitempty"` // see Hashed; "": the text itself is here
}

// ToolCall is one call of a tool; Arguments is the JSON that the model wrote.
type ToolCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Hashed is the answer without its text: Hash is the SHA-256 sum, in hexadecimal, of
// text, reasoning and calls as JSON. Equal answers have equal sums.
func (s Said) Hashed() Said {
	if s.Hash != "" {
		return s
	}
	bare := s
	bare.Cut = false
	raw, _ := json.Marshal(bare) // text can be written
	sum := sha256.Sum256(raw)
	return Said{Cut: s.Cut, AtLimit: s.AtLimit, Hash: hex.EncodeToString(sum[:])}
}
