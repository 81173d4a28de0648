//go:build linux

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// BenchmarkController measures the processor time that a run spends on each sample of its workers: the order, its
// way there, the sample's way back, and the recording. The workers are simulated, in a process of their own, and
// answer with eight tokens after 20 ms. %core is the share of a core at the rate. At 100 a second it is what waking
// fifty times a second costs, so what a sample costs is the difference between 1,000 and 10,000.
func BenchmarkController(b *testing.B) {
	for _, x := range []struct{ workers, rate int }{{1, 100}, {1, 1_000}, {1, 10_000}, {400, 20_000}} {
		b.Run(fmt.Sprintf("workers=%d/rate=%d", x.workers, x.rate), func(b *testing.B) { benchmarkController(b, x.workers, x.rate) })
	}
}

func benchmarkController(b *testing.B, workers, rate int) {
	wall := clock.NewReal()
	defer wall.Sharpen()()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	h := must.Get(Listen(wall, l, workers, "token", "test", func(string) {}))(b)
	crew := exec.Command(os.Args[0], "-test.run", "^TestSimulatedWorkers$")
	crew.Env = append(os.Environ(), fmt.Sprintf("FLEET_SIMULATED=https://%s %s %d", l.Addr(), h.Fingerprint, workers))
	must.Do(b, crew.Start())
	defer func() { _ = crew.Wait() }()
	defer h.End(context.Background(), nil)
	h.Wait(b.Context(), time.Minute)
	must.Do(b, h.until(b.Context(), time.Minute, func() bool {
		return !slices.ContainsFunc(h.members, func(m *member) bool { return !m.beaten })
	}))
	w := must.Get(record.Create(b.TempDir()))(b)
	must.Do(b, w.Observe(metric.RunStarted{Run: &metric.Run{}}))
	level := &metric.Level{Server: "s", Workload: "w", Name: "8", Kind: metric.OpenLoop}
	must.Do(b, w.Observe(metric.LevelStarted{Level: level}))
	to, sent, done, text := &transport{h.Fleet, 0}, 0, 0, strings.Repeat("word ", 50)
	var failed error
	send := func(at time.Duration) {
		s := &metric.Sample{Server: "s", Workload: "w", Level: "8", Phase: metric.Measured, Order: sent, Scheduled: at, FromDue: true, InputAsked: 512, OutputAsked: 8}
		sent++
		to.Send(b.Context(), &client.Request{API: engine.Chat, Model: "m", Prompt: client.Prompt{Text: text}, Input: 512, Output: 8, Patient: true},
			client.NewAnswer(s, func(s *metric.Sample) {
				wall.Post(func() {
					done++
					failed = cmp.Or(failed, w.Observe(metric.SampleDone{Sample: s}))
				})
			}))
	}
	const tick = 20 * time.Millisecond // as a run does
	var ticks func()
	ticks = func() {
		for range min(int(tick.Seconds()*float64(rate)), b.N-sent) {
			send(wall.Now() + h.lead())
		}
		if sent < b.N {
			wall.Timer(wall.Now()+tick, ticks)
		}
	}
	b.ResetTimer()
	before := cpu(b)
	ticks()
	for done < b.N && h.gone == nil {
		must.Do(b, wall.Wait(b.Context()))
	}
	if h.gone != nil {
		b.Skip("this machine cannot simulate them: ", h.gone)
	}
	must.Do(b, failed)
	each := (cpu(b) - before) / time.Duration(b.N)
	b.ReportMetric(float64(each)/1e3, "µs-CPU/sample")
	b.ReportMetric(100*each.Seconds()*float64(rate), "%core")
}

// cpu is the processor time of this process so far.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSimulatedWorkers is the workers of BenchmarkController.
func TestSimulatedWorkers(t *testing.T) {
	var url, fingerprint string
	var n int
	if _, err := fmt.Sscan(os.Getenv("FLEET_SIMULATED"), &url, &fingerprint, &n); err != nil {
		t.Skip("BenchmarkController starts it")
	}
	var all sync.WaitGroup
	for i := range n {
		w := newJoined(Join{URL: url, Token: "token", Fingerprint: fingerprint, Name: fmt.Sprintf("w%d", i), Version: "test", Patience: time.Minute,
			Clock: clock.NewReal(), Say: func(string) {}})
		w.servers[0] = simulated{w.Clock}
		all.Go(func() { must.Do(t, w.work(t.Context())) })
	}
	all.Wait()
}

// simulated answers every request.
type simulated struct{ clock.Clock }

func (s simulated) Send(_ context.Context, _ *client.Request, to client.Stream) {
	at := s.Now()
	to.Sent(at)
	to.Headers(at+time.Millisecond, 200)
	s.Timer(at+20*time.Millisecond, func() {
		for i := range time.Duration(8) {
			to.Event(at+(12+i)*time.Millisecond, &client.Event{Content: true})
		}
		to.Event(at+20*time.Millisecond, &client.Event{Usage: &client.Usage{Input: 512, Output: 8}, Finish: "length"})
		to.End(at+20*time.Millisecond, nil)
	})
}
