package traffic

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Limits on the size of a trace. The limits on a data set apply too.
const (
	maxHashes   = 1 << 26 // largest number of block ids in all rows together
	MostInTrace = 1 << 12 // turns of one session
)

// Trace is recorded traffic: requests in the order in which they were sent.
type Trace struct {
	Path   string // path as the caller gave it
	Hash   string // SHA-256 of the file, hex
	Format string // the name of a format, or "columns" if Columns describes it
	Block  int    // tokens in a block of prompt text (Recorded.Blocks); 0 if no row has blocks
	Rows   []Recorded
	// Empty is the number of rows of the file that hold no request to replay: they lack a prompt,
	// an answer (such as failed requests), or a time.
	Empty int
}

// Recorded is one request of a trace.
type Recorded struct {
	Line   int           // the first line of the row in its file, from 1
	At     time.Duration // time of sending, since the first request of the trace
	Input  int           // tokens of the prompt, with the prefix; 0 if Text gives the number
	Output int           // tokens of the answer, at least 1
	// Blocks holds the ids of the blocks of the prompt after Prefix. The last block may be partial.
	// Blocks with the same id have the same text. nil if no other row has this part of the prompt.
	Blocks []uint64
	// Session is the number of the request's session, from 1; 0 if it has none. Parent is the index
	// in Rows of the session's previous request; -1 if there is none. A request waits for its
	// parent's answer.
	Session, Parent int
	// Prefix is the number of tokens at the beginning of the prompt that repeat the previous turn:
	// the parent's prompt and answer.
	Prefix int
	// Wait is the time from the end of the parent's answer to this request. If it is negative, it
	// is not known. The request is then sent at the time At, but not before the parent's answer has
	// ended.
	Wait time.Duration
	Type string // type of the request; "" if not given
	Text *Row   // text to send, if the trace has it; nil if text is generated
}

// ReadTrace reads a trace from a regular file. If columns is not nil, it describes the trace.
// Otherwise format names the format, and "" means to detect it. Errors are *Error.
func ReadTrace(path, format string, columns *Columns) (*Trace, error) {
	return read(path, func(r io.Reader) (*Trace, error) { return ParseTrace(r, path, format, columns) })
}

// ReadTraceFile reads a trace from an open file, as ReadTrace does; path is its name.
func ReadTraceFile(f *os.File, path, format string, columns *Columns) (*Trace, error) {
	return readOpen(f, path, func(r io.Reader) (*Trace, error) { return ParseTrace(r, path, format, columns) })
}

// ParseTrace reads a trace from r; path is its name. Errors are *Error.
func ParseTrace(r io.Reader, path, format string, columns *Columns) (*Trace, error) {
	in, b := begin(r)
	p := &traceParser{format: formatNamed(format), rows: map[string]int{}}
	if columns != nil {
		p.format = &Format{Name: "columns", Columns: *columns, read: readColumns}
		if columns.Hashes != "" && columns.Block < 1 {
			return nil, &Error{Path: path, Err: errors.New("ids of blocks need the tokens of a block")}
		}
	}
	if p.format == nil && format != "" {
		return nil, &Error{Path: path, Err: fmt.Errorf("there is no format %q", format)}
	}
	line, err := p.parse(b, in)
	if err == nil && len(p.entries) == 0 {
		line, err = 0, errors.New("it has no request")
		if p.empty > 0 {
			err = errors.New("none of its rows has a prompt and an answer")
		}
	}
	t := &Trace{Path: path, Empty: p.empty}
	if err == nil {
		t.Format, t.Block = p.format.Name, p.format.Block
		t.Rows, line, err = p.arrange()
	}
	if err != nil {
		return nil, &Error{Path: path, Line: line, Err: err}
	}
	t.Hash = hex.EncodeToString(in.sum.Sum(nil))
	if p.hashes == 0 {
		t.Block = 0
	}
	return t, nil
}

// entry is a row of a trace whose predecessor in its session is not yet known.
type entry struct {
	Recorded
	timed           bool
	session         string
	id, parent      string // ids of conversations in Bailian traces; "" for none
	delay           time.Duration
	delayed         bool
	after           time.Duration // time from this row's answer to the next row of its session
	afterKnown      bool
	answered        int64 // when the row's answer ended, in nanoseconds; 0 if unknown
	sent            int64 // when the request was sent, in nanoseconds; 0 if unknown
	append          int   // number of new tokens, if Input does not count the whole prompt
	grows, prefixed bool
}

// traceParser reads the rows of a trace.
type traceParser struct {
	format  *Format
	entries []entry
	hashes  int
	empty   int
	rows    map[string]int // for each session: the last row read so far
	at      [slots]int     // column of each field, if the trace is a table
	server  string         // server of the first sample; samples of other servers are skipped
}

// add adds the row e, which was read at the given line. A nil row means that the line has no row.
func (p *traceParser) add(e *entry, line int) error {
	if e == nil {
		return nil
	}
	e.Line = line
	if p.hashes += len(e.Blocks); p.hashes > maxHashes {
		return fmt.Errorf("it has more than %d ids of blocks", maxHashes)
	}
	last, follows := p.rows[e.session]
	follows = follows && e.session != ""
	if !e.timed {
		if !follows || !e.delayed {
			return errors.New("it has no time, and follows no row of its session by a delay")
		}
		if e.sent = p.entries[last].sent + int64(e.delay); e.sent > mostSeconds*int64(time.Second) {
			return errors.New("its session lasts for too long")
		}
	}
	if e.Output == 0 || e.Input+e.append == 0 && e.Text == nil {
		p.empty++
		return nil
	}
	if e.session != "" {
		p.rows[e.session] = len(p.entries)
	}
	p.entries = append(p.entries, *e)
	return nil
}

// arrange sorts the rows by time. It links each row of a session to the row that it follows.
func (p *traceParser) arrange() (rows []Recorded, line int, err error) {
	slices.SortStableFunc(p.entries, func(a, b entry) int { return cmp.Compare(a.sent, b.sent) })
	rows = make([]Recorded, len(p.entries))
	last, ids, turns, sessions := map[string]int{}, map[string]int{}, make([]int, len(rows)), 0
	for i := range p.entries {
		e := &p.entries[i]
		e.At, e.Parent = time.Duration(e.sent-p.entries[0].sent), -1
		if before, ok := last[e.session]; ok && e.session != "" {
			e.Parent = before
		}
		if before, ok := ids[e.parent]; ok && e.parent != "" {
			e.Parent = before
		}
		switch {
		case e.Parent >= 0:
			turns[i] = turns[e.Parent] + 1
			e.follow(&p.entries[e.Parent])
		case e.session != "" || e.id != "":
			sessions++
			e.Session = sessions
			e.begins()
		default:
			e.begins()
		}
		if turns[i] >= MostInTrace {
			return nil, e.Line, fmt.Errorf("its session has more than %d turns", MostInTrace)
		}
		if e.Input > maxTokens {
			return nil, e.Line, fmt.Errorf("its prompt has %d tokens with those of the turns before, more than %d", e.Input, maxTokens)
		}
		last[e.session], ids[e.id] = i, i
		rows[i] = e.Recorded
	}
	return rows, 0, nil
}

// begins marks the row as the first of its session, so that it waits for no other row.
func (e *entry) begins() {
	e.Wait = -1
	// The row continues an earlier row that is not in the trace.
	if e.prefixed {
		e.Input, e.Prefix = e.append+e.Prefix, 0
	} else if e.grows {
		e.Input = e.append
	}
}

// follow makes the row wait until the row parent, an earlier turn of the session, is answered.
func (e *entry) follow(parent *entry) {
	e.Session, e.Wait = parent.Session, -1
	switch {
	case e.delayed:
		e.Wait = e.delay
	case parent.answered > 0 && e.timed:
		e.Wait = time.Duration(max(e.sent-parent.answered, 0))
	case parent.afterKnown:
		e.Wait = parent.after
	}
	whole := parent.Input + parent.Output
	switch {
	case e.prefixed:
		e.Input = e.append + e.Prefix
		e.Prefix = min(e.Prefix, whole)
	case e.grows:
		e.Prefix, e.Input = whole, whole+e.append
	}
}
