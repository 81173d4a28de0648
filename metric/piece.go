package metric

// Piece is a part of a prompt, without its text. Two pieces with the same key begin with the same text:
// the shorter one is the beginning of the longer one.
type Piece struct {
	Key    uint64
	Tokens int
}
