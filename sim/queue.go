package sim

import (
	"slices"
	"time"
)

// queue holds the sequences that wait for admission, in the order of submission. The server's front
// end keeps this order.
type queue struct {
	items []*sequence
	head  int
}

func (q *queue) len() int         { return len(q.items) - q.head }
func (q *queue) front() *sequence { return q.items[q.head] }

func (q *queue) push(s *sequence) {
	if q.head > 64 && q.head > len(q.items)/2 {
		q.items = slices.Delete(q.items, 0, q.head)
		q.head = 0
	}
	q.items = append(q.items, s)
}

func (q *queue) pop() *sequence {
	s := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	return s
}

func (q *queue) remove(s *sequence) {
	if i := slices.Index(q.items[q.head:], s); i >= 0 {
		q.items = slices.Delete(q.items, q.head+i, q.head+i+1)
	}
}

func (q *queue) arrived(now time.Duration) int {
	n := 0
	for _, s := range q.items[q.head:] {
		if s.Queued > now {
			break
		}
		n++
	}
	return n
}

// admitted is the sequences in the engine, and what they hold.
type admitted struct {
	prefill  []*sequence
	decode   []*sequence
	kv       int // tokens reserved
	resident int // KV cache tokens in use by the decoding sequences
	leaked   int // slots that are never freed
	dropped  int // number of cancelled sequences that the lists prefill and decode still contain
}

// step is the step that the engine takes.
type step struct {
	stepping bool // one is running, until stepEnd
	stepEnd  time.Duration
	decodes  bool // it decodes
	decoded  int  // number of decoding steps so far; counted only if the profile has stalls
}
