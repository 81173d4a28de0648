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
	// Cache is a test whether the server caches whole answers; nil if it was not made.
	Cache *CacheTest `json:"cache,omitempty"`
}

// CacheTest holds the durations of requests that were sent one after another, with nothing else in
// flight: a new prompt, the same prompt some more times, and then another new prompt.
type CacheTest struct {
	// First and Fresh are the durations of the answers to the two new prompts, from the first chunk
	// to the last. They are 0 if the answer came in one piece.
	First time.Duration `json:"first_ns"`
	Fresh time.Duration `json:"fresh_ns"`
	// Again holds the durations of the repeated requests, from sending to the end of the answer.
	// Only answers with the text of the first answer count.
	Again []time.Duration `json:"again_ns"`
}

// Recount holds two counts of the tokens of one answer: by the server's usage, and by the server's
// tokenizer.
type Recount struct {
	Round   int `json:"round"`
	Order   int `json:"order"` // number of the measured request within the round
	Claimed int `json:"claimed"`
	Tokens  int `json:"tokens"`
}
