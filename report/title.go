package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// levelWords returns the title and the description that the plan gives to a level; "" if it gives
// none.
func (b *builder) levelWords(l *metric.Level) (title, description string) {
	w := b.workloadAt(l.Workload)
	if w == nil || l.Probe != nil {
		return "", ""
	}
	for load, level := range w.Levels() {
		if level.Name == l.Name {
			of := func(words map[string]string) string {
				return cmp.Or(words[level.Name], words[strconv.Itoa(level.N)])
			}
			return of(load.Titles), of(load.Descriptions)
		}
	}
	return "", ""
}

// LevelTitle returns the title of a level, such as "Lunch hour (39)". If the level has no title,
// this is its plain name.
func (d *Document) LevelTitle(workload, level string) string {
	for _, c := range d.CasesOf(workload, "") {
		if c.Name == level && c.Title != "" {
			return c.Title + " (" + level + ")"
		}
	}
	return level
}

// TitleOf returns the title of a workload or a server. If it has no title, this is its address in
// words, such as "use_case chat" for use_case["chat"].
func (d *Document) TitleOf(address string) string {
	for i := range d.Workloads {
		if w := &d.Workloads[i]; w.Address == address && w.Title != "" {
			return w.Title
		}
	}
	if s := d.Server(address); s != nil && s.Title != "" {
		return s.Title
	}
	name, key := Named(address)
	return strings.TrimSuffix(name+" "+key, " ")
}

// Server returns what the plan says about a server; nil if the plan has no such server.
func (d *Document) Server(address string) *Server {
	for i := range d.Plan.Servers {
		if d.Plan.Servers[i].Address == address {
			return &d.Plan.Servers[i]
		}
	}
	return nil
}

// Workload returns the declaration of a workload in the plan; nil if there is none.
func (d *Document) Workload(address string) *Workload {
	for i := range d.Workloads {
		if d.Workloads[i].Address == address {
			return &d.Workloads[i]
		}
	}
	return nil
}

func (w *Workload) searched(t *verdict.Threshold) bool {
	return t != nil && slices.ContainsFunc(w.Bounds, func(b Bound) bool {
		return b.Capacity && b.Severity != "warn" && b.Threshold.Label() == t.Label()
	})
}

// People estimates the number of users who have n requests in flight, such as "about 156 to 195
// users". It returns "" if the plan does not say how users behave.
func (w *Workload) People(n int) string {
	if w == nil || len(w.Users) != 2 || n <= 0 {
		return ""
	}
	low, high := w.Users[0]*float64(n), w.Users[1]*float64(n)
	if low == high {
		return fmt.Sprintf("about %.0f users", low)
	}
	return fmt.Sprintf("about %.0f to %.0f users", low, high)
}

// join adds a note to each level that failed below the reported capacity. The note explains why
// both can be true.
func (d *Document) join() {
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if c := d.Above(v); c != nil {
			v.Note(d.Joining(v, c))
		}
	}
}

// Above returns the certified capacity if it is higher than the level at which the threshold of v
// failed. It returns nil otherwise, or if the search does not use that threshold.
func (d *Document) Above(v *verdict.Verdict) *metric.Capacity {
	if v.Kind != "sla" || v.Outcome != verdict.Fail || v.Severity == "warn" {
		return nil
	}
	l := d.caseOf(v)
	if w := d.Workload(v.Workload); l == nil || w == nil || !w.searched(v.Threshold) {
		return nil
	}
	for _, c := range d.Run.Capacities {
		if c.Workload == v.Workload && c.Server == v.Server && c.Over == l.Kind && c.Step == 0 && l.N <= c.Pass {
			return c
		}
	}
	return nil
}

func (d *Document) caseOf(v *verdict.Verdict) *Case {
	for _, c := range d.CasesOf(v.Workload, v.Server) {
		if c.Name == v.Level {
			return c
		}
	}
	return nil
}

// Disputed returns the names of the levels that failed although the capacity c is not smaller than
// they are.
func (d *Document) Disputed(c *metric.Capacity) []string {
	var out []string
	for i := range d.Verdicts {
		if v := &d.Verdicts[i]; d.Above(v) == c && !slices.Contains(out, v.Level) {
			out = append(out, v.Level)
		}
	}
	return out
}

// Joining returns a note for a level that failed below the reported capacity. The note explains why
// both can be true.
func (d *Document) Joining(v *verdict.Verdict, c *metric.Capacity) string {
	n := d.caseOf(v).N
	why := fmt.Sprintf("load %d passed in the search", c.Pass)
	for _, p := range c.Probes {
		if p.Outcome == verdict.Pass && p.Set > 0 && p.N == n {
			why = fmt.Sprintf("load %d passed on fresh requests", p.N)
		}
	}
	return fmt.Sprintf("the capacity stays %s, because %s. The outcome at load %d depends on which requests are sent", c.Limit(), why, n)
}

// Names returns a different one-line name for each document. It is the last part of the document's
// folder, or the run's id if there is no folder. A name that repeats an earlier one gets a number.
func Names(docs []*Document) []string {
	out := make([]string, len(docs))
	seen := map[string]int{}
	for i, d := range docs {
		name := ""
		if d.Folder != "" {
			name = path.Base(strings.TrimRight(strings.ReplaceAll(d.Folder, "\\", "/"), "/"))
		}
		name = text.Line(text.Bytes(cmp.Or(name, d.Run.ID, d.Plan.Name, "run"), nameBytes))
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, seen[name])
		}
		out[i] = name
	}
	return out
}
