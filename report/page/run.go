package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	clean "github.com/tokgate/tokgate/report/text"
)

// Run is one document with its name on the page.
type Run struct {
	*report.Document
	Name string // name on the page; "" if there is only one run
	ID   string // prefix of the run's anchors; "" if there is only one run
	// sources holds the lines of the plan's files, without control characters. It is empty on a
	// page with several runs, because each run has its own report with its plan.
	sources [][]string
}

func named(docs []*report.Document) []Run {
	runs := make([]Run, len(docs))
	names := report.Names(docs)
	for i, d := range docs {
		runs[i].Document = d
		if len(docs) > 1 {
			runs[i].Name, runs[i].ID = names[i], fmt.Sprintf("run-%d-", i+1)
			continue
		}
		for _, s := range d.Plan.Sources {
			runs[i].sources = append(runs[i].sources, s.Lines())
		}
	}
	return runs
}

func pageTitle(runs []Run) string {
	var names []string
	for _, r := range runs {
		name := r.Plan.Name
		if c := r.Plan.Cover; c != nil {
			name = cmp.Or(c.Title, name)
		}
		names = append(names, cmp.Or(r.Name, Line(name)))
	}
	t := strings.Join(names, ", ")
	if len(runs) == 1 {
		t = runs[0].Word() + " · " + t
	}
	if runs[0].Run.Simulated {
		t = "SIMULATED · " + t
	}
	return Line(t) + " · tokgate"
}

// messageBytes is the largest length of one piece of foreign text on the page.
const messageBytes = 2000

// Line returns foreign text as one line without invisible characters.
func Line(s string) string { return clean.Line(clean.Bytes(s, messageBytes)) }

// count formats a whole number with thin spaces between thousands.
func count(n int) string {
	s := fmt.Sprint(n)
	if n < 10_000 {
		return s
	}
	var parts []string
	for len(s) > 3 {
		parts = append([]string{s[len(s)-3:]}, parts...)
		s = s[:len(s)-3]
	}
	return strings.Join(append([]string{s}, parts...), "\u202f")
}

// mean returns the mean of a metric in a case. A metric of the whole level has only one value,
// which mean returns.
func mean(c *report.Case, name string) metric.Value { return c.Summary(name).Stat("mean") }

func stat(name, of string) func(*report.Case) metric.Value {
	return func(c *report.Case) metric.Value { return c.Summary(name).Stat(of) }
}

func unitOf(name string) metric.Unit {
	def, _ := metric.Lookup(name)
	return def.Unit
}

func format(name string, v float64) string { return metric.Format(unitOf(name), v) }

// inFlight describes the load of a case in words, such as "8 requests in flight".
func inFlight(c *report.Case) string {
	said := verdict.Count(c.N, "requests") + " in flight"
	switch c.Kind {
	case "burst":
		said = verdict.Count(c.N, "requests") + " at once"
	case "users":
		said = verdict.Count(c.N, "users")
	case "rate":
		said = metric.Format(metric.PerSecond, c.Rate)
		if c.Speedup > 0 {
			said = times(c.Speedup) + ", " + said + " on average"
		}
	case "speedup": // of a probe
		said = times(c.Rate)
	}
	if title := Line(c.Title); title != "" {
		said += " (" + title + ")"
	}
	return said
}

// times describes the speed of a replay, as a multiple of the recorded traffic.
func times(speedup float64) string { return fmt.Sprintf("%.4g times the recorded traffic", speedup) }

// caseName names a case by its load. If there are several workloads, servers or runs, it also names
// the workload, the server or the run.
func caseName(runs []Run, r Run, c *report.Case) string {
	return strings.Join(append([]string{inFlight(c)}, placeOf(runs, r, c)...), " · ")
}

func placeOf(runs []Run, r Run, c *report.Case) (parts []string) {
	if several(runs, func(c *report.Case) string { return c.Workload }) {
		parts = append(parts, r.title(c.Workload))
	}
	if several(runs, func(c *report.Case) string { return c.Server }) {
		parts = append(parts, r.title(c.Server))
	}
	if r.Name != "" {
		parts = append(parts, r.Name)
	}
	return parts
}

// several reports whether cases of the runs have different texts. The parameter of gives the text.
func several(runs []Run, of func(*report.Case) string) bool {
	first, found := "", false
	for _, r := range runs {
		for i := range r.Cases {
			v := of(&r.Cases[i])
			if found && v != first {
				return true
			}
			first, found = v, true
		}
	}
	return false
}

func measured(runs []Run, f func(Run, *report.Case)) {
	for _, r := range runs {
		for i := range r.Cases {
			if c := &r.Cases[i]; c.Skipped == "" && c.Due() > 0 {
				f(r, c)
			}
		}
	}
}

func (r Run) title(address string) string {
	if r.Document == nil {
		return Line(address)
	}
	return Line(r.TitleOf(address))
}

func (r Run) level(workload, level string) string { return Line(r.LevelTitle(workload, level)) }

func levelOf(c *report.Case) string {
	if c.Title == "" {
		return Line(c.Name)
	}
	return Line(c.Title + " (" + c.Name + ")")
}

// serverSuffix returns " on " and the server's title; "" without a server, or if the run has only
// one.
func (r Run) serverSuffix(server string) string {
	if len(r.Run.Servers) < 2 || server == "" {
		return ""
	}
	return " on " + r.title(server)
}

// family returns the part of a name that all copies made by one for_each share.
func family(s string) string {
	name, _ := report.Named(s)
	return name
}

// mostCases is the largest number of use cases with their own section. The tables show all use
// cases.
const mostCases = 12

// useCase reports whether a workload gets its own section on the page. It does if it has a capacity
// search, or a threshold on any metric other than success.
func (r Run) useCase(w *report.Workload) bool {
	return slices.ContainsFunc(w.Bounds, func(b report.Bound) bool { return b.Threshold.Metric.Name != "success" && b.Threshold.Limit.OK }) ||
		slices.ContainsFunc(r.Run.Capacities, func(c *metric.Capacity) bool { return c.Workload == w.Address })
}

func (r Run) anchorOf(w *report.Workload) string {
	n := 0
	for i := range r.Workloads {
		if x := &r.Workloads[i]; r.useCase(x) {
			if n++; x == w && n <= mostCases {
				return "#" + caseID(x, r)
			}
		}
	}
	return ""
}

func caseID(w *report.Workload, r Run) string {
	return fmt.Sprintf("case-%d", 1+slices.IndexFunc(r.Workloads, func(x report.Workload) bool { return x.Address == w.Address }))
}

func (r Run) control(server string) bool {
	return slices.ContainsFunc(r.Comparisons, func(c *compare.Comparison) bool { return c.Control == server })
}
