package fleet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/memnet"
)

// base is a run that waits for workers, on a network in memory.
type base struct {
	memnet.Network
	*Host
	over chan struct{} // closed when all have joined, or will not
}

const address = "run.test:1"

func begin(t *testing.T, n int) *base {
	b := &base{over: make(chan struct{})}
	b.listen(t, n)
	return b
}

// listen begins a run, in place of the one before.
func (b *base) listen(t *testing.T, n int) {
	l := must.Get(b.Listen("tcp", address))(t)
	b.Host = must.Get(Listen(clock.NewReal(), l, n, "token", "1.0", func(string) {}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	t.Cleanup(func() { cancel(); loop.Wait() })
	h, over := b.Host, b.over
	loop.Go(func() {
		defer h.close()
		h.Wait(ctx, time.Hour)
		close(over)
		for h.loop.Wait(ctx) == nil {
		}
	})
}

// do calls a function in the loop of the run.
func (b *base) do(f func()) {
	done := make(chan struct{})
	b.loop.Post(func() { f(); close(done) })
	<-done
}

func (b *base) why() (gone error) {
	b.do(func() { gone = b.gone })
	return gone
}

// hand is a worker, and what became of it.
type hand struct {
	Join
	said  strings.Builder
	ended chan error
	took  time.Duration
	stop  context.CancelFunc
}

func (b *base) hand(name string) *hand {
	return &hand{ended: make(chan error, 1), Join: Join{URL: "https://" + address, Token: "token", Fingerprint: b.Fingerprint, Name: name,
		Version: "1.0", Patience: time.Minute, Clock: clock.NewReal(), Dial: b.DialContext}}
}

func (w *hand) works(t *testing.T) *hand {
	w.Say = func(s string) { w.said.WriteString(s + "\n") }
	var ctx context.Context
	ctx, w.stop = context.WithCancel(t.Context())
	go func() {
		err := Work(ctx, w.Join)
		w.took = w.Clock.Now()
		w.ended <- err
	}()
	return w
}

// ends are words that an error must have; "" means that there is none.
func ends(t *testing.T, who string, err error, words string) {
	t.Helper()
	must.Hold(t, (err == nil) == (words == "") && (err == nil || strings.Contains(err.Error(), words)), "%s: %v, not %q", who, err, words)
}

// Who is not of the run is told why, at once, and counts for nothing.
func TestWhoMayJoin(t *testing.T) {
	for name, x := range map[string]struct {
		is    func(*hand)
		words string
	}{
		"another token":       {func(w *hand) { w.Token = "other" }, "the token is not that of this run"},
		"another fingerprint": {func(w *hand) { w.Fingerprint = strings.Repeat("0", 64) }, "this is not the controller of the run"},
		"another version":     {func(w *hand) { w.Version = "1.1" }, "this run is of tokgate 1.0 and the worker is 1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := begin(t, 1)
				w := b.hand("w")
				x.is(w)
				ends(t, "the worker", <-w.works(t).ended, x.words)
				must.Hold(t, w.took < time.Second, "it was told after %v", w.took)
				good := b.hand("good").works(t) // the place is still free
				<-b.over
				ends(t, "one too many", <-b.hand("more").works(t).ended, "all 1 workers of this run have joined")
				ends(t, "the run", b.why(), "")
				must.Hold(t, len(b.members) == 1 && b.members[0].name == "good", "the members are %+v", b.members)
				good.stop()
				ends(t, "the worker", <-good.ended, "canceled")
			})
		})
	}
}

// Workers may come long after each other, and from far away. None of them thinks that the run is lost.
func TestWorkersComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, 2)
		first := b.hand("first").works(t)
		time.Sleep(10 * time.Minute)
		must.Same(t, "the first one said", "joined as first\n", first.said.String())
		second := b.hand("second")
		second.Dial = func(ctx context.Context, network, to string) (net.Conn, error) {
			far, err := b.DialContext(ctx, network, to)
			if err != nil {
				return nil, err
			}
			l := memnet.Listen()
			near := make(chan net.Conn, 1)
			go func() { c, _ := l.Accept(); near <- c }()
			c := must.Get(l.DialContext(ctx, "", ""))(t)
			relayed := <-near
			go late(relayed, far, 400*time.Millisecond)
			go late(far, relayed, 400*time.Millisecond)
			return c, nil
		}
		second.works(t)
		<-b.over
		time.Sleep(time.Minute)
		ends(t, "the run", b.why(), "")
		b.do(func() { b.say("") })
		ends(t, "the first one", <-first.ended, "")
		ends(t, "the second one", <-second.ended, "")
		b.close()
		time.Sleep(time.Second) // until the far one has heard of it
	})
}

// say tells all workers that the run is over, or why it was stopped.
func (b *base) say(why string) {
	for _, m := range b.members {
		m.say(message{Kind: toEnd, Why: why})
	}
}

// A worker that ends while the run waits for others ends the run, which names it.
func TestWorkerLeavesWhileOthersAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, 2)
		w := b.hand("w").works(t)
		time.Sleep(time.Minute)
		w.stop()
		<-b.over
		ends(t, "the run", b.why(), "worker w was lost: it was told to end")
		ends(t, "the worker", <-w.ended, "canceled")
	})
}

// A run that listens where another one did is not that run, though it has its token.
func TestControllerIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, 1)
		w := b.hand("w").works(t)
		<-b.over
		began := w.Clock.Now()
		b.close()
		b.over = make(chan struct{})
		b.listen(t, 1)
		ends(t, "the worker", <-w.ended, "this is not the controller of the run")
		must.Hold(t, w.took-began < 10*time.Second, "it ended after %v", w.took-began)
		b.mu.Lock()
		defer b.mu.Unlock()
		must.Hold(t, len(b.members) == 0, "the new run has %d workers", len(b.members))
	})
}

// A worker that got no answer joins again, and is still one.
func TestJoinTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, 2)
		w := newJoined(b.hand("w").Join)
		for range 2 {
			raw := must.Get(w.ask(t.Context(), http.MethodPost, "/join", hello{"key", "w", "1.0"}))(t)
			must.Same(t, "the answer", `{"name":"w"}`, strings.TrimSpace(string(raw)))
		}
		b.mu.Lock()
		must.Hold(t, len(b.members) == 1, "it is %d members", len(b.members))
		b.mu.Unlock()
		w.via.Load().CloseIdleConnections()
	})
}

// A link that the network kept back does not replace a newer one, which it would if the last to come counted.
func TestLinkThatComesLate(t *testing.T) {
	h := &Host{sessions: map[string]*session{"key": {}}}
	_, first, err := h.opening(t.Context(), "key", 1)
	must.Do(t, err)
	_, third, err := h.opening(t.Context(), "key", 3)
	must.Do(t, err)
	must.Hold(t, first.Err() != nil, "there are two links")
	for number, key := range []string{0: "key", 1: "key", 2: "key", 3: "key", 4: "no key"} {
		_, _, err = h.opening(t.Context(), key, number)
		must.Hold(t, err != nil, "link %d of %s was opened", number, key)
	}
	must.Hold(t, third.Err() == nil, "a link was ended by one that was refused")
}

// stuck is a connection on which nothing comes or goes any more, once it is frozen.
type stuck struct {
	net.Conn
	frozen *atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *stuck) Read(p []byte) (int, error) {
	if c.frozen.Load() {
		<-c.closed
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Read(p)
}

func (c *stuck) Write(p []byte) (int, error) {
	if c.frozen.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *stuck) Close() error {
	c.once.Do(func() { close(c.closed) })
	if c.frozen.Load() {
		return nil // the other side does not hear of it
	}
	return c.Conn.Close()
}

// When the network swallows what the run writes, its buffers fill up and the link stands. A new one takes its place.
func TestLinkThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, 1)
		w := b.hand("w")
		frozen := new(atomic.Bool) // of the connections so far
		w.Dial = func(ctx context.Context, network, to string) (net.Conn, error) {
			c, err := b.DialContext(ctx, network, to)
			return &stuck{Conn: c, frozen: frozen, closed: make(chan struct{})}, err
		}
		w.works(t)
		<-b.over
		time.Sleep(10 * time.Second)
		b.do(func() {
			frozen.Store(true)
			frozen = new(atomic.Bool)
			for range 16 {
				b.members[0].say(message{Kind: "nothing", Why: strings.Repeat("x", 1<<20)})
			}
		})
		time.Sleep(time.Minute)
		ends(t, "the run", b.why(), "")
		must.Hold(t, strings.Contains(w.said.String(), "dialing again"), "the link did not break:\n%s", w.said.String())
		b.do(func() { b.say("the end") })
		ends(t, "the worker", <-w.ended, "the run was stopped: the end")
	})
}

// A run that is not there any more has been lost within 30 s.
func TestControllerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, 1)
		w := b.hand("w").works(t)
		<-b.over
		time.Sleep(time.Minute)
		b.close()
		began := w.Clock.Now()
		err := <-w.ended
		ends(t, "the worker", err, "nothing was heard from the run")
		must.Hold(t, w.took-began <= lostAfter && !errors.Is(err, context.Canceled), "it ended after %v: %v", w.took-began, err)
	})
}
