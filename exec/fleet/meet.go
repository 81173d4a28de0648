package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/plan"
)

const (
	meetWithin  = lostAfter // a shorter cut of the network may end
	reachWithin = 60 * time.Second
	// grain is what a worker needs from reading an order to being ready to send it.
	grain = 10 * time.Millisecond
)

// meeting is a barrier, and the workers that have not come.
type meeting struct {
	id      int64
	missing []*member
}

// lead is how long an order takes to be with any worker: the longest way, and its bound.
func (f *Fleet) lead() time.Duration {
	longest := time.Duration(0)
	for _, m := range f.members {
		longest = max(longest, m.beat.Trip/2+m.beat.Bound)
	}
	return longest + flushEach + grain
}

// meet lets all workers report at one time. It returns an error that names those that did not.
func (f *Fleet) meet(ctx context.Context) error {
	x := &f.meets
	x.id++
	x.missing = slices.Clone(f.members)
	for _, m := range f.members {
		m.say(message{Kind: toMeet, ID: x.id, At: f.loop.Now() + f.lead()})
	}
	err := f.until(ctx, meetWithin, func() bool { return len(x.missing) == 0 })
	if err != nil && f.gone == nil && errors.Is(err, context.DeadlineExceeded) {
		f.lose(x.missing[0], fmt.Sprintf("within %v, %s did not come to the barrier before the load", meetWithin, names(x.missing)))
	}
	return cmp.Or(f.gone, err)
}

func (x *meeting) met(m *member, said *message) {
	if i := slices.Index(x.missing, m); i >= 0 && said.ID == x.id {
		x.missing = slices.Delete(x.missing, i, i+1)
	}
}

func names(of []*member) string {
	var out []string
	for _, m := range of {
		out = append(out, m.name)
	}
	return strings.Join(out, ", ")
}

// until runs the clock until done returns true, the time is over, or a worker is lost.
func (f *Fleet) until(ctx context.Context, within time.Duration, done func() bool) error {
	ctx, cancel := clock.WithTimeout(ctx, f.loop, within)
	defer cancel()
	for !done() && f.gone == nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := f.loop.Wait(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// reach tells all workers how to reach a server, and waits until each has asked it for its models, and has said how
// it is. A worker that cannot would make its share of the requests fail, as if the server did.
func (f *Fleet) reach(ctx context.Context, n int, s *plan.Server, standard bool, state func(string)) error {
	e := s.Endpoint
	state("waiting until the workers reach it")
	for _, m := range f.members {
		m.say(message{Kind: toReach, N: n, Reach: &Reach{
			URLs: e.URLs(), Engine: s.Engine, APIKey: e.APIKey, Headers: e.Headers, Query: e.Query,
			AnyRedirect: e.Redirects == "any", H2C: e.H2C, Standard: standard,
		}})
	}
	missing := func() (out []*member) {
		return slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return m.reached[n] != nil && m.beaten })
	}
	if err := f.until(ctx, reachWithin, func() bool { return len(missing()) == 0 }); err != nil && f.gone == nil {
		return fmt.Errorf("%s did not say within %v whether the server can be reached from there: %w", names(missing()), reachWithin, err)
	}
	for _, m := range f.members {
		if why := m.reached[n]; why != nil && *why != "" {
			return fmt.Errorf("worker %s cannot reach it: %s", m.name, *why)
		}
	}
	return f.gone
}

// prepared is the transport to workers in other processes.
type prepared struct{ *transport }

// Prepare implements client.Prepared. A worker makes the bytes of a request when it has the order.
func (prepared) Prepare(r *client.Request) client.Prompt { return r.Prompt }

// Warm implements client.Prepared. Each worker opens its share; the barrier then waits for all.
func (p prepared) Warm(_ context.Context, n int) {
	for _, m := range p.members {
		m.say(message{Kind: toWarm, Server: p.server, N: (n + len(p.members) - 1) / len(p.members)})
	}
}
