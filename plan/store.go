package plan

// Answers sets what is recorded of a workload's natural answers.
type Answers struct {
	Store Store `plan:"store"` // "" records the text of judged answers, and no other text
}

// Store is the part of an answer that is recorded.
type Store string

const (
	StoreText Store = "text"
	StoreHash Store = "hash"
	StoreNone Store = "none"
)
