package metric

// Each calls do with 0 to n-1, once each, in any order and perhaps at once. nil calls them one
// after the other.
type Each func(n int, do func(i int))

// Do calls do with 0 to n-1, and returns when all calls have.
func (e Each) Do(n int, do func(i int)) {
	if e != nil {
		e(n, do)
		return
	}
	for i := range n {
		do(i)
	}
}
