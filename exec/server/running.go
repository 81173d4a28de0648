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

// Grace is the time that a server gets to end by itself after it was asked to. reaped is the time
// that the system gets to remove a killed server.
const (
	Grace  = 15 * time.Second
	reaped = 5 * time.Second
)

// Teardown is the longest time that ending a server takes. A run with a budget
// reserves it.
const Teardown = Grace + reaped

// tick is the interval for checking whether a server has ended.
const tick = 20 * time.Millisecond

// running is a server that tokgate started on this machine, in a process or a container.
type running interface {
	// gone returns the reason why the server no longer runs. It returns nil if the server runs, or
	// if tokgate has asked it to end.
	gone() error
	// instance identifies the running server. A server that is started later in its place has a
	// different value. "" if not known.
	instance(context.Context) string
	// settled is called when the server is ready. From then on, a process that listens on the port
	// is taken for the server.
	settled()
	// end ends the server and all processes that it started. It returns an error if a process
	// remains. A second call does nothing.
	end() error
}

// within waits until done returns true or the time d() has passed since the call. The result of d
// may change during the wait. late is true if the time passed first.
func within(c clock.Clock, d func() time.Duration, done func() bool) (late bool) {
	since := c.Now()
	for !done() {
		if c.Now() >= since+d() || clock.Sleep(context.Background(), c, tick) != nil {
			return true
		}
	}
	return false
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// outOfMemory lists words with which engines report that memory ran out.
var outOfMemory = []string{"out of memory", "OutOfMemoryError", "cudaMalloc failed", "not enough memory", "Cannot allocate memory"}

// endOf returns an error that explains why a started server ended. what is the process or
// container, how is the way it ended. The reason comes from the log.
func endOf(what, how, log string, died []string) error {
	if words := firstWith(log, died); words != "" {
		return &exec.ServerError{Err: fmt.Errorf("the engine process ended: %s; then %s ended by itself: %s", words, what, cause(how, log)), Log: excerpt(log)}
	}
	return &exec.ServerError{Err: fmt.Errorf("%s ended by itself: %s", what, cause(how, log)), Log: excerpt(log)}
}

// cause adds the reason to how, the description of a server's end. It finds the reason in the log.
func cause(how, log string) string {
	if line := firstWith(log[max(len(log)-tailSize/4, 0):], outOfMemory); line != "" {
		return how + "; it ran out of memory: " + line
	}
	return how
}

// firstWith returns the first line of the log that contains one of the given texts, cut to 200
// bytes; "" if no line does.
func firstWith(log string, any []string) string {
	for line := range strings.Lines(log) {
		if slices.ContainsFunc(any, func(words string) bool { return strings.Contains(line, words) }) {
			return shorten(strings.TrimSpace(line), 200)
		}
	}
	return ""
}

// failing matches the beginning of an engine's error report.
var failing = regexp.MustCompile(`\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|\bpanic:`)

// An excerpt of a log has its first lines, beginning with the first error, and its last lines. The
// last lines mostly say how the server ended.
const (
	firstLines = 10
	lastLines  = 4
)

// excerpt shortens a log. It begins at the first error, and leaves out the middle. A log without
// errors is returned unchanged.
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
