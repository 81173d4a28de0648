package metric

import "time"

// Residue is what a server kept of a level.
type Residue struct {
	Before  Occupied      `json:"before"` // after a first part of the load, in which no client left
	After   Occupied      `json:"after"`
	Settled time.Duration `json:"settled_ns"` // how long the server took to return, or was waited for
	// Made is how many tokens the server says it made during the level; Taken is how many its clients
	// received. Owed is how many the clients that left had asked for besides, as far as a server can stop.
	Made  Value   `json:"made"`
	Taken float64 `json:"taken"`
	Owed  float64 `json:"owed"`
	Left  int     `json:"left"`            // requests whose connection tokgate closed, also at the level's end
	Burst int     `json:"burst,omitempty"` // requests that were sent at once before and after; 0: not asked
	Why   string  `json:"why,omitempty"`   // why nothing is known; "" if something is
}

// Occupied is what requests take of a server, and what is left for others.
type Occupied struct {
	Running Value         `json:"running"`
	Waiting Value         `json:"waiting"`
	KV      Value         `json:"kv_usage"`          // share of the cache, from 0 to 1
	Alone   time.Duration `json:"alone_ns"`          // TTFT of a request alone; 0: it got no answer
	AtOnce  int           `json:"at_once,omitempty"` // most requests of a burst that were answered at once
}

// Busy reports whether the server says that it runs requests, or that some wait.
func (o Occupied) Busy() bool { return o.Running.V > 0 || o.Waiting.V > 0 }

// Within reports whether no more is taken than of was, and a request alone is about as fast.
func (o Occupied) Within(was Occupied) bool {
	return !o.Running.More(was.Running) && !o.Waiting.More(was.Waiting) && !o.KV.More(was.KV) && Recovered(was.Alone, o.Alone)
}

// More reports whether the value is known to be larger than another.
func (v Value) More(than Value) bool { return v.OK && than.OK && v.V > than.V+1e-9 }

// Recovered reports whether a request alone is about as fast as the slowest one before. It is false if
// one of them got no answer.
func Recovered(before, after time.Duration) bool {
	return before > 0 && after > 0 && after <= before+before/2+20*time.Millisecond
}

// stopsWithin is how many tokens of an answer a server may make while it learns that its client left.
const stopsWithin = 8

// Wasted returns the share of the tokens that clients did not wait for, which the server made all the
// same. It has no value without such tokens, or if the server does not count.
func (r *Residue) Wasted() Value {
	if !r.Made.OK || r.Owed <= 0 {
		return None("the server does not count its tokens, or no client left before")
	}
	return Some(max(r.Made.V-r.Taken-stopsWithin*float64(r.Left), 0) / r.Owed)
}
