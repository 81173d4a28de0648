package load

// Split divides total requests among rounds as evenly as possible. Larger numbers come first:
// Split(10, 4) returns 3, 3, 2, 2. A number is zero if there are more rounds than requests. Split
// panics if rounds is below 1 or total is negative.
func Split(total, rounds int) []int {
	if rounds < 1 || total < 0 {
		panic("load: Split of a negative number, or over no round")
	}
	shares := make([]int, rounds)
	for i := range shares {
		shares[i] = total / rounds
		if i < total%rounds {
			shares[i]++
		}
	}
	return shares
}
