package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// guidance shows the requirements of each use case and how much load the server carries, if one has
// requirements.
func guidance(runs []Run) Section {
	s := Section{ID: "guidance", Title: "Use cases and their limits",
		Lead: "What each use case requires of the server, and the largest load at which the server meets these requirements."}
	tab := &Table{Words: true, Caption: "Use cases", Columns: Heads("Use case", "Prompt and answer", "Must hold", "Answer")}
	asked := false
	for _, r := range runs {
		for i := range r.Workloads {
			w := &r.Workloads[i]
			for _, server := range w.Servers {
				name := r.title(w.Address)
				if len(w.Servers) > 1 {
					name += " on " + r.title(server)
				}
				if r.Name != "" {
					name += " · " + r.Name
				}
				if w.Description != "" {
					name += ": " + Line(w.Description)
				}
				class, answer := carries(r, w, server)
				asked = asked || len(w.Bounds) > 0 || class != "none"
				tab.Rows = append(tab.Rows, []Cell{text(name), text(size(w)), text(rules(w)), {Text: answer, Class: class}})
			}
		}
	}
	if asked {
		s.Blocks = []Block{{Table: tab}}
	}
	return s
}

func size(w *report.Workload) string {
	if len(w.Mix) > 0 {
		return "a mix of " + Line(strings.Join(w.Mix, ", "))
	}
	out := verdict.Count(w.Input, "tokens") + " in, "
	if w.Input == 0 {
		out = "prompts of " + w.Prompts + ", "
	}
	switch {
	case w.Natural:
		out += fmt.Sprintf("up to %s out", verdict.Count(w.Output, "tokens"))
	case w.Jitter > 0:
		out += fmt.Sprintf("%s ± %s out", verdict.Count(w.Output, "tokens"), metric.Format(metric.Ratio, w.Jitter))
	default:
		out += fmt.Sprintf("%s out", verdict.Count(w.Output, "tokens"))
	}
	return out
}

func rules(w *report.Workload) string {
	var out []string
	said := func(b report.Bound) string { return Line(b.Threshold.Metric.Title + " " + b.Threshold.Text) }
	for _, b := range w.Bounds {
		rule := said(b)
		if b.Severity == "warn" {
			// If the threshold is also required at another level, show only the requirement.
			if slices.ContainsFunc(w.Bounds, func(o report.Bound) bool { return o.Severity != "warn" && said(o) == rule }) {
				continue
			}
			rule += " (a warning)"
		}
		if !slices.Contains(out, rule) {
			out = append(out, rule)
		}
	}
	if len(w.Mix) > 0 {
		out = append(out, "what each part requires")
	}
	if len(out) == 0 {
		return "nothing: measured only"
	}
	return Line(strings.Join(out, "; "))
}

// carries says in words which load a server holds for a workload. It uses the capacity search or,
// without a search, the levels.
func carries(r Run, w *report.Workload, server string) (class, answer string) {
	if c := r.Capacity(w.Address, server); c != nil {
		return capacityClass(r, c), sentence(c)
	}
	class, answer = holdsAt(r, w, server)
	if class != "none" {
		answer += " (the highest levels that were tested)" // higher loads were not
	}
	return class, answer
}

// holdsAt says at which levels the requirements of a workload hold on a server.
func holdsAt(r Run, w *report.Workload, server string) (class, answer string) {
	held, warned, missed, unsure := []string{}, []string{}, []string{}, []string{}
	for _, c := range r.CasesOf(w.Address, server) {
		if c.Probe != nil {
			continue
		}
		switch worst, judged := levelStatus(r, c); {
		case !judged:
		case worst == verdict.StatusPass:
			held = append(held, levelOf(c))
		case worst == verdict.StatusWarning:
			warned = append(warned, levelOf(c))
		case worst == verdict.StatusFail:
			missed = append(missed, levelOf(c))
		default:
			unsure = append(unsure, levelOf(c))
		}
	}
	var parts []string
	add := func(word string, levels []string) {
		if len(levels) > 0 {
			parts = append(parts, word+" at "+strings.Join(levels, ", "))
		}
	}
	add("holds", held)
	add("warns", warned)
	add("does not hold", missed)
	add("not settled", unsure)
	switch {
	case len(parts) == 0 && len(w.Bounds) == 0:
		return "none", "the plan requires nothing of this use case; the charts show what was measured"
	case len(parts) == 0:
		return "none", "no level was judged"
	case len(missed) > 0:
		class = "fail"
	case len(unsure)+len(warned) > 0:
		class = "unsure"
	default:
		class = "pass"
	}
	return class, strings.Join(parts, "; ")
}

// capacityClass returns the class of a capacity. A level of the plan that failed below it disputes it.
func capacityClass(r Run, c *metric.Capacity) string {
	switch {
	case c.Pass == 0 && c.Fail == 0:
		return "error"
	case c.Pass == 0 || c.Require > 0 && c.Fail > 0 && c.Require >= c.Fail:
		return "fail"
	case c.Require > c.Pass, disputed(r, c) != "":
		return "unsure"
	}
	return "pass"
}

func sentence(c *metric.Capacity) string {
	if c.OfRate() {
		return rateSentence(c)
	}
	pass := amountOf(c, c.Pass)
	switch metric.CapacityKind(c.Kind) {
	case metric.CapacityExact:
		s := fmt.Sprintf("The server carries %s; %s is too many.", pass, c.Amount(c.Fail))
		if c.Fail == 0 {
			s = fmt.Sprintf("The server carries %s.", pass)
		}
		return s + binding(c)
	case metric.CapacityInterpolated:
		return fmt.Sprintf("The server carries %s; %s is too many. The loads in between are undecided.", pass, c.Amount(c.Fail)) + binding(c)
	case metric.CapacityAtLeast:
		return fmt.Sprintf("The server carries at least %s, the largest load that was tried.", pass) + binding(c)
	case metric.CapacityBelow:
		return fmt.Sprintf("The server does not carry %s, the smallest load that was tried.", amountOf(c, c.Fail)) + binding(c)
	case metric.CapacityServerCap:
		return fmt.Sprintf("The server admits %s and rejects further requests.", pass)
	}
	return "Not known: " + Line(c.Reason)
}

func amountOf(c *metric.Capacity, n int) string {
	at := loadOf(c, n)
	return inFlight(&at)
}

func loadOf(c *metric.Capacity, n int) report.Case {
	return report.Case{Level: &metric.Level{Kind: c.Over, N: n, Rate: c.Load(n)}}
}

func rateSentence(c *metric.Capacity) string {
	var s string
	switch {
	case c.Pass > 0 && c.Kind == metric.CapacityAtLeast:
		s = fmt.Sprintf("The server is certified to carry %s requests a second, the highest rate that the search may try.", c.Amount(c.Pass))
	case c.Pass > 0:
		s = fmt.Sprintf("The server is certified to carry %s requests a second.", c.Amount(c.Pass))
	case c.Fail > 0:
		s = fmt.Sprintf("The server does not carry %s requests a second, the lowest rate that was tried.", c.Amount(c.Fail))
	default:
		return "Not known: " + Line(c.Reason)
	}
	if c.Fail > 0 && c.Pass > 0 {
		s += fmt.Sprintf(" %s is too many.", c.Amount(c.Fail))
	}
	if c.Crossing > 0 {
		s += fmt.Sprintf(" By estimate the server carries about %s.", c.Estimate())
	}
	return s + binding(c)
}

// binding names the threshold that limits the capacity, and says how close its value at the
// capacity is to its limit. If no probe failed, no threshold limits the capacity, and binding
// returns "".
func binding(c *metric.Capacity) string {
	if c.Binding == "" {
		return ""
	}
	name := bindingName(c)
	switch {
	case c.OfRate() && c.AtFail == "":
		return fmt.Sprintf(" %s limits the estimate.", name)
	case c.AtPass != "" && c.AtFail != "":
		return fmt.Sprintf(" %s limits the capacity: its value is %s at a load of %s, and %s at a load of %s.", name, Line(c.AtPass), c.Amount(c.Pass), Line(c.AtFail), c.Amount(c.Fail))
	case c.AtFail != "":
		return fmt.Sprintf(" %s limits the capacity: its value is %s at a load of %s.", name, Line(c.AtFail), c.Amount(c.Fail))
	case c.AtPass != "":
		return fmt.Sprintf(" %s comes nearest to its limit: its value is %s at a load of %s.", name, Line(c.AtPass), c.Amount(c.Pass))
	}
	return " " + name + " limits the capacity."
}

func bindingName(c *metric.Capacity) string {
	name, stat, _ := strings.Cut(c.Binding, " ")
	def, _ := metric.Lookup(name)
	return strings.TrimSpace(cmp.Or(def.Title, Line(name)) + " " + Line(stat))
}

// margin returns how far a value is from a limit, as a share of the limit. It is positive if the
// value meets the limit, and negative otherwise.
func margin(op string, v, limit float64) float64 {
	if limit == 0 {
		return math.NaN()
	}
	m := (limit - v) / math.Abs(limit)
	if op == ">" || op == ">=" {
		m = -m
	}
	return m
}

// nearness describes the distance of a value from its limit, such as "just within its limit". The
// distance m is a share of the limit; it is negative beyond the limit.
func nearness(m float64) string {
	switch {
	case math.IsNaN(m):
		return ""
	case math.Abs(m) < 0.0005:
		return "right at its limit"
	case m < -0.05:
		return "beyond its limit"
	case m < 0:
		return "just beyond its limit"
	case m <= 0.05:
		return "just within its limit"
	case m > 0.20:
		return "well within its limit"
	}
	return "within its limit"
}
