package metric

import "time"

// Answers holds the results of checks on a sample of the level's answers. After the load, tokgate
// checks whether the server counted the tokens that it sent, and whether it generated the answers
// or took them from a cache.
type Answers struct {
	// Recounts holds the answers whose text the server's own tokenizer counted. It is empty if the
	// server has no tokenizer page. Note is the reason why a tokenizer page did not answer; "" if
	// there is none.
	Recounts []Recount `json:"recounts,omitempty"`
	Note     string    `json:"note,omitempty"`
	// Compared is the number of answers, to different prompts, that are long enough to compare.
	// Alike is the number of these answers whose text equals the text of another answer.
	Compared int `json:"compared,omitempty"`
	Alike    int `json:"alike,omitempty"`
	// Again holds the durations of the answers to one prompt that was sent several times with
	// nothing else in flight. A duration is from the first chunk to the last. An answer after the
	// first counts only if its text equals the text of the first. Again is empty if the prompt was
	// not sent.
	Again []time.Duration `json:"again_ns,omitempty"`
}

// Recount holds two counts of the tokens of one answer: the count in the server's usage, and the
// count of the server's tokenizer.
type Recount struct {
	Round   int `json:"round"`
	Order   int `json:"order"` // Order of the measured request within the round
	Claimed int `json:"claimed"`
	Tokens  int `json:"tokens"`
}
