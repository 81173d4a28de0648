package traffic

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
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
	p := &traceParser{in: in, format: formatNamed(format)}
	p.sessions, p.ids = named{map[string]int32{}, []int{0}}, named{map[string]int32{}, []int{0}}
	if columns != nil {
		p.format = &Format{Name: "columns", Columns: *columns, read: readColumns}
		if columns.Hashes != "" && columns.Block < 1 {
			return nil, &Error{Path: path, Err: errors.New("ids of blocks need the tokens of a block")}
		}
	}
	if p.format == nil && format != "" {
		return nil, &Error{Path: path, Err: fmt.Errorf("there is no format %q", format)}
	}
	line, err := p.parse(b)
	if err == nil && len(p.rows) == 0 {
		line, err = 0, errors.New("it has no request")
		if p.empty > 0 {
			err = errors.New("none of its rows has a prompt and an answer")
		}
	}
	if err == nil {
		line, err = p.arrange()
	}
	if err != nil {
		return nil, &Error{Path: path, Line: line, Err: err}
	}
	t := &Trace{Path: path, Hash: hex.EncodeToString(in.sum.Sum(nil)), Format: p.format.Name, Rows: p.rows, Empty: p.empty}
	if p.hashes > 0 {
		t.Block = p.format.Block
	}
	return t, nil
}

// entry is a row of a trace as it was read. At is the time of sending, in nanoseconds since any
// beginning, and Wait is the delay after the session's previous answer, -1 if the row gives none.
type entry struct {
	Recorded
	turn
	timed bool // whether the row gives At
}

// turn says how a row follows the earlier rows of its session. It is zero for a row that stands alone.
type turn struct {
	session                     int32         // number of its session among the parser's; 0 for none
	id, parent                  int32         // numbers of conversations in Bailian traces; 0 for none
	nth                         int32         // number of rows before it in its session
	append                      int           // number of new tokens, if Input does not count the whole prompt
	after                       time.Duration // time from this row's answer to the next row of its session
	answered                    int64         // when the row's answer ended, in nanoseconds; 0 if unknown
	afterKnown, grows, prefixed bool
}

type named struct {
	numbers map[string]int32
	last    []int // 1 + the index of the last row with each number; 0 if there is none
}

func (n *named) number(name []byte) int32 {
	if len(name) == 0 {
		return 0
	}
	i, ok := n.numbers[string(name)]
	if !ok {
		i = int32(len(n.last))
		n.numbers[string(name)], n.last = i, append(n.last, 0)
	}
	return i
}

func (n *named) saw(number int32, i int) {
	if number > 0 {
		n.last[number] = i + 1
	}
}

type traceParser struct {
	in            *input
	format        *Format
	entry         entry // the row that is being read
	rows          []Recorded
	turns         []turn // of each row; nil as long as each row stands alone
	sessions, ids named
	hashes        int
	empty         int
	at            [slots]int    // column of each field, if the trace is a table
	start         time.Duration // time of the first request
	cells         []byte        // values of the row that is being read, if the trace is a table
	server        string        // server of the first sample; samples of other servers are skipped
}

func (p *traceParser) begin() *entry {
	p.entry = entry{Recorded: Recorded{Wait: -1}}
	return &p.entry
}

// A nil row means that the line has no row.
func (p *traceParser) add(e *entry, line int) error {
	if e == nil {
		return nil
	}
	e.Line = line
	if p.hashes += len(e.Blocks); p.hashes > maxHashes {
		return fmt.Errorf("it has more than %d ids of blocks", maxHashes)
	}
	if !e.timed {
		last := p.sessions.last[e.session]
		if last == 0 || e.Wait < 0 {
			return errors.New("it has no time, and follows no row of its session by a delay")
		}
		if e.At = p.rows[last-1].At + e.Wait; e.At > mostSeconds*time.Second {
			return errors.New("its session lasts for too long")
		}
	}
	if e.Output == 0 || e.Input+e.append == 0 && e.Text == nil {
		p.empty++
		return nil
	}
	p.sessions.saw(e.session, len(p.rows))
	if p.turns == nil && e.turn != (turn{}) {
		p.turns = make([]turn, len(p.rows))
	}
	if p.turns != nil {
		p.turns = append(reserve(p.in, p.turns), e.turn)
	}
	p.rows = append(reserve(p.in, p.rows), e.Recorded)
	return nil
}

// arrange sorts the rows by time. It links each row of a session to the row that it follows.
func (p *traceParser) arrange() (line int, err error) {
	sort.Stable(byTime[turn]{p.rows, p.turns})
	clear(p.sessions.last)
	sessions := 0
	p.start = p.rows[0].At
	for i := range p.rows {
		r := &p.rows[i]
		r.At, r.Parent = r.At-p.start, -1
		if p.turns == nil {
			r.Wait = -1
			continue
		}
		t := &p.turns[i]
		if r.Parent = p.ids.last[t.parent] - 1; r.Parent < 0 {
			r.Parent = p.sessions.last[t.session] - 1
		}
		if r.Parent >= 0 {
			p.follow(r, t)
		} else {
			if t.session > 0 || t.id > 0 {
				sessions++
				r.Session = sessions
			}
			r.begins(t)
		}
		if t.nth >= MostInTrace {
			return r.Line, fmt.Errorf("its session has more than %d turns", MostInTrace)
		}
		if r.Input > maxTokens {
			return r.Line, fmt.Errorf("its prompt has %d tokens with those of the turns before, more than %d", r.Input, maxTokens)
		}
		p.sessions.saw(t.session, i)
		p.ids.saw(t.id, i)
	}
	return 0, nil
}

// byTime sorts rows by time, and what belongs to each of them along. with is nil if nothing does.
type byTime[T any] struct {
	rows []Recorded
	with []T
}

func (b byTime[T]) Len() int           { return len(b.rows) }
func (b byTime[T]) Less(i, j int) bool { return b.rows[i].At < b.rows[j].At }
func (b byTime[T]) Swap(i, j int) {
	b.rows[i], b.rows[j] = b.rows[j], b.rows[i]
	if b.with != nil {
		b.with[i], b.with[j] = b.with[j], b.with[i]
	}
}

func (r *Recorded) begins(t *turn) {
	r.Wait = -1
	// The row continues an earlier row that is not in the trace.
	if t.prefixed {
		r.Input, r.Prefix = t.append+r.Prefix, 0
	} else if t.grows {
		r.Input = t.append
	}
}

// follow makes the row wait until its parent, an earlier turn of the session, is answered.
func (p *traceParser) follow(r *Recorded, t *turn) {
	parent, before := &p.rows[r.Parent], &p.turns[r.Parent]
	r.Session, t.nth = parent.Session, before.nth+1
	switch {
	case r.Wait >= 0: // its own delay
	case before.answered > 0:
		r.Wait = max(p.start+r.At-time.Duration(before.answered), 0)
	case before.afterKnown:
		r.Wait = before.after
	}
	whole := parent.Input + parent.Output
	switch {
	case t.prefixed:
		r.Input = t.append + r.Prefix
		r.Prefix = min(r.Prefix, whole)
	case t.grows:
		r.Prefix, r.Input = whole, whole+t.append
	}
}
