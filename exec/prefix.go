package exec

// prefix counts the leading numbers of a set to which they are added in any order.
type prefix struct {
	n    int // all numbers below it were added
	more map[int]bool
}

func (p *prefix) add(number int) {
	if number == p.n {
		p.n++
	} else {
		if p.more == nil {
			p.more = map[int]bool{}
		}
		p.more[number] = true
	}
	for ; p.more[p.n]; p.n++ {
		delete(p.more, p.n)
	}
}
