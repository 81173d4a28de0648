package record

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// packing writes requests in few bytes, or reads them back. Each field is handled by the same code
// in both directions, so writing and reading cannot differ. The bytes never leave the process or
// its temporary file.
type packing struct {
	raw     []byte // bytes that were written so far, or are still to be read
	reading bool
	err     error // reason why the bytes could not be read
	words   *words
	usage   *metric.Usage // memory into which the usage of the next request is read
	room    metric.Gaps   // buffer to which the gaps of requests are appended
}

// words stores each string once. Elsewhere a number stands for the string.
type words struct {
	list  []string
	index map[string]int
}

func (w *words) number(word string) int {
	n, known := w.index[word]
	if !known {
		n = len(w.list)
		w.index[word] = n
		w.list = append(w.list, word)
	}
	return n
}

// sample packs or unpacks a request. It skips the text of the answer.
func (p *packing) sample(s *metric.Sample) {
	p.word(&s.Server)
	p.word(&s.Workload)
	p.word(&s.Part)
	p.word(&s.Level)
	p.word((*string)(&s.Phase))
	p.word(&s.Finish)
	for _, n := range []*int{&s.Round, &s.Slot, &s.Order, &s.Chunks, &s.FirstTokens, &s.Text, &s.InputAsked, &s.OutputAsked, &s.Status, &s.Reconnects, &s.Turn, &s.Row} {
		p.int(n)
	}
	p.flag(&s.FromDue)
	for _, t := range []*time.Duration{&s.Scheduled, &s.Sent, &s.Headers, &s.First, &s.FirstAnswer, &s.Last, &s.End, &s.RetryAfter} {
		p.time(t)
	}
	p.float(&s.Shared)
	p.gaps(&s.Gaps)
	if has(p, &s.Usage, p.usage) {
		for _, n := range []*int{&s.Usage.Input, &s.Usage.Output, &s.Usage.Cached, &s.Usage.Hidden} {
			p.int(n)
		}
	}
	if has(p, &s.Failure, nil) {
		p.word((*string)(&s.Failure.Kind))
		p.text(&s.Failure.Message)
	}
	if has(p, &s.Answer, nil) {
		p.answer(s.Answer)
	}
}

// has packs or unpacks one bit, which says whether the pointer *to is set. If it unpacks a set bit,
// it sets the pointer to room, or to new memory if room is nil.
func has[T any](p *packing, to **T, room *T) bool {
	there := *to != nil
	if p.flag(&there); p.reading && there {
		if *to = room; room == nil {
			*to = new(T)
		}
	}
	return there
}

func (p *packing) varint(v *int64) {
	if !p.reading {
		p.raw = binary.AppendVarint(p.raw, *v)
		return
	}
	got, n := binary.Varint(p.raw)
	if n <= 0 {
		p.fail()
		return
	}
	*v, p.raw = got, p.raw[n:]
}

// fail records that the packed bytes are damaged.
func (p *packing) fail() {
	p.err, p.raw = errors.New("what was packed is damaged"), nil
}

func (p *packing) int(n *int) {
	v := int64(*n)
	p.varint(&v)
	*n = int(v)
}

func (p *packing) time(t *time.Duration) { p.varint((*int64)(t)) }

func (p *packing) flag(on *bool) {
	v := int64(0)
	if *on {
		v = 1
	}
	p.varint(&v)
	*on = v == 1
}

func (p *packing) float(f *float64) {
	v := int64(math.Float64bits(*f))
	p.varint(&v)
	*f = math.Float64frombits(uint64(v))
}

func (p *packing) word(s *string) {
	if !p.reading {
		n := int64(p.words.number(*s))
		p.varint(&n)
		return
	}
	n := int64(-1)
	if p.varint(&n); n < 0 || n >= int64(len(p.words.list)) {
		p.fail()
		return
	}
	*s = p.words.list[n]
}

func (p *packing) text(s *string) {
	n := len(*s)
	p.int(&n)
	switch {
	case !p.reading:
		p.raw = append(p.raw, *s...)
	case n < 0 || n > len(p.raw):
		p.fail()
	default:
		*s, p.raw = string(p.raw[:n]), p.raw[n:]
	}
}

// answer packs an answer as JSON, because few requests have one.
func (p *packing) answer(a *metric.Answer) {
	text := ""
	if !p.reading {
		raw, err := json.Marshal(a)
		p.err, text = err, string(raw)
	}
	if p.text(&text); p.reading {
		if err := json.Unmarshal([]byte(text), a); err != nil {
			p.fail()
		}
	}
}

// gaps packs a list of gaps. Each gap takes two bytes if the largest gap fits in two, else four.
func (p *packing) gaps(g *metric.Gaps) {
	n := len(*g)
	p.int(&n)
	if n == 0 || p.err != nil {
		return
	}
	wide := !p.reading && slices.Max(*g) > math.MaxUint16
	p.flag(&wide)
	size := 2
	if wide {
		size = 4
	}
	if !p.reading {
		p.raw = slices.Grow(p.raw, size*n)
	}
	switch {
	case !p.reading && wide:
		for _, us := range *g {
			p.raw = binary.LittleEndian.AppendUint32(p.raw, us)
		}
		return
	case !p.reading:
		for _, us := range *g {
			p.raw = binary.LittleEndian.AppendUint16(p.raw, uint16(us))
		}
		return
	case n < 0 || n > len(p.raw)/size:
		p.fail()
		return
	}
	at := len(p.room)
	p.room = slices.Grow(p.room, n)[:at+n]
	out, raw := p.room[at:at+n:at+n], p.raw[:size*n]
	if wide {
		for i := range out {
			out[i] = binary.LittleEndian.Uint32(raw[4*i:])
		}
	} else {
		for i := range out {
			out[i] = uint32(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	}
	*g, p.raw = out, p.raw[size*n:]
}
