package record

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// sampleDecoder reads the lines of requests, which are nearly all of a recording, several
// times as fast as encoding/json. It reads only lines exactly as this version writes them;
// encoding/json reads the others.
type sampleDecoder struct {
	raw []byte // the unread part of the line
	bad bool
	// words caches strings by their form in the file: the names of servers and levels
	// are the same on thousands of lines.
	words map[string]string
}

const (
	sampleHead = `{"type":"sample","sample":{"server":`
	mostWords  = 1 << 12
)

// decode fills s, which is empty, and its usage, to which s may point. If it returns false it
// does not know the form of the line, and s must not be used.
func (d *sampleDecoder) decode(line []byte, s *metric.Sample, usage *metric.Usage) bool {
	if !bytes.HasPrefix(line, []byte(sampleHead)) {
		return false
	}
	d.raw, d.bad = line[len(sampleHead):], false
	d.place(s)
	d.stamps(s)
	if d.optional(`,"gaps_us":`) {
		s.Gaps = d.gaps(s.Gaps)
	}
	d.counts(s, usage)
	d.end(s)
	switch rest := d.raw; {
	case d.bad:
		return false
	case string(rest) == "}}":
		return true
	case len(rest) != 1+checkSize || rest[0] != '}':
		return false
	default:
		check, sealed := bytes.CutPrefix(rest[1:], []byte(checkHead))
		check, ended := bytes.CutSuffix(check, []byte(checkTail))
		return sealed && ended && len(bytes.Trim(check, "0123456789abcdef")) == 0
	}
}

// place reads the fields that identify the request.
func (d *sampleDecoder) place(s *metric.Sample) {
	s.Server = d.word()
	d.key(`,"workload":`)
	s.Workload = d.word()
	if d.optional(`,"part":`) {
		s.Part = d.word()
	}
	d.key(`,"level":`)
	s.Level = d.word()
	d.key(`,"round":`)
	s.Round = d.int()
	d.key(`,"slot":`)
	s.Slot = d.int()
	d.key(`,"order":`)
	s.Order = d.int()
	d.key(`,"phase":`)
	s.Phase = metric.Phase(d.word())
}

// stamps reads the times of the request.
func (d *sampleDecoder) stamps(s *metric.Sample) {
	d.key(`,"scheduled_ns":`)
	s.Scheduled = time.Duration(d.number())
	s.FromDue = d.optional(`,"from_due":true`)
	d.key(`,"sent_ns":`)
	s.Sent = time.Duration(d.number())
	d.optionalTime(`,"headers_ns":`, &s.Headers)
	d.optionalTime(`,"first_ns":`, &s.First)
	d.optionalTime(`,"first_answer_ns":`, &s.FirstAnswer)
	d.optionalTime(`,"last_ns":`, &s.Last)
	d.key(`,"end_ns":`)
	s.End = time.Duration(d.number())
}

// counts reads the requested and the received amounts.
func (d *sampleDecoder) counts(s *metric.Sample, usage *metric.Usage) {
	d.optionalInt(`,"chunks":`, &s.Chunks)
	d.optionalInt(`,"first_tokens":`, &s.FirstTokens)
	d.optionalInt(`,"text_bytes":`, &s.Text)
	d.key(`,"input_asked":`)
	s.InputAsked = d.int()
	d.key(`,"output_asked":`)
	s.OutputAsked = d.int()
	if !d.optional(`,"usage":{"input":`) {
		return
	}
	s.Usage = usage
	usage.Input = d.int()
	d.key(`,"output":`)
	usage.Output = d.int()
	d.key(`,"cached":`)
	usage.Cached = d.int()
	d.optionalInt(`,"hidden":`, &usage.Hidden)
	d.key(`}`)
}

// end reads how the request ended, and the remaining fields.
func (d *sampleDecoder) end(s *metric.Sample) {
	if d.optional(`,"finish":`) {
		s.Finish = d.word()
	}
	d.optionalInt(`,"status":`, &s.Status)
	d.optionalInt(`,"reconnects":`, &s.Reconnects)
	if d.optional(`,"failure":{"kind":`) {
		s.Failure = &metric.Failure{Kind: metric.FailureKind(d.word())}
		d.key(`,"message":`)
		s.Failure.Message = d.word()
		d.key(`}`)
	}
	d.optionalInt(`,"turn":`, &s.Turn)
	d.optionalInt(`,"row":`, &s.Row)
	if d.optional(`,"shared":`) {
		s.Shared = d.float()
	}
	d.optionalTime(`,"retry_after_ns":`, &s.RetryAfter)
}

// optional reports whether text comes next, and skips it.
func (d *sampleDecoder) optional(text string) bool {
	if len(d.raw) < len(text) || string(d.raw[:len(text)]) != text {
		return false
	}
	d.raw = d.raw[len(text):]
	return true
}

func (d *sampleDecoder) key(text string) {
	if !d.optional(text) {
		d.bad = true
	}
}

func (d *sampleDecoder) optionalInt(key string, to *int) {
	if d.optional(key) {
		*to = d.int()
	}
}

func (d *sampleDecoder) optionalTime(key string, to *time.Duration) {
	if d.optional(key) {
		*to = time.Duration(d.number())
	}
}

func (d *sampleDecoder) int() int {
	v := d.number()
	if v != int64(int(v)) {
		d.bad = true
	}
	return int(v)
}

// number reads a whole number of at most 18 digits.
func (d *sampleDecoder) number() int64 {
	raw := d.raw
	negative := len(raw) > 0 && raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	v, n := int64(0), 0
	for n < len(raw) && raw[n]-'0' <= 9 {
		v = v*10 + int64(raw[n]-'0')
		n++
	}
	if n == 0 || n > 18 || n > 1 && raw[0] == '0' {
		d.bad = true
	}
	d.raw = raw[n:]
	if negative {
		return -v
	}
	return v
}

// float reads a number in (0, 1] without an exponent.
func (d *sampleDecoder) float() float64 {
	n := 0
	for n < len(d.raw) && (d.raw[n]-'0' <= 9 || d.raw[n] == '.') {
		n++
	}
	text := string(d.raw[:n])
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || text != "1" && (n < 3 || text[:2] != "0." || text[n-1] == '.') {
		d.bad = true
	}
	d.raw = d.raw[n:]
	return v
}

// word reads a string.
func (d *sampleDecoder) word() string {
	n := 1
	for n < len(d.raw) && d.raw[n] != '"' {
		if d.raw[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(d.raw) || d.raw[0] != '"' {
		d.bad = true
		return ""
	}
	quoted := d.raw[:n+1]
	d.raw = d.raw[n+1:]
	word, known := d.words[string(quoted)]
	if known {
		return word
	}
	if json.Unmarshal(quoted, &word) != nil {
		d.bad = true
		return ""
	}
	if len(d.words) < mostWords {
		d.words[string(quoted)] = word
	}
	return word
}

// gaps reads a non-empty list of microseconds, reusing the memory of room.
func (d *sampleDecoder) gaps(room metric.Gaps) metric.Gaps {
	end := bytes.IndexByte(d.raw, ']')
	if end < 2 || d.raw[0] != '[' {
		d.bad = true
		return nil
	}
	list := d.raw[1:end]
	d.raw = d.raw[end+1:]
	n := bytes.Count(list, []byte{','}) + 1
	if n > cap(room) {
		room = make(metric.Gaps, n)
	}
	out, at, most := room[:n], 0, byte(0)
	for i := range out {
		begin, v := at, uint64(0)
		for ; at < len(list) && list[at] != ','; at++ {
			digit := list[at] - '0'
			most, v = max(most, digit), v*10+uint64(digit)
		}
		if size := at - begin; size < 1 || size > 10 || size > 1 && list[begin] == '0' || v > math.MaxUint32 {
			d.bad = true // a number does not begin with zero
		}
		out[i] = uint32(v)
		at++
	}
	d.bad = d.bad || most > 9
	return out
}
