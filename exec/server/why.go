package server

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/exec"
)

// endOf returns an error that explains why a started server ended. The parameter ended says what
// ended, and how. The first exception in the log is the reason. A line with one of the words in died
// only says that the engine's own process ended first.
func endOf(ended, log string, died []string) error {
	if why, at := exception(log, died); why != "" {
		return &exec.ServerError{Err: fmt.Errorf("%s (%s)", why, ended), Log: excerpt(log, at)}
	}
	if words := firstWith(log[max(len(log)-tailSize/4, 0):], outOfMemory); words != "" {
		ended += "; it ran out of memory: " + words
	}
	if words := firstWith(log, died); words != "" {
		ended = fmt.Sprintf("the engine process ended: %s; then %s", words, ended)
	}
	return &exec.ServerError{Err: errors.New(ended), Log: excerpt(log, -1)}
}

// outOfMemory lists words with which engines report that memory ran out.
var outOfMemory = []string{"out of memory", "OutOfMemoryError", "cudaMalloc failed", "not enough memory", "Cannot allocate memory"}

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

// These patterns find the exception in a Python program's log. A line of a traceback may have
// prefixes: the process that wrote it, a time, and what a logger adds. Processes write at the same
// time, so the lines of two tracebacks may alternate.
var (
	linePrefix = regexp.MustCompile(`^(?:\([^()]*\bpid=\d+\) ?|\[rank\d+\]: ?|\[?\d{4}-\d\d-\d\d[ T][\d:.,]+\]? ?|[A-Z]{4,8}:? +(?:\d\d-\d\d )?[\d:.,]+ \[[^\]]*\] ?)*`)
	lineTime   = regexp.MustCompile(`\[?\d{4}-\d\d-\d\d[ T][\d:.,]+\]? ?|\d\d:\d\d:\d\d[.,]?\d*`)
	harmless   = regexp.MustCompile(`\b(?:DEBUG|INFO|WARNING)\b.*Traceback|Exception ignored in.*\n.*Traceback`)
	raised     = regexp.MustCompile(`^(?:\w+\.)*\w+(?:\(\w+\))?(?:: |$)`)
	unasked    = regexp.MustCompile(`^(?:\w+\.)*(?:CancelledError|KeyboardInterrupt|SystemExit)\b`)
)

const traceback = "Traceback (most recent call last)"

// longestWhy is the largest size of an exception in a message, in bytes. vLLM's longest are about
// as long.
const longestWhy = 400

// exception returns the first exception of a log with its message, and the index of its line. It
// leaves out tracebacks that a program logged as a warning, exceptions with one of the words in
// died, and those that end a program on request. why is "" if the log has none.
func exception(log string, died []string) (why string, at int) {
	lines := strings.Split(log, "\n")
	for i, line := range lines {
		if !strings.Contains(line, traceback) || harmless.MatchString(lines[max(i-1, 0)]+"\n"+line) {
			continue
		}
		if at = raisedAt(lines, i); at < 0 {
			continue
		}
		why = message(lines, at)
		consequence := slices.ContainsFunc(died, func(words string) bool { return strings.Contains(why, words) })
		if !consequence && !unasked.MatchString(why) {
			return why, at
		}
	}
	return "", -1
}

// raisedAt returns the index of the line that ends the traceback which begins at line i, or -1. It
// is the first line of the same process that is not indented.
func raisedAt(lines []string, i int) int {
	from, _ := source(lines[i])
	for k := i + 1; k < len(lines); k++ {
		if of, words := source(lines[k]); of == from && raised.MatchString(words) {
			return k
		}
	}
	return -1
}

// message returns the exception at line i. Further lines of its message are indented, such as those
// of a validation error.
func message(lines []string, i int) string {
	from, why := source(lines[i])
	for k := i + 1; k < len(lines) && len(why) < longestWhy; k++ {
		of, words := source(lines[k])
		if of != from || !strings.HasPrefix(words, " ") {
			break
		}
		why += " " + strings.TrimSpace(words)
	}
	return shorten(strings.TrimSpace(why), longestWhy)
}

// source divides a line of a log into its prefix, without the time, and the words of the program.
func source(line string) (from, words string) {
	n := len(linePrefix.FindString(line))
	return lineTime.ReplaceAllString(line[:n], ""), strings.TrimRight(line[n:], "\r")
}

// failing matches the words with which an engine's error report begins.
var failing = regexp.MustCompile(`\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|\bpanic:`)

// firstLines and lastLines are the numbers of lines in an excerpt of a log. The first lines surround
// the reason, and the last lines mostly say how the server ended. Of the first lines, linesBefore
// come before an exception.
const (
	firstLines  = 10
	linesBefore = 4
	lastLines   = 4
)

// excerpt shortens a log with an error. It keeps the lines around the exception at line at, or from
// the first error on if at is -1, and the last lines. It returns a log without errors unchanged.
func excerpt(log string, at int) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	first := slices.IndexFunc(lines, failing.MatchString)
	if first < 0 && at < 0 {
		return log
	}
	lines = lines[max(first, at-linesBefore, 0):]
	if cut := len(lines) - firstLines - lastLines; cut > 1 {
		middle := fmt.Sprintf("… %d lines", cut)
		lines = slices.Concat(lines[:firstLines], []string{middle}, lines[len(lines)-lastLines:])
	}
	return strings.Join(lines, "\n") + "\n"
}
