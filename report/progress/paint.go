package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// Repaint reports whether a stream can show a block that is repainted. It must be a terminal that
// can move the cursor. The log of a CI system cannot, even if it is a pseudo-terminal.
func Repaint(env func(string) (string, bool), isTTY bool) bool {
	term, _ := env("TERM")
	ci, _ := env("CI")
	return isTTY && term != "dumb" && (ci == "" || ci == "false" || ci == "0")
}

// paint replaces the block on the screen by the current block. If above is not empty, it is written
// as a line above the block and stays there. All output is one write, so that the screen does not
// flicker.
func (d *Display) paint(above string) {
	width := d.width()
	var b strings.Builder
	// If the terminal became narrower since the last paint, each line of the old block fills
	// several rows.
	up := 0
	for _, w := range d.painted {
		up += max((w+width-1)/width, 1)
	}
	if up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	if d.painted != nil {
		b.WriteString("\r\x1b[J")
	}
	if above != "" {
		b.WriteString(above + "\n")
	}
	lines := d.block(width)
	if len(lines) > 0 && !d.hidden {
		b.WriteString("\x1b[?25l")
		d.hidden = true
	}
	d.painted = nil
	for _, l := range lines {
		// Leave one column free, because some terminals wrap a line that fills them.
		cut := text.Cut(text.Inert(l.words), width-1)
		d.painted = append(d.painted, text.Width(cut))
		b.WriteString(d.color(l.color, cut) + "\n")
	}
	d.lastTime = d.opt.Now()
	if b.Len() > 0 {
		io.WriteString(d.out, b.String())
	}
}

type line struct {
	words string
	color string // SGR parameters; "" means none
}

func (d *Display) color(sgr, s string) string {
	if !d.opt.Color || sgr == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

func (d *Display) block(width int) []line {
	now := d.opt.Now()
	var lines []line
	for _, s := range d.servers {
		lines = append(lines, line{spinner(now) + " server " + s.address + "  " + text.Clock((d.time() - s.since).Seconds()) + "  " + s.state, ""})
	}
	for _, l := range d.levels {
		lines = append(lines, d.lines(l, width)...)
	}
	for _, a := range d.answers {
		lines = append(lines, d.reading(a, width))
	}
	if rest := d.remaining(); len(lines) > 0 && len(rest) > 0 {
		lines = append(lines, line{fit(append([]string{"run"}, rest...), width-1), "2"})
	}
	return lines
}

func (d *Display) lines(l *level, width int) []line {
	var lines []line
	now := d.opt.Now()
	state := fmt.Sprintf("round %d", l.rounds+1)
	if l.warming {
		state += ", warming up"
	}
	lines = append(lines, line{fit([]string{l.title() + d.position(l), state}, width-1), "1"})
	counts := fmt.Sprintf("%d/%d  %d in flight", l.done, l.due, l.inFlight)
	color := ""
	if l.failed > 0 {
		counts += fmt.Sprintf("  %d failed", l.failed)
		color = "33"
	}
	if l.probe == metric.SaturationName { // requests of a saturation are not judged or counted
		return append(lines, line{fit([]string{fmt.Sprintf("%d in flight", l.inFlight), "elapsed " + text.Clock((d.time() - l.since).Seconds())}, width-1), "2"})
	}
	room := min(max(width-1-text.Width(counts)-9, 0), 40)
	lines = append(lines, line{bar(l.done, l.due, room) + counts, color})
	facts := append([]string{"elapsed " + text.Clock((d.time() - l.since).Seconds())}, l.numbers()...)
	if eta, ok := l.eta(now); ok {
		facts = append([]string{"ETA " + text.Clock(eta.Seconds())}, facts...)
	}
	if d.opt.Simulated != nil {
		facts = append([]string{"simulated"}, facts...)
		if faster := d.faster(); faster != "" {
			facts = append(facts, faster)
		}
	}
	return append(lines, line{fit(facts, width-1), "2"})
}

// fit joins facts in one line. It drops the last facts that do not fit the width, but never the
// first fact.
func fit(facts []string, width int) string {
	out := facts[0]
	for _, f := range facts[1:] {
		if text.Width(out)+2+text.Width(f) > width {
			break
		}
		out += "  " + f
	}
	return out
}

// bar returns a bar of n cells and the percentage, or only the percentage if n is less than 8. The
// bar is full only when everything is done.
func bar(done, due, n int) string {
	share := 0.0
	if due > 0 {
		share = min(float64(done)/float64(due), 1)
	}
	percent := fmt.Sprintf("%3d%%  ", int(share*100))
	if n < 8 {
		return percent
	}
	full := int(share * float64(n))
	return strings.Repeat("█", full) + strings.Repeat("░", n-full) + " " + percent
}

func spinner(now time.Duration) string {
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	return string(frames[int(now/(200*time.Millisecond))%len(frames)])
}

// ColorMode reports whether output to a stream is coloured if the user gave no flag
// for it. env looks a variable up in the environment.
//
//	NO_COLOR set and not empty                  no    (no-color.org; any value, "0" too)
//	FORCE_COLOR, CLICOLOR_FORCE set, not "0"    yes   (bixense.com/clicolors, force-color.org)
//	not a terminal, or TERM=dumb                no    (CI logs that render colour ask for it with FORCE_COLOR)
//	CLICOLOR=0                                  no
//	otherwise                                   yes
func ColorMode(env func(string) (string, bool), isTTY bool) bool {
	get := func(name string) string {
		v, _ := env(name)
		return v
	}
	if get("NO_COLOR") != "" {
		return false
	}
	for _, name := range []string{"FORCE_COLOR", "CLICOLOR_FORCE"} {
		if v := get(name); v != "" && v != "0" {
			return true
		}
	}
	return isTTY && get("TERM") != "dumb" && get("CLICOLOR") != "0"
}
