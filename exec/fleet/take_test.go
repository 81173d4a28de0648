package fleet

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

func known(slot, order int) metric.Sample {
	return metric.Sample{Server: "s", Workload: "w", Level: "8", Phase: metric.Measured, Slot: slot, Order: order, Scheduled: time.Second, OutputAsked: 8}
}

func ended(s metric.Sample) *metric.Sample {
	s.Sent, s.End = 2*time.Second, 3*time.Second
	s.Failure = &metric.Failure{Kind: metric.FailTimeout, Message: "no end"}
	return &s
}

// far is a fleet of workers that are not there, and what was put for each of them.
func far(names ...string) (*Fleet, map[string]*bytes.Buffer) {
	f, said := newFleet(clock.NewVirtual()), map[string]*bytes.Buffer{}
	for _, name := range names {
		b := new(bytes.Buffer)
		said[name] = b
		m := f.add(name, nil)
		m.put, m.flush = func(line []byte, _ bool) { fmt.Fprintf(b, "%s\n", line) }, func() {}
	}
	return f, said
}

// A slot belongs to one worker. What another one says of its request counts for nothing, and what no worker
// can say ends the run with its name.
func TestAnswersOfWorkers(t *testing.T) {
	f, said := far("a", "b")
	to := &transport{f, 0}
	var got []*metric.Sample
	for slot := range 4 {
		s := known(slot, slot)
		to.Send(context.Background(), &client.Request{API: "chat", Output: 8}, client.NewAnswer(&s, func(s *metric.Sample) { got = append(got, s) }))
	}
	for name, slots := range map[string][]string{"a": {`"slot":0`, `"slot":2`}, "b": {`"slot":1`, `"slot":3`}} {
		for _, slot := range slots {
			must.Hold(t, strings.Contains(said[name].String(), slot), "worker %s did not get %s:\n%s", name, slot, said[name])
		}
	}
	a, b := f.members[0], f.members[1]
	line := func(strand *record.Strand, id int, s *metric.Sample) []byte {
		return []byte(fmt.Sprintf("%d %s", id, must.Get(strand.Seal(s))(t)))
	}
	fromA, fromB := record.NewStrand(), record.NewStrand()
	must.Do(t, f.takes(a, line(fromA, 1, ended(known(0, 0)))))
	must.Do(t, f.takes(b, line(fromB, 3, ended(known(2, 2))))) // not its request
	must.Hold(t, len(got) == 1 && got[0].Slot == 0 && got[0].End == 3*time.Second, "the answers are %+v", got)
	must.Hold(t, f.Gone() == nil, "a worker was lost: %v", f.Gone())
	must.Do(t, f.takes(a, line(fromA, 3, ended(known(2, 7))))) // its request, but another one
	must.Hold(t, f.Gone() != nil && strings.Contains(f.Gone().Error(), "worker a was lost"), "a worker answers for another request: %v", f.Gone())
	must.Hold(t, f.takes(b, []byte("2 {}")) != nil, "a damaged line was taken")
}

// A request whose client has already gone is cancelled after it was ordered: a worker knows nothing of it before.
func TestCancelFollowsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, said := far("a")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		s := known(0, 0)
		(&transport{f, 0}).Send(gone, &client.Request{}, client.NewAnswer(&s, nil))
		synctest.Wait()
		order, end := strings.Index(said["a"].String(), `"k":"send"`), strings.Index(said["a"].String(), `"k":"cancel"`)
		must.Hold(t, order >= 0 && end > order, "the worker was told:\n%s", said["a"])
	})
}

// The health of a unit is the worst of all workers. Silence is a standstill, and a worker that has said nothing
// of itself makes the health unknown.
func TestHealthOfWorkers(t *testing.T) {
	f, _ := far("a", "b")
	own := func() func() metric.Health { return func() metric.Health { return metric.Health{CPU: 0.1} } }
	end := f.Meter(own)()
	f.beats(f.members[0], Beat{Health: metric.Health{CPU: 0.5, Late: 2}, Bound: 7})
	f.beats(f.members[0], Beat{Health: metric.Health{CPU: 0.3, Late: 3, Stall: 4}, Bound: 5})
	must.Hold(t, end().CPU == -1, "the health is known, though one worker said nothing")
	end = f.Meter(own)()
	f.beats(f.members[0], Beat{Health: metric.Health{CPU: 0.5, Late: 2}, Bound: 7})
	f.beats(f.members[0], Beat{Health: metric.Health{CPU: 0.3, Late: 3, Stall: 4}, Bound: 5})
	f.beats(f.members[1], Beat{Health: metric.Health{CPU: 0.2, Delay: 9}, Bound: 6})
	f.silent(f.members[1], 10*time.Second, 15*time.Second)
	want := metric.Health{CPU: 0.5, Late: 5, Stall: 5 * time.Second, Delay: 9, Offset: 6,
		Standstills: []metric.Standstill{{From: 10 * time.Second, To: 15 * time.Second}}}
	must.Same(t, "health", want, end())
	f.beats(f.members[1], Beat{Health: metric.Health{CPU: -7}})
	must.Hold(t, f.Gone() != nil, "a health that is out of range was taken")
}

func FuzzLines(f *testing.F) {
	line, _ := record.NewStrand().Seal(ended(known(0, 0)))
	f.Add(append([]byte("1 "), line...))
	f.Add([]byte(`{"k":"beat","beat":{"health":{"cpu":0.5},"bound":1}}`))
	f.Add([]byte(`{"k":"tokens","tokens":[{"id":1,"n":3,"at":5}]}`))
	f.Add([]byte(`{"k":"met","id":1,"at":5}`))
	f.Add([]byte(`{"k":"reached","n":0}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		fleet, _ := far("a", "b")
		s := known(0, 0)
		(&transport{fleet, 0}).Send(t.Context(), &client.Request{}, client.NewAnswer(&s, nil))
		_ = fleet.takes(fleet.members[0], line)
	})
}
