package plan

// Answers is what is kept of a workload's natural answers.
type Answers struct {
	Store Store `plan:"store"` // "": their text where they are judged, else nothing
}

// Store says what of an answer is recorded.
type Store string

const (
	StoreText Store = "text"
	StoreHash Store = "hash"
	StoreNone Store = "none"
)
