package prompt

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tokgate/tokgate/exec/client"
)

type questions struct {
	ctx       context.Context
	count     Counter
	ids       func(ctx context.Context, text string) ([]int, error) // nil if the server returns no ids
	sep       string
	base      int   // token count of the text that lead returns; 0 if not asked yet
	wordError int   // mean error of the words' costs in the last text, in tokens
	err       error // the counter's first error
}

func (q *questions) total(text string) (int, error) { return q.count(q.ctx, client.Prompt{Text: text}) }

// opening holds the two short words that every prompt begins with. A server may put text of its
// own before a prompt. Only these two words ever follow that text.
var opening = [2]string{"job", "eye"}

// lead returns the text with which all questions begin: the two words in opening. The words to be
// measured come after it.
func lead(sep string) string { return opening[0] + sep + opening[1] }

func (q *questions) ground() (err error) {
	if q.base == 0 {
		q.base, err = q.total(lead(q.sep))
	}
	return err
}

// each calls the function f for the numbers 0 … n−1, with at most atOnce calls at a time. If
// several calls fail, it keeps the error of the call with the lowest number.
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

// likely returns at most want words with their likely token counts, which come from the server's
// token ids. If the server returns none, each word counts as one token.
func (q *questions) likely(want int) []word {
	if q.ids != nil {
		if list := q.counted(); list != nil {
			return chosen(list, want)
		}
	}
	list := make([]word, want)
	for i := range list {
		list[i] = word{q.sep + words[i], 1}
	}
	return list
}

// counted learns the token counts of all words with one question. The text has the same mark before
// and after each word. The mark's token ids show where a word begins and ends. counted returns nil
// if these ids are not found, or if the server returns no ids.
func (q *questions) counted() []word {
	mark := q.sep + opening[1]
	list := []word{{text: mark}}
	var text strings.Builder
	text.WriteString(opening[0] + mark)
	for _, w := range words {
		if w != opening[1] {
			list = append(list, word{text: q.sep + w})
			text.WriteString(q.sep + w + mark)
		}
	}
	text.WriteString(mark)
	ids, err := q.ids(q.ctx, text.String())
	if errors.Is(err, client.ErrNoTokenizer) {
		q.err = err
	}
	n := len(ids)
	size := 1 // number of token ids of a mark; the text ends with two marks
	for 2*size <= n && !slices.Equal(ids[n-size:], ids[n-2*size:n-size]) {
		size++
	}
	if err != nil || 2*size > n {
		return nil
	}
	var ends []int
	for at := 0; at+size <= n; {
		if slices.Equal(ids[at:at+size], ids[n-size:]) {
			at += size
			ends = append(ends, at)
			continue
		}
		at++
	}
	// The mark, a repeated piece of text, stands before the first word and after each word.
	if len(ends) != len(list)+1 {
		return nil
	}
	list[0].cost = size
	for i := range list[1:] {
		if list[i+1].cost = ends[i+1] - size - ends[i]; list[i+1].cost < 1 {
			return nil
		}
	}
	return list
}

func chosen(list []word, want int) []word {
	var single []word
	for _, w := range list {
		if w.cost == 1 {
			single = append(single, w)
		}
	}
	if len(single) >= min(want, 32) {
		list = single
	}
	return list[:min(want, len(list))]
}

// scale is a way to find the token counts of several words with one question. The text has the
// first word once, the second word base times, the third word base² times. So each digit of the
// total count, written in this base, gives the extra tokens of one word.
type scale struct{ base, words int }

// scales lists two ways to weigh words. Base 4 is for words of at most 4 tokens. Base 16 is for all
// words: a word and its separator have at most 16 bytes, so at most 16 tokens.
var scales = []scale{{4, 4}, {16, 2}}

// weigh returns words with their token counts, measured with the separator before each word. It
// asks at most count questions. It leaves out words whose measured count is impossible.
func (q *questions) weigh(by scale, count, atOnce int) []word {
	if q.err = q.ground(); q.err != nil {
		return nil
	}
	list := make([]word, min(count*by.words, len(words)))
	q.each((len(list)+by.words-1)/by.words, atOnce, func(i int) error {
		group := list[i*by.words : min((i+1)*by.words, len(list))]
		text, least, times := lead(q.sep), q.base, 1
		for k := range group {
			group[k].text = q.sep + words[i*by.words+k]
			text += strings.Repeat(group[k].text, times)
			least += times
			times *= by.base
		}
		n, err := q.total(text)
		if extra := n - least; extra >= 0 && extra < times {
			for k := range group {
				group[k].cost = 1 + extra%by.base
				extra /= by.base
			}
		}
		return err
	})
	return slices.DeleteFunc(list, func(w word) bool { return w.cost == 0 })
}

// additive drops words until the token counts of the remaining words add up in any order. It asks
// for the count of one text that has every ordered pair of words. If that count is not the sum of
// the words' counts, it searches for the wrong pairs. ok is false if there are too many wrong
// pairs.
func (q *questions) additive(pool []word, e effort) (kept []word, ok bool) {
	if len(pool) < 2 {
		return nil, false
	}
	s := suspects{questions: q, pool: pool, left: e.hunts}
	order := everyPair(len(pool))
	segments := make([][]int, 0, len(order)/e.segment+1)
	for from := 0; from < len(order)-1; from += e.segment {
		segments = append(segments, order[from:min(from+e.segment+1, len(order))])
	}
	// For each segment: its token count minus the costs of its words.
	over := make([]int, len(segments))
	q.each(len(segments)+1, e.atOnce, func(i int) (err error) {
		if i == 0 {
			return q.ground()
		}
		over[i-1], err = s.surplus(segments[i-1])
		return err
	})
	q.wordError = 0
	for _, n := range over {
		q.wordError += n - q.base
	}
	q.wordError /= len(order)
	odd := s.oddSegments(segments, over)
	s.hunt(odd, e.atOnce)
	if q.err != nil || s.left < 0 || len(odd) > 0 && len(s.pairs) == 0 {
		return nil, false // too many questions, or wrong counts that no pair of words explains
	}
	gone := cover(s.pairs)
	for i, w := range pool {
		if !gone[i] {
			kept = append(kept, w)
		}
	}
	return kept, true
}

// suspects finds pairs of words whose token counts do not add up. A word is given by its index
// in the pool.
type suspects struct {
	*questions
	pool  []word
	left  int // questions
	pairs [][2]int
}

// surplus returns the token count of a text minus the costs of its words. The text is the opening
// (see the function lead), followed by the words of segment. If the costs add up, the result is the
// cost of the opening.
func (s *suspects) surplus(segment []int) (int, error) {
	var b strings.Builder
	b.WriteString(lead(s.sep))
	sum := 0
	for _, i := range segment {
		b.WriteString(s.pool[i].text)
		sum += s.pool[i].cost
	}
	n, err := s.total(b.String())
	return n - sum, err
}

func (s *suspects) oddSegments(segments [][]int, over []int) (odd [][]int) {
	for i, segment := range segments {
		if over[i] != s.base {
			odd = append(odd, segment)
		}
	}
	return odd
}

// hunt finds pairs of words in segments whose counts do not add up. It cuts the segments into
// quarters, and repeats this until only pairs are left.
func (s *suspects) hunt(odd [][]int, atOnce int) {
	for len(odd) > 0 && s.err == nil {
		var parts [][]int
		for _, segment := range odd {
			if len(segment) == 2 {
				s.pairs = append(s.pairs, [2]int(segment))
				continue
			}
			step := (len(segment) + 2) / 4 // a quarter of the segment's pairs of words, rounded up
			for from := 0; from < len(segment)-1; from += step {
				parts = append(parts, segment[from:min(from+step+1, len(segment))])
			}
		}
		if s.left -= len(parts); s.left < 0 {
			return
		}
		over := make([]int, len(parts))
		s.each(len(parts), atOnce, func(i int) (err error) {
			over[i], err = s.surplus(parts[i])
			return err
		})
		odd = s.oddSegments(parts, over)
	}
}

// In each step it takes the word that occurs in most of the remaining pairs. Of several such words
// it takes the last.
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

// everyPair returns a shortest sequence of the numbers 0 … n−1 in which every ordered pair occurs
// as neighbours, even pairs of equal numbers. It has n²+1 elements. It is the closed de Bruijn
// sequence B(n, 2), built as by Fredricksen and Maiorana (1978).
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
