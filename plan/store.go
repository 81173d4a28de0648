package plan

// Answers says what is recorded of a workload's natural answers.
type Answers struct {
	Store Store `plan:"store"` // answers whose texts are recorded; "" means only judged answers
}

// Store says how an answer is recorded: its text, its hash or nothing.
type Store string

const (
	StoreText Store = "text"
	StoreHash Store = "hash"
	StoreNone Store = "none"
)
