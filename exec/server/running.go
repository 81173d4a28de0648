package server

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
)

// Grace is how long a server may take to end by itself after a request to stop. The constant reaped
// is how long the system may take to remove a killed server.
const (
	Grace  = 15 * time.Second
	reaped = 5 * time.Second
)

// Teardown is the longest time that ending a server takes. A run keeps this time, or a tenth of its
// budget if that is less, at the end of the budget.
const Teardown = Grace + reaped

// tick is the interval between two checks whether a server has ended.
const tick = 20 * time.Millisecond

// running is a process or container on this machine in which tokgate started a server.
type running interface {
	// gone returns the reason why the server ended by itself. It returns nil while the server runs,
	// and after tokgate asked it to end.
	gone() error
	// instance identifies the running server; "" if not known. It changes if another server starts
	// in its place.
	instance(context.Context) string
	// settled is called when the server is ready. From then on, a process that listens on the port
	// counts as the server.
	settled()
	// end ends the server and all processes that it started. It returns an error if a process
	// remains. A second call does nothing.
	end() error
}

// within waits until the function done returns true, but at most for the time that the function d
// returns. That time may change during the wait. late is true if the time ended first.
func within(c clock.Clock, d func() time.Duration, done func() bool) (late bool) {
	since := c.Now()
	for !done() {
		if c.Now() >= since+d() || clock.Sleep(context.Background(), c, tick) != nil {
			return true
		}
	}
	return false
}

func constant(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// outOfMemory lists words with which engines report that memory ran out.
var outOfMemory = []string{"out of memory", "OutOfMemoryError", "cudaMalloc failed", "not enough memory", "Cannot allocate memory"}

// endOf returns an error that explains why a started server ended. The parameter what names the
// process or container, and how says how it ended. A log line with one of the words in died says
// that the engine's own process ended first.
func endOf(what, how, log string, died []string) error {
	if words := firstWith(log, died); words != "" {
		return &exec.ServerError{Err: fmt.Errorf("the engine process ended: %s; then %s ended by itself: %s", words, what, cause(how, log)), Log: excerpt(log)}
	}
	return &exec.ServerError{Err: fmt.Errorf("%s ended by itself: %s", what, cause(how, log)), Log: excerpt(log)}
}

// cause returns the text how, which describes a server's end. If the log shows that memory ran out,
// cause adds that.
func cause(how, log string) string {
	if line := firstWith(log[max(len(log)-tailSize/4, 0):], outOfMemory); line != "" {
		return how + "; it ran out of memory: " + line
	}
	return how
}

// firstWith returns the first line of the log that contains one of the given texts, cut to 200
// bytes. It returns "" if there is no such line.
func firstWith(log string, any []string) string {
	for line := range strings.Lines(log) {
		if slices.ContainsFunc(any, func(words string) bool { return strings.Contains(line, words) }) {
			return shorten(strings.TrimSpace(line), 200)
		}
	}
	return ""
}

// failing matches the words with which an engine's error report begins.
var failing = regexp.MustCompile(`\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|\bpanic:`)

// firstLines and lastLines are the numbers of lines in an excerpt of a log. The first lines begin
// at the first error, and the last lines mostly say how the server ended.
const (
	firstLines = 10
	lastLines  = 4
)

// excerpt shortens a log with an error. It keeps the first lines from the first error on, and the
// last lines. It returns a log without errors unchanged.
func excerpt(log string) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	i := slices.IndexFunc(lines, failing.MatchString)
	if i < 0 {
		return log
	}
	lines = lines[i:]
	if cut := len(lines) - firstLines - lastLines; cut > 1 {
		middle := fmt.Sprintf("… %d lines", cut)
		lines = slices.Concat(lines[:firstLines], []string{middle}, lines[len(lines)-lastLines:])
	}
	return strings.Join(lines, "\n") + "\n"
}
