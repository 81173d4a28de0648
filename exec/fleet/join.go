package fleet

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
)

// Join says which run a worker joins, and how.
type Join struct {
	URL         string // https://HOST:PORT
	Token       string
	Fingerprint string // of the controller's certificate
	Name        string
	Version     string
	Patience    time.Duration // for the controller to be there
	Clock       *clock.Real
	Meter       exec.Meter
	Say         func(string)
	Dial        func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network
}

// joined is a worker in a run.
type joined struct {
	Join
	*worker
	dialing
	via     atomic.Pointer[http.Client]
	session string // drawn here
	out     *mail
	heard   atomic.Int64 // when something came last
	asking  bool         // for the time
	times   exchanges
	bundle  bundling
	warming int // connections that are being opened, by servers
	meets   []*message
	leaving bool // it was told to end
	over    bool
	err     error // why the worker ends before the run
	ctx     context.Context
}

// dialing is what a worker knows of its links to the controller.
type dialing struct {
	links  int                // that were dialed
	dialed time.Duration      // when the link was dialed
	broke  string             // why the link broke, as it was said
	unlink context.CancelFunc // ends the link; nil if there is none
}

// Refused is the answer of a controller that does not want this worker.
type Refused struct{ error }

// Work joins a run, and sends its share of the load until the run is over. It returns an error if the run was
// stopped, if it could not join, or if it lost the controller.
func Work(ctx context.Context, j Join) error {
	return newJoined(j).work(ctx)
}

func (w *joined) work(ctx context.Context) error {
	var end context.CancelFunc
	w.ctx, end = context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stop := context.AfterFunc(ctx, func() { w.Clock.Post(w.leaves) })
	defer stop()
	if err := w.join(ctx); err != nil {
		return err
	}
	w.heard.Store(int64(w.Clock.Now()))
	w.look()
	w.beat()
	for !w.over {
		if err := w.Clock.Wait(w.ctx); err != nil {
			return err
		}
	}
	for _, x := range w.flights {
		x.cancel()
	}
	return w.err
}

func newJoined(j Join) *joined {
	w := &joined{Join: j, session: rand.Text(), out: newMail()}
	if w.Meter == nil {
		w.Meter = func() func() metric.Health { return func() metric.Health { return metric.Health{CPU: -1} } }
	}
	w.worker = newWorker(j.Clock, func(line []byte, patient bool) {
		if w.out.put(line, patient); patient {
			w.bundle.after(w.Clock, w.out.rouse)
		}
	})
	w.worker.offset = func() time.Duration { return w.times.best(w.Clock.Now()).offset() }
	w.via.Store(w.client())
	return w
}

func (w *joined) client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: pinned(w.Fingerprint), DialContext: w.Dial}}
}

// pinned trusts the certificate with a fingerprint, and no other.
func pinned(fingerprint string) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, // VerifyPeerCertificate asks for more
		MinVersion:         tls.VersionTLS13,
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			sum := sha256.Sum256(raw[0])
			if got := hex.EncodeToString(sum[:]); got != strings.ToLower(strings.ReplaceAll(fingerprint, ":", "")) {
				return &Refused{fmt.Errorf("its certificate has the fingerprint %s, which is not that of --fingerprint: this is not the controller of the run", got)}
			}
			return nil
		},
	}
}

// ask sends a request to the controller and returns the body of its answer.
func (w *joined) ask(ctx context.Context, method, path string, body any) ([]byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	resp, err := w.do(ctx, method, path, bytes.NewReader(raw), http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, 1<<20))
}

func (w *joined) do(ctx context.Context, method, path string, body io.Reader, want int) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(w.URL, "/")+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+w.Token)
	if want == http.StatusSwitchingProtocols {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", protocol)
	}
	resp, err := w.via.Load().Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != want {
		defer resp.Body.Close()
		words, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<12))
		err := fmt.Errorf("the controller answered %d: %s", resp.StatusCode, strings.TrimSpace(string(words)))
		if resp.StatusCode < 500 {
			return nil, &Refused{err}
		}
		return nil, err
	}
	return resp, nil
}

const (
	askWithin = 5 * time.Second
	again     = time.Second
)

// join joins the run. It dials again while the controller is not there, because it may start later, and the names
// of new pods come late.
func (w *joined) join(ctx context.Context) error {
	until := w.Clock.Now() + w.Patience
	for {
		raw, err := clock.Await(ctx, w.Clock, func(ctx context.Context) ([]byte, error) {
			ctx, cancel := context.WithTimeout(ctx, lostAfter)
			defer cancel()
			return w.ask(ctx, http.MethodPost, "/join", hello{w.session, w.Name, w.Version})
		})
		var x welcome
		if err == nil {
			err = json.Unmarshal(raw, &x)
		}
		if err == nil {
			w.Name = x.Name
			w.Say("joined as " + w.Name)
			return w.synchronise(ctx)
		}
		if _, refused := errors.AsType[*Refused](err); refused || ctx.Err() != nil || w.Clock.Now() > until {
			return fmt.Errorf("could not join the run: %w", err)
		}
		w.Say("waiting for the controller: " + err.Error())
		if err := clock.Sleep(ctx, w.Clock, again); err != nil {
			return err
		}
	}
}

// synchronise asks for the time often enough to begin.
func (w *joined) synchronise(ctx context.Context) error {
	for until := w.Clock.Now() + lostAfter; len(w.times) < 10; {
		if err := w.time(ctx); err != nil && (ctx.Err() != nil || w.Clock.Now() > until) {
			return fmt.Errorf("could not compare clocks: %w", err)
		}
	}
	return nil
}

func (w *joined) time(ctx context.Context) error {
	x, err := clock.Await(ctx, w.Clock, w.exchange)
	if err == nil {
		w.times.add(x)
	}
	return err
}

func (w *joined) exchange(ctx context.Context) (x exchange, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	x.began = w.Clock.Now()
	raw, err := w.ask(ctx, http.MethodGet, "/clock", nil)
	x.trip = w.Clock.Now() - x.began
	told, wrong := strconv.ParseInt(string(raw), 10, 64)
	x.told = time.Duration(told)
	return x, errors.Join(err, wrong)
}

// look keeps up the link and the clocks, again and again.
func (w *joined) look() {
	now := w.Clock.Now()
	heard := time.Duration(w.heard.Load())
	switch {
	case now-heard > lostAfter-2*again: // so that it has ended within lostAfter
		w.ends(fmt.Errorf("nothing was heard from the run for %v", (now - heard).Round(time.Second)))
		return
	case w.out.overflown():
		w.ends(errors.New("the run does not read what this worker sends"))
		return
	case w.unlink == nil:
		w.link()
	case now-max(heard, w.dialed) > askWithin:
		w.unlink() // and dial again: what was lost on a cut is sent again only after long
	}
	if !w.asking {
		w.asking = true
		go func() {
			x, err := w.exchange(w.ctx)
			w.Clock.Post(func() {
				if w.asking = false; err == nil {
					w.times.add(x)
				}
			})
		}()
	}
	w.Clock.Timer(now+again, w.look)
}

// link opens a link to the controller, and carries the lines of both until it breaks.
func (w *joined) link() {
	var ctx context.Context
	ctx, w.unlink = context.WithCancel(w.ctx)
	w.dialed = w.Clock.Now()
	w.via.Swap(w.client()).CloseIdleConnections() // the connection may be dead
	w.links++
	path := fmt.Sprintf("/link?session=%s&link=%d&has=%d", w.session, w.links, w.out.has())
	go func() {
		err := w.carry(ctx, path)
		w.Clock.Post(func() {
			w.unlink()
			w.unlink = nil
			_, refused := errors.AsType[*Refused](err)
			if _, ok := errors.AsType[*broken](err); ok || refused {
				w.ends(err)
			} else if !w.over {
				w.breaks(err)
			}
		})
	}()
}

// breaks says why the link broke, once for each reason and link that held.
func (w *joined) breaks(err error) {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the key of the session
	}
	if time.Duration(w.heard.Load()) > w.dialed {
		w.broke = ""
	}
	if why := err.Error(); why != w.broke {
		w.broke = why
		w.Say("the connection to the run broke, dialing again: " + why)
	}
}

func (w *joined) carry(ctx context.Context, path string) error {
	resp, err := w.do(ctx, http.MethodGet, path, nil, http.StatusSwitchingProtocols)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	link, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return errors.New("the connection cannot be taken over")
	}
	n, err := strconv.Atoi(resp.Header.Get("Tokgate-Has"))
	if err == nil {
		err = w.out.from(n)
	}
	if err != nil {
		return &broken{err}
	}
	heard := func() { w.heard.Store(int64(w.Clock.Now())) }
	return w.out.carry(ctx, link, w.Clock.Post, heard, func(line []byte) (func(), error) {
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("what the controller sent cannot be read: %w", err)
		}
		return func() { w.takes(&m) }, nil
	})
}

// takes takes a message of the controller.
func (w *joined) takes(m *message) {
	switch {
	case m.Kind == toReach && m.Reach != nil:
		w.reaches(m.N, m.Reach)
	case m.Kind == toMake && m.Known != nil:
		if w.makers[m.N] = m.Known.Copy(m.Salt); w.makers[m.N] == nil {
			w.ends(errors.New("the controller's prompts cannot be made here"))
		}
	case m.Kind == toSend && m.Order != nil:
		w.send(w.ctx, m.ID, m.Order)
	case m.Kind == toCancel:
		w.stop(m.ID)
	case m.Kind == toWarm:
		w.warms(m)
	case m.Kind == toMeet:
		if w.meets = append(w.meets, m); w.warming == 0 {
			w.meet()
		}
	case m.Kind == toEnd:
		var err error
		switch {
		case w.leaving:
			err = context.Canceled
		case m.Why != "":
			err = errors.New("the run was stopped: " + m.Why)
		}
		w.Clock.Timer(w.Clock.Now()+again/20, w.out.live) // so that the run knows that this arrived
		w.Clock.Timer(w.Clock.Now()+again/10, func() { w.ends(err) })
	}
}

// reaches makes the connection to a server, and asks it for its models.
func (w *joined) reaches(n int, to *Reach) {
	var fronts []*client.HTTP
	for _, u := range to.URLs {
		h, err := client.New(client.Config{
			BaseURL: u, APIKey: to.APIKey, Headers: to.Headers, Query: to.Query, AnyRedirect: to.AnyRedirect, H2C: to.H2C,
			Standard: to.Standard, Engine: engine.Of(to.Engine), Now: w.Clock.Now, Dial: w.Dial,
		})
		if err != nil {
			w.say(message{Kind: hasReach, N: n, Why: err.Error()})
			return
		}
		fronts = append(fronts, h)
	}
	if w.servers[n] = fronts[0]; len(fronts) > 1 {
		w.servers[n] = client.NewFronts(fronts)
	}
	go func() {
		ctx, cancel := context.WithTimeout(w.ctx, reachWithin/2)
		defer cancel()
		why := ""
		for _, h := range fronts {
			_, err := h.Models(ctx)
			if e, ok := errors.AsType[*client.Error](err); ok && e.Status != 0 {
				err = nil // it answers, though it has no such page
			}
			if err != nil {
				why = err.Error()
			}
		}
		w.Clock.Post(func() { w.say(message{Kind: hasReach, N: n, Why: why}) })
	}()
}

func (w *joined) warms(m *message) {
	to, ok := w.servers[m.Server].(client.Prepared)
	if !ok {
		return
	}
	w.warming++
	go func() {
		ctx, cancel := context.WithTimeout(w.ctx, askWithin)
		defer cancel()
		to.Warm(ctx, m.N)
		w.Clock.Post(func() {
			if w.warming--; w.warming == 0 {
				w.meet()
			}
		})
	}()
}

// meet reports at the barriers at their times, or now if those have passed.
func (w *joined) meet() {
	for _, m := range w.meets {
		w.Clock.Timer(m.At-w.offset(), func() {
			w.say(message{Kind: hasMet, ID: m.ID})
		})
	}
	w.meets = nil
}

// beat tells the controller twice a second how this worker is.
func (w *joined) beat() {
	meter, watched := w.Meter(), exec.WatchBeats(w.Clock)
	w.Clock.Timer(w.Clock.Now()+beatEach, func() {
		now, h := w.Clock.Now(), meter()
		seen := watched()
		seen.CPU = h.CPU
		h.Join(seen)
		for i := range h.Standstills {
			h.Standstills[i].From += w.offset()
			h.Standstills[i].To += w.offset()
		}
		x := w.times.best(now)
		w.say(message{Kind: hasBeat, Beat: &Beat{Health: h, Trip: x.trip, Bound: x.bound(now)}})
		var heard []*sending
		for _, f := range w.flights {
			heard = append(heard, f)
		}
		w.report(heard...)
		w.beat()
	})
}

// leaves ends the worker before the run, and tells the controller.
func (w *joined) leaves() {
	w.leaving = true
	w.say(message{Kind: hasLeft, Why: "it was told to end"})
	w.Clock.Timer(w.Clock.Now()+again, func() { w.ends(context.Canceled) })
}

func (w *joined) ends(err error) { w.over, w.err = true, err }
