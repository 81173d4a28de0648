package client

import (
	"context"
	"sync"
	"sync/atomic"
)

// Fronts sends requests to several front ends of one server in turn.
type Fronts struct {
	of   []*HTTP
	next atomic.Uint64
}

// NewFronts returns a Transport to the front ends of one server.
func NewFronts(of []*HTTP) *Fronts { return &Fronts{of: of} }

func (f *Fronts) turn() *HTTP { return f.of[(f.next.Add(1)-1)%uint64(len(f.of))] }

// Send implements Transport. A request whose bytes were made in advance goes to the front end for
// which they were made.
func (f *Fronts) Send(ctx context.Context, r *Request, s Stream) {
	var h *HTTP
	if ready := r.Prompt.Ready; ready != nil {
		h, _ = ready.by.(*HTTP)
	} else {
		h = f.turn()
	}
	if r.Front != nil {
		*r.Front = h.config.BaseURL
	}
	h.Send(ctx, r, s)
}

// Prepare implements Prepared.
func (f *Fronts) Prepare(r *Request) Prompt { return f.turn().Prepare(r) }

// Warm implements Prepared.
func (f *Fronts) Warm(ctx context.Context, n int) {
	var all sync.WaitGroup
	for _, h := range f.of {
		all.Go(func() { h.Warm(ctx, (n+len(f.of)-1)/len(f.of)) })
	}
	all.Wait()
}
