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

// Grace is how long a server may take to end itself once it is asked to,
// reaped how long the system may take to be rid of one that was killed.
const (
	Grace  = 15 * time.Second
	reaped = 5 * time.Second
)

// Teardown is the most that ending a server takes; what a run with a budget
// holds back for it.
const Teardown = Grace + reaped

// tick is how often is looked whether a server has ended.
const tick = 20 * time.Millisecond

// running is a server that tokgate started on this machine, outside itself.
type running interface {
	// gone is why it is no longer there, unless it was asked to go.
	gone() error
	// instance tells it from a later one in its place; "": not known.
	instance(context.Context) string
	// settled says that it is ready: what listens from now on is it.
	settled()
	// end ends it with everything it started, and is an error when something
	// is left. To end it twice does nothing.
	end() error
}

// within waits until done, and reports whether that took longer than d says by
// then.
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

// outOfMemory are words by which engines say that memory ran out.
var outOfMemory = []string{"out of memory", "OutOfMemoryError", "cudaMalloc failed", "not enough memory", "Cannot allocate memory"}

// endOf is why a server of ours is gone: how its process or container ended,
// and what its log says of the reason.
func endOf(what, how, log string, died []string) error {
	if words := firstWith(log, died); words != "" {
		return &exec.ServerError{Err: fmt.Errorf("the engine process ended: %s; then %s ended by itself: %s", words, what, cause(how, log)), Log: excerpt(log)}
	}
	return &exec.ServerError{Err: fmt.Errorf("%s ended by itself: %s", what, cause(how, log)), Log: excerpt(log)}
}

// cause adds to how a server ended what its log says of the reason.
func cause(how, log string) string {
	if line := firstWith(log[max(len(log)-tailSize/4, 0):], outOfMemory); line != "" {
		return how + "; it ran out of memory: " + line
	}
	return how
}

// firstWith is the first line of a log that holds any of these words,
// shortened; "": none does.
func firstWith(log string, any []string) string {
	for line := range strings.Lines(log) {
		if slices.ContainsFunc(any, func(words string) bool { return strings.Contains(line, words) }) {
			return shorten(strings.TrimSpace(line), 200)
		}
	}
	return ""
}

// failing is how engines begin to tell what went wrong.
var failing = regexp.MustCompile(`\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|\bpanic:`)

// Lines of a log that are kept of one that tells what went wrong: the first
// ones of that, and the last ones, with which it mostly ends.
const (
	firstLines = 10
	lastLines  = 4
)

// excerpt is a log from its first error on, without its middle; a log that
// tells of none is left as it is.
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
