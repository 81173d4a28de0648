package metric

// Each is a function that calls do once for each number from 0 to n-1. The calls may run in any
// order or concurrently. Where an Each is nil, do is called in order, one call after the other.
type Each func(n int, do func(i int))

// Do calls do once for each number from 0 to n-1. It returns when all calls have returned.
func (e Each) Do(n int, do func(i int)) {
	if e != nil {
		e(n, do)
		return
	}
	for i := range n {
		do(i)
	}
}
