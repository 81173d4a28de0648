package prompt

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tokgate/tokgate/exec/client"
)

// questions asks a counter about text, joined by sep.
type questions struct {
	ctx   context.Context
	count Counter
	sep   string
	err   error // the counter's first
}

func (q *questions) total(text string) (int, error) {
	return q.count(q.ctx, client.Prompt{Text: text})
}

// begin fills in what each of firsts costs at the start of a prompt, and
// returns the sum.
func (q *questions) begin(firsts []word, joint string, e effort) int {
	q.each(len(firsts), e.atOnce, func(i int) error {
		var err error
		firsts[i].cost, err = q.total(firsts[i].text + joint)
		return err
	})
	sum := 0
	for _, w := range firsts {
		sum += w.cost
	}
	return sum
}

// each runs f for 0 … n−1, several at once, and keeps the first error by
// number.
func (q *questions) each(n, atOnce int, f func(i int) error) {
	if q.err != nil {
		return
	}
	errs := make([]error, n)
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = f(i)
			<-slots
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			q.err = err
			return
		}
	}
}

// anchor is what measured words stand behind.
const anchor = "hello"

// measure returns up to want words with what each costs behind a separator:
// words of one token where enough of them are found, else any. It asks about
// group words at once.
func (q *questions) measure(want, atOnce, group int) []word {
	var base int
	if base, q.err = q.total(anchor); q.err != nil {
		return nil
	}
	var counted, single []word
	for from := 0; from < len(words) && len(single) < want; from += 64 {
		batch := make([]word, len(words[from:min(from+64, len(words))]))
		q.each((len(batch)+group-1)/group, atOnce, func(i int) error {
			return q.costs(base, words[from:], batch, i*group, min((i+1)*group, len(batch)))
		})
		if q.err != nil {
			return nil
		}
		for _, w := range batch {
			if w.cost == 1 {
				single = append(single, w)
			}
			if w.cost >= 1 {
				counted = append(counted, w)
			}
		}
		if len(single) < len(batch)/4 {
			break // bytes, or pieces of words: more of the same would follow
		}
	}
	if len(single) >= min(want, 32) {
		counted = single
	}
	return counted[:min(want, len(counted))]
}

// costs fills in words from … to−1 of a batch. Words that cost as many tokens
// as they are cost one each: none costs less, unless some of them merge, which
// additive finds. Others are asked about one by one.
func (q *questions) costs(base int, names []string, batch []word, from, to int) error {
	text := ""
	for i := from; i < to; i++ {
		batch[i].text = q.sep + names[i]
		text += batch[i].text
	}
	n, err := q.total(anchor + text)
	if err != nil || n-base == to-from || to-from == 1 {
		for i := from; i < to; i++ {
			batch[i].cost = (n - base) / (to - from)
		}
		return err
	}
	for i := from; i < to && err == nil; i++ {
		err = q.costs(base, names, batch, i, i+1)
	}
	return err
}

// additive drops words until all that are left add up in any order. One text
// that has every ordered pair of words in it tells; where it does not add up,
// halving finds the pairs that do not. ok is false when there are too many.
func (q *questions) additive(pool []word, e effort) (kept []word, ok bool) {
	if len(pool) < 2 {
		return nil, false
	}
	var s suspects
	if s.base, q.err = q.total(anchor); q.err != nil {
		return nil, false
	}
	s.questions, s.pool, s.left = q, pool, e.hunts
	order := everyPair(len(pool))
	segments := make([][]int, 0, len(order)/e.segment+1)
	for from := 0; from < len(order)-1; from += e.segment {
		segments = append(segments, order[from:min(from+e.segment+1, len(order))])
	}
	wrong := make([]bool, len(segments))
	q.each(len(segments), e.atOnce, func(i int) error {
		var err error
		wrong[i], err = s.wrong(segments[i])
		return err
	})
	for i, segment := range segments {
		if q.err == nil && wrong[i] {
			s.hunt(segment)
		}
	}
	if q.err != nil || s.left == 0 || slices.Contains(wrong, true) && len(s.pairs) == 0 {
		return nil, false // too many, or what is wrong spans more than two words
	}
	gone := cover(s.pairs)
	for i, w := range pool {
		if !gone[i] {
			kept = append(kept, w)
		}
	}
	return kept, true
}

// suspects are pairs of words, by their place in the pool, that do not add up.
type suspects struct {
	*questions
	pool  []word
	base  int // tokens of the anchor
	left  int // questions
	pairs [][2]int
}

// wrong reports whether a text of these words does not cost what they do.
func (s *suspects) wrong(segment []int) (bool, error) {
	var b strings.Builder
	b.WriteString(anchor)
	want := s.base
	for _, i := range segment {
		b.WriteString(s.pool[i].text)
		want += s.pool[i].cost
	}
	got, err := s.total(b.String())
	return got != want, err
}

// hunt halves a segment that is wrong until it is a pair.
func (s *suspects) hunt(segment []int) {
	if len(segment) == 2 {
		s.pairs = append(s.pairs, [2]int(segment))
		return
	}
	half := len(segment) / 2
	for _, part := range [][]int{segment[:half+1], segment[half:]} {
		if len(part) < 2 || s.err != nil || s.left == 0 {
			continue
		}
		s.left--
		var wrong bool
		if wrong, s.err = s.wrong(part); wrong && s.err == nil {
			s.hunt(part)
		}
	}
}

// cover returns words such that every pair holds one of them. It is greedy:
// each step takes the word in most of the remaining pairs, the last of equals.
func cover(pairs [][2]int) map[int]bool {
	gone := map[int]bool{}
	for len(pairs) > 0 {
		in := map[int]int{} // pairs, by word
		for _, p := range pairs {
			in[p[0]]++
			in[p[1]]++
		}
		worst := slices.MaxFunc(slices.Collect(maps.Keys(in)), func(a, b int) int {
			return cmp.Or(cmp.Compare(in[a], in[b]), cmp.Compare(a, b))
		})
		gone[worst] = true
		pairs = slices.DeleteFunc(pairs, func(p [2]int) bool { return p[0] == worst || p[1] == worst })
	}
	return gone
}

// everyPair is a shortest sequence over 0 … n−1 in which every ordered pair,
// equal ones included, occurs as neighbours: the de Bruijn sequence B(n, 2),
// closed, of n²+1 elements, as the Lyndon words of length 1 and 2 in order
// (Fredricksen and Maiorana 1978).
func everyPair(n int) []int {
	s := make([]int, 0, n*n+1)
	for i := range n {
		s = append(s, i)
		for j := i + 1; j < n; j++ {
			s = append(s, i, j)
		}
	}
	return append(s, 0)
}
