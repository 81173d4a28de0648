package metric

import "time"

// Comparison records how a comparison of the plan was run. Its legs are the rounds that have the
// field Leg; they belong to levels that ran on both servers. Round r of the control and round r of
// the candidate are a pair.
type Comparison struct {
	Name      string `json:"name"`
	Control   string `json:"control"`   // address, or "baseline" and the folder of the baseline
	Candidate string `json:"candidate"` // address
	Restart   string `json:"restart"`   // "leg", "order" or "never"
	// SideBySide means that both legs of a round ran at the same time. The two servers swapped
	// their GPUs from round to round; see Start.GPUs.
	SideBySide bool `json:"side_by_side,omitempty"`
	// Looks holds the interim judgements (looks) that took place, in order; the last one decides.
	// It is empty if the comparison was judged once, at its end.
	Looks []ComparisonLook `json:"looks,omitempty"`
	// Skipped is the reason why nothing was compared; "" if the comparison was run.
	Skipped string   `json:"skipped,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Answers holds the answers of both servers to the same prompts; nil if the plan asks
	// for none.
	Answers *PairedAnswers `json:"answers,omitempty"`
}

// ComparisonLook is one planned interim judgement of a comparison, a look in the sense of
// sequential tests.
type ComparisonLook struct {
	Rounds  int    `json:"rounds"`            // judged rounds, counted from the first round
	Planned int    `json:"planned"`           // number of planned looks, which share the allowed error; at least 1
	Outcome string `json:"outcome,omitempty"` // "" if the decision is left to the end of the run
}

// Leg marks a round as one side of a comparison. The two servers take turns, and each turn is one
// round.
type Leg struct {
	// Slot is the position of the leg in time, 0-based, among all servers that take turns: in the
	// order A B B A the legs have the slots 0 1 2 3. Legs side by side have the same slot.
	Slot int `json:"slot"`
	// Start is the number of the server's start, 0-based. Legs of the same start share everything
	// that varies by chance from one start to the next.
	Start int `json:"start"`
}

// Start is one start of a server.
type Start struct {
	At    time.Duration `json:"at_ns"`    // offset of its launch
	Ready time.Duration `json:"ready_ns"` // offset at which it was ready
	// GPUs are the GPUs that the server used in a comparison side by side, as the plan names them;
	// otherwise nil.
	GPUs []string `json:"gpus,omitempty"`
	// Cold is the TTFT of the first request that completed after the server's start. ColdEnd is the
	// time to the end of that request. Both are 0 if no such request was seen. They are kept apart
	// because later requests do not have this delay.
	Cold    time.Duration `json:"cold_ns,omitempty"`
	ColdEnd time.Duration `json:"cold_end_ns,omitempty"`
}
