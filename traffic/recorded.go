package traffic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
	"unique"
)

func validJSON(raw []byte) bool { return len(raw) > 0 && json.Valid(raw) }

// The columns of the format give the names of its fields.
func readColumns(p *traceParser, raw []byte) (*entry, error) {
	var v [slots][]byte
	names := p.format.names()
	members(raw, func(name, value []byte) {
		for i, n := range names {
			if n != "" && n == string(name) {
				v[i] = value
			}
		}
	})
	return p.values(&v)
}

func readGrowing(p *traceParser, raw []byte) (*entry, error) {
	e, err := readColumns(p, raw)
	if err == nil && e.session > 0 && e.Text == nil {
		e.grows, e.append, e.Input = true, e.Input, 0
	}
	return e, err
}

func (p *traceParser) values(v *[slots][]byte) (*entry, error) {
	for i := range v {
		if string(v[i]) == "null" {
			v[i] = nil
		}
	}
	c := &p.format.Columns
	e := p.begin()
	var err error
	if len(v[slotTime]) > 0 {
		e.timed = true
		at, err := instant(v[slotTime], c.Unit)
		if err != nil {
			return nil, fmt.Errorf("its %s is %w", c.Time, err)
		}
		e.At = time.Duration(at)
	} else if len(v[slotDelay]) == 0 {
		return nil, fmt.Errorf("it has no %s", c.Time)
	}
	if err := lengths(c, v, e); err != nil {
		return nil, err
	}
	if err := pauses(c, v, e); err != nil {
		return nil, err
	}
	if e.Blocks, err = hashes(v[slotHashes], c, e.Input); err != nil {
		return nil, err
	}
	e.session, e.id = p.sessions.number(name(v[slotSession])), p.ids.number(name(v[slotID]))
	e.Type = unique.Make(string(name(v[slotType]))).Value()
	if parent := name(v[slotParent]); string(parent) != "-1" {
		e.parent = p.ids.number(parent)
	}
	return e, nil
}

// A row may have the text of the prompt instead of its length.
func lengths(c *Columns, v *[slots][]byte, e *entry) (err error) {
	if v[slotText] != nil || v[slotMessages] != nil {
		e.Text = &Row{}
		if v[slotMessages] != nil {
			err = checkMessages(v[slotMessages])
			e.Text.Messages = bytes.Clone(v[slotMessages])
		} else if json.Unmarshal(v[slotText], &e.Text.Prompt) != nil || e.Text.Prompt == "" {
			err = fmt.Errorf("its %s is not text", c.text)
		}
		if err != nil {
			return err
		}
		v[slotInput] = []byte("0")
	}
	for _, x := range []struct {
		slot int
		name string
		into *int
	}{{slotInput, c.Input, &e.Input}, {slotOutput, c.Output, &e.Output}, {slotPrefix, c.Prefix,
		&e.Prefix}, {slotAppend, c.Append, &e.append}} {
		if x.name == "" {
			continue
		}
		if len(v[x.slot]) == 0 {
			return fmt.Errorf("it has no %s", x.name)
		}
		if *x.into, err = tokens(v[x.slot]); err != nil {
			return fmt.Errorf("its %s is %w", x.name, err)
		}
	}
	if c.Prefix != "" {
		e.prefixed = true
		if c.Append == "" {
			if e.Prefix > e.Input {
				return fmt.Errorf("its %s of %d is longer than its prompt of %d tokens", c.Prefix, e.Prefix, e.Input)
			}
			e.append, e.Input = e.Input-e.Prefix, 0
		}
	}
	return nil
}

func pauses(c *Columns, v *[slots][]byte, e *entry) error {
	unit := c.Pauses
	if unit == 0 {
		unit = time.Millisecond
	}
	for _, x := range []struct {
		slot int
		name string
		into *time.Duration
	}{{slotDelay, c.Delay, &e.Wait}, {slotAfter, c.After, &e.after}} {
		if len(v[x.slot]) == 0 {
			continue
		}
		n, err := instant(v[x.slot], unit)
		if err == nil && n < 0 {
			err = fmt.Errorf("%s below 0", kindOf(v[x.slot]))
		}
		if err != nil {
			return fmt.Errorf("its %s is %w", x.name, err)
		}
		*x.into = time.Duration(n)
	}
	e.afterKnown = len(v[slotAfter]) > 0
	return nil
}

// mostSeconds is the latest time in a trace, in seconds since 1970: the year 2096.
const mostSeconds = 4_000_000_000

// instant reads a point in time and returns it in nanoseconds. The value v is a number in the given
// unit (0 means seconds), or a date and time. The error completes a sentence such as "its timestamp
// is …".
func instant(v []byte, unit time.Duration) (int64, error) {
	text := name(v)
	if unit == 0 {
		unit = time.Second
	}
	if n, err := strconv.ParseFloat(string(text), 64); err == nil {
		if !(math.Abs(n)*unit.Seconds() <= mostSeconds) {
			return 0, fmt.Errorf("%s, but no time", kindOf(v))
		}
		return int64(math.Round(n * float64(unit))), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, string(text)); err == nil {
			if s := at.Unix(); s < -mostSeconds || s > mostSeconds {
				return 0, fmt.Errorf("%s, but no time", kindOf(v))
			}
			return at.UnixNano(), nil
		}
	}
	return 0, fmt.Errorf("%s, neither a number nor a date and time", kindOf(v))
}

// tokens reads a number of tokens. Its error completes a sentence such as "its input_length is …".
func tokens(v []byte) (int, error) {
	n, err := strconv.ParseFloat(string(name(v)), 64)
	if err != nil || n != math.Trunc(n) || n < 0 || n > maxTokens {
		return 0, fmt.Errorf("%s, but not a whole number from 0 to %d", kindOf(v), maxTokens)
	}
	return int(n), nil
}

func name(v []byte) []byte {
	if len(v) > 1 && v[0] == '"' {
		special := func(c byte) bool { return c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf }
		if inner := v[1 : len(v)-1]; v[len(v)-1] == '"' && !slices.ContainsFunc(inner, special) {
			return inner // Unmarshal allocates 400 bytes
		}
		var s string
		if json.Unmarshal(v, &s) == nil {
			return []byte(s)
		}
	}
	return v
}

// hashes reads the ids of the blocks of a prompt, as 64-bit numbers. The last block of a prompt may
// be partial. If it has no id, its tokens occur in no other row.
func hashes(v []byte, c *Columns, tokens int) ([]uint64, error) {
	if len(v) == 0 {
		return nil, nil
	}
	if v[0] != '[' || !validJSON(v) {
		return nil, fmt.Errorf("its %s are %s, not a list", c.Hashes, kindOf(v))
	}
	out := make([]uint64, 0, min(tokens/max(c.Block, 1)+1, len(v)/2))
	err := elements(v, func(e []byte) error {
		id, err := strconv.ParseUint(string(e), 10, 64)
		if err != nil {
			var signed int64
			signed, err = strconv.ParseInt(string(e), 10, 64)
			id = uint64(signed)
		}
		if err != nil {
			return fmt.Errorf("of its %s number %d is %s, but not a whole number of 64 bits", c.Hashes, len(out)+1, kindOf(e))
		}
		out = append(out, id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	least, most := tokens/c.Block, (tokens+c.Block-1)/c.Block
	if len(out) != 0 && (len(out) < least || len(out) > most) {
		return nil, fmt.Errorf("it has %d %s, and a prompt of %d tokens has %d blocks of %d", len(out), c.Hashes, tokens, most, c.Block)
	}
	return out, nil
}

// ofRounds lists field names that occur only in rounds of a coding agent.
var ofRounds = []string{"session_id", "input_tokens_total", "prefix_tokens", "timing_events"}

type round struct {
	Session string          `json:"session_id"`
	Input   json.RawMessage `json:"input_tokens_total"`
	Prefix  json.RawMessage `json:"prefix_tokens"`
	Output  json.RawMessage `json:"output_tokens"`
	Model   string          `json:"model"`
	Events  []struct {
		Type string `json:"event_type"`
		At   string `json:"timestamp"`
	} `json:"timing_events"`
	Tools []struct {
		Wall *float64 `json:"tool_wall_latency_ms"`
	} `json:"tools"`
}

func readRounds(p *traceParser, raw []byte) (*entry, error) {
	var r round
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("it is no round: %w", notJSON(err))
	}
	e := p.begin()
	e.session, e.prefixed, e.timed, e.Type = p.sessions.number([]byte(r.Session)), true, true, unique.Make(r.Model).Value()
	var err error
	total := 0
	for _, x := range []struct {
		name string
		v    []byte
		into *int
	}{{"input_tokens_total", r.Input, &total}, {"prefix_tokens", r.Prefix, &e.Prefix}, {"output_tokens", r.Output, &e.Output}} {
		if len(x.v) == 0 || string(x.v) == "null" {
			return nil, fmt.Errorf("it has no %s", x.name)
		}
		if *x.into, err = tokens(x.v); err != nil {
			return nil, fmt.Errorf("its %s is %w", x.name, err)
		}
	}
	e.Prefix = min(e.Prefix, total)
	e.append = total - e.Prefix
	if err := r.times(e); err != nil {
		return nil, err
	}
	if e.At == 0 {
		e.Output = 0 // a row without a request has no time
	}
	return e, nil
}

// times sets when the request of a round was sent (when the last of its inputs arrived) and when it
// was answered (when the model's last output came).
func (r *round) times(e *entry) error {
	for _, x := range r.Events {
		if x.At == "" {
			continue
		}
		at, err := instant([]byte(x.At), time.Second)
		if err != nil {
			return fmt.Errorf("a timestamp of its timing_events is %w", err)
		}
		switch x.Type {
		case "user_message", "tool_result":
			e.At = max(e.At, time.Duration(at))
		case "text", "reasoning", "tool_call":
			e.answered = max(e.answered, at)
		}
	}
	// Tools that a model calls in one answer run at the same time, so the longest counts.
	for _, t := range r.Tools {
		if t.Wall != nil && *t.Wall >= 0 && *t.Wall < mostSeconds*1000 {
			e.after, e.afterKnown = max(e.after, time.Duration(*t.Wall*float64(time.Millisecond))), true
		}
	}
	if e.At == 0 {
		e.At = time.Duration(e.answered)
	}
	return nil
}

func readSample(p *traceParser, raw []byte) (*entry, error) {
	var l struct {
		Type   string `json:"type"`
		Sample *struct {
			Server    string `json:"server"`
			Workload  string `json:"workload"`
			Part      string `json:"part"`
			Phase     string `json:"phase"`
			Scheduled int64  `json:"scheduled_ns"`
			Input     int    `json:"input_asked"`
			Output    int    `json:"output_asked"`
			Usage     *struct {
				Input  int `json:"input"`
				Output int `json:"output"`
			} `json:"usage"`
		} `json:"sample"`
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, fmt.Errorf("it is not a line of samples.jsonl: %w", notJSON(err))
	}
	s := l.Sample
	if l.Type != "sample" || s == nil || s.Phase != "measured" {
		return nil, nil
	}
	if p.server == "" {
		p.server = s.Server
	}
	if s.Server != p.server {
		return nil, nil
	}
	if u := s.Usage; u != nil && u.Input > 0 && u.Output > 0 {
		s.Input, s.Output = u.Input, u.Output
	}
	if s.Input < 0 || s.Input > maxTokens || s.Output < 0 || s.Output > maxTokens || s.Scheduled < 0 {
		return nil, errors.New("its sample lacks lengths or a time")
	}
	e := p.begin()
	e.timed, e.At, e.Input, e.Output = true, time.Duration(s.Scheduled), s.Input, s.Output
	e.Type = unique.Make(cmp.Or(s.Part, s.Workload)).Value()
	return e, nil
}
