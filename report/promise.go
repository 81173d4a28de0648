package report

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/report/text"
)

// Workload is what the plan says about one workload: its requests and its thresholds.
type Workload struct {
	Address     string `json:"address"`
	Title       string `json:"title,omitempty"` // title in reports; by default the address
	Description string `json:"description,omitempty"`
	// Users is the smallest and the largest number of people that one request in flight stands for.
	// Absent if unknown.
	Users   []float64 `json:"users_per_request,omitempty"`
	Servers []string  `json:"servers"`      // addresses of servers, in order of the plan
	Input   int       `json:"input_tokens"` // tokens of each prompt; 0 if the data set decides
	// Mix lists the parts of a mix with their shares, such as "chat 70%". Absent if there is no
	// mix.
	Mix     []string `json:"mix,omitempty"`
	Prompts string   `json:"prompts,omitempty"` // source of the prompts; "": generated, all different
	Output  int      `json:"output_tokens"`     // mean number of tokens; the limit if Natural
	Jitter  float64  `json:"jitter,omitempty"`  // lengths vary by this share, up and down; in [0, 1)
	Natural bool     `json:"natural,omitempty"` // whether the model ends its answers by itself
	Bounds  []Bound  `json:"bounds"`            // thresholds, in order of the plan
}

// Bound is one threshold of a workload, with the levels at which it applies.
type Bound struct {
	Threshold verdict.Threshold `json:"threshold"`
	At        []string          `json:"at"`       // names of levels
	Capacity  bool              `json:"capacity"` // the threshold also limits the capacity
	Severity  verdict.Severity  `json:"severity"`
	verdict.Place
}

// Source is one file of the plan, as its author wrote it, but without the plan's secrets.
type Source struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// sourceBytes is the largest total size of the plan files that a document keeps, in bytes.
const sourceBytes = 256 << 10

func (b *builder) workload(w *plan.Workload) Workload {
	out := Workload{
		Address: w.Address(), Title: w.Title, Description: w.Description, Servers: []string{},
		Input: w.Input, Output: w.Output.Mean, Jitter: w.Output.Jitter, Natural: w.Output.Natural, Bounds: []Bound{}, Mix: w.Blend(),
	}
	if w.Prompt.Dataset != nil {
		out.Prompts = w.Prompt.String()
	}
	for _, l := range w.Loads {
		if l.Open != nil && l.Open.Trace != nil && out.Prompts == "" {
			out.Prompts = filepath.Base(l.Open.Trace.Path)
		}
	}
	if w.Users[0] > 0 {
		out.Users = w.Users[:]
	}
	for _, s := range w.Servers {
		out.Servers = append(out.Servers, s.Address())
	}
	for _, sla := range w.SLAs {
		for _, t := range sla.Thresholds {
			out.Bounds = append(out.Bounds, Bound{
				Threshold: *assert.ThresholdOf(t), At: sla.At, Capacity: sla.AtCapacity,
				Severity: verdict.Severity(sla.Severity),
				Place:    verdict.Place{File: filepath.ToSlash(t.Range.Filename), Line: max(t.Range.Start.Line, 0)},
			})
		}
	}
	return out
}

// distinguishTitles makes the titles of workloads different, by adding the name of the workload's
// block. Workloads of one preset with different loads have the same title.
func distinguishTitles(list []Workload) {
	n := map[string]int{}
	for i := range list {
		n[list[i].Title]++
	}
	for i := range list {
		if w := &list[i]; w.Title != "" && n[w.Title] > 1 {
			name, _ := Named(w.Address)
			w.Title += ", " + name
		}
	}
}

// sources returns the files of the plan: the main file first, then all other files by name. A file
// that is too large for the remaining space is omitted, because a part of it would mislead.
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
		out = append(out, Source{File: filepath.ToSlash(name), Text: source})
	}
	return out
}

// Lines returns the lines of the source, in a form that is safe to show.
func (s Source) Lines() []string {
	lines := strings.Split(strings.TrimSuffix(s.Text, "\n"), "\n")
	for i, l := range lines {
		// The function Block makes the text safe and keeps the spaces that align it. It may keep a
		// line break, which becomes a space here.
		lines[i] = strings.ReplaceAll(text.Block(l), "\n", " ")
	}
	return lines
}
