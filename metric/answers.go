package metric

import "time"

// Answers holds the results of checks on some of a level's answers. After the load, tokgate checks
// whether the server reported the right number of tokens. It also checks whether the server
// generated the answers or took them from a cache.
type Answers struct {
	// Recounts holds the answers whose tokens the server's own tokenizer counted. It is empty if
	// the server has no tokenizer. Note says why an existing tokenizer did not answer; "" if it
	// did.
	Recounts []Recount `json:"recounts,omitempty"`
	Note     string    `json:"note,omitempty"`
	// Compared is the number of long answers, to different prompts, whose texts were compared with
	// each other. Alike is the number of these answers that equal another of them.
	Compared int `json:"compared,omitempty"`
	Alike    int `json:"alike,omitempty"`
	// Again holds the durations of answers to one prompt, which was sent several times with nothing
	// else in flight. A duration is from the first chunk to the last. An answer counts only if its
	// text equals the text of the first answer. Again is empty if the prompt was not sent.
	Again []time.Duration `json:"again_ns,omitempty"`
}

// Recount holds two counts of the tokens of one answer: by the server's usage, and by the server's
// tokenizer.
type Recount struct {
	Round   int `json:"round"`
	Order   int `json:"order"` // number of the measured request within the round
	Claimed int `json:"claimed"`
	Tokens  int `json:"tokens"`
}
