package record

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// requestLine writes and reads lines of requests, several times as fast as encoding/json. It writes
// the same bytes as encoding/json. When it meets a line of another form, it leaves the line to
// encoding/json.
type requestLine struct {
	raw     []byte // when writing, the bytes so far; when reading, the bytes that remain
	reading bool
	other   bool // this line needs encoding/json
	// words caches strings and their encoded forms, because a server or level has thousands of
	// lines. When writing, the keys are the strings. When reading, the keys are the encoded forms.
	words map[string]string
	usage *metric.Usage // memory for the next usage that is read
}

const mostWords = 1 << 12

// The next call overwrites the line.
func (l *requestLine) encode(s *metric.Sample) ([]byte, error) {
	l.raw, l.other = l.raw[:0], s.Answer != nil
	l.fields(s)
	if l.other {
		return json.Marshal(line{Type: typeSample, Sample: s})
	}
	l.raw = slices.Grow(append(l.raw, "}}"...), checkSize)
	return l.raw, nil
}

// decode fills the empty sample s from a line. If the line has token usage, decode stores it in
// usage, and s points to it. If decode returns false, only encoding/json can read the line, and s
// must not be used.
func (l *requestLine) decode(raw []byte, s *metric.Sample, usage *metric.Usage) bool {
	l.raw, l.other, l.usage = raw, false, usage
	l.fields(s)
	switch rest := l.raw; {
	case l.other:
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

// fields writes or reads the fields of metric.Sample in the order of their declaration, except for
// Answer.
func (l *requestLine) fields(s *metric.Sample) {
	l.word(`{"type":"sample","sample":{"server":`, &s.Server)
	l.word(`,"workload":`, &s.Workload)
	l.optionalWord(`,"part":`, &s.Part)
	l.word(`,"level":`, &s.Level)
	l.int(`,"round":`, &s.Round)
	l.int(`,"slot":`, &s.Slot)
	l.int(`,"order":`, &s.Order)
	l.word(`,"phase":`, (*string)(&s.Phase))
	l.optionalWord(`,"url":`, &s.Front)

	l.time(`,"scheduled_ns":`, &s.Scheduled)
	l.optionalFlag(`,"from_due":true`, &s.FromDue)
	l.time(`,"sent_ns":`, &s.Sent)
	l.optionalTime(`,"headers_ns":`, &s.Headers)
	l.optionalTime(`,"first_ns":`, &s.First)
	l.optionalTime(`,"first_answer_ns":`, &s.FirstAnswer)
	l.optionalTime(`,"last_ns":`, &s.Last)
	l.time(`,"end_ns":`, &s.End)

	l.optionalGaps(`,"gaps_us":`, &s.Gaps)
	l.optionalInt(`,"chunks":`, &s.Chunks)
	l.optionalInt(`,"first_tokens":`, &s.FirstTokens)
	l.optionalInt(`,"embeddings":`, &s.Vectors)
	l.optionalInt(`,"text_bytes":`, &s.Text)
	l.int(`,"input_asked":`, &s.InputAsked)
	l.int(`,"output_asked":`, &s.OutputAsked)
	l.optionalUsage(`,"usage":`, &s.Usage)
	l.optionalWord(`,"finish":`, &s.Finish)
	l.optionalInt(`,"status":`, &s.Status)
	l.optionalInt(`,"reconnects":`, &s.Reconnects)
	l.optionalFailure(`,"failure":`, &s.Failure)
	l.optionalInt(`,"turn":`, &s.Turn)
	l.optionalInt(`,"row":`, &s.Row)
	l.optionalShare(`,"shared":`, &s.Shared)
	l.optionalShare(`,"bound":`, &s.Bound)
	l.optionalTime(`,"retry_after_ns":`, &s.RetryAfter)
}

func (l *requestLine) optionalUsage(key string, to **metric.Usage) {
	if !l.optional(key, *to != nil) {
		return
	}
	if l.reading {
		*to = l.usage
	}
	l.int(`{"input":`, &(*to).Input)
	l.int(`,"output":`, &(*to).Output)
	l.int(`,"cached":`, &(*to).Cached)
	l.optionalInt(`,"hidden":`, &(*to).Hidden)
	l.key(`}`)
}

func (l *requestLine) optionalFailure(key string, to **metric.Failure) {
	if !l.optional(key, *to != nil) {
		return
	}
	if l.reading {
		*to = new(metric.Failure)
	}
	l.word(`{"kind":`, (*string)(&(*to).Kind))
	l.word(`,"message":`, &(*to).Message)
	l.key(`}`)
}

// optional writes or skips text, which comes before an optional value. The result says whether the
// value follows. A caller that writes gives that result itself, as the parameter present.
func (l *requestLine) optional(text string, present bool) bool {
	if !l.reading {
		if present {
			l.raw = append(l.raw, text...)
		}
		return present
	}
	if len(l.raw) < len(text) || string(l.raw[:len(text)]) != text {
		return false
	}
	l.raw = l.raw[len(text):]
	return true
}

func (l *requestLine) key(text string) {
	if !l.optional(text, true) {
		l.other = true
	}
}

func (l *requestLine) optionalFlag(text string, to *bool) {
	if l.optional(text, *to) && l.reading {
		*to = true
	}
}

func (l *requestLine) int(key string, to *int) {
	v := int64(*to)
	if l.number(key, &v); l.reading {
		*to = int(v)
		l.other = l.other || int64(*to) != v
	}
}

func (l *requestLine) optionalInt(key string, to *int) {
	if l.optional(key, *to != 0) {
		l.int("", to)
	}
}

func (l *requestLine) time(key string, to *time.Duration) { l.number(key, (*int64)(to)) }

func (l *requestLine) optionalTime(key string, to *time.Duration) {
	if l.optional(key, *to != 0) {
		l.time("", to)
	}
}

// It reads at most 18 digits.
func (l *requestLine) number(key string, to *int64) {
	l.key(key)
	if !l.reading {
		l.raw = strconv.AppendInt(l.raw, *to, 10)
		return
	}
	raw := l.raw
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
		l.other = true
	}
	if l.raw = raw[n:]; negative {
		v = -v
	}
	*to = v
}

// optionalShare writes or reads a number from 0.000001 to 1, without an exponent. A missing number
// is 0.
func (l *requestLine) optionalShare(key string, to *float64) {
	if !l.optional(key, *to != 0) {
		return
	}
	if !l.reading {
		l.other = l.other || !(*to >= 1e-6 && *to <= 1)
		l.raw = strconv.AppendFloat(l.raw, *to, 'f', -1, 64)
		return
	}
	n := 0
	for n < len(l.raw) && (l.raw[n]-'0' <= 9 || l.raw[n] == '.') {
		n++
	}
	text := string(l.raw[:n])
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || text != "1" && (n < 3 || text[:2] != "0." || text[n-1] == '.') {
		l.other = true
	}
	*to, l.raw = v, l.raw[n:]
}

func (l *requestLine) word(key string, to *string) {
	if l.key(key); l.reading {
		*to = l.unquoted()
		return
	}
	quoted, known := l.words[*to]
	if !known {
		raw, _ := json.Marshal(*to) // never fails for a string
		quoted = string(raw)
		l.remember(*to, quoted)
	}
	l.raw = append(l.raw, quoted...)
}

func (l *requestLine) optionalWord(key string, to *string) {
	if l.optional(key, *to != "") {
		l.word("", to)
	}
}

func (l *requestLine) unquoted() string {
	n := 1
	for n < len(l.raw) && l.raw[n] != '"' {
		if l.raw[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(l.raw) || l.raw[0] != '"' {
		l.other = true
		return ""
	}
	quoted := l.raw[:n+1]
	l.raw = l.raw[n+1:]
	word, known := l.words[string(quoted)]
	if !known {
		l.other = l.other || json.Unmarshal(quoted, &word) != nil
		l.remember(string(quoted), word)
	}
	return word
}

func (l *requestLine) remember(word, form string) {
	if len(l.words) < mostWords && !l.other {
		l.words[word] = form
	}
}

// optionalGaps writes or reads a list of microseconds. An empty list is left out.
func (l *requestLine) optionalGaps(key string, to *metric.Gaps) {
	switch {
	case !l.optional(key, len(*to) > 0):
	case l.reading:
		*to = l.gaps()
	default:
		raw := append(l.raw, '[')
		for _, us := range *to {
			raw = append(appendGap(raw, us), ',')
		}
		raw[len(raw)-1] = ']'
		l.raw = raw
	}
}

// appendGap is a faster strconv.AppendUint for gaps from 1 to 100 ms, in µs. Most gaps are in this
// range.
func appendGap(b []byte, us uint32) []byte {
	if us < 1_000 || us >= 100_000 {
		return strconv.AppendUint(b, uint64(us), 10)
	}
	if us >= 10_000 {
		b = append(b, byte('0'+us/10_000))
	}
	return append(b, byte('0'+us/1_000%10), byte('0'+us/100%10), byte('0'+us/10%10), byte('0'+us%10))
}

func (l *requestLine) gaps() metric.Gaps {
	end := bytes.IndexByte(l.raw, ']')
	if end < 2 || l.raw[0] != '[' {
		l.other = true
		return nil
	}
	list := l.raw[1:end]
	l.raw = l.raw[end+1:]
	out, at, most := make(metric.Gaps, bytes.Count(list, []byte{','})+1), 0, byte(0)
	for i := range out {
		begin, v := at, uint64(0)
		for ; at < len(list) && list[at] != ','; at++ {
			digit := list[at] - '0'
			most, v = max(most, digit), v*10+uint64(digit)
		}
		if size := at - begin; size < 1 || size > 10 || size > 1 && list[begin] == '0' || v > math.MaxUint32 {
			l.other = true // a leading zero, which JSON does not allow
		}
		out[i] = uint32(v)
		at++
	}
	l.other = l.other || most > 9
	return out
}
