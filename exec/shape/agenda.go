package shape

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// agenda holds what is due later, in the order of its times. Of equal times the first entered comes
// first.
type agenda[T any] struct {
	entries []entry[T]
	over    int // entries at the beginning that were due before, at most half of them
}

type entry[T any] struct {
	at   time.Duration
	what T
}

func (a *agenda[T]) add(at time.Duration, what T) {
	i, _ := slices.BinarySearchFunc(a.entries[a.over:], at+1, func(e entry[T], at time.Duration) int { return cmp.Compare(e.at, at) })
	a.entries = slices.Insert(a.entries, a.over+i, entry[T]{at, what})
}

func (a *agenda[T]) due(now time.Duration) (what T, at time.Duration, ok bool) {
	if len(a.entries) == 0 || a.entries[a.over].at > now {
		return what, 0, false
	}
	e := a.entries[a.over]
	if a.over++; 2*a.over > len(a.entries) {
		a.entries, a.over = slices.Delete(a.entries, 0, a.over), 0
	}
	return e.what, e.at, true
}

func (a *agenda[T]) next() time.Duration {
	if len(a.entries) == 0 {
		return 0
	}
	return a.entries[a.over].at
}

// soonest returns the earliest of the times. A time of 0 stands for never.
func soonest(times ...time.Duration) time.Duration {
	out := time.Duration(0)
	for _, t := range times {
		if t > 0 && (out == 0 || t < out) {
			out = t
		}
	}
	return out
}

// Tokens counts the chunks with tokens of all answers that a shape listens to.
type Tokens struct {
	last, n atomic.Int64
}

// Ear hears the tokens of one answer. Any goroutine may call its methods.
type Ear struct {
	all   *Tokens
	began atomic.Bool
}

// Hear records n chunks with tokens, the last of which arrived at the given time.
func (e *Ear) Hear(at time.Duration, n int) {
	e.began.Store(true)
	e.all.last.Store(max(int64(at), e.all.last.Load()))
	e.all.n.Add(int64(n))
}
