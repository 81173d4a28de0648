package page

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/chart"
	clean "github.com/tokgate/tokgate/report/text"
)

func brief(r Run) *Brief {
	v := &Brief{Title: Line(r.Plan.Name), Word: Line(r.Word()), Partial: r.Partial, Simulated: r.Run.Simulated, Date: r.Date("2 January 2006")}
	if c := r.Plan.Cover; c != nil {
		v.Title, v.Subtitle, v.Organization = cmp.Or(Line(c.Title), v.Title), Line(c.Subtitle), Line(c.Organization)
		v.Logo = logo(c.Logo)
		for _, n := range c.Notes[:min(len(c.Notes), 6)] {
			v.Notes = append(v.Notes, Line(n))
		}
	}
	v.Class, v.Sentence = meaning(r.Document)
	if said := unmetWords(r); said != "" {
		v.Sentence = said
	}
	if said := r.Uncompared(); said != "" {
		v.Sentence = Line(strings.ToUpper(said[:1])+said[1:]) + ". " + v.Sentence
	}
	v.System = system(r)
	v.Choice = choice(r)
	v.Tiles = tiles(r)
	v.Uses = uses(r)
	for _, c := range r.Comparisons {
		v.Answers = append(v.Answers, answered(r, c)...)
	}
	v.cut()
	v.Chart = frontChart(r)
	v.How = describeRun(r)
	return v
}

// mostFront is the largest number of use cases and answers together on the first page.
const mostFront = 8

// cut keeps as many use cases and answers as fit the first page, the worst first, and says how many
// are left out.
func (v *Brief) cut() {
	slices.SortStableFunc(v.Answers, func(a, b Decided) int { return cmp.Compare(rank(a.Class), rank(b.Class)) })
	left := map[string]int{}
	for len(v.Uses)+len(v.Answers) > mostFront {
		u, a := len(v.Uses)-1, len(v.Answers)-1
		if a < 0 || u >= 0 && rank(v.Uses[u].Class) >= rank(v.Answers[a].Class) {
			left[v.Uses[u].Class]++
			v.Uses = v.Uses[:u]
			continue
		}
		left[v.Answers[a].Class]++
		v.Answers = v.Answers[:a]
	}
	v.Left = leftOut(left)
}

// logo returns a picture as a URL that contains its data; "" if the picture is invalid.
func logo(src []byte) template.URL {
	kind := http.DetectContentType(src)
	if kind != "image/png" && kind != "image/jpeg" {
		return ""
	}
	return template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(src))
}

func system(r Run) *Table {
	servers := r.Run.Servers[:min(len(r.Run.Servers), 4)]
	t := factTable(r, "What was measured", servers)
	row := func(name string, of func(*metric.ServerRun) string) { t.factRow(name, servers, of) }
	row("About", func(s *metric.ServerRun) string { return about(r, s.Address) })
	row("Model", func(s *metric.ServerRun) string { return factOf(s, "model") })
	row("Precision", func(s *metric.ServerRun) string { return factOf(s, "quantization") })
	row("GPU", func(s *metric.ServerRun) string { return factOf(s, "gpu") })
	row("Driver", func(s *metric.ServerRun) string { return factOf(s, "gpu_driver") })
	row("CUDA", func(s *metric.ServerRun) string { return factOf(s, "cuda") })
	row("Engine", func(s *metric.ServerRun) string {
		return strings.TrimSpace(factOf(s, "engine") + " " + factOf(s, "version"))
	})
	row("Image", func(s *metric.ServerRun) string { return factOf(s, "image") })
	row("Profile", func(s *metric.ServerRun) string { return factOf(s, "profile") })
	row("Context", func(s *metric.ServerRun) string {
		if n := factOf(s, "max_model_len"); n != "" {
			return n + " tokens"
		}
		return ""
	})
	row("Flags", func(s *metric.ServerRun) string { return Line(clean.Bytes(factOf(s, "flags"), 300)) })
	if len(t.Rows) == 0 {
		return nil
	}
	if len(r.Run.Servers) > len(servers) {
		t.Caption += fmt.Sprintf(" (%d of %d servers)", len(servers), len(r.Run.Servers))
	}
	return t
}

func uses(r Run) []Use {
	var out []Use
	most := map[metric.LoadKind]float64{} // largest load, by kind of load
	var kindsOf []metric.LoadKind
	var limits []float64
	for i := range r.Workloads {
		w := &r.Workloads[i]
		if !r.useCase(w) {
			continue
		}
		for _, server := range w.Servers {
			class, said, kind, n := carried(r, w, server)
			if class == "none" && r.control(server) {
				continue // a control without requirements
			}
			v := Use{Title: r.title(w.Address) + r.serverSuffix(server), About: Line(w.Description), Link: r.anchorOf(w), Class: class,
				Value: said, Binds: rules(w)}
			if c := r.Capacity(w.Address, server); c != nil {
				v.Value, v.Unit, v.Binds = c.Limit(), kinds[c.Over]+disputed(r, c), limitedBy(r, c)
				if people := w.People(c.Pass); people != "" {
					v.Unit += ", " + people
				}
			}
			if v.About == "" {
				v.About = Line(size(w))
			}
			out, limits, kindsOf = append(out, v), append(limits, n), append(kindsOf, kind)
			most[kind] = max(most[kind], n)
		}
	}
	for i := range out {
		if limits[i] > 0 {
			out[i].Bar = chart.Bar(limits[i]/most[kindsOf[i]], out[i].Class)
		}
	}
	slices.SortStableFunc(out, func(a, b Use) int { return cmp.Compare(rank(a.Class), rank(b.Class)) })
	return out
}

// carried returns the result of a workload on a server: a CSS class, a short text, the kind of
// load, and the largest load that met all thresholds.
func carried(r Run, w *report.Workload, server string) (class, said string, kind metric.LoadKind, most float64) {
	if c := r.Capacity(w.Address, server); c != nil {
		return capacityClass(r, c), c.Limit(), c.Over, c.Load(c.Pass)
	}
	class, said = holdsAt(r, w, server)
	for _, c := range r.CasesOf(w.Address, server) {
		if worst, judged := levelStatus(r, c); judged && worst == verdict.StatusPass && c.Stage == nil {
			kind, most = c.Kind, max(most, c.Load())
		}
	}
	return class, Capital(said), kind, most
}

func limitedBy(r Run, c *metric.Capacity) string {
	if c.Binding == "" {
		return "no limit was met"
	}
	s := bindingName(c)
	for _, t := range searchedBounds(r, c) {
		if t.Label() == c.Binding {
			s += " " + relation(t.Op) + " " + t.Limit.Format(t.Unit())
		}
	}
	if c.AtPass != "" && c.AtFail != "" {
		s += fmt.Sprintf(": %s at a load of %s, %s at a load of %s", Line(c.AtPass), c.Amount(c.Pass), Line(c.AtFail), c.Amount(c.Fail))
	}
	return s
}

func answered(r Run, c *compare.Comparison) []Decided {
	name := Line(c.Name) + ": " + sides(r, c)
	if c.Skipped != "" {
		return []Decided{{Title: name, Answer: "not compared", Class: "none", Why: Line(c.Skipped)}}
	}
	classes := map[string]string{"yes": "pass", "no": "fail", "mixed": "unsure", "unknown": "unsure"}
	type key struct{ workload, Capacity string }
	var out []Decided
	var levels []string
	at := map[key]int{}
	figures := map[key]map[string][]*compare.Change{}
	for i := range c.Decisions {
		d := &c.Decisions[i]
		k := key{d.Workload, d.Answer}
		if _, ok := at[k]; !ok {
			at[k], figures[k] = len(out), map[string][]*compare.Change{}
			v := Decided{Title: r.title(d.Workload), Answer: answerWord(c, d), Class: cmp.Or(classes[d.Answer], "none"), Why: Line(d.Why)}
			if len(r.Comparisons) > 1 {
				v.Title = r.title(c.Candidate) + ": " + v.Title
			}
			out, levels = append(out, v), append(levels, "")
		}
		levels[at[k]] += ", " + r.level(d.Workload, d.Level)
		for _, x := range carrying(c, d) {
			figures[k][changeName(x)] = append(figures[k][changeName(x)], x)
		}
	}
	for k, i := range at {
		out[i].Title += " at " + strings.TrimPrefix(levels[i], ", ")
		out[i].Changes = ranges(k.Capacity, figures[k])
	}
	return out
}

// carrying returns the most important changes that decided the comparison, at most three.
func carrying(c *compare.Comparison, d *compare.Decision) []*compare.Change {
	var list []*compare.Change
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Workload == d.Workload && x.Level == d.Level && x.Change.OK &&
			(x.Direction != "" || x.Outcome == verdict.Fail) {
			list = append(list, x)
		}
	}
	rank := func(x *compare.Change) int {
		switch {
		case x.Outcome == verdict.Fail:
			return 0
		case x.Metric.Name == "throughput" || x.Metric.Name == "e2e":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(list, func(a, b *compare.Change) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(math.Abs(b.Change.V), math.Abs(a.Change.V)))
	})
	return list[:min(len(list), 3)]
}

// ranges describes two or three metrics that changed, each with its smallest and largest change.
// The changes belong to one answer for one or several levels. Metrics that changed at most levels
// come first, and metrics that contradict the answer come last.
func ranges(answer string, of map[string][]*compare.Change) []string {
	names := slices.Sorted(maps.Keys(of))
	contrary := func(name string) bool {
		return slices.ContainsFunc(of[name], func(x *compare.Change) bool {
			return answer == "yes" && x.Direction == "worse" || answer == "no" && x.Direction == "better"
		})
	}
	order := func(name string) int {
		return slices.Index([]string{"e2e", "throughput"}, of[name][0].Metric.Name)
	}
	slices.SortStableFunc(names, func(a, b string) int {
		if x, y := contrary(a), contrary(b); x != y {
			return map[bool]int{false: -1, true: 1}[x]
		}
		return cmp.Or(cmp.Compare(len(of[b]), len(of[a])), cmp.Compare(order(b), order(a)))
	})
	var out []string
	for _, name := range names[:min(len(names), 3)] {
		low, high := of[name][0], of[name][0]
		for _, x := range of[name] {
			if x.Change.V < low.Change.V {
				low = x
			}
			if x.Change.V > high.Change.V {
				high = x
			}
		}
		said := name + " " + shift(low, low.Change)
		if high != low {
			said += " to " + shift(high, high.Change)
		}
		if contrary(name) {
			said = "but " + said
		}
		out = append(out, said)
	}
	return out
}

func describeRun(r Run) []string {
	requests, rounds, name := 0, 0, ""
	for i := range r.Cases {
		c := &r.Cases[i]
		requests += c.Sent()
		if len(c.Rounds) > rounds {
			rounds = len(c.Rounds)
			_, name = c.RoundNames()
		}
	}
	took := clean.Clock(r.Run.End.Seconds())
	if r.Run.Simulated {
		took += " of virtual time"
	}
	first := fmt.Sprintf("%s requests in %s", count(requests), took)
	if l := loads(r); l != "" {
		first += ": " + l
	}
	if rounds > 1 {
		first += fmt.Sprintf(", in up to %d %s for each load", rounds, name)
	}
	first += ", by tokgate " + Line(strings.TrimPrefix(r.Run.Tool, "tokgate ")) + "."
	return []string{first, howDecided(r) + " " + caching(r)}
}

func howDecided(r Run) string {
	switch {
	case r.Plan.Decide == "estimate":
		return "Thresholds were decided by point estimates, so nothing is certified."
	case r.Plan.Confidence > 0:
		return "Each threshold was decided by a statistical test at " + metric.Format(metric.Ratio, r.Plan.Confidence) + " confidence."
	}
	return ""
}

// caching says in a sentence what share of the prompts came from a prefix cache. If there was none,
// it says why a cache cannot help.
func caching(r Run) string {
	low, high := extremes([]Run{r}, func(c *report.Case) metric.Value { return mean(c, "cache_hit_rate") })
	switch recorded := slices.ContainsFunc(r.Workloads, func(w report.Workload) bool { return w.Prompts != "" }); {
	case high.ok && high.v > 0:
		return fmt.Sprintf("Between %s and %s of the prompts' tokens came from a prefix cache, depending on the load.", format("cache_hit_rate", low.v), format("cache_hit_rate", high.v))
	case recorded:
		return "Prompts come from a data set or a trace. The file decides which parts of the prompts repeat."
	}
	return "Prompts share at most their first two words, so a prefix cache cannot help. With a longer shared beginning the first token would come sooner."
}
