package report

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report/text"
)

// Workload is what the plan declares of one workload: its requests and its
// thresholds.
type Workload struct {
	Address     string `json:"address"`
	Title       string `json:"title,omitempty"` // for people; "": the address
	Description string `json:"description,omitempty"`
	// Users is the number of people that one request in flight stands for, as a range: the lowest
	// and the highest number. Absent if unknown.
	Users   []float64 `json:"users_per_request,omitempty"`
	Servers []string  `json:"servers"`      // addresses, in order of the plan
	Input   int       `json:"input_tokens"` // of each prompt; 0 if the data set decides
	// Mix lists the parts of a mix with their shares, such as "chat 70%". Absent if the workload is
	// not a mix.
	Mix     []string `json:"mix,omitempty"`
	Prompts string   `json:"prompts,omitempty"` // source of the prompts; "" if generated and unique
	Output  int      `json:"output_tokens"`     // mean tokens; for natural answers, the maximum
	Jitter  Number   `json:"jitter"`            // answers have Output·(1±Jitter) tokens; in [0, 1)
	Natural bool     `json:"natural,omitempty"` // the model ends its answers by itself
	Bounds  []Bound  `json:"bounds"`            // in order of the plan
}

// Bound is one threshold of a workload. It names the levels at which the threshold applies.
type Bound struct {
	Threshold Threshold `json:"threshold"`
	At        []string  `json:"at"`       // names of levels
	Capacity  bool      `json:"capacity"` // it also bounds the capacity
	Severity  string    `json:"severity"` // "error" or "warn"
	File      string    `json:"file,omitempty"`
	Line      int       `json:"line,omitempty"` // 1-based; 0: unknown
}

// Source is one file of the plan. Its text is not written by tokgate; the plan's secrets are
// removed from it.
type Source struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// sourceBytes is the largest total size of the plan files that a document keeps, in bytes.
const sourceBytes = 256 << 10

func (b *builder) workload(w *plan.Workload) Workload {
	out := Workload{
		Address: b.clean(w.Address()), Title: b.clean(w.Title), Description: b.clean(w.Description), Servers: []string{},
		Input: w.Input, Output: w.Output.Mean, Jitter: some(w.Output.Jitter), Natural: w.Output.Natural, Bounds: []Bound{},
	}
	for _, part := range w.Mix {
		out.Mix = append(out.Mix, b.clean(part.PartName()+" "+metric.Format(metric.Ratio, part.OfMix())))
	}
	if w.Prompt.Dataset != nil {
		out.Prompts = b.clean(w.Prompt.String())
	}
	for _, l := range w.Loads {
		if l.Open != nil && l.Open.Trace != nil && out.Prompts == "" {
			out.Prompts = b.clean(filepath.Base(l.Open.Trace.Path))
		}
	}
	if w.Users[0] > 0 {
		out.Users = w.Users[:]
	}
	for _, s := range w.Servers {
		out.Servers = append(out.Servers, b.clean(s.Address()))
	}
	for _, sla := range w.SLAs {
		for _, t := range sla.Thresholds {
			out.Bounds = append(out.Bounds, Bound{
				Threshold: *b.threshold(assert.ThresholdOf(t)), At: b.cleanAll(sla.At), Capacity: sla.AtCapacity,
				Severity: string(sla.Severity),
				File:     b.clean(filepath.ToSlash(t.Range.Filename)), Line: max(t.Range.Start.Line, 0),
			})
		}
	}
	return out
}

// apart distinguishes workloads with the same title, such as workloads of one preset with different
// loads. It adds the name of the workload's block to the title.
func apart(list []Workload) {
	n := map[string]int{}
	for i := range list {
		n[list[i].Title]++
	}
	for i := range list {
		if w := &list[i]; w.Title != "" && n[w.Title] > 1 {
			name, _, _ := strings.Cut(w.Address, `["`)
			w.Title += ", " + name
		}
	}
}

func (b *builder) threshold(t *verdict.Threshold) *Threshold {
	out := &Threshold{
		Metric: t.Metric.Name, Stat: t.Stat.String(), Op: t.Op, Unit: string(t.Metric.UnitOf(t.Stat)),
		Text: b.clean(t.Text),
	}
	if t.Op != "" && !math.IsNaN(t.Limit) {
		out.Limit = some(t.Limit)
	}
	return out
}

// sources returns the files of the plan: the main file first, then the other files by name. A file
// that is too large for the remaining space is left out completely, because half a plan would
// mislead.
func (b *builder) sources() []Source {
	if b.declared == nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(b.declared.Files))
	if i := slices.Index(names, b.declared.Path); i > 0 {
		names = slices.Concat([]string{b.declared.Path}, names[:i], names[i+1:])
	}
	var out []Source
	room := sourceBytes
	for _, name := range names {
		file := b.declared.Files[name]
		if file == nil || len(file.Bytes) == 0 || len(file.Bytes) > room {
			continue
		}
		room -= len(file.Bytes)
		source := strings.ReplaceAll(b.clean(string(file.Bytes)), "\r\n", "\n")
		out = append(out, Source{File: b.clean(filepath.ToSlash(name)), Text: source})
	}
	return out
}

// Lines returns the lines of the source, made safe to show.
func (s Source) Lines() []string {
	lines := strings.Split(strings.TrimSuffix(s.Text, "\n"), "\n")
	for i, l := range lines {
		// Block makes the text safe and keeps the spaces with which authors align it. It may leave
		// a line break, which becomes a space.
		lines[i] = strings.ReplaceAll(text.Block(l), "\n", " ")
	}
	return lines
}
