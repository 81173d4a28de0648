package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/prompt"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// Fleet is the controller's side of the workers of a run. Only the loop of the run's clock uses it.
type Fleet struct {
	loop    clock.Clock
	members []*member
	flights map[int64]*flight
	orders  int64 // orders so far
	servers int   // servers so far
	makers  map[*prompt.Maker]int
	meets   meeting
	meters  map[*measuring]bool // units that are open
	gone    error
}

// member is one worker, as the controller knows it.
type member struct {
	name    string
	put     func(line []byte, patient bool)
	bundle  bundling
	flush   func()
	strand  *record.Strand
	local   *worker // the worker itself, if it is in this process; else nil
	makers  map[int]bool
	reached map[int]*string // by server: "" if it was reached, else why not
	beat    Beat            // the last one
	beaten  bool            // one came
	bound   time.Duration   // largest of all beats
	samples int
	quiet   time.Duration // longest time without a word
	lost    bool
}

// flight is a request that a worker has.
type flight struct {
	member *member
	stream client.Elsewhere
	stop   func() bool // forgets the context of the request
	got    client.Received
	chunks int // that were reported while they came
}

func newFleet(c clock.Clock) *Fleet {
	return &Fleet{loop: c, flights: map[int64]*flight{}, makers: map[*prompt.Maker]int{}, meters: map[*measuring]bool{}}
}

// Virtual returns a Fleet of n workers in this process, which are on its clock and share one connection to
// each server. Orders and samples take their whole way but the network.
func Virtual(c clock.Clock, n int) *Fleet {
	f := newFleet(c)
	for i := range n {
		m := f.add(fmt.Sprintf("worker-%d", i), nil)
		m.local = newWorker(c, func(line []byte, _ bool) {
			if err := f.takes(m, line); err != nil {
				f.lose(m, err.Error())
			}
		})
		m.local.post = func(do func()) { do() }
		m.local.hears = f.heard
	}
	return f
}

func (f *Fleet) add(name string, out *mail) *member {
	m := &member{name: name, strand: record.NewStrand(), makers: map[int]bool{}, reached: map[int]*string{}}
	if out != nil {
		m.put, m.flush = out.put, out.rouse
	}
	f.members = append(f.members, m)
	return m
}

func (m *member) say(x message) { m.sends(x, false) }

func (m *member) sends(x message, patient bool) {
	raw, err := json.Marshal(x)
	if err != nil { // no message of this package has a value that JSON lacks
		panic(err)
	}
	m.put(raw, patient)
}

// Sent returns what is known of each worker.
func (f *Fleet) Sent() (out []metric.Worker) {
	for _, m := range f.members {
		out = append(out, metric.Worker{Name: m.name, Requests: m.samples, Offset: m.bound, Quiet: m.quiet})
	}
	return out
}

// Gone returns which worker was lost, and why; nil if none was.
func (f *Fleet) Gone() error { return f.gone }

// Launch makes the load of every server that the given function launches come from the workers.
func (f *Fleet) Launch(launch exec.Launch, standard bool) exec.Launch {
	return func(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
		t, err := launch(ctx, s, state)
		if err != nil {
			return nil, err
		}
		to := &transport{f, f.servers}
		f.servers++
		if f.members[0].local != nil {
			for _, m := range f.members {
				m.local.servers[to.server] = t.Transport
			}
			t.Transport = to
			return t, nil
		}
		t.Transport, t.Barrier, t.Lead = prepared{to}, f.meet, f.lead
		if err := f.reach(ctx, to.server, s, standard, state); err != nil {
			return nil, errors.Join(err, t.Close())
		}
		return t, nil
	}
}

// transport sends requests to one server by the workers.
type transport struct {
	*Fleet
	server int
}

// owner returns the worker of a request: that of its slot or user, or, if it is due at a time of its own
// and has neither, of its number.
func (f *Fleet) owner(s *metric.Sample) *member {
	of := s.Slot
	if of == 0 && s.FromDue {
		of = s.Order
	}
	return f.members[of%len(f.members)]
}

// Send implements client.Transport.
func (t *transport) Send(ctx context.Context, r *client.Request, s client.Stream) {
	x, ok := s.(client.Elsewhere)
	if !ok {
		s.End(t.loop.Now(), &client.Error{Kind: metric.FailLocal, Message: "a worker cannot send this request"})
		return
	}
	known := x.Sample()
	m := t.owner(known)
	o, err := orderOf(r)
	if err == nil && t.gone != nil {
		err = t.gone
	}
	if err != nil {
		s.End(t.loop.Now(), &client.Error{Kind: metric.FailLocal, Message: err.Error()})
		return
	}
	o.Server, o.Sample = t.server, *known
	o.Keep, o.Reply = x.Keeps()
	_, o.Heard = s.(client.Heard)
	if l, ok := s.(client.Leaving); ok {
		o.Leaves = l.Leaves()
	}
	if recipe, ok := r.Prompt.Recipe.(prompt.Recipe); ok {
		o.Maker, o.Recipe = t.maker(m, recipe.Maker), &recipe
	}
	t.orders++
	id := t.orders
	fl := &flight{member: m, stream: x}
	t.flights[id] = fl
	if m.local != nil {
		fl.stop = func() bool { return true }
		m.local.send(ctx, id, wired(o))
		return
	}
	if m.sends(message{Kind: toSend, ID: id, Order: o}, r.Patient); r.Patient {
		m.bundle.after(t.loop, m.flush)
	}
	fl.stop = context.AfterFunc(ctx, func() { m.say(message{Kind: toCancel, ID: id}) }) // after the order, also if ctx has ended
}

// wired returns an order as it arrives after its way.
func wired(o *order) *order {
	raw, err := json.Marshal(message{Kind: toSend, Order: o})
	if err != nil {
		panic(err) // see say
	}
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		panic(err)
	}
	return m.Order
}

// maker returns the number of a Maker that the worker knows, after telling it if it does not.
func (f *Fleet) maker(m *member, of *prompt.Maker) int {
	n, ok := f.makers[of]
	if !ok {
		n = len(f.makers) + 1
		f.makers[of] = n
	}
	if !m.makers[n] {
		m.makers[n] = true
		m.say(message{Kind: toMake, N: n, Known: of.Known(), Salt: of.Salt()})
	}
	return n
}

// takes takes a line of a worker. An error means that the line is none that this worker could send.
func (f *Fleet) takes(m *member, line []byte) error {
	x, err := m.opens(line)
	if err == nil {
		x(f)
	}
	return err
}

// lose ends the run, because a worker was lost. Its requests end as cancelled.
func (f *Fleet) lose(m *member, why string) {
	if f.gone != nil {
		return
	}
	m.lost = true
	f.gone = fmt.Errorf("worker %s was lost: %s. Without its share of the load there is no verdict", m.name, why)
	now := f.loop.Now()
	for id, fl := range f.flights {
		if fl.member == m {
			f.ends(id, now)
		}
	}
	f.loop.Post(func() {}) // wakes the loop, which asks Gone
}

// ends ends a request whose answer will not come.
func (f *Fleet) ends(id int64, now time.Duration) {
	fl := f.flights[id]
	delete(f.flights, id)
	fl.stop()
	fl.stream.End(now, context.Canceled)
}

func (f *Fleet) heard(t tokens) {
	if fl := f.flights[t.ID]; fl != nil {
		if h, ok := fl.stream.(client.Heard); ok && t.N > 0 {
			fl.chunks += t.N
			h.Heard(t.At, t.N)
		}
	}
}
