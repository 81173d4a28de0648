package progress

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

var update = flag.Bool("update", false, "write the golden files")

// screen is a terminal with only the features that the display uses.
type screen struct {
	t     *testing.T
	width int
	rows  []string // the cursor is in the last row
	shown bool     // whether the cursor is shown
}

func (s *screen) Write(b []byte) (int, error) {
	in := string(b)
	for len(in) > 0 {
		switch {
		case strings.HasPrefix(in, "\x1b[?25l"):
			s.shown, in = false, in[6:]
		case strings.HasPrefix(in, "\x1b[?25h"):
			s.shown, in = true, in[6:]
		case strings.HasPrefix(in, "\x1b["):
			end := strings.IndexAny(in, "AJm")
			if end < 0 {
				s.t.Fatalf("unknown sequence %q", in)
			}
			switch in[end] {
			case 'A':
				n, err := strconv.Atoi(in[2:end])
				if err != nil || n >= len(s.rows) {
					s.t.Fatalf("moves up %q of %d rows", in[2:end], len(s.rows)-1)
				}
				// Drop the text below the cursor. The display must clear it next.
				if !strings.HasPrefix(in[end+1:], "\r\x1b[J") {
					s.t.Fatalf("moves up and does not clear: %q", in)
				}
				s.rows = append(s.rows[:len(s.rows)-1-n:len(s.rows)-1-n], "")
			case 'J':
				s.rows[len(s.rows)-1] = ""
			}
			in = in[end+1:]
		case in[0] == '\r':
			in = in[1:]
		case in[0] == '\n':
			s.rows, in = append(s.rows, ""), in[1:]
		default:
			r := []rune(in)[0]
			last := &s.rows[len(s.rows)-1]
			if text.Width(*last+string(r)) > s.width {
				s.rows = append(s.rows, "")
				last = &s.rows[len(s.rows)-1]
			}
			*last += string(r)
			in = in[len(string(r)):]
		}
	}
	return len(b), nil
}

func (s *screen) String() string { return strings.Join(s.rows, "\n") }

const hostile = "\x1b[31m漢字漢字 loading\x1b[0m\r\n::error::pwned\x07 ##[group]"

// played returns the forecast of the scripted run that the function play shows.
func played() Forecast {
	return Forecast{Parts: []Work{
		{Server: "vllm", Times: 1},
		{Server: "vllm", Workload: "general_chatbot", Level: "30", Times: 1, Size: 2}, {Server: "vllm", Workload: "general_chatbot", Level: "64", Times: 1, Size: 1},
	}}
}

// play shows a scripted run on the display. It calls the function frame with a title at each moment
// that a test looks at.
func play(d *Display, now *time.Duration, frame func(string)) {
	at := func(t time.Duration) { *now = t; d.Tick() }
	sample := func(phase metric.Phase, i int, ttft time.Duration, failure *metric.Failure) *metric.Sample {
		sent := time.Duration(i) * time.Second
		return &metric.Sample{Server: "vllm", Workload: "general_chatbot", Level: "30", Phase: phase, Sent: sent, First: sent + ttft, Last: sent + ttft + 2*time.Second,
			Usage: &metric.Usage{Output: 51}, FirstTokens: 1, Failure: failure}
	}
	d.Observe(metric.RunStarted{Run: &metric.Run{ID: "20261120T140500Z-3f9c", Plan: "plans/chatbot.hcl"}})
	d.Observe(metric.ServerStarting{Server: "vllm", State: "waiting for http://127.0.0.1:8000"})
	at(5 * time.Second)
	for i := range 100 { // the server's log changes every time
		d.Observe(metric.ServerStarting{Server: "vllm", State: fmt.Sprintf("%s %d%%", hostile, i)})
		at(5*time.Second + time.Duration(i)*300*time.Millisecond)
	}
	frame("starting")
	at(72 * time.Second)
	d.Observe(metric.ServerReady{Server: &metric.ServerRun{Address: "vllm"}})
	d.Observe(metric.ServerStarting{Server: "vllm", State: "learning how it counts tokens"})
	at(73 * time.Second)
	frame("preparing")
	chat := &metric.Level{Server: "vllm", Workload: "general_chatbot", Name: "30", N: 30}
	d.Observe(metric.LevelStarted{Level: chat, Due: 60, Expected: 2 * time.Minute})
	for range 4 {
		d.Observe(metric.RequestStarted{Level: chat, Phase: metric.Warmup})
	}
	at(80 * time.Second)
	frame("warming up")
	for i := range 4 {
		d.Observe(metric.SampleDone{Sample: sample(metric.Warmup, i, time.Second, nil)})
	}
	for range 30 {
		d.Observe(metric.RequestStarted{Level: chat, Phase: metric.Measured})
	}
	at(100 * time.Second)
	for i := range 20 {
		var failure *metric.Failure
		if i%10 == 9 {
			failure = &metric.Failure{Kind: metric.FailTimeout, Message: hostile}
		}
		d.Observe(metric.SampleDone{Sample: sample(metric.Measured, i, time.Duration(500+10*i)*time.Millisecond, failure)})
	}
	at(110 * time.Second)
	frame("a third done")
	d.Observe(metric.RoundDone{Level: chat, Round: &metric.Round{}})
	at(140 * time.Second)
	frame("between rounds")
	for i := range 40 {
		d.Observe(metric.RequestStarted{Level: chat, Phase: metric.Measured})
		d.Observe(metric.SampleDone{Sample: sample(metric.Measured, i, time.Second, nil)})
	}
	at(170 * time.Second)
	frame("all done")
	d.Observe(metric.LevelDone{Level: chat})
	d.Observe(metric.LevelDone{Level: &metric.Level{Server: "vllm", Workload: "general_chatbot", Name: "64", Skipped: "the budget of 3m was spent"}})
	at(171 * time.Second)
	frame("between levels")
	d.Observe(metric.ServerDone{Server: &metric.ServerRun{Address: "vllm"}})
	d.Observe(metric.ServerDone{Server: &metric.ServerRun{Address: `sglang["x"]`, Error: hostile}})
	d.Observe(metric.RunDone{Run: &metric.Run{Stopped: "budget"}})
	frame("the end")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.MkdirAll("testdata", 0o755))
		must.Do(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want := must.Get(os.ReadFile(file))(t)
	must.Same(t, name+" (-want +got; run with -update to accept)", string(want), got)
}

// levels returns the forecast of a run with the given number of levels, whose durations are
// unknown.
func levels(n int) Forecast {
	return Forecast{Parts: []Work{{Server: "s", Workload: "w", Level: "any", Times: n}}}
}

func TestLiveFrames(t *testing.T) {
	for _, width := range []int{40, 80, 120} {
		for _, color := range []bool{false, true} {
			var now time.Duration
			s := &screen{t: t, width: width, rows: []string{""}, shown: true}
			d := New(s, Options{TTY: true, Color: color, Width: func() int { return width }, Now: func() time.Duration { return now }, Forecast: played()})
			var out strings.Builder
			play(d, &now, func(name string) {
				fmt.Fprintf(&out, "--- %s\n%s", name, s)
			})
			must.Hold(t, s.shown, "the cursor is still hidden")
			// The output with colour must match the same golden file.
			golden(t, fmt.Sprintf("live-%d.txt", width), out.String())
		}
	}
}

func TestPlainLines(t *testing.T) {
	var now time.Duration
	var b bytes.Buffer
	d := New(&b, Options{Now: func() time.Duration { return now }, Forecast: played(), Color: true})
	play(d, &now, func(string) {})
	golden(t, "plain.txt", b.String())
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		must.Hold(t, text.Line(line) == strings.Join(strings.Fields(line), " "), "control characters: %q", line)
		must.Hold(t, text.Inert(line) == line, "a command: %q", line)
	}
}

// The display repaints at most ten times a second, however often Tick is called.
func TestRepaintIsBounded(t *testing.T) {
	var now time.Duration
	w := &counter{}
	d := New(w, Options{TTY: true, Now: func() time.Duration { return now }})
	l := &metric.Level{Name: "1"}
	d.Observe(metric.LevelStarted{Level: l, Due: 100})
	for now < time.Second {
		d.Tick()
		d.Observe(metric.RequestStarted{Level: l, Phase: metric.Measured})
		d.Observe(metric.SampleDone{Sample: &metric.Sample{Level: "1", Phase: metric.Measured}})
		now += time.Millisecond
	}
	must.Hold(t, w.n >= 5 && w.n <= 11, "%d writes in a second, want about 10", w.n)
}

type counter struct{ n int }

func (c *counter) Write(b []byte) (int, error) { c.n++; return len(b), nil }

// A terminal that becomes narrower wraps the lines of the old block. The display must still remove
// the whole block.
func TestNarrowerTerminal(t *testing.T) {
	var now time.Duration
	s := &screen{t: t, width: 100, rows: []string{""}}
	d := New(s, Options{TTY: true, Width: func() int { return s.width }, Now: func() time.Duration { return now }})
	d.Observe(metric.LevelStarted{Level: &metric.Level{Server: "vllm", Workload: strings.Repeat("w", 90), Name: "1"}, Due: 10})
	d.Tick()
	// Make the screen narrower, and wrap its old rows as a terminal does.
	old := s.rows
	s.width, s.rows = 40, []string{""}
	for _, row := range old[:len(old)-1] {
		fmt.Fprintf(s, "%s\n", row)
	}
	now += time.Second
	d.Close()
	must.Same(t, "left on the screen:\n", "", s.String())
}

func TestQuiet(t *testing.T) {
	for _, tty := range []bool{false, true} {
		var now time.Duration
		w := &counter{}
		play(New(w, Options{TTY: tty, Quiet: true, Now: func() time.Duration { return now }}), &now, func(string) {})
		must.Hold(t, w.n == 0, "tty %t: %d writes, want none", tty, w.n)
	}
}

func TestETA(t *testing.T) {
	sec := time.Second
	tests := []struct {
		name string
		l    level
		now  time.Duration
		want time.Duration
		ok   bool
	}{
		{"nothing known", level{due: 10}, sec, 0, false},
		{"as expected until a request is done", level{due: 10, expected: 60 * sec}, 20 * sec, 40 * sec, true},
		{"overdue", level{due: 10, expected: 60 * sec}, 61 * sec, 0, false},
		// Five of 20 requests ended in the first 10 s. At this pace the other 15 take 30 s.
		{"by the pace", level{due: 20, done: 5, measured: true, measuring: 30 * sec, expected: time.Hour}, 40 * sec, 30 * sec, true},
		{"done", level{due: 20, done: 20, measured: true}, 40 * sec, 0, false},
	}
	for _, tt := range tests {
		got, ok := tt.l.eta(tt.now)
		must.Hold(t, got == tt.want && ok == tt.ok, "%s: eta = %v, %t, want %v, %t", tt.name, got, ok, tt.want, tt.ok)
	}
}

// Comparisons that may end early make the forecast an upper bound.
func TestETAOfTheLongestRun(t *testing.T) {
	for early, want := range map[bool]string{false: "1m00s", true: "at most 1m00s"} {
		parts := []Work{{Server: "s", Workload: "w", Level: "1", Times: 3, Took: 20 * time.Second, Known: true}}
		d := New(&strings.Builder{}, Options{Now: func() time.Duration { return 0 }, Forecast: Forecast{Parts: parts, Early: early}})
		must.Same(t, fmt.Sprintf("early %t", early), want, d.runETA())
	}
}

func TestBar(t *testing.T) {
	tests := []struct {
		done, due, n int
		want         string
	}{
		{0, 10, 10, "░░░░░░░░░░   0%  "},
		{5, 10, 10, "█████░░░░░  50%  "},
		{999, 1000, 10, "█████████░  99%  "}, // full only when done
		{10, 10, 10, "██████████ 100%  "},
		{11, 10, 10, "██████████ 100%  "},
		{0, 0, 10, "░░░░░░░░░░   0%  "},
		{5, 10, 3, " 50%  "},
	}
	for _, tt := range tests {
		must.Same(t, fmt.Sprintf("bar(%d, %d, %d)", tt.done, tt.due, tt.n), tt.want, bar(tt.done, tt.due, tt.n))
	}
}

// The display computes its statistics from a bounded number of requests.
func TestRing(t *testing.T) {
	var r ring
	for i := range 3 * window {
		r.add(float64(i))
	}
	// Of 3,000 values, the ring keeps the last 1,000, which are 2000 to 2999.
	if d := r.distribution(); d.N() != window || d.Values[0] != 2000 || d.Values[window-1] != 2999 {
		t.Errorf("%d values from %v to %v, want 1000 from 2000 to 2999", d.N(), d.Values[0], d.Values[window-1])
	}
}

// The run sends events while a ticker calls Tick. Closing the terminal, or ending the run twice,
// causes no error.
func TestConcurrentAndBroken(t *testing.T) {
	for _, live := range []bool{false, true} {
		d := New(broken{}, Options{TTY: live, Now: func() time.Duration { return time.Second }})
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 100 {
				d.Tick()
			}
		})
		l := &metric.Level{Name: "1"}
		d.Observe(metric.SampleDone{Sample: &metric.Sample{}}) // before any level
		d.Observe(metric.RequestStarted{Level: l, Phase: metric.Filler})
		d.Observe(metric.RoundDone{Level: l, Round: nil})
		d.Observe(metric.LevelDone{Level: l})
		d.Observe(metric.LevelStarted{Level: l, Due: 1})
		for range 100 {
			d.Observe(metric.RequestStarted{Level: l, Phase: metric.Measured})
			err := d.Observe(metric.SampleDone{Sample: &metric.Sample{Level: "1", Phase: metric.Measured}})
			must.Hold(t, err == nil, "%v", err)
		}
		d.Observe(metric.LevelDone{Level: l})
		err := d.Observe(metric.RunDone{Run: &metric.Run{}})
		must.Hold(t, err == nil, "%v", err)
		wg.Wait()
		d.Close()
		d.Tick()
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestRepaint(t *testing.T) {
	tests := []struct {
		env  map[string]string
		tty  bool
		want bool
	}{
		{map[string]string{"TERM": "xterm"}, true, true},
		{map[string]string{"TERM": "xterm"}, false, false},
		{map[string]string{"TERM": "dumb"}, true, false},
		{map[string]string{"CI": "true"}, true, false},
		{map[string]string{"CI": "false"}, true, true},
		{nil, true, true},
	}
	for _, tt := range tests {
		env := func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }
		must.Same(t, fmt.Sprintf("Repaint(%v, %t)", tt.env, tt.tty), tt.want, Repaint(env, tt.tty))
	}
}

// "1 of 2" counts only the levels of the plan, and no probes of a capacity search.
func TestProbesAreNotCounted(t *testing.T) {
	var b strings.Builder
	d := New(&b, Options{Forecast: levels(2), Now: func() time.Duration { return 0 }})
	for _, l := range []*metric.Level{
		{Server: "s", Workload: "w", Name: "1"},
		{Server: "s", Workload: "w", Name: "probe 8", Probe: &metric.Probe{Purpose: "ladder"}},
		{Server: "s", Workload: "w", Name: "2"},
		{Server: "s", Workload: "w", Name: "2"}, // the extended level
	} {
		d.Observe(metric.LevelStarted{Level: l, Due: 1})
		d.Observe(metric.LevelDone{Level: l})
	}
	for _, want := range []string{"w at 1 on s (1 of 2): 1", "w at probe 8 on s (capacity: ladder): 1", "w at 2 on s (2 of 2): 1", "w at 2 on s: 1 request\n"} {
		must.Hold(t, strings.Contains(b.String(), want), "no %q in:\n%s", want, b.String())
	}
}

// Two of four requests end, and one of them fails. The budget then ends the probe, so the run
// cancels the other two. Cancelled requests count neither as ended nor as failed.
func TestCanceledDidNotFail(t *testing.T) {
	var b strings.Builder
	d := New(&b, Options{Now: func() time.Duration { return 0 }})
	l := &metric.Level{Server: "s", Workload: "w", Name: "8 req/s"}
	d.Observe(metric.LevelStarted{Level: l, Due: 4})
	for _, kind := range []metric.FailureKind{"", metric.FailTimeout, metric.FailCanceled, metric.FailCanceled} {
		d.Observe(metric.RequestStarted{Level: l, Phase: metric.Measured})
		x := &metric.Sample{Server: "s", Workload: "w", Level: l.Name, Phase: metric.Measured}
		if kind != "" {
			x.Failure = &metric.Failure{Kind: kind}
		}
		d.Observe(metric.SampleDone{Sample: x})
	}
	d.Observe(metric.LevelDone{Level: l})
	want := "w at 8 req/s on s: 2 requests in 0s, 1 failed\n"
	must.Hold(t, strings.Contains(b.String(), want), "no %q in:\n%s", want, b.String())
}

// A simulated run shows virtual time. Only the time left is real, because the user waits for it.
func TestSimulated(t *testing.T) {
	var out strings.Builder
	wall, virtual := time.Duration(0), time.Duration(0)
	d := New(&out, Options{Now: func() time.Duration { return wall }, Simulated: func() time.Duration { return virtual }, Forecast: levels(1)})
	d.Observe(metric.RunStarted{Run: &metric.Run{ID: "r"}})
	l := &metric.Level{Server: "s", Workload: "w", Name: "8"}
	d.Observe(metric.LevelStarted{Level: l, Due: 3, Expected: time.Hour})
	for i := range 3 {
		wall, virtual = wall+20*time.Second, virtual+time.Hour
		d.Observe(metric.RequestStarted{Level: l, Phase: metric.Measured})
		if i == 1 {
			wall += 20 * time.Second // two requests take 40 s of real time: from 20 s to 60 s
		}
		sent := time.Duration(i+1) * time.Hour
		d.Observe(metric.SampleDone{Sample: &metric.Sample{Server: "s", Workload: "w", Level: "8", Phase: metric.Measured, Sent: sent, First: sent + time.Second, Last: sent + 3*time.Second, End: sent + 3*time.Second}})
	}
	d.Observe(metric.LevelDone{Level: l})
	d.Observe(metric.RunDone{Run: &metric.Run{ID: "r"}})
	for _, want := range []string{
		"    0s  run r, 1 level, simulated: times are virtual\n",
		"w at 8 on s (1 of 1): 3 requests, about 1h00m\n",
		" 2h00m  w at 8 on s: 2 of 3, 0 in flight, TTFT p50 1 s p95 1 s, ETA 20s\n", // 40 s for two
		" 3h00m  w at 8 on s: 3 requests in 3h00m, TTFT p50 1 s p95 1 s\n",
		" 3h00m  simulated in 80 s, 135 times as fast as real time\n", // 10800 s of virtual time in 80 s
	} {
		must.Hold(t, strings.Contains(out.String(), want), "nothing says %q:\n%s", want, out.String())
	}
}

// Two levels run at the same time. The display counts their requests separately.
func TestTwoLevels(t *testing.T) {
	var out strings.Builder
	d := New(&out, Options{Now: func() time.Duration { return time.Second }, Forecast: levels(2)})
	a, b := &metric.Level{Server: "a", Workload: "w", Name: "8"}, &metric.Level{Server: "b", Workload: "w", Name: "8"}
	d.Observe(metric.LevelStarted{Level: a, Due: 3})
	d.Observe(metric.LevelStarted{Level: b, Due: 3})
	for i := range 3 {
		for _, l := range []*metric.Level{a, b} {
			if i < 2 || l == b {
				d.Observe(metric.RequestStarted{Level: l, Phase: metric.Measured})
				d.Observe(metric.SampleDone{Sample: &metric.Sample{Server: l.Server, Workload: "w", Level: "8", Phase: metric.Measured}})
			}
		}
	}
	d.Observe(metric.LevelDone{Level: a})
	d.Observe(metric.LevelDone{Level: b})
	for _, want := range []string{"w at 8 on a (1 of 2): 3 requests", "w at 8 on b (2 of 2): 3 requests", "w at 8 on a: 2 requests in", "w at 8 on b: 3 requests in"} {
		must.Hold(t, strings.Contains(out.String(), want), "no %q in\n%s", want, out.String())
	}
}

// Scored or judged answers have a line of their own in the display. One line about them stays when
// all are done.
func TestAnswers(t *testing.T) {
	for _, tty := range []bool{false, true} {
		var out strings.Builder
		now := time.Duration(0)
		d := New(&out, Options{TTY: tty, Now: func() time.Duration { return now }})
		for done := range 141 {
			d.Observe(metric.AnswersDone{Server: "next\x1b[2J", Reading: false, Done: done, Due: 140})
			now += 250 * time.Millisecond
		}
		for done := range 3 {
			d.Observe(metric.AnswersDone{Server: "today", Reading: true, Done: done, Due: 2})
		}
		wants := []string{": 140 in 35s\n", "reading answers on today: 2 in 0s\n"}
		if tty {
			wants = append(wants, "44/140  answers of next")
		} else {
			wants = append(wants, ": 120 of 140\n")
		}
		for _, want := range wants {
			must.Hold(t, strings.Contains(out.String(), want), "nothing says %q:\n%s", want, out.String())
		}
		if strings.Contains(out.String(), "\x1b[2J") || len(d.block(80)) > 0 {
			t.Errorf("foreign bytes, or something left: %q", d.block(80))
		}
		d.Close()
	}
}

// If several levels are skipped for the same reason, the reason is printed only once.
func TestSkippedForOneReason(t *testing.T) {
	var b bytes.Buffer
	d := New(&b, Options{Now: func() time.Duration { return 0 }})
	d.Observe(metric.RunStarted{Run: &metric.Run{ID: "r"}})
	for _, level := range []struct{ name, why string }{{"1", "the server died"}, {"2", "the server died"}, {"3", "the budget is spent"}} {
		d.Observe(metric.LevelDone{Level: &metric.Level{Server: "s", Workload: "w", Name: level.name, Skipped: level.why}})
	}
	want := "    0s  run r\n    0s  w at 1 on s: skipped: the server died\n    0s  w at 2 on s: skipped: likewise\n    0s  w at 3 on s: skipped: the budget is spent\n"
	got := b.String()
	must.Hold(t, got == want, "got:\n%s\nwant:\n%s", got, want)
}
