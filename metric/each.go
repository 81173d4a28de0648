package metric

// Each calls do once for each number from 0 to n-1. The calls may run in any order and
// concurrently. If Each is nil, its users call do in order, one call after the other.
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
