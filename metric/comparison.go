package metric

import "time"

// Comparison is how a comparison of the plan was run. Its legs are the rounds of
// the levels that both servers ran, each with a Leg; round r of the control and
// round r of the candidate are a pair.
type Comparison struct {
	Name      string `json:"name"`
	Control   string `json:"control"`   // address, or "baseline" and the folder it was read from
	Candidate string `json:"candidate"` // address
	Restart   string `json:"restart"`   // "leg", "order" or "never"
	// SideBySide says that both legs of a round ran at the same time, on GPUs
	// that were swapped from round to round: see Start.GPUs.
	SideBySide bool `json:"side_by_side,omitempty"`
	// Looks are the planned moments at which it was judged while it ran, in
	// order. The last one counts. Empty: it was judged once, as a whole.
	Looks []ComparisonLook `json:"looks,omitempty"`
	// Skipped says why nothing was compared; "" when it was.
	Skipped string   `json:"skipped,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Answers are those that both servers gave to the same prompts; nil: the plan does not
	// ask for any.
	Answers *PairedAnswers `json:"answers,omitempty"`
}

// ComparisonLook is one of the planned looks at a comparison.
type ComparisonLook struct {
	Rounds  int    `json:"rounds"`            // judged: the first ones
	Planned int    `json:"planned"`           // looks over which the error probability is split; at least 1
	Outcome string `json:"outcome,omitempty"` // "" for one that is left to the end of the run
}

// Leg marks a round as one side of a comparison: run on one server between the
// rounds of another.
type Leg struct {
	// Slot is the place of the leg in time, 0-based, among all of the servers
	// that take turns: A B B A is 0 1 2 3. Legs side by side share theirs.
	Slot int `json:"slot"`
	// Start counts the starts of the server, 0-based: legs of one start share
	// what a start brings by chance.
	Start int `json:"start"`
}

// Start is one start of a server.
type Start struct {
	At    time.Duration `json:"at_ns"`    // offset of the moment at which it was launched
	Ready time.Duration `json:"ready_ns"` // and of that at which it was ready
	// GPUs are the GPUs that the server used in a comparison side by side, as the plan names them;
	// nil if it was in none.
	GPUs []string `json:"gpus,omitempty"`
	// Cold is the time to the first token of the first request that it ever
	// completed, and ColdEnd that to its end: what later requests do not meet.
	// 0: not seen.
	Cold    time.Duration `json:"cold_ns,omitempty"`
	ColdEnd time.Duration `json:"cold_end_ns,omitempty"`
}
