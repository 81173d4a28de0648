package metric

import "time"

// Answers is the result of checking a sample of a level's answers once the load was
// over: whether the server counted the tokens that it sent, and whether it
// generated them.
type Answers struct {
	// Recounts are the answers whose text was given to the server's own tokenizer;
	// none if the server has no page for it. Note says why an existing page did not
	// answer.
	Recounts []Recount `json:"recounts,omitempty"`
	Note     string    `json:"note,omitempty"`
	// Of Compared answers to different prompts, long enough to tell, Alike have the
	// text of another one.
	Compared int `json:"compared,omitempty"`
	Alike    int `json:"alike,omitempty"`
	// Again is how long one prompt's answer took from its first chunk to its last when
	// it was sent once, and then again, with nothing else in flight; the later ones
	// count only where their text is the first one's. Empty: it was not tried.
	Again []time.Duration `json:"again_ns,omitempty"`
}

// Recount is one answer, its tokens by the server's usage and by its tokenizer.
type Recount struct {
	Round   int `json:"round"`
	Order   int `json:"order"` // of a measured request within the round
	Claimed int `json:"claimed"`
	Tokens  int `json:"tokens"`
}
