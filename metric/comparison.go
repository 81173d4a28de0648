package metric

import "time"

// Comparison records how a comparison of the plan was run. Its legs are rounds on one of the two
// servers, with the field Leg set. Round r of the control and round r of the candidate are a pair.
type Comparison struct {
	Name      string `json:"name"`
	Control   string `json:"control"`   // address, or "baseline" and the folder of the baseline
	Candidate string `json:"candidate"` // address
	Restart   string `json:"restart"`   // "leg" or "never"; "order" in old recordings
	// SideBySide means that both legs of a round ran at the same time. The two servers swapped
	// their GPUs after each round; see Start.GPUs.
	SideBySide bool `json:"side_by_side,omitempty"`
	// Planned lists after how many rounds it was planned to judge the comparison. These looks share
	// its error. It is empty in recordings of versions that did not plan looks.
	Planned []int `json:"planned,omitempty"`
	// Looks holds the interim judgements (looks) in order; the last one decides. Without Planned, it is
	// empty if the comparison was judged only at its end.
	Looks []ComparisonLook `json:"looks,omitempty"`
	// Sessions lists after how many rounds a later session continued the comparison, in ascending
	// order. It is empty if all rounds are of one session.
	Sessions []int `json:"sessions,omitempty"`
	// Skipped is the reason why nothing was compared; "" if the comparison was run.
	Skipped string   `json:"skipped,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Answers compares the answers of both servers to the same prompts; nil if the plan does not
	// ask for this.
	Answers *PairedAnswers `json:"answers,omitempty"`
}

// ComparisonLook is one planned interim judgement of a comparison: a look, as in sequential tests.
type ComparisonLook struct {
	Rounds  int     `json:"rounds"`            // judged rounds, counted from the first round
	Planned int     `json:"planned,omitempty"` // number of planned looks, if the comparison does not list them; at least 1
	Outcome Outcome `json:"outcome,omitempty"` // Pending if nothing judged the comparison at this look
}

// Leg is one server's turn in a comparison: a round of a level on this server.
type Leg struct {
	// Slot is the position in time of the leg among the legs of all servers, from 0. In the order A
	// B B A the legs have the slots 0 1 2 3. Legs side by side have the same slot.
	Slot int `json:"slot"`
	// Start is the number of the server's start, from 0. Legs of the same start share all that
	// varies by chance between starts.
	Start int `json:"start"`
}

// Start is one start of a server.
type Start struct {
	At    time.Duration `json:"at_ns"`    // offset of its launch
	Ready time.Duration `json:"ready_ns"` // offset at which the server was ready
	// GPUs are the server's GPUs in a comparison side by side, as the plan names them, or the node of its pod; nil
	// in other comparisons.
	GPUs []string `json:"gpus,omitempty"`
	// Cold is the TTFT of the first request that completed after the server's start, and ColdEnd is
	// its whole duration. Both are 0 if there was no such request. No metric includes them, because
	// later requests are faster.
	Cold    time.Duration `json:"cold_ns,omitempty"`
	ColdEnd time.Duration `json:"cold_end_ns,omitempty"`
	// Kind says what the start found on the machine; "" if not known. Pull is the part of the start
	// that pulled the image. Mounted means that volumes were mounted, which may hold caches.
	Kind    StartKind     `json:"kind,omitempty"`
	Pull    time.Duration `json:"pull_ns,omitempty"`
	Mounted bool          `json:"mounted,omitempty"`
}

// StartKind says what a start found on the machine.
type StartKind string

const (
	// StartCold is the first start with this program, model and flags since the machine booted.
	StartCold StartKind = "cold"
	// StartWarm is any later one: the weights may be in memory, and the kernels compiled.
	StartWarm StartKind = "warm"
)

// Took returns the time until the server was ready, with the pull of its image.
func (s Start) Took() time.Duration { return s.Ready - s.At }

// loaded returns the time until the server was ready, without the pull of its image.
func (s Start) loaded() time.Duration { return s.Took() - s.Pull }

// StartTimes returns what the first of further starts takes, and each later one: the last cold start if one
// is recorded, and the mean of the warm ones. Starts of unknown kind are warm but for the first. ok is
// false without starts.
func StartTimes(starts []Start) (first, later time.Duration, ok bool) {
	var warm time.Duration
	n := 0
	for i, s := range starts {
		if warmAt(starts, i) {
			warm, n = warm+s.loaded(), n+1
		} else {
			first = s.loaded()
		}
	}
	if n == 0 {
		return first, first, len(starts) > 0
	}
	later = warm / time.Duration(n)
	return max(first, later), later, true
}

// warmAt reports whether a start was warm. Of starts of unknown kind, all but the first were.
func warmAt(starts []Start, i int) bool {
	return starts[i].Kind == StartWarm || starts[i].Kind == "" && i > 0
}
