package plan

// Answers says what is recorded of a workload's natural answers, and what may be wrong with them.
type Answers struct {
	Store Store `plan:"store"` // answers whose texts are recorded; "" means only judged answers
	// Repeating is RepeatingAllowed if most answers may be empty or repeat themselves; else "".
	Repeating string `plan:"repeating"`
}

// RepeatingAllowed is the value of Answers.Repeating for a model that rambles, such as one with
// random weights.
const RepeatingAllowed = "allowed"

// Store says how an answer is recorded: its text, its hash or nothing.
type Store string

const (
	StoreText Store = "text"
	StoreHash Store = "hash"
	StoreNone Store = "none"
)
