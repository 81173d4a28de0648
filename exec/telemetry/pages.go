package telemetry

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Pages reads the metrics pages of one server. If a page differs from the previous page only in its
// values, only the values are parsed. Pages is safe for concurrent use.
type Pages struct {
	Model string // name of the model whose metrics are read

	mu   sync.Mutex
	last layout // layout of the last page that was read without an error
}

// Parse reads the next page.
func (p *Pages) Parse(page []byte) (*Reading, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.last.read(page); ok {
		return r, nil
	}
	r, l, err := parsePage(page, p.Model)
	if err == nil {
		p.last = l
	}
	return r, err
}

// layout is a metrics page without its values. It holds the text between the values and the meaning
// of each value. Checks that need no values are done once for a layout. For example, no line may
// occur twice.
type layout struct {
	text  string // a whole page
	slots []slot
	end   int // offset in text at which the last value ends
}

type slot struct {
	from, to int  // range of the text between the previous value and the value of this slot
	wanted   bool // true if the value is read as a number; otherwise the line is skipped
	targets  []target
}

// add records the place of a line's value. The value ends at offset end, and left is the length of
// the rest of the line, including the line break.
func (l *layout) add(end, left int, wanted bool, targets []target) {
	l.slots = append(l.slots, slot{l.end, end - left, wanted, targets})
	l.end = end - 1
}

// read reads a page that may have the layout l. If the page has another layout or an error, ok is
// false.
func (l *layout) read(page []byte) (r *Reading, ok bool) {
	text := string(page)
	p := parsed{}
	for i := range l.slots {
		s := &l.slots[i]
		rest, same := strings.CutPrefix(text, l.text[s.from:s.to])
		end := strings.IndexByte(rest, '\n')
		if !same || end < 0 || !s.wanted && strings.Contains(rest[:end], `"`) {
			return nil, false // a label of the line, such as the model's name, may have changed
		}
		text = rest[end:]
		if !s.wanted {
			continue
		}
		v, err := number(rest[:end])
		if err != nil || p.take(s.targets, v) != nil {
			return nil, false
		}
	}
	if len(l.slots) == 0 || text != l.text[l.end:] {
		return nil, false
	}
	r, err := p.reading()
	return r, err == nil
}

// modelLabels are how labels that name a model begin: of vLLM, SGLang and TensorRT-LLM, and of Dynamo's
// frontend.
var modelLabels = [][]byte{[]byte(`model_name="`), []byte(`{model="`), []byte(`,model="`)}

// modelOf returns the model that a line names, as it is escaped there; nil if it names none.
func modelOf(line []byte) []byte {
	for _, label := range modelLabels {
		if i := bytes.Index(line, label); i >= 0 {
			name := line[i+len(label):]
			for end := 0; end < len(name) && name[end] != '\n'; end++ {
				switch name[end] {
				case '"':
					return name[:end]
				case '\\':
					end++
				}
			}
		}
	}
	return nil
}

// namedOn returns a model's name as a page has it in a label, where Dynamo writes small letters; "" if
// the page does not name the model.
func namedOn(page []byte, model string) string {
	for _, name := range []string{escapeLabel(model), strings.ToLower(escapeLabel(model))} {
		for _, label := range modelLabels {
			if name != "" && bytes.Contains(page, append(slices.Clone(label), name+`"`...)) {
				return name
			}
		}
	}
	return ""
}
