package fleet

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
)

const (
	apart    = 4   // workers
	barriers = 100 // that they pass
	way      = 20 * time.Millisecond
)

var distant = flag.Bool("apart", false, "try workers whose clocks are apart; needs root")

// Four workers, each in a time namespace of its own, up to an hour apart, and 20 ms away in each direction. The
// wall clock, which the namespaces share, tells how wrong their offsets are, and when they pass a barrier.
func TestLongWorkersApart(t *testing.T) {
	if role := os.Getenv("FLEET_WORKER"); role != "" {
		beApart(t, role)
		return
	}
	if !*distant {
		t.Skip("it takes real time: make apart")
	}
	if exec.Command("unshare", "-T", "--fork", "true").Run() != nil {
		t.Skip("no time namespaces: they need Linux and root")
	}
	wall := clock.NewReal()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	h := must.Get(Listen(wall, l, apart, "token", "test", func(string) {}))(t)
	defer h.close()
	relay := delaying(t, l.Addr().String())
	var mu sync.Mutex
	passed, bounds := make([][]time.Duration, barriers), []time.Duration{}
	wrong := 0
	var all sync.WaitGroup
	for i, shift := range []int{-3600, -1200, 1200, 3600} {
		cmd := exec.Command("unshare", "-T", "--fork", "--monotonic", fmt.Sprint(max(shift, -int(uptime(t).Seconds())+60)), "--",
			os.Args[0], "-test.run", "^TestLongWorkersApart$", "-test.v", "-apart")
		cmd.Env = append(os.Environ(), fmt.Sprintf("FLEET_WORKER=https://%s %s w%d", relay, h.Fingerprint, i))
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		all.Go(func() {
			for in := bufio.NewScanner(out); in.Scan(); {
				var k int
				var origin, at int64
				var offset, bound time.Duration
				if n, _ := fmt.Sscanf(in.Text(), "passed %d %d %d %d %d", &k, &origin, &at, &offset, &bound); n < 5 {
					continue
				}
				off := time.Duration(origin-wall.Origin().UnixNano()) - offset
				mu.Lock()
				passed[k], bounds = append(passed[k], time.Duration(at)), append(bounds, bound)
				if off.Abs() > bound {
					wrong++
					t.Logf("the offset of worker %d is wrong by %v, its bound is %v", i, off, bound)
				}
				mu.Unlock()
			}
			_ = cmd.Wait()
		})
	}
	all.Wait()
	var skews []time.Duration
	for _, at := range passed {
		must.Need(t, len(at) == apart, "%d workers passed a barrier", len(at))
		skews = append(skews, slices.Max(at)-slices.Min(at))
	}
	slices.Sort(skews)
	p95, bound := skews[barriers*95/100-1], slices.Max(bounds)
	t.Logf("%d offsets, %d beyond their bounds of up to %v; skew of %d barriers: median %v, p95 %v", len(bounds), wrong, bound, barriers, skews[barriers/2], p95)
	must.Hold(t, wrong == 0, "%d offsets are beyond their bounds", wrong)
	must.Hold(t, p95 < 5*time.Millisecond+bound, "p95 of the skews is %v, the bound %v", p95, bound)
}

// beApart is one of the workers: it passes barriers every 50 ms by the controller's clock.
func beApart(t *testing.T, role string) {
	f := strings.Fields(role)
	wall := clock.NewReal()
	defer wall.Sharpen()()
	w := newJoined(Join{URL: f[0], Token: "token", Fingerprint: f[1], Name: f[2], Version: "test", Patience: time.Minute,
		Clock: wall, Say: func(string) {}})
	must.Do(t, w.join(t.Context()))
	best := func() exchange { return w.times.best(wall.Now()) }
	first := (wall.Now() + best().offset() + 4*time.Second).Truncate(4 * time.Second)
	for k := range barriers {
		due := first + time.Duration(k)*50*time.Millisecond
		must.Do(t, clock.Sleep(t.Context(), wall, due-best().offset()-wall.Now()))
		at, x := time.Now().UnixNano(), best()
		fmt.Printf("passed %d %d %d %d %d\n", k, wall.Origin().UnixNano(), at, x.offset(), x.bound(wall.Now()))
		if k%10 == 0 {
			must.Do(t, w.time(t.Context()))
		}
	}
}

// uptime is by how much a namespace may be behind: its clock must not be negative.
func uptime(t *testing.T) time.Duration {
	raw := must.Get(os.ReadFile("/proc/uptime"))(t)
	var seconds float64
	_, err := fmt.Sscan(string(raw), &seconds)
	must.Do(t, err)
	return time.Duration(seconds * float64(time.Second))
}

// delaying relays connections, and keeps what it reads for the time of one way.
func delaying(t *testing.T, to string) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil {
				a.Close()
				return
			}
			go late(a, b, way)
			go late(b, a, way)
		}
	}()
	return l.Addr().String()
}

// late carries what it reads from one connection to the other, after a time.
func late(from, to net.Conn, way time.Duration) {
	type part struct {
		due  time.Time
		text []byte
	}
	parts := make(chan part, 1000)
	go func() {
		defer to.Close()
		for p := range parts {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.text); err != nil {
				break
			}
		}
		_, _ = io.Copy(io.Discard, from)
	}()
	defer close(parts)
	for {
		b := make([]byte, 64<<10)
		n, err := from.Read(b)
		if err != nil {
			return
		}
		parts <- part{time.Now().Add(way), b[:n]}
	}
}
