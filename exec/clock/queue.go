package clock

import (
	"container/heap"
	"time"
)

// event is a function that is due at a time. Events with the same time run in the order of their
// creation. So a run in virtual time can be repeated exactly.
type event struct {
	at    time.Duration
	seq   uint64
	f     func()
	index int // index in the queue; -1 if the event is not in the queue
}

// queue is a heap of events with the earliest event first. Events at the same time are in the order
// of their creation.
type queue struct {
	events []*event
	made   uint64
}

func (q *queue) Len() int { return len(q.events) }
func (q *queue) Less(i, j int) bool {
	a, b := q.events[i], q.events[j]
	if a.at != b.at {
		return a.at < b.at
	}
	return a.seq < b.seq
}
func (q *queue) Swap(i, j int) {
	q.events[i], q.events[j] = q.events[j], q.events[i]
	q.events[i].index, q.events[j].index = i, j
}
func (q *queue) Push(x any) {
	e := x.(*event)
	e.index = len(q.events)
	q.events = append(q.events, e)
}
func (q *queue) Pop() any {
	last := len(q.events) - 1
	e := q.events[last]
	q.events[last] = nil
	q.events = q.events[:last]
	e.index = -1
	return e
}

func (q *queue) add(at time.Duration, f func()) *event {
	q.made++
	e := &event{at: at, seq: q.made, f: f}
	heap.Push(q, e)
	return e
}

func (q *queue) next(now time.Duration) (*event, bool) {
	if len(q.events) == 0 || q.events[0].at > now {
		return nil, false
	}
	return heap.Pop(q).(*event), true
}

func (q *queue) first() (time.Duration, bool) {
	if len(q.events) == 0 {
		return 0, false
	}
	return q.events[0].at, true
}

func (q *queue) drop(e *event) bool {
	if e.index < 0 {
		return false
	}
	heap.Remove(q, e.index)
	return true
}
