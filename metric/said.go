package metric

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Said is a server's natural answer to one request, without secrets. Calls holds the tool calls as
// the model wrote them, valid or not. All text in Said is foreign.
type Said struct {
	Text      string     `json:"text,omitempty"` // the visible text of the answer
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []ToolCall `json:"calls,omitempty"`
	Cut       bool       `json:"cut,omitempty"`    // the end of the answer was not recorded
	AtLimit   bool       `json:"-"`                // the answer ended at the token limit; see Sample.Finish
	Hash      string     `json:"sha256,omitempty"` // see Hashed; "" if the text is kept
}

// ToolCall is one call of a tool. Arguments is the JSON that the model wrote.
type ToolCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Hashed returns the answer with a hash instead of its text. The field Hash is the hexadecimal
// SHA-256 sum of text, reasoning and calls as JSON. Equal answers have equal hashes.
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
