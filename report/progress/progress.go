// Package progress shows a run while it happens. On a terminal it repaints a few lines in place;
// elsewhere it writes a few plain lines. It reads no clock: a function gives it the time, and the
// caller calls Tick.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// Options configure a Display.
type Options struct {
	TTY   bool // repaint lines in place, as on a terminal; if false, write plain lines
	Quiet bool // draw nothing at all
	Color bool // colour the display (see ColorMode)
	// Width returns the width of the terminal in columns. It is called before each paint. Without
	// Width, or if it returns no positive number, the width is 80. Plain lines may be longer.
	Width func() int
	// Now returns the time by a monotonic clock with any origin. It is required.
	Now func() time.Duration
	// Simulated returns the virtual time that a simulated run shows; nil if the run is real. Even
	// then, Now says when to repaint.
	Simulated func() time.Duration
	// Forecast is the expected course of the run. If it has no parts, no time left is shown.
	Forecast Forecast
	// Fold returns the lines that fold a phase of the run in a plain log. It is called with the
	// title of each phase when the phase begins, and with "" at the end. It is nil if the log
	// cannot fold.
	Fold func(title string) string
}

const (
	// paintEvery is the shortest time between two repaints of the display.
	paintEvery = 100 * time.Millisecond
	// lineEvery is the shortest time between two plain lines about the progress of the same level.
	lineEvery = 30 * time.Second
	// stateEvery is the shortest time between two plain lines about the state of a starting server.
	// The server's log may change every millisecond.
	stateEvery = 10 * time.Second
	// window is the number of latest requests on which the displayed statistics are based.
	window = 1000
)

// Display draws the progress of a run. It is safe for concurrent use.
// No method returns an error: what cannot be drawn is lost.
type Display struct {
	out io.Writer
	opt Options

	mu       sync.Mutex
	started  time.Duration // start of the run, on the run's own clock
	begun    time.Duration // by Now
	servers  []*server     // starting servers, by the time of their first message
	index    int           // number of the level, from 1
	levels   []*level      // running levels; at most two
	answers  []*answers    // progress of the extra requests that a comparison sends for its answers
	painted  []int         // widths of the lines that are now on the screen
	lastTime time.Duration
	phase    string // phase of the run whose lines are now being folded; "" if none
	skipped  string // reason why the last skipped level was skipped
	hidden   bool   // the cursor
	closed   bool
}

type server struct {
	address, state string
	since          time.Duration // time at which the server first sent a message
	said           string        // state of the server that the last plain line showed
	saidAt         time.Duration
	known          bool // a plain line about the server was written
}

type level struct {
	server, workload, name string
	reported               [3]string // server, workload and name, with any control characters
	index                  int       // number of the level, from 1
	probe                  string    // purpose, such as "bisect", if the level is a probe; else ""
	due, done, failed      int
	inFlight               int
	rounds                 int
	warming                bool // no measured request of the round has been sent yet
	since                  time.Duration
	measuring              time.Duration // time at which the first measured request was sent
	measured               bool          // a measured request was sent
	expected               time.Duration
	ttft                   ring
	tokens, took           ring // tokens after a stream's first chunk, and seconds for them
	lastLine               time.Duration
}

// New returns a display that writes to out. It draws nothing before the run starts.
func New(out io.Writer, opt Options) *Display {
	return &Display{out: out, opt: opt, begun: opt.Now(), closed: opt.Quiet}
}

func (d *Display) time() time.Duration {
	if d.opt.Simulated != nil {
		return d.opt.Simulated()
	}
	return d.opt.Now()
}

// faster says how much faster than real time a simulated run is. It returns "" if the run is real
// or has not begun.
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
	return fmt.Sprintf("%.*f times as fast as real time", digits, factor)
}

// Tick redraws the parts of the display that changed since the last call. Call it about ten times a
// second during the run, so that clocks advance; more calls do no harm.
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

// Close removes the display from the screen and shows the cursor again. It may be called several
// times.
func (d *Display) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.close()
}

func (d *Display) close() {
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

// Observe shows what happened in the run. It returns no error.
func (d *Display) Observe(e metric.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e := e.(type) {
	case metric.RunStarted:
		d.runStarted(e.Run)
	case metric.ServerStarting:
		d.serverStarting(e.Server, e.State)
	case metric.ServerReady:
		d.serverReady(e.Server)
	case metric.ServerDone:
		d.serverDone(e.Server)
	case metric.LevelStarted:
		d.levelStarted(e.Level, e.Due, e.Expected)
	case metric.RequestStarted:
		d.requestStarted(e.Level, e.Phase)
	case metric.SampleDone:
		d.sampleDone(e.Sample)
	case metric.RoundDone:
		if l := d.running(e.Level.Server, e.Level.Workload, e.Level.Name); l != nil {
			l.rounds++
			l.warming = true
		}
	case metric.LevelDone:
		d.levelDone(e.Level)
	case metric.CapacityDone:
		d.opt.Forecast.part(e.Capacity.Server, e.Capacity.Workload, "").end(d.opt.Now())
	case metric.AnswersDone:
		d.answersDone(e)
	case metric.RunDone:
		d.runDone(e.Run)
	}
	return nil
}

func (d *Display) runStarted(r *metric.Run) {
	d.started, d.begun = d.time(), d.opt.Now()
	line := "run " + r.ID
	if r.Plan != "" {
		line += " of " + r.Plan
	}
	if _, n := d.opt.Forecast.count((*Work).isLevel); n > 0 {
		line += ", " + verdict.Count(n, "levels")
	}
	if d.opt.Simulated != nil {
		line += ", simulated: times are virtual"
	} else if eta := d.runETA(); eta != "" {
		if !d.opt.Forecast.Early {
			eta = "about " + eta
		}
		line += ", " + eta
	}
	d.say(line)
}

func (d *Display) serverStarting(address, state string) {
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

// sayState writes a plain line about the state of a server. It writes nothing if the state is the
// same, or if the last line about the server is younger than stateEvery.
func (d *Display) sayState(s *server) {
	now := d.opt.Now()
	if s.state == s.said && s.known || s.known && now-s.saidAt < stateEvery {
		return
	}
	s.said, s.saidAt, s.known = s.state, now, true
	d.say("server " + s.address + ": " + s.state)
}

func (d *Display) serverReady(s *metric.ServerRun) {
	line := "server " + s.Address + ": ready"
	address := text.Line(s.Address)
	if i := slices.IndexFunc(d.servers, func(x *server) bool { return x.address == address }); i >= 0 {
		line += " after " + text.Clock((d.time() - d.servers[i].since).Seconds())
	}
	d.opt.Forecast.part(address, "", "").end(d.opt.Now())
	d.forget(s.Address)
	d.say(line)
}

func (d *Display) serverDone(s *metric.ServerRun) {
	d.forget(s.Address)
	if s.Error != "" {
		d.fold("") // end the folded phase, because nobody would see an error in it
		d.say("server " + s.Address + ": error: " + s.Error)
		return
	}
	d.say("server " + s.Address + ": done")
}

func (d *Display) forget(address string) {
	address = text.Line(address)
	d.servers = slices.DeleteFunc(d.servers, func(s *server) bool { return s.address == address })
}

func (d *Display) levelStarted(l *metric.Level, due int, expected time.Duration) {
	now := d.opt.Now()
	// Remove the line that may show how the server prepared before this level.
	d.forget(l.Server)
	if l.Probe == nil {
		d.index++
		d.opt.Forecast.part(l.Server, l.Workload, l.Name).begin(now)
	} else {
		d.opt.Forecast.part(l.Server, l.Workload, "").begin(now)
	}
	started := &level{server: text.Line(l.Server), workload: text.Line(l.Workload), name: text.Line(l.Name), due: due, expected: expected,
		reported: [3]string{l.Server, l.Workload, l.Name},
		index:    d.index, since: d.time(), lastLine: now, warming: true}
	d.levels = append(d.levels, started)
	if d.opt.Simulated != nil {
		started.expected = 0 // the expected duration is in virtual time, but the display shows the time left in real time
	}
	if l.Probe != nil {
		if started.probe = text.Line(l.Probe.Purpose); l.Probe.Purpose != metric.SaturationName {
			started.probe = "capacity: " + started.probe
		}
	}
	if !d.opt.TTY {
		d.fold(started.workload + " on " + started.server)
		line := started.title() + d.position(started) + ": " + verdict.Count(due, "requests")
		if started.probe == metric.SaturationName {
			line = fmt.Sprintf("%s: measuring the largest rate that the server can sustain, with %d requests in flight", started.title(), l.N)
		}
		if expected > 0 {
			line += ", about " + text.Clock(expected.Seconds())
		}
		d.say(line)
	}
}

// running returns the level that is being measured, with the given server, workload and name; nil
// if there is none.
func (d *Display) running(server, workload, name string) *level {
	i := slices.IndexFunc(d.levels, func(l *level) bool { return l.reported == [3]string{server, workload, name} })
	if i < 0 {
		return nil
	}
	return d.levels[i]
}

func (d *Display) requestStarted(of *metric.Level, phase metric.Phase) {
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

func (d *Display) sampleDone(s *metric.Sample) {
	l := d.running(s.Server, s.Workload, s.Level)
	if l == nil {
		return
	}
	l.inFlight = max(l.inFlight-1, 0)
	if s.Phase != metric.Measured || s.Canceled() {
		return
	}
	l.done++
	defer d.tick()
	if !s.Completed() {
		l.failed++
		return
	}
	if v, ok := s.Value("ttft"); ok {
		l.ttft.add(v)
	}
	if tokens, took := s.Streamed(); tokens > 0 && took > 0 {
		l.tokens.add(float64(tokens))
		l.took.add(took.Seconds())
	}
}

func (d *Display) levelDone(m *metric.Level) {
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
		return
	}
	if l == nil {
		return
	}
	part.end(d.opt.Now())
	facts := append([]string{l.resultWords(m) + " in " + text.Clock((d.time() - l.since).Seconds())}, l.numbers()...)
	if l.failed > 0 {
		facts = slices.Insert(facts, 1, fmt.Sprintf("%d failed", l.failed))
	}
	if !d.opt.TTY {
		if done, all := d.opt.Forecast.count((*Work).isLevel); done < all {
			if eta := d.runETA(); eta != "" {
				facts = append(facts, "ETA of the run "+eta)
			}
		}
	}
	d.say(l.title() + ": " + strings.Join(facts, ", "))
}

func (d *Display) runDone(r *metric.Run) {
	d.fold("")
	if r.Stopped != "" {
		d.say("stopped: " + r.Stopped)
	}
	if faster := d.faster(); faster != "" {
		d.say("simulated in " + metric.Format(metric.Seconds, (d.opt.Now()-d.begun).Seconds()) + ", " + faster)
	}
	d.close()
}

// Say writes one line above the display. The display does not overwrite it.
func (d *Display) Say(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.say(line)
}

// say writes one line that stays on the screen. It removes control characters, because the line may
// contain text from outside.
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
	// Two spaces separate the time from the line, because a terminal may break a line in the middle
	// of a word.
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

// fold ends the current phase of the run and begins a phase with the given title. If title is "",
// it begins no phase.
func (d *Display) fold(title string) {
	if d.opt.Fold == nil || d.opt.TTY || d.closed || title == d.phase {
		return
	}
	d.phase = title
	io.WriteString(d.out, d.opt.Fold(title))
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
