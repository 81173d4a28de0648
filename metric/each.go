package metric

// Each calls do once with each number from 0 to n-1, in any order and perhaps concurrently. A nil
// Each calls do in order, one call after the other.
type Each func(n int, do func(i int))

// Do calls do once with each number from 0 to n-1, and returns when all calls have returned.
func (e Each) Do(n int, do func(i int)) {
	if e != nil {
		e(n, do)
		return
	}
	for i := range n {
		do(i)
	}
}
