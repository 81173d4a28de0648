package telemetry

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// MaxPage bounds a page, in bytes.
const MaxPage = 8 << 20

// rule says what becomes of the lines of one name on a page.
type rule struct {
	engine.Series
	part  string // of a histogram: "bucket", "sum" or "count"; else ""
	order int    // among the engine's series: the first counts
}

// rules are the series of all engines by the name as it stands on a line: a
// page holds those of one.
var rules = func() map[string][]rule {
	out := map[string][]rule{}
	for _, e := range engine.All {
		for i, s := range e.Series {
			add := func(suffix, part string) { out[s.Name+suffix] = append(out[s.Name+suffix], rule{s, part, i}) }
			switch s.Kind {
			case engine.Buckets:
				add("_bucket", "bucket")
				add("_sum", "sum")
				add("_count", "count")
			case engine.Sum:
				add("_sum", "")
			default:
				add("", "")
			}
		}
	}
	return out
}()

// ParsePage reads a page in Prometheus's text format, of any engine. Series of
// several models are told apart by their model_name: where one is model, only
// those count; else all do, if they are of one model, which may go by another
// name. Ranks of one model count once: those above 0
// repeat what rank 0 tells.
//
// It is an error when the page does not end with a line break, since then it
// was cut off, when a line that is wanted cannot be read or is there twice, since
// both would be added up, or when it is of several models and none is model.
func ParsePage(page []byte, model string) (*Reading, error) {
	r, _, err := parsePage(page, model)
	return r, err
}

// parsePage is ParsePage, with what it takes to read such a page again.
func parsePage(page []byte, model string) (*Reading, layout, error) {
	if len(page) == 0 {
		return nil, layout{}, errors.New("the page is empty")
	}
	if page[len(page)-1] != '\n' {
		return nil, layout{}, errors.New("the page was cut off")
	}
	mine := []byte(nil)
	if model != "" {
		if label := []byte(`model_name="` + escapeLabel(model) + `"`); bytes.Contains(page, label) {
			mine = label
		}
	}
	p := parsed{seen: make(map[string]bool, bytes.Count(page, []byte{'\n'})/2), layout: layout{text: string(page)}}
	var other []byte // the model_name of which the series are, where it is not model
	for name, line := range series(page) {
		p.at += len(name) + len(line)
		wanted, ok := rules[string(name)] // does not allocate
		if !ok || mine != nil && bytes.Contains(line, []byte("model_name=")) && !bytes.Contains(line, mine) {
			if !bytes.HasPrefix(name, []byte{'#'}) {
				p.skip(line)
			}
			continue
		}
		if i := bytes.Index(line, []byte(`model_name="`)); i >= 0 && mine == nil && model != "" {
			switch end := bytes.IndexByte(line[i+len(`model_name="`):], '"'); {
			case other == nil:
				other = line[i : i+len(`model_name="`)+end+1]
			case !bytes.HasPrefix(line[i:], other):
				return nil, layout{}, fmt.Errorf("the page has several models, but not %q", model)
			}
		}
		if err := p.line(string(name), line, wanted); err != nil {
			return nil, layout{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	r, err := p.reading()
	return r, p.layout, err
}

// parsed collects by name of ours what a page tells, and by which rule.
type parsed struct {
	seen       map[string]bool // names with their labels
	at         int             // the end of the line that is read
	layout     layout
	labels     labels // of the line that is read
	scalars    map[string]scalar
	histograms map[string]*buckets
}

// target is what the value of a line is: which rule's, under which name of ours.
type target struct {
	*rule
	ours  string
	bound string  // of a bucket
	le    float64 // the same; NaN: it is none
}

type scalar struct {
	order int
	kind  engine.Kind
	value float64
}

type buckets struct {
	order int
	le    []bucket
	next  int // where the next line's bucket is likely to be
	sum   float64
	count float64
}

// bucket is the cumulative count up to a bound, bound included.
type bucket struct{ le, n float64 }

// add adds a line's count to its bucket: lines come in the order of their bounds,
// of each rank or model anew.
func (b *buckets) add(le, n float64) {
	if b.next >= len(b.le) || b.le[b.next].le != le {
		b.next = slices.IndexFunc(b.le, func(x bucket) bool { return x.le == le })
	}
	switch {
	case b.next >= 0:
		b.le[b.next].n += n
	case len(b.le) < maxBuckets:
		b.next = len(b.le)
		b.le = append(b.le, bucket{le, n})
	}
	b.next++
}

// line takes a name and what follows it on a line.
func (p *parsed) line(name string, rest []byte, wanted []rule) error {
	text, rest, err := cutLabels(rest)
	if err != nil {
		return err
	}
	key := name + "{" + string(text)
	if p.seen[key] {
		return errors.New("it appears twice with the same labels")
	}
	p.seen[key] = true
	v, err := number(string(rest))
	if err != nil {
		return err
	}
	targets, err := p.targets(text, wanted)
	if err != nil {
		return err
	}
	p.layout.add(p.at, len(rest), true, targets)
	return p.take(targets, v)
}

// skip leaves out a line: its value may be anything.
func (p *parsed) skip(rest []byte) {
	if _, rest, err := cutLabels(rest); err == nil && bytes.IndexByte(rest, '"') < 0 {
		p.layout.add(p.at, len(rest), false, nil)
	}
}

// targets are what the value of a line with these labels is.
func (p *parsed) targets(text []byte, wanted []rule) (out []target, err error) {
	if p.labels, err = p.labels[:0].read(text); err != nil {
		return nil, err
	}
	for _, name := range []string{"tp_rank", "pp_rank"} {
		if rank := p.labels.of(name); rank != "" && rank != "0" {
			return nil, nil
		}
	}
	for i := range wanted {
		r := &wanted[i]
		value := ""
		if r.Label != "" {
			if value = p.labels.of(r.Label); r.Value != "" && value != r.Value {
				continue
			}
		}
		t := target{rule: r, ours: r.Ours}
		if position, found := strings.CutSuffix(t.ours, "[i]"); found {
			i, err := strconv.Atoi(value)
			if err != nil || i < 0 || i > 99 {
				continue
			}
			t.ours = position + "[" + strconv.Itoa(i) + "]"
		}
		if r.part == "bucket" {
			t.bound = p.labels.of("le")
			if t.le, err = strconv.ParseFloat(t.bound, 64); err != nil {
				t.le = math.NaN()
			}
		}
		out = append(out, t)
	}
	return out, nil
}

func (p *parsed) take(targets []target, v float64) error {
	for i := range targets {
		if t := &targets[i]; t.Kind != engine.Buckets {
			p.scalar(t, v)
		} else if err := p.bucket(t, v); err != nil {
			return err
		}
	}
	return nil
}

func (p *parsed) scalar(t *target, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return // a gauge that was never set
	}
	if p.scalars == nil {
		p.scalars = map[string]scalar{}
	}
	s, known := p.scalars[t.ours]
	switch {
	case !known || t.order < s.order:
		s = scalar{t.order, t.Kind, v}
	case t.order > s.order:
	case t.Kind == engine.GaugeMost:
		s.value = max(s.value, v)
	default:
		s.value += v
	}
	p.scalars[t.ours] = s
}

func (p *parsed) bucket(t *target, v float64) error {
	if p.histograms == nil {
		p.histograms = map[string]*buckets{}
	}
	b := p.histograms[t.ours]
	if b == nil || t.order < b.order {
		b = &buckets{order: t.order}
		p.histograms[t.ours] = b
	}
	switch {
	case t.order > b.order:
	case t.part == "sum":
		b.sum += v
	case t.part == "count":
		b.count += v
	case math.IsNaN(t.le):
		return fmt.Errorf("%.40q is no bound", t.bound)
	default:
		b.add(t.le, v)
	}
	return nil
}

// maxBuckets bounds the buckets of one histogram.
const maxBuckets = 1000

// reading is what was collected.
func (p *parsed) reading() (*Reading, error) {
	r := &Reading{Gauges: map[string]float64{}, Counters: map[string]float64{}, Histograms: map[string]metric.Histogram{}, None: map[string]string{}}
	for ours, s := range p.scalars {
		if math.Abs(s.value) > biggest {
			r.None[ours] = fmt.Sprintf("the server reports %g, which is impossible", s.value)
			continue
		}
		if s.kind == engine.GaugeSum || s.kind == engine.GaugeMost {
			r.Gauges[ours] = s.value
		} else {
			r.Counters[ours] = s.value
		}
	}
	for ours, b := range p.histograms {
		h, err := b.histogram()
		if err != nil {
			r.None[ours] = fmt.Sprintf("the server's histogram cannot be used: %v", err)
			continue
		}
		r.Histograms[ours] = h
	}
	if len(r.Gauges)+len(r.Counters)+len(r.Histograms)+len(r.None) == 0 {
		return nil, ErrNothing
	}
	// llama.cpp counts computed prompt tokens and those from its cache
	// separately.
	if _, told := r.Counters[metric.CacheQueries]; !told {
		if hits, ok := r.Counters[metric.CacheHits]; ok {
			r.Counters[metric.CacheQueries] = hits + r.Counters[metric.PrefillTokens]
		}
	}
	return r, nil
}

// biggest bounds what is believed, so that no sum of it ends up infinite.
const biggest = 1e18

// ErrNothing says that a page is a page of metrics, but not of a known engine.
var ErrNothing = errors.New("the page has no metric of " + strings.Join(titles(), ", "))

func titles() (out []string) {
	for _, e := range engine.All {
		if len(e.Series) > 0 {
			out = append(out, e.Title)
		}
	}
	return out
}

// histogram is what the buckets say, each count its own.
func (b *buckets) histogram() (metric.Histogram, error) {
	h := metric.Histogram{Sum: b.sum, Bounds: make([]float64, 0, len(b.le))}
	slices.SortFunc(b.le, func(x, y bucket) int { return cmp.Compare(x.le, y.le) })
	if last := len(b.le) - 1; last < 0 || !math.IsInf(b.le[last].le, 1) {
		b.le = append(b.le, bucket{math.Inf(1), b.count})
	}
	before := 0.0
	for _, x := range b.le {
		if math.IsInf(x.le, -1) {
			continue
		}
		// NaN fails the comparison too.
		if !(x.n >= before) || x.n > biggest {
			return h, errors.New("its buckets do not add up")
		}
		h.Counts = append(h.Counts, x.n-before)
		before = x.n
		if !math.IsInf(x.le, 1) {
			h.Bounds = append(h.Bounds, x.le)
		}
	}
	if !(math.Abs(h.Sum) <= biggest) {
		return h, errors.New("its sum is no number")
	}
	return h, nil
}

// Labels are the facts that an engine's page tells as labels, by key of the
// fingerprint; of several lines of one series the first counts.
func Labels(page []byte, facts []engine.LabelFact) map[string]string {
	out := map[string]string{}
	for name, rest := range series(page) {
		for _, f := range facts {
			if string(name) != f.Series || out[f.Key] != "" {
				continue
			}
			text, _, err := cutLabels(rest)
			if err != nil {
				continue
			}
			read, err := labels(nil).read(text)
			if value := read.of(f.Label); err == nil && value != "" && value != "None" && len(value) <= maxLabel {
				out[f.Key] = strings.ToLower(value)
			}
		}
	}
	return out
}

// maxLabel bounds a fact, in bytes.
const maxLabel = 100

// series are the lines of a page: the name, and what follows it.
func series(page []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, rest []byte) bool) {
		for line := range bytes.Lines(page) {
			name := line
			if i := bytes.IndexAny(line, "{ \t\n"); i >= 0 {
				name = line[:i]
			}
			if !yield(name, line[len(name):]) {
				return
			}
		}
	}
}

// number reads what follows the labels: a value, and perhaps its time.
func number(rest string) (float64, error) {
	rest = strings.TrimSpace(rest)
	end := strings.IndexAny(rest, " \t")
	if rest == "" || end >= 0 && strings.ContainsAny(strings.TrimSpace(rest[end:]), " \t") {
		return 0, errors.New("there is no value")
	}
	if end >= 0 {
		rest = rest[:end]
	}
	v, err := strconv.ParseFloat(rest, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number", rest)
	}
	return v, nil
}

// cutLabels splits a line after its name into what stands between braces and
// what follows.
func cutLabels(s []byte) (labels, rest []byte, err error) {
	s = bytes.TrimLeft(s, " \t")
	if len(s) == 0 || s[0] != '{' {
		return nil, s, nil
	}
	quoted := false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return s[1:i], s[i+1:], nil
		}
	}
	return nil, nil, errors.New("its labels do not end")
}

// labels are the labels of a line, as they stand there.
type labels []struct{ name, value []byte }

// read appends what stands between braces.
func (l labels) read(text []byte) (labels, error) {
	for len(text) > 0 {
		name, rest, found := bytes.Cut(text, []byte{'='})
		rest = bytes.TrimLeft(rest, " \t")
		if !found || len(rest) == 0 || rest[0] != '"' {
			if len(bytes.Trim(text, ", \t")) == 0 {
				break
			}
			return l, errors.New("its labels cannot be read")
		}
		end := 1
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return l, errors.New("its labels cannot be read")
		}
		l = append(l, struct{ name, value []byte }{bytes.Trim(name, ", \t"), rest[1:end]})
		text = rest[end+1:]
	}
	return l, nil
}

// of is the value of a label; "" where there is none.
func (l labels) of(name string) string {
	for _, x := range l {
		if string(x.name) == name { // does not allocate
			if bytes.IndexByte(x.value, '\\') < 0 {
				return string(x.value)
			}
			return unescape.Replace(string(x.value))
		}
	}
	return ""
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func escapeLabel(s string) string { return escapes.Replace(s) }
