package telemetry

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// MaxPage is the largest size of a metrics page, in bytes.
const MaxPage = 8 << 20

type rule struct {
	engine.Series
	part  string // kind of line of a histogram: "bucket", "sum" or "count"; "" for other series
	order int    // priority among series of the same metric; the lowest wins
}

// rules maps the names of series to rules, for all engines together. A metrics page has the series
// of only one engine.
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

// ParsePage reads an engine's metrics page in Prometheus's text format. model is the one whose metrics
// are read.
//
// A page may have series of several models, which differ in a label; see modelOf. Only the wanted
// model counts; if the page does not name it, the page must have a single model. Ranks above 0
// repeat what rank 0 reports, and do not count.
//
// An error means that the page was cut off, that is, does not end with a line break, or that a needed
// line cannot be read or occurs twice.
func ParsePage(page []byte, model string) (*Reading, error) {
	if len(page) == 0 {
		return nil, errors.New("the page is empty")
	}
	if page[len(page)-1] != '\n' {
		return nil, errors.New("the page was cut off")
	}
	mine := namedOn(page, model)
	few := min(bytes.Count(page, []byte{'\n'}), 256) // more lines seldom have rules
	p := parsed{seen: make(map[uint64]bool, few)}
	var other *string // model that the lines name; nil if no line named one so far
	for name, line := range series(page, func(name []byte) bool { return rules[string(name)] != nil }) {
		of, named := modelOf(line)
		if mine != "" && named && of != mine {
			continue
		}
		if named && mine == "" && model != "" {
			if other == nil {
				other = new(of)
			} else if of != *other {
				return nil, fmt.Errorf("the page has several models, but not %q", model)
			}
		}
		if err := p.line(name, line, rules[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return p.reading()
}

// modelLabels are how labels that name a model begin: of vLLM, SGLang and TensorRT-LLM, and of Dynamo's
// frontend.
var modelLabels = []string{`model_name="`, `{model="`, `,model="`}

// modelOf returns the model that a line names, as it is escaped there.
func modelOf(line string) (model string, named bool) {
	for _, label := range modelLabels {
		if _, name, found := strings.Cut(line, label); found {
			for end := 0; end < len(name); end++ {
				switch name[end] {
				case '"':
					return name[:end], true
				case '\\':
					end++
				}
			}
		}
	}
	return "", false
}

// namedOn returns a model's name as a page has it in a label, where Dynamo writes small letters; "" if
// the page does not name the model.
func namedOn(page []byte, model string) string {
	for _, name := range []string{escapeLabel(model), strings.ToLower(escapeLabel(model))} {
		for _, label := range modelLabels {
			if name != "" && bytes.Contains(page, []byte(label+name+`"`)) {
				return name
			}
		}
	}
	return ""
}

// parsed collects the values of a metrics page, by tokgate's names of the metrics.
type parsed struct {
	seen       map[uint64]bool // names with their labels, by a hash of 64 bits
	labels     labels          // labels of the line that is being read
	scalars    map[string]scalar
	histograms map[string]*buckets
}

type scalar struct {
	order int
	kind  engine.Kind
	value float64
}

type buckets struct {
	order int
	le    []bucket
	next  int     // index of the bucket to which the next line should belong
	most  float64 // the largest bound
	sum   float64
	count float64
}

// bucket is the number of observations up to and including the bound le.
type bucket struct{ le, n float64 }

// add adds the count of a line to its bucket. The lines of one rank or model come in the order of
// their bounds.
func (b *buckets) add(le, n float64) {
	switch {
	case le > b.most:
		b.next = -1 // it is new
	case b.next >= len(b.le) || b.le[b.next].le != le:
		b.next = slices.IndexFunc(b.le, func(x bucket) bool { return x.le == le })
	}
	switch {
	case b.next >= 0:
		b.le[b.next].n += n
	case len(b.le) < maxBuckets:
		b.next = len(b.le)
		b.le, b.most = append(b.le, bucket{le, n}), max(b.most, le)
	}
	b.next++
}

var seed = maphash.MakeSeed()

// line reads one line of metrics into p. name is the name of the series, and rest is the line after
// the name.
func (p *parsed) line(name, rest string, wanted []rule) error {
	text, rest, err := cutLabels(rest)
	if err != nil {
		return err
	}
	key := maphash.Comparable(seed, [2]string{name, text})
	if p.seen[key] {
		return errors.New("it appears twice with the same labels")
	}
	p.seen[key] = true
	v, err := number(rest)
	if err != nil {
		return err
	}
	if p.labels, err = p.labels[:0].read(text); err != nil {
		return err
	}
	for _, name := range []string{"tp_rank", "pp_rank"} {
		if rank := p.labels.value(name); rank != "" && rank != "0" {
			return nil
		}
	}
	for i := range wanted {
		if err := p.take(&wanted[i], v); err != nil {
			return err
		}
	}
	return nil
}

// take stores the value of a line by a rule for its name.
func (p *parsed) take(r *rule, v float64) error {
	value, ours := "", r.Ours
	if r.Label != "" {
		if value = p.labels.value(r.Label); r.Value != "" && value != r.Value {
			return nil
		}
	}
	if position, found := strings.CutSuffix(ours, "[i]"); found {
		i, err := strconv.Atoi(value)
		if err != nil || i < 0 || i > 99 {
			return nil
		}
		ours = position + "[" + strconv.Itoa(i) + "]"
	}
	if r.Kind == engine.Buckets {
		return p.bucket(r, ours, v)
	}
	p.scalar(r, ours, v)
	return nil
}

func (p *parsed) scalar(r *rule, ours string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return // the server has never set the gauge
	}
	if p.scalars == nil {
		p.scalars = map[string]scalar{}
	}
	s, known := p.scalars[ours]
	switch {
	case !known || r.order < s.order:
		s = scalar{r.order, r.Kind, v}
	case r.order > s.order:
	case r.Kind == engine.GaugeMost:
		s.value = max(s.value, v)
	default:
		s.value += v
	}
	p.scalars[ours] = s
}

func (p *parsed) bucket(r *rule, ours string, v float64) error {
	if p.histograms == nil {
		p.histograms = map[string]*buckets{}
	}
	b := p.histograms[ours]
	if b == nil || r.order < b.order {
		b = &buckets{order: r.order}
		p.histograms[ours] = b
	}
	switch {
	case r.order > b.order:
	case r.part == "sum":
		b.sum += v
	case r.part == "count":
		b.count += v
	default:
		bound := p.labels.value("le")
		le, err := strconv.ParseFloat(bound, 64)
		if err != nil || math.IsNaN(le) {
			return fmt.Errorf("%.40q is no bound", bound)
		}
		b.add(le, v)
	}
	return nil
}

// maxBuckets is the largest number of buckets of one histogram.
const maxBuckets = 1000

func (p *parsed) reading() (*Reading, error) {
	r := &Reading{Gauges: map[string]float64{}, Counters: map[string]float64{}, None: map[string]string{},
		Histograms: map[string]metric.Histogram{}}
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
	// llama.cpp does not report how many prompt tokens it looked up in its cache. They are the
	// cached tokens and the computed tokens together.
	if _, told := r.Counters[metric.CacheQueries]; !told {
		if hits, ok := r.Counters[metric.CacheHits]; ok {
			r.Counters[metric.CacheQueries] = hits + r.Counters[metric.PrefillTokens]
		}
	}
	return r, nil
}

// biggest is the largest accepted value of a metric. It keeps sums finite.
const biggest = 1e18

// ErrNothing means that a page holds metrics, but none of a known engine.
var ErrNothing = errors.New("the page has no metric of " + strings.Join(titles(), ", "))

func titles() (out []string) {
	for _, e := range engine.All {
		if len(e.Series) > 0 {
			out = append(out, e.Title)
		}
	}
	return out
}

// histogram converts the cumulative buckets into a histogram with one count for each bucket.
func (b *buckets) histogram() (metric.Histogram, error) {
	h := metric.Histogram{Sum: b.sum, Bounds: make([]float64, 0, len(b.le)), Counts: make([]float64, 0, len(b.le)+1)}
	slices.SortFunc(b.le, func(x, y bucket) int { return cmp.Compare(x.le, y.le) })
	if last := len(b.le) - 1; last < 0 || !math.IsInf(b.le[last].le, 1) {
		b.le = append(b.le, bucket{math.Inf(1), b.count})
	}
	before := 0.0
	for _, x := range b.le {
		if math.IsInf(x.le, -1) {
			continue
		}
		// Not x.n < before, because the condition must also hold if x.n is NaN.
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

// Labels returns facts about an engine from its page's labels, such as its version. Each fact is
// stored under its Key. If several lines have the fact, the first line counts.
func Labels(page []byte, facts []engine.LabelFact) map[string]string {
	out := map[string]string{}
	known := func(name []byte) bool {
		return slices.ContainsFunc(facts, func(f engine.LabelFact) bool { return f.Series == string(name) })
	}
	for name, rest := range series(page, known) {
		text, _, err := cutLabels(rest)
		if err != nil {
			continue
		}
		read, err := labels(nil).read(text)
		for _, f := range facts {
			value := read.value(f.Label)
			if name == f.Series && out[f.Key] == "" && err == nil && value != "" && value != "None" && len(value) <= maxLabel {
				out[f.Key] = strings.ToLower(value)
			}
		}
	}
	return out
}

// maxLabel is the largest length of a recorded label value, in bytes.
const maxLabel = 100

// series iterates over the lines of a page that belong to known series. For each line it yields the name
// and the text after it.
func series(page []byte, known func(name []byte) bool) iter.Seq2[string, string] {
	return func(yield func(name, rest string) bool) {
		for len(page) > 0 {
			n := max(bytes.IndexAny(page, nameEnds), 0)
			lines := together(page, n)
			page = page[len(lines):]
			if !known(lines[:n]) {
				continue
			}
			for line, rest, more := strings.Cut(string(lines), "\n"); line != "" || more; line, rest, more = strings.Cut(rest, "\n") {
				if !yield(line[:n], line[n:]) {
					return
				}
			}
		}
	}
}

const nameEnds = "{ \t\n"

// together returns the lines at the beginning of a page that have the name of the first, of n bytes.
func together(page []byte, n int) []byte {
	end := 0
	for line := range bytes.Lines(page) {
		if end > 0 && (len(line) <= n || !bytes.Equal(line[:n], page[:n]) || strings.IndexByte(nameEnds, line[n]) < 0) {
			break
		}
		end += len(line)
	}
	return page[:end]
}

func number(rest string) (float64, error) {
	rest = strings.TrimSpace(rest)
	if v, err := strconv.ParseFloat(rest, 64); err == nil {
		return v, nil // the whole text is the value, without a timestamp
	}
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
