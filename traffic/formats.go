package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Columns names the columns of a trace that a replay reads. A name is "" if the trace lacks the
// column.
type Columns struct {
	// Time is the column with the time of a request. This is a number in Unit, or a date and time.
	// Input and Output are the columns with the numbers of tokens of the request's prompt and
	// answer.
	Time    string        `plan:"time"`
	Input   string        `plan:"input"`
	Output  string        `plan:"output"`
	Unit    time.Duration `plan:"unit"`     // duration of 1 in the column Time; 0 means 1 s
	Session string        `plan:"session"`  // session id; a row waits for the session's earlier rows
	Hashes  string        `plan:"hash_ids"` // ids of the blocks of a prompt
	Block   int           `plan:"block"`    // tokens of a block
	Type    string        `plan:"type"`     // kind of request
	// Delay is the column with the time from the session's previous answer to this row. After is
	// the column with the time between this row's answer and the next row. Both are numbers in the
	// unit Pauses, or in milliseconds if Pauses is 0.
	Delay  string `plan:"delay"`
	After  string
	Pauses time.Duration
	// Prefix is the number of first tokens of a prompt that repeat earlier text of the session.
	// Append is the number of tokens after them. A format has either Append or Input, which is
	// their sum.
	Prefix string `plan:"prefix"`
	Append string

	id, parent     string // ids of a row and of the row before it, if conversations form trees
	text, messages string // columns with the text or the messages to send
}

// Named returns the columns that a plan may set. The keys are the columns' names in a plan.
func (c *Columns) Named() map[string]*string {
	return map[string]*string{
		"time": &c.Time, "input": &c.Input, "output": &c.Output, "session": &c.Session, "hash_ids": &c.Hashes,
		"type": &c.Type, "delay": &c.Delay, "prefix": &c.Prefix,
	}
}

const (
	slotTime = iota
	slotInput
	slotOutput
	slotSession
	slotHashes
	slotType
	slotDelay
	slotAfter
	slotPrefix
	slotAppend
	slotID
	slotParent
	slotText
	slotMessages
	slots
)

func (c *Columns) names() [slots]string {
	return [slots]string{
		c.Time, c.Input, c.Output, c.Session, c.Hashes, c.Type, c.Delay, c.After, c.Prefix, c.Append, c.id, c.parent, c.text, c.messages,
	}
}

// Format is a format of traces.
type Format struct {
	Name   string
	Doc    string // description of the format, and its origin
	Source string
	Columns
	marks []string // names by which the format is recognised; a file must have all of them
	table bool     // a file of this format may be CSV
	read  func(*traceParser, []byte) (*entry, error)
}

// Formats lists the known formats. If a file fits several of them, the first one applies.
var Formats = []Format{
	{
		Name: "aiperf", Doc: "AIPerf's own rows: Mooncake's, with sessions whose later turns wait by `delay` (ms) and go on from what was said before, or with `text_input` or `messages` in place of lengths",
		Source: "github.com/ai-dynamo/aiperf",
		Columns: Columns{
			Time: "timestamp", Unit: time.Millisecond, Input: "input_length", Output: "output_length", Session: "session_id",
			Hashes: "hash_ids", Block: 512, Delay: "delay", text: "text_input", messages: "messages",
		},
		marks: []string{"output_length"}, read: readGrowing,
	},
	{
		Name: "mooncake", Doc: "requests with the ids of their blocks of 512 tokens; times in ms, quantised to 3 s in the published files",
		Source: "github.com/kvcache-ai/Mooncake (FAST'25)",
		Columns: Columns{
			Time: "timestamp", Unit: time.Millisecond, Input: "input_length", Output: "output_length", Hashes: "hash_ids", Block: 512,
		},
		marks: []string{"timestamp", "input_length", "output_length"}, read: readColumns,
	},
	{
		Name: "bailian", Doc: "conversations as trees, with the ids of blocks of 16 tokens; times in s",
		Source: "github.com/alibaba-edu/qwen-bailian-usagetraces-anon (ATC'25)",
		Columns: Columns{
			Time: "timestamp", Input: "input_length", Output: "output_length", Hashes: "hash_ids", Block: 16, Type: "type",
			id: "chat_id", parent: "parent_chat_id",
		},
		marks: []string{"chat_id", "parent_chat_id"}, read: readColumns,
	},
	{
		Name: "tracelab", Doc: "rounds of coding agents: with how many tokens of the rounds before they begin, and the waits for tools and people between them; JSON lines, or its CSV",
		Source: "github.com/uw-syfi/TraceLab",
		Columns: Columns{
			Time: "arrival_time", Unit: time.Millisecond, Output: "output_len", Session: "id", After: "tool_wait_after_ms",
			Prefix: "prefix_len", Append: "input_len",
		},
		marks: []string{"round_idx", "tool_wait_after_ms"}, table: true, read: readRounds,
	},
	{
		Name: "azure", Doc: "date and time, and lengths; CSV",
		Source:  "github.com/Azure/AzurePublicDataset",
		Columns: Columns{Time: "TIMESTAMP", Input: "ContextTokens", Output: "GeneratedTokens"},
		marks:   []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, table: true, read: readColumns,
	},
	{
		Name: "burstgpt", Doc: "times in s, lengths, and sessions in its later files; requests that failed have no answer, and are left out; CSV",
		Source:  "github.com/HPMLL/BurstGPT",
		Columns: Columns{Time: "Timestamp", Input: "Request tokens", Output: "Response tokens", Session: "Session ID", Type: "Model"},
		marks:   []string{"Timestamp", "Request tokens", "Response tokens"}, table: true, read: readColumns,
	},
	{
		Name: "tokgate", Doc: "the measured requests of the first server in a samples.jsonl",
		Source: "tokgate", marks: []string{"type", "schema"}, read: readSample,
	},
}

func formatNamed(name string) *Format {
	for i := range Formats {
		if Formats[i].Name == name {
			return &Formats[i]
		}
	}
	return nil
}

// ofAIPerf lists the names in rows of AIPerf that rows of Mooncake lack.
var ofAIPerf = []string{"session_id", "delay", "text_input", "messages"}

func found(table bool, has func(string) bool) *Format {
	all := func(names []string) bool { return !slices.ContainsFunc(names, func(n string) bool { return !has(n) }) }
	for _, f := range []string{"bailian", "tracelab", "azure", "burstgpt", "tokgate", "aiperf", "mooncake"} {
		f := formatNamed(f)
		switch {
		case f.Name == "tracelab" && !table && all(ofRounds):
		case f.Name == "aiperf" && !slices.ContainsFunc(ofAIPerf, has):
			continue
		case f.table != table || !all(f.marks):
			continue
		}
		return f
	}
	return nil
}

// ErrFormat means that tokgate does not know the format of a trace.
var ErrFormat = errors.New("its format is not known")

// unknown returns the error for a file whose format is not known. It quotes nothing of the file, which
// may be any file that the plan names, and says what the plan can set.
func unknown(names []string) error {
	return fmt.Errorf(`%w: no known format has its %d columns. Name them, such as columns = { time = "ts", input = "prompt_tokens", output = "completion_tokens" }, or set format`, ErrFormat, len(names))
}

func (p *traceParser) parse(b *bufio.Reader) (line int, err error) {
	first, err := p.in.first(b)
	switch {
	case err != nil || first == 0:
		return 0, err
	case first == '[':
		return eachElement(b, p.in, p.object)
	case first == '{':
		return eachLine(b, p.in, p.object)
	case first == 0x1f:
		return 0, errors.New("it is compressed: unpack it first, such as by gunzip")
	}
	before := p.in.lines
	line, err = eachRecord(b, p.in, p.header, func(fields []string, line int) error {
		return p.record(fields, line+before)
	})
	return line + before, err
}

func (p *traceParser) object(raw []byte, line int) error {
	if !validJSON(raw) {
		return badJSON(raw)
	}
	if raw[0] != '{' {
		return fmt.Errorf("it is %s, not an object", kindOf(raw))
	}
	if p.format == nil {
		var names []string
		members(raw, func(name, _ []byte) { names = append(names, string(name)) })
		if p.format = found(false, func(n string) bool { return slices.Contains(names, n) }); p.format == nil {
			return unknown(names)
		}
	}
	e, err := p.format.read(p, raw)
	if err != nil {
		return err
	}
	return p.add(e, line)
}

func (p *traceParser) header(header []string) error {
	names := slices.Clone(header)
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	if p.format == nil {
		if p.format = found(true, func(n string) bool { return slices.Contains(names, n) }); p.format == nil {
			return unknown(names)
		}
	}
	if p.format.Time == "" {
		return fmt.Errorf("the format %s is not a table", p.format.Name)
	}
	for i, name := range p.format.names() {
		p.at[i] = -1
		if name != "" {
			p.at[i] = slices.Index(names, name)
		}
	}
	for _, i := range []int{slotTime, slotInput, slotOutput, slotPrefix, slotAppend} {
		if name := p.format.names()[i]; name != "" && p.at[i] < 0 {
			return fmt.Errorf("none of its %d columns is %q", len(names), name)
		}
	}
	return nil
}

func (p *traceParser) record(fields []string, line int) error {
	var v [slots][]byte
	p.cells = p.cells[:0]
	for i, at := range p.at {
		if at >= 0 && at < len(fields) {
			begin := len(p.cells)
			p.cells = append(p.cells, fields[at]...)
			v[i] = bytes.TrimSpace(p.cells[begin:])
		}
	}
	e, err := p.values(&v)
	if err != nil {
		return err
	}
	return p.add(e, line)
}
