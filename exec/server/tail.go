package server

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/tokgate/tokgate/record"
)

// Sizes of a captured log, in bytes.
const (
	tailSize = 64 << 10 // bytes at the end of the log, kept in memory
	fileSize = 16 << 20 // size of the log file, which keeps the beginning and the end of the log
	lineSize = 16 << 10 // bytes of a line; longer lines are cut into pieces
	lastSize = 160      // bytes of the last line that a progress display shows
)

// tail captures the output of a process, whatever its length. It keeps the beginning in a file, and
// the end in memory. After a write error it writes no more to the file. tail is safe for concurrent
// use.
//
// tail handles whole lines, because it could not find a secret that is cut in two.
type tail struct {
	redactor record.Redactor

	mu      sync.Mutex
	file    io.Writer // log file; nil if there is none, or if a write has failed
	written int
	partial []byte // an unfinished line
	end     []byte // at most 2·tailSize
	total   int    // bytes of complete lines so far
	skipped bool   // some lines were not written to the file
	last    string // last line with text, at most lastSize bytes of it
	watch   func(line string)
	closer  io.Closer // closes file; nil if there is no file
	// finished means that the server has ended its output.
	finished bool
}

// The log also goes to a file in the folder dir, unless dir is "".
func newLog(dir, address string, secrets record.Redactor) (*tail, error) {
	log := &tail{redactor: secrets}
	if dir == "" {
		return log, nil
	}
	// Do not use os.Create. The folder may contain a link to another user's file.
	file, err := record.OpenIn(dir, logName(address), os.O_WRONLY|os.O_CREATE)
	if err == nil {
		if err = file.Truncate(0); err != nil {
			file.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("could not begin the server's log: %w", err)
	}
	log.file, log.closer = file, file
	return log, nil
}

func logName(address string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		case r == '"', r == ']':
			return -1
		}
		return '-'
	}, address)
	return "server-" + safe + ".log"
}

// Write implements io.Writer. It never returns an error, so a failed log cannot stop the server.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		piece := p
		if i >= 0 {
			piece = p[:i+1]
		}
		piece = piece[:min(len(piece), lineSize-len(t.partial))]
		p = p[len(piece):]
		t.partial = append(t.partial, piece...)
		if len(t.partial) >= lineSize || t.partial[len(t.partial)-1] == '\n' {
			t.line()
		}
	}
	return n, nil
}

// line redacts the secrets in the field partial, which holds a line or a piece of a line, and
// writes the result to the log.
func (t *tail) line() {
	line := t.redactor.Text(string(t.partial))
	t.partial = t.partial[:0]
	if !strings.HasSuffix(line, "\n") && !t.finished {
		// Keep the end of a long line that continues in the next piece. It may be the beginning of
		// a secret.
		whole := len(line) - min(t.redactor.Pending(line), lineSize/2)
		t.partial = append(t.partial, line[whole:]...)
		line = line[:whole]
	}
	if t.watch != nil {
		t.watch(line)
	}
	if words := strings.TrimSpace(line); words != "" {
		t.last = shorten(words, lastSize)
	}
	t.end = append(t.end, line...)
	t.total += len(line)
	if len(t.end) > 2*tailSize {
		t.end = append(t.end[:0], t.end[len(t.end)-tailSize:]...)
	}
	if t.file == nil {
		return
	}
	if t.written+len(line) > fileSize {
		t.skipped = true
		return
	}
	t.put(line)
}

func (t *tail) put(s string) {
	if _, err := io.WriteString(t.file, s); err != nil {
		t.file = nil
	}
	t.written += len(s)
}

// String returns the end of the log.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ending()
}

func (t *tail) length() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

func (t *tail) since(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.ending()
	return text[max(len(text)-max(t.total-n, 0)-len(t.partial), 0):]
}

func (t *tail) ending() string {
	text := string(t.end) + t.redactor.Text(string(t.partial))
	return text[max(len(text)-tailSize, 0):]
}

func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

func (t *tail) unwatch() {
	t.mu.Lock()
	t.watch = nil
	t.mu.Unlock()
}

func (t *tail) close() {
	t.finish()
	if t.closer != nil {
		t.closer.Close()
	}
}

// If the middle of the log was left out, it adds the end.
func (t *tail) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = true
	if len(t.partial) > 0 {
		t.line()
	}
	if t.file == nil || !t.skipped {
		return
	}
	t.put(fmt.Sprintf("\n[the middle of the log was left out; its last %d KiB follow]\n", tailSize>>10))
	t.put(t.ending())
	t.skipped = false
}

// shorten cuts text to n bytes, but not within a character.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
