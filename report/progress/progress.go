// Package progress shows a run while it happens: on a terminal as a small
// block that is repainted, elsewhere as a few quiet lines. It hears of the run
// as an observer of it, and reads no clock: the time comes from a function,
// and whoever has a ticker calls Tick.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// Options configure a Display.
type Options struct {
	TTY   bool // repaint a block (see Repaint); false: plain lines
	Quiet bool // draw nothing at all
	Color bool // of the block (see ColorMode)
	// Width is the number of columns of the terminal, asked before each
	// paint; nil or not positive: 80. Plain lines are not cut.
	Width func() int
	// Now is the monotonic time since any origin. Required.
	Now func() time.Duration
	// Simulated is the virtual time that a simulated run shows; nil: the run is real. Now
	// decides when to paint, and how long one still has to wait.
	Simulated func() time.Duration
	// Forecast is what the run is made of; without parts nothing is known.
	Forecast Forecast
	// Fold returns the lines that fold the phases of a run in a plain log, given the title of the
	// phase that begins, or "" after the last one. nil if the log does not fold.
	Fold func(title string) string
}

const (
	// paintEvery bounds the repainting to ten times a second.
	paintEvery = 100 * time.Millisecond
	// lineEvery is the time between plain lines within a level.
	lineEvery = 30 * time.Second
	// stateEvery is the least time between plain lines on one server that is
	// starting: its log may say something new every millisecond.
	stateEvery = 10 * time.Second
	// window is how many requests the running statistics look back.
	window = 1000
)

// Display observes a run (it is an exec.Observer by its methods) and draws
// it. Safe from any goroutine. What cannot be drawn is lost: no method
// returns an error.
type Display struct {
	out io.Writer
	opt Options

	mu       sync.Mutex
	started  time.Duration // on the run's clock
	begun    time.Duration // by Now
	servers  []*server     // that are starting, in order of their first state
	index    int           // of the level, 1-based
	levels   []*level      // that run; two at most, side by side
	answers  []*answers    // that servers of a comparison give or read, likewise
	painted  []int         // widths of the block's lines on the screen
	lastTime time.Duration
	phase    string // that is folded; "": none is
	skipped  string // why the last level was that was
	hidden   bool   // the cursor
	closed   bool
}

type server struct {
	address, state string
	since          time.Duration // of the first state
	said           string        // state of the last plain line
	saidAt         time.Duration
	known          bool // a plain line was written
}

// level is the level that is running.
type level struct {
	server, workload, name string
	index                  int    // of the level, 1-based
	probe                  string // what a capacity search measures it for; "": it is of the plan
	due, done, failed      int
	inFlight               int
	rounds                 int
	warming                bool // no measured request of the round has started
	since                  time.Duration
	measuring              time.Duration // when the first measured request started
	measured               bool          // one has
	expected               time.Duration
	ttft                   ring
	tokens, took           ring // of the streams after their first chunks
	lastLine               time.Duration
}

// New returns a display on out; nothing is drawn before the run starts.
func New(out io.Writer, opt Options) *Display {
	return &Display{out: out, opt: opt, begun: opt.Now(), closed: opt.Quiet}
}

// time is the run's.
func (d *Display) time() time.Duration {
	if d.opt.Simulated != nil {
		return d.opt.Simulated()
	}
	return d.opt.Now()
}

// faster says how much faster than in real time a simulated run goes; "" when
// it is real or did not begin.
func (d *Display) faster() string {
	wall, run := d.opt.Now()-d.begun, d.time()-d.started
	if d.opt.Simulated == nil || wall <= 0 || run <= wall {
		return ""
	}
	factor := float64(run) / float64(wall)
	digits := 0
	if factor < 10 {
		digits = 1
	}
	return fmt.Sprintf("%.*f times as fast as in real time", digits, factor)
}

// Tick draws what changed. Call it about ten times a second while the run
// lasts, so that the display moves while nothing happens; more often does no
// harm.
func (d *Display) Tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tick()
}

func (d *Display) tick() {
	if d.closed {
		return
	}
	now := d.opt.Now()
	if d.opt.TTY {
		if now-d.lastTime >= paintEvery || d.painted == nil {
			d.paint("")
		}
		return
	}
	for _, s := range d.servers {
		d.sayState(s)
	}
	for _, l := range d.levels {
		if now-l.lastLine >= lineEvery {
			l.lastLine = now
			d.say(l.title() + ": " + strings.Join(d.facts(l), ", "))
		}
	}
	d.sayAnswers(now)
}

// Close removes the block and gives the cursor back. It is safe to call more
// than once and on every path.
func (d *Display) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.fold("")
	d.servers, d.levels, d.answers = nil, nil, nil
	if d.opt.TTY {
		d.paint("")
		if d.hidden {
			io.WriteString(d.out, "\x1b[?25h")
		}
	}
	d.closed = true
}

// RunStarted says that the run begins.
func (d *Display) RunStarted(r *metric.Run) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started, d.begun = d.time(), d.opt.Now()
	line := "run " + r.ID
	if r.Plan != "" {
		line += " of " + r.Plan
	}
	if _, n := d.opt.Forecast.count((*Part).isLevel); n > 0 {
		line += ", " + plural(n, "level")
	}
	if d.opt.Simulated != nil {
		line += ", simulated: times are virtual"
	} else if eta := d.runETA(); eta != "" {
		line += ", about " + eta
	}
	d.say(line)
	return nil
}

// ServerStarting says what a server that is not ready is waiting for.
func (d *Display) ServerStarting(address, state string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	address, state = text.Line(address), text.Bytes(text.Line(state), 500)
	i := slices.IndexFunc(d.servers, func(s *server) bool { return s.address == address })
	if i < 0 {
		d.opt.Forecast.part(address, "", "").begin(d.opt.Now())
		i = len(d.servers)
		d.servers = append(d.servers, &server{address: address, since: d.time()})
	}
	d.servers[i].state = state
	if len(d.levels) == 0 {
		d.fold("starting servers")
	}
	d.tick()
}

// sayState writes a plain line on a server's state when it is new and the
// last line is old enough.
func (d *Display) sayState(s *server) {
	now := d.opt.Now()
	if s.state == s.said && s.known || s.known && now-s.saidAt < stateEvery {
		return
	}
	s.said, s.saidAt, s.known = s.state, now, true
	d.say("server " + s.address + ": " + s.state)
}

// ServerReady says that a server answers.
func (d *Display) ServerReady(s *metric.ServerRun) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	line := "server " + s.Address + ": ready"
	address := text.Line(s.Address)
	if i := slices.IndexFunc(d.servers, func(x *server) bool { return x.address == address }); i >= 0 {
		line += " after " + text.Clock((d.time() - d.servers[i].since).Seconds())
	}
	d.opt.Forecast.part(address, "", "").end(d.opt.Now())
	d.forget(s.Address)
	d.say(line)
	return nil
}

// ServerDone says that a server is gone, and why when it could not be
// measured.
func (d *Display) ServerDone(s *metric.ServerRun) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(s.Address)
	if s.Error != "" {
		d.fold("") // nobody should have to unfold an error
		d.say("server " + s.Address + ": error: " + s.Error)
		return nil
	}
	d.say("server " + s.Address + ": done")
	return nil
}

func (d *Display) forget(address string) {
	address = text.Line(address)
	d.servers = slices.DeleteFunc(d.servers, func(s *server) bool { return s.address == address })
}

// LevelStarted says that a level begins.
func (d *Display) LevelStarted(l *metric.Level, due int, expected time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.opt.Now()
	// A server may have said what it prepares after it was ready.
	d.forget(l.Server)
	if l.Probe == nil {
		d.index++
		d.opt.Forecast.part(l.Server, l.Workload, l.Name).begin(now)
	} else {
		d.opt.Forecast.part(l.Server, l.Workload, "").begin(now)
	}
	started := &level{server: text.Line(l.Server), workload: text.Line(l.Workload), name: text.Line(l.Name), due: due, expected: expected,
		index: d.index, since: d.time(), lastLine: now, warming: true}
	d.levels = append(d.levels, started)
	if d.opt.Simulated != nil {
		started.expected = 0 // it is of virtual time
	}
	if l.Probe != nil {
		if started.probe = text.Line(l.Probe.Purpose); l.Probe.Purpose != metric.SaturationName {
			started.probe = "capacity: " + started.probe
		}
	}
	if !d.opt.TTY {
		d.fold(started.workload + " on " + started.server)
		line := started.title() + d.of(started) + ": " + plural(due, "request")
		if started.probe == metric.SaturationName {
			line = started.title() + ": as many requests as it answers at once"
		}
		if expected > 0 {
			line += ", about " + text.Clock(expected.Seconds())
		}
		d.say(line)
	}
	return nil
}

// running is the level under way of that name; nil.
func (d *Display) running(server, workload, name string) *level {
	i := slices.IndexFunc(d.levels, func(l *level) bool {
		return l.server == text.Line(server) && l.workload == text.Line(workload) && l.name == text.Line(name)
	})
	if i < 0 {
		return nil
	}
	return d.levels[i]
}

// RequestStarted and SampleDone bracket each request.
func (d *Display) RequestStarted(of *metric.Level, phase metric.Phase) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.running(of.Server, of.Workload, of.Name)
	if l == nil {
		return
	}
	l.inFlight++
	if phase == metric.Measured {
		l.warming = false
		if !l.measured {
			l.measured, l.measuring = true, d.opt.Now()
		}
	}
}

// SampleDone counts a request that ended.
func (d *Display) SampleDone(s *metric.Sample) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.running(s.Server, s.Workload, s.Level)
	if l == nil {
		return nil
	}
	l.inFlight = max(l.inFlight-1, 0)
	if s.Phase != metric.Measured {
		return nil
	}
	l.done++
	defer d.tick()
	if !s.Completed() {
		l.failed++
		return nil
	}
	if v, ok := s.Value("ttft"); ok {
		l.ttft.add(v)
	}
	if tokens, took := s.Streamed(); tokens > 0 && took > 0 {
		l.tokens.add(float64(tokens))
		l.took.add(took.Seconds())
	}
	return nil
}

// RoundDone counts a round.
func (d *Display) RoundDone(of *metric.Level, _ *metric.Round) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.running(of.Server, of.Workload, of.Name); l != nil {
		l.rounds++
		l.warming = true
	}
	return nil
}

// LevelDone says the result of a level, or that it was not run.
func (d *Display) LevelDone(m *metric.Level) error {
	if m.Of != "" {
		return nil // its mix has said it
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.running(m.Server, m.Workload, m.Name)
	d.levels = slices.DeleteFunc(d.levels, func(x *level) bool { return x == l })
	part := d.opt.Forecast.part(m.Server, m.Workload, m.Name)
	if m.Skipped != "" {
		part.skip()
		if l == nil && m.Probe == nil {
			d.index++
		}
		why := m.Skipped
		if why == d.skipped {
			why = "likewise"
		}
		d.skipped = m.Skipped
		d.say((&level{server: m.Server, workload: m.Workload, name: m.Name}).title() + ": skipped: " + why)
		return nil
	}
	if l == nil {
		return nil
	}
	part.end(d.opt.Now())
	facts := append([]string{l.what(m) + " in " + text.Clock((d.time() - l.since).Seconds())}, l.numbers()...)
	if l.failed > 0 {
		facts = slices.Insert(facts, 1, fmt.Sprintf("%d failed", l.failed))
	}
	if !d.opt.TTY {
		if done, all := d.opt.Forecast.count((*Part).isLevel); done < all {
			if eta := d.runETA(); eta != "" {
				facts = append(facts, "ETA of the run "+eta)
			}
		}
	}
	d.say(l.title() + ": " + strings.Join(facts, ", "))
	return nil
}

// CapacityDone says that a search is over.
func (d *Display) CapacityDone(c *metric.Capacity) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opt.Forecast.part(c.Server, c.Workload, "").end(d.opt.Now())
	return nil
}

// RunDone ends the display.
func (d *Display) RunDone(r *metric.Run) error {
	d.mu.Lock()
	d.fold("")
	if r.Stopped != "" {
		d.say("stopped: " + r.Stopped)
	}
	if faster := d.faster(); faster != "" {
		d.say("simulated in " + metric.Format(metric.Seconds, (d.opt.Now()-d.begun).Seconds()) + ", " + faster)
	}
	d.mu.Unlock()
	d.Close()
	return nil
}

// Say writes one line that stays above the block.
func (d *Display) Say(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.say(line)
}

// say writes one line that stays. It is the only way for foreign text to
// leave in plain mode.
func (d *Display) say(line string) {
	if d.closed {
		return
	}
	line = text.Bytes(text.Inert(text.Line(line)), 1000)
	stamp := text.Pad(text.Clock((d.time() - d.started).Seconds()), 6, true)
	if !d.opt.TTY {
		io.WriteString(d.out, stamp+"  "+line+"\n")
		return
	}
	// A terminal breaks lines in the middle of words.
	stamp += "  "
	above := stamp
	for i, part := range text.Wrap(line, max(d.width()-text.Width(stamp), 20)) {
		if i > 0 {
			part = "\n" + strings.Repeat(" ", text.Width(stamp)) + text.Inert(part)
		}
		above += part
	}
	d.paint(above)
}

// fold begins a phase of the run, or with "" ends the last one.
func (d *Display) fold(title string) {
	if d.opt.Fold == nil || d.opt.TTY || d.closed || title == d.phase {
		return
	}
	d.phase = title
	io.WriteString(d.out, d.opt.Fold(title))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (d *Display) width() int {
	if d.opt.Width == nil {
		return 80
	}
	if w := d.opt.Width(); w > 0 {
		return w
	}
	return 80
}
