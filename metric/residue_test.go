package metric

import (
	"testing"
	"time"
)

// A request that was cancelled after 10 of 64 tokens owes 64−10−8 = 46, because a server may make 8 more
// until it knows.
func TestResidueTakes(t *testing.T) {
	done := func(tokens, chunks int) *Sample {
		return &Sample{Sent: 1, OutputAsked: tokens, Chunks: chunks, Usage: &Usage{Output: tokens}}
	}
	left := func(asked, chunks int) *Sample {
		return &Sample{Sent: 1, OutputAsked: asked, Chunks: chunks, Failure: &Failure{Kind: FailCanceled}}
	}
	counted := left(64, 3)
	counted.Usage = &Usage{Output: 30}
	unsent := left(64, 0)
	unsent.Sent = 0
	refused := &Sample{Sent: 1, OutputAsked: 64, Failure: &Failure{Kind: FailStatus}}
	for _, tt := range []struct {
		name        string
		sent        []*Sample
		others      int
		taken, owed float64
		left        int
		made        float64 // tokens that the server says it made
		wasted      float64 // −1: no value
	}{
		{"nobody left", []*Sample{done(64, 64)}, 3, 67, 0, 0, 67, -1},
		{"one left, and the server stopped", []*Sample{done(64, 64), left(64, 10)}, 1, 64 + 10 + 1, 46, 1, 75 + 5, 0},
		{"one left, and the server went on", []*Sample{done(64, 64), left(64, 10)}, 1, 75, 46, 1, 75 + 54, 1},
		{"half of it", []*Sample{done(64, 64), left(64, 10)}, 0, 74, 46, 1, 74 + 8 + 23, 0.5},
		{"two tokens a chunk", []*Sample{done(64, 32), left(64, 10)}, 0, 64 + 20, 64 - 20 - 8, 1, 84, 0},
		{"the server said how many", []*Sample{done(64, 64), counted}, 0, 64 + 30, 64 - 30 - 8, 1, 94, 0},
		{"an answer that ends by itself counts as the mean", []*Sample{done(40, 40), left(1000, 10)}, 0, 50, 40 - 10 - 8, 1, 50, 0},
		{"near its end", []*Sample{done(64, 64), left(64, 60)}, 0, 124, 0, 1, 128, -1},
		{"no answer is complete", []*Sample{left(64, 10)}, 0, 10, 46, 1, 10, 0},
		{"never sent, and refused", []*Sample{unsent, refused}, 0, 0, 0, 0, 0, -1},
	} {
		r := Residue{Made: Some(tt.made)}
		r.Take(tt.sent, tt.others)
		if r.Taken != tt.taken || r.Owed != tt.owed || r.Left != tt.left {
			t.Errorf("%s: took %v, owed %v, %d left, want %v, %v, %d", tt.name, r.Taken, r.Owed, r.Left, tt.taken, tt.owed, tt.left)
		}
		if w := r.Wasted(); w.OK != (tt.wasted >= 0) || w.OK && w.V != tt.wasted {
			t.Errorf("%s: wasted %+v, want %v", tt.name, w, tt.wasted)
		}
	}
	silent := Residue{Owed: 46, Made: None("not counted")}
	if w := silent.Wasted(); w.OK {
		t.Errorf("of a server that does not count: %+v", w)
	}
}

// A request alone may wait 1.5 times as long as before, and 20 ms.
func TestOccupiedWithin(t *testing.T) {
	const ms = time.Millisecond
	was := Occupied{Running: Some(0), Waiting: Some(0), KV: Some(0.25), Alone: 100 * ms}
	for name, tt := range map[string]struct {
		change func(*Occupied)
		want   bool
	}{
		"the same":              {func(*Occupied) {}, true},
		"less KV":               {func(o *Occupied) { o.KV = Some(0.1) }, true},
		"one block":             {func(o *Occupied) { o.KV = Some(0.2501) }, false},
		"one runs":              {func(o *Occupied) { o.Running = Some(1) }, false},
		"one waits":             {func(o *Occupied) { o.Waiting = Some(1) }, false},
		"KV unknown":            {func(o *Occupied) { o.KV = None("cached") }, true},
		"170 ms":                {func(o *Occupied) { o.Alone = 170 * ms }, true},
		"171 ms":                {func(o *Occupied) { o.Alone = 171 * ms }, false},
		"no answer":             {func(o *Occupied) { o.Alone = 0 }, false},
		"more than is taken up": {func(o *Occupied) { o.KV = Some(1) }, false},
	} {
		is := was
		tt.change(&is)
		if got := is.Within(was); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if Recovered(0, 100*ms) {
		t.Error("recovered from no answer")
	}
	if !(Occupied{Running: Some(1)}).Busy() || !(Occupied{Waiting: Some(1)}).Busy() || (Occupied{}).Busy() {
		t.Error("busy")
	}
}
