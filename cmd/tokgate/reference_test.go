package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/record"
)

var reference = flag.String("reference", "", "write docs/reference.md from simulated runs of all plans of plans/reference, measuring this `binary`")

// system is one of the published systems.
type system struct {
	name  string // name of the system's part of docs/reference.md
	file  string // base name of the system's plan and of its published figures
	quick string // workload to simulate in every test run; "" simulates all and checks docs/reference.md
	// promised is the largest allowed median error of the fitted figures of each server. The key ""
	// stands for all servers.
	promised map[string]float64
	// draws is the number of simulations, with a seed each, whose results are averaged. Speculative
	// decoding is random, so with few requests one simulation can be off by several percent.
	draws int
}

var systems = []system{
	{"rtx", "qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000", `use_case["coding_assistant"]`, map[string]float64{"": 0.026}, 12},
	{"sglang", "qwen3-coder-next-80b-fp8.2x-rtx-pro-6000", `use_case["coding_assistant"]`, map[string]float64{"": 0.042}, 1},
	{"h200", "qwen3-coder-30b-a3b-instruct-fp8.1x-h200-sxm", `use_case["coding_assistant"]`, map[string]float64{"": 0.046}, 1},
	{"h100", "qwen3.5-35b-a3b-fp8.1x-h100", `burst["tool_calling"]`, map[string]float64{"": 0.032}, 1},
	{"spark", "qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10", "", map[string]float64{"control": 0.009, "vanilla": 0.012, "mtp": 0.027}, 6},
}

func (s system) plan() string { return filepath.Join("..", "..", "plans", "reference", s.file+".hcl") }

// published holds the printed values of a report.
type published struct {
	Title, Publisher string
	// Speed says how the report averages the speeds of many streams. With "of mean time" it divides
	// the mean number of tokens by the mean time. Otherwise it takes the mean of the speeds.
	Speed   string
	Figures []figure
	// Answers holds the decisions that an article on two servers prints, one per workload.
	Answers []struct{ Workload, Printed string }
}

// figure is one printed value of a report.
type figure struct {
	Server   string // key of the server, such as its name, if the plan has several servers
	Against  string // server to which a percentage change refers; "" if the figure is not a change
	Workload string
	Level    string // or "capacity"
	Metric   string
	Printed  string // value as printed, such as "~8.1 s"; "~" if the report interpolated it
	Exceeded bool   // the report marks the value as beyond its threshold
	OfMean   bool   `json:"-"` // see published.Speed
	Fitted   *bool  // false if the value did not help to fit the simulator's profile
	Derived  string // how the value was computed from printed values; "" if it is printed
	// Impossible explains why no server can have the value that the report published; "" if one can.
	Impossible string
	Why        string // it differs
}

func (f figure) fitted() bool { return f.Impossible == "" && (f.Fitted == nil || *f.Fitted) }

// value parses the printed value, in base units.
func (f figure) value() (v float64, ok bool) {
	number, unit, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(f.Printed, "~"), "+"), " ")
	v, err := strconv.ParseFloat(strings.TrimSuffix(number, "%"), 64)
	switch {
	case unit == "ms":
		v /= 1000
	case unit == "%", strings.HasSuffix(number, "%"):
		v /= 100
	}
	return v, err == nil
}

// half returns half a unit of the last printed digit, in the base unit of the metric. This is the
// largest rounding error of a printed value.
func (f figure) half() float64 {
	number, unit, _ := strings.Cut(f.Printed, " ")
	_, decimals, _ := strings.Cut(strings.TrimSuffix(number, "%"), ".")
	half := 0.5 * math.Pow(10, -float64(len(decimals)))
	if unit == "ms" {
		half /= 1000
	}
	return half
}

// levelName says in words which level the figure belongs to.
func (f figure) levelName() string {
	name, key, _ := strings.Cut(strings.TrimSuffix(f.Workload, `"]`), `["`)
	level := strings.TrimPrefix(f.Level, "burst ")
	switch name {
	case "context":
		return fmt.Sprintf("%s × %s", key, level)
	case "burst":
		return fmt.Sprintf("%s, burst of %s", key, level)
	case "test":
		return fmt.Sprintf("%s, %s", f.Server, key)
	}
	return fmt.Sprintf("%s × %s", key, level)
}

// simulation is a simulated run with its verdicts.
type simulation struct {
	plan     *plan.Plan
	run      *metric.Run
	verdicts assert.Verdicts
	again    []*simulation // simulations of the same plan with other seeds
}

// repeat simulates the plan again with the other seeds of the simulator. It stores the results in
// m.again.
func (s system) repeat(t *testing.T, m *simulation) {
	for seed := 2; seed <= s.draws; seed++ {
		m.again = append(m.again, s.simulate(t, fmt.Sprintf("simulator_seed=%d", seed)))
	}
}

// simulate runs the system's plan in simulation, without reports, and returns the result.
func (s system) simulate(t *testing.T, vars ...string) *simulation {
	t.Helper()
	p := s.decoded(t, vars)
	run := must.Get(simulatedRun(t.Context(), p, 0, nil))(t)
	return &simulation{plan: p, run: run, verdicts: assert.Judge(p, run, assert.Options{})}
}

func (s system) decoded(t *testing.T, vars []string) *plan.Plan {
	t.Helper()
	var inputs []decode.Input
	for _, v := range vars {
		inputs = append(inputs, decode.Input{Var: v})
	}
	p, diags := decode.File(decode.Options{Path: s.plan(), Inputs: inputs})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	return p
}

func (s system) command(dir string, vars []string) []string {
	args := []string{"run", "--simulate", "--quiet", "--out", dir, s.plan()}
	for _, v := range vars {
		args = append(args, "--var", v)
	}
	return args
}

// judged reads the recorded run in dir, and judges it.
func (s system) judged(t *testing.T, dir string, vars []string) *simulation {
	t.Helper()
	run, problems, err := record.Read(dir)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	p := s.decoded(t, vars)
	return &simulation{plan: p, run: run, verdicts: assert.Judge(p, run, assert.Options{})}
}

func (m *simulation) level(server, workload, name string) *metric.Level {
	for _, l := range m.run.Levels {
		if l.Workload == workload && l.Name == name && l.Probe == nil && (server == "" || strings.HasSuffix(l.Server, `["`+server+`"]`)) {
			return l
		}
	}
	return nil
}

// window returns the time window over which the plan takes rates.
func (m *simulation) window() metric.Window { return m.plan.Gate.Window }

// measure returns the simulated value of a figure, as the mean over the seeds.
func (m *simulation) measure(f figure) (v float64, ok bool) {
	v, ok = m.one(f)
	for _, a := range m.again {
		x, found := a.one(f)
		v, ok = v+x, ok && found
	}
	return v / float64(1+len(m.again)), ok
}

// one returns the value of a figure in one simulated run, by the formula of the published report.
func (m *simulation) one(f figure) (v float64, ok bool) {
	if f.Level == "capacity" {
		return 0, false
	}
	l := m.level(f.Server, f.Workload, f.Level)
	if l == nil {
		return 0, false
	}
	one := m.level(f.Server, f.Workload, "1")
	mean := func(name string, l *metric.Level) (float64, bool) {
		def, _ := metric.Lookup(name)
		return metric.Of(def, l.MeasuredSamples()).Mean()
	}
	of := func(v metric.Value) (float64, bool) { return v.V, v.OK }
	switch f.Metric {
	case "speed":
		return streamSpeed(l, f.OfMean)
	case "sum_of_speeds":
		v, ok := streamSpeed(l, false)
		return float64(l.N) * v, ok
	case "scaling_efficiency": // from the speeds of single streams, as the published reports do
		a, ok1 := streamSpeed(l, false)
		b, ok2 := streamSpeed(one, false)
		return a / b, ok1 && ok2
	case "throughput":
		return of(l.Value("throughput", m.window(), nil, one))
	case "scaling":
		e, ok := of(l.Value("scaling_efficiency", m.window(), nil, one))
		return e * float64(l.N), ok
	case "accept_length":
		return of(l.Value(f.Metric, m.window(), nil, one))
	case "itl": // mean gap between chunks of each request, averaged over requests
		sum, n := 0.0, 0
		for _, s := range l.MeasuredSamples() {
			if s.Completed() && s.Chunks > 1 {
				sum += (s.Last - s.First).Seconds() / float64(s.Chunks-1)
				n++
			}
		}
		return sum / float64(n), n > 0
	case "prefill_speed": // prompt tokens divided by the time that the server spent on prefill
		h, why := l.Histogram("prefill")
		return float64(l.Asked.Input) * h.N() / h.Sum, why == ""
	case "queue_wait":
		h, why := l.Histogram("queue_wait")
		return h.Sum / h.N(), why == ""
	case "context_over_wait": // prompt tokens / (TTFT − queue wait); the SGLang report calls this "prefill speed"
		h, why := l.Histogram("queue_wait")
		ttft, ok := mean("ttft", l)
		return float64(l.Asked.Input) / (ttft - h.Sum/h.N()), ok && why == ""
	case "p99_tpot", "p99_itl":
		def, _ := metric.Lookup(strings.TrimPrefix(f.Metric, "p99_"))
		return metric.Of(def, l.MeasuredSamples()).Percentile(99)
	}
	return mean(f.Metric, l)
}

// streamSpeed returns the speed of one stream, as the published reports define it. It is the mean
// over answers of the tokens divided by the time from first chunk to last. With ofMean it is the
// mean number of tokens divided by the mean time.
//
// Unlike the metric speed, it counts the tokens of the first chunk.
func streamSpeed(l *metric.Level, ofMean bool) (float64, bool) {
	if l == nil {
		return 0, false
	}
	speeds, tokens, seconds, n := 0.0, 0.0, 0.0, 0
	for _, s := range l.MeasuredSamples() {
		if s.Completed() && s.Usage != nil && s.Last > s.First {
			took := (s.Last - s.First).Seconds()
			speeds += float64(s.Usage.Output) / took
			tokens, seconds = tokens+float64(s.Usage.Output), seconds+took
			n++
		}
	}
	if ofMean {
		return tokens / seconds, n > 0
	}
	return speeds / float64(n), n > 0
}

// queue returns the burst size at which the mean TTFT reaches 3 s, interpolated between two bursts.
// The published report calls this size the largest safe queue, rounded down.
func (m *simulation) queue(workload string) (float64, bool) {
	type point struct{ n, ttft float64 }
	var points []point
	def, _ := metric.Lookup("ttft")
	for _, l := range m.run.Levels {
		if l.Workload == workload && l.Probe == nil {
			if v, ok := metric.Of(def, l.MeasuredSamples()).Mean(); ok {
				points = append(points, point{float64(l.N), v})
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.n, b.n) })
	for i := 1; i < len(points); i++ {
		if a, b := points[i-1], points[i]; a.ttft <= 3 && b.ttft > 3 {
			return a.n + (b.n-a.n)*(3-a.ttft)/(b.ttft-a.ttft), true
		}
	}
	return 0, false
}

func (m *simulation) capacity(workload string) *metric.Capacity {
	for _, c := range m.run.Capacities {
		if c.Workload == workload {
			return c
		}
	}
	return nil
}

func (s system) published(t *testing.T) published {
	t.Helper()
	var p published
	path := filepath.Join("..", "..", "testdata", "published", s.file+".json")
	if err := json.Unmarshal([]byte(read(t, path)), &p); err != nil {
		t.Fatal(path, err)
	}
	for i := range p.Figures {
		p.Figures[i].OfMean = p.Speed == "of mean time"
	}
	must.Need(t, p.Title != "" && p.Publisher != "" && len(p.Figures) != 0, "%s has no title, publisher or figures", path)
	return p
}

// show formats v in the unit in which the figure is printed.
func (f figure) show(v float64) string {
	number, unit, _ := strings.Cut(f.Printed, " ")
	switch {
	case unit == "ms":
		return digits(1000*v) + " ms"
	case unit == "%":
		return digits(100*v) + " %"
	case unit == "" || number == "":
		return digits(v)
	}
	return digits(v) + " " + unit
}

// digits writes three significant digits of a number, or all digits before the point if there are
// more than three.
func digits(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// errorsOf maps each server to the errors of its fitted figures, in ascending order.
type errorsOf map[string][]float64

func (e errorsOf) add(server string, err float64) {
	e[server] = append(e[server], math.Abs(err))
	slices.Sort(e[server])
}

func median(sorted []float64) float64 { return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2 }

func within(errs []float64, limit float64) int {
	n, _ := slices.BinarySearch(errs, limit+1e-9)
	return n
}

// page is one system's part of docs/reference.md, with its results.
type page struct {
	text     strings.Builder
	fitted   errorsOf // relative errors
	all      []float64
	impossib int
	verdicts [3]int // number as published, different near the threshold, different elsewhere
	bad      []string
}

// page returns a system's part of the document. That part compares the published figures with two
// simulations. The simulation theirs uses the published conditions, and ours uses tokgate's.
func (s system) page(t *testing.T, p published, theirs, ours *simulation) *page {
	t.Helper()
	out := &page{fitted: errorsOf{}}
	w := &out.text
	fmt.Fprintf(w, "**Source**: %s. Publisher: %s.\n", p.Title, p.Publisher)
	if p.Speed != "" {
		fmt.Fprintf(w, "Speed is taken as the %s: our assumption, from the fit.\n", map[string]string{"of mean time": "tokens of an answer over the mean time that they streamed", "mean of speeds": "mean of the streams' speeds"}[p.Speed])
	}
	fmt.Fprintf(w, "Plan: [%s.hcl](../plans/reference/%s.hcl), figures: [%s.json](../testdata/published/%s.json).\n\n", s.file, s.file, s.file, s.file)

	if len(theirs.again) > 0 {
		fmt.Fprintf(w, "Measured is the mean of %d simulations with different seeds; the searches are those of the first.\n\n", 1+len(theirs.again))
	}
	fmt.Fprintf(w, "| where | figure | published | measured | error | tokgate's conditions | |\n|---|---|---|---|---|---|---|\n")
	for _, f := range p.Figures {
		if f.Level == "capacity" || f.Against != "" {
			continue
		}
		want, _ := f.value()
		got, ok := theirs.measure(f)
		if !ok {
			out.bad = append(out.bad, fmt.Sprintf("%s %s was not measured", f.levelName(), f.Metric))
			continue
		}
		e := got/want - 1
		var notes []string
		switch {
		case f.Impossible != "":
			out.impossib++
			notes = append(notes, "**impossible as printed**: "+f.Impossible)
		case f.fitted():
			out.fitted.add(f.Server, e)
			out.all = append(out.all, math.Abs(e))
		default:
			out.all = append(out.all, math.Abs(e))
			notes = append(notes, "not fitted")
		}
		if math.Abs(got-want) <= f.half() {
			notes = append(notes, "within its rounding")
		} else if math.Abs(e) > 0.1 && f.Impossible == "" {
			if f.Why == "" {
				out.bad = append(out.bad, fmt.Sprintf("%s %s differs by %+.1f%% and nothing says why", f.levelName(), f.Metric, 100*e))
			}
			notes = append(notes, f.Why)
		}
		if f.Derived != "" {
			notes = append(notes, "not printed, but follows "+f.Derived)
		}
		if strings.HasPrefix(f.Printed, "~") {
			notes = append(notes, "interpolated by the report")
		}
		other := "–"
		if v, ok := ours.measure(f); ok {
			other = f.show(v)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %+.1f%% | %s | %s |\n", f.levelName(), titles[f.Metric], f.Printed, f.show(got), 100*e, other, strings.Join(notes, "; "))
	}
	out.limits(p, theirs, ours)
	out.judged(p, theirs)
	return out
}

var titles = map[string]string{
	"ttft": "TTFT", "speed": "speed", "e2e": "E2E", "tpot": "TPOT", "itl": "ITL", "throughput": "throughput",
	"queue_wait": "queue wait", "prefill_speed": "prefill speed", "context_over_wait": "context / (TTFT − queue wait)",
	"scaling": "throughput scaling", "scaling_efficiency": "scaling efficiency, of speeds", "sum_of_speeds": "N × speed",
	"p99_tpot": "TPOT p99", "p99_itl": "ITL p99", "accept_length": "accept length",
}

// limits writes the published capacities next to the capacities that our searches found.
func (out *page) limits(p published, theirs, ours *simulation) {
	w := &out.text
	head := false
	for _, f := range p.Figures {
		if f.Level != "capacity" {
			continue
		}
		if !head {
			head = true
			fmt.Fprintf(w, "\n| limit | published | last passing | first failing | crossing | by | tokgate's conditions |\n|---|---|---|---|---|---|---|\n")
		}
		a, b := theirs.capacity(f.Workload), ours.capacity(f.Workload)
		if a == nil || b == nil {
			out.bad = append(out.bad, f.Workload+" was not searched")
			continue
		}
		_, key, _ := strings.Cut(strings.TrimSuffix(f.Workload, `"]`), `["`)
		crossing := "–"
		if a.Crossing > 0 {
			crossing = digits(a.Crossing)
		}
		if q, ok := theirs.queue(f.Workload); ok && a.Over == metric.Burst {
			crossing += fmt.Sprintf("; %s between powers of two", digits(q))
			if want, _ := f.value(); f.fitted() {
				e := math.Floor(q)/want - 1
				out.fitted.add(f.Server, e)
				out.all = append(out.all, math.Abs(e))
			}
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n", key, f.Printed, bound(a.Pass), bound(a.Fail), crossing, cmp.Or(a.Binding, "–"),
			fmt.Sprintf("%s to %s", bound(b.Pass), bound(b.Fail)))
	}
}

func bound(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

// judged compares our simulation's verdicts with the verdicts that a published report implies.
func (out *page) judged(p published, theirs *simulation) {
	w := &out.text
	var lines []string
	for _, f := range p.Figures {
		v := theirs.verdict(f)
		if v == nil {
			continue
		}
		want, _ := f.value()
		passed, limit := v.Outcome == verdict.Pass, theirs.limit(f)
		if got, ok := theirs.measure(f); ok && len(theirs.again) > 0 {
			passed = got < limit == (f.Metric != "speed") // judge by the mean of all seeds
		}
		near := math.Abs(want/limit-1) <= 0.1
		switch {
		case passed != f.Exceeded:
			out.verdicts[0]++
			continue
		case near:
			out.verdicts[1]++
		default:
			out.verdicts[2]++
			out.bad = append(out.bad, fmt.Sprintf("verdict of %s %s differs", f.levelName(), f.Metric))
		}
		got, _ := theirs.measure(f)
		lines = append(lines, fmt.Sprintf("%s: %s, printed %s (%s), measured %s (%s), threshold %s", f.levelName(), titles[f.Metric], f.Printed, side(f.Exceeded), f.show(got), side(!passed), f.show(limit)))
	}
	for _, f := range p.Figures {
		if f.Level == "capacity" {
			lines = append(lines, out.safe(p, f, theirs)...)
		}
	}
	if sum := out.verdicts[0] + out.verdicts[1] + out.verdicts[2]; sum > 0 {
		fmt.Fprintf(w, "\nVerdicts at the published levels: %d of %d as published.", out.verdicts[0], sum)
		if len(lines) > 0 {
			fmt.Fprintf(w, " The others lie within 10 %% of their threshold, or of the limit, in print:\n\n- %s", strings.Join(lines, "\n- "))
		}
		fmt.Fprintln(w)
	}
}

func side(past bool) string {
	if past {
		return "past it"
	}
	return "within it"
}

// safe judges a report that prints only the largest burst with an acceptable TTFT. The plan should
// pass for bursts up to that size, and fail for larger ones. safe returns a line for each verdict
// that differs.
func (out *page) safe(p published, f figure, theirs *simulation) (lines []string) {
	printed, _ := f.value()
	for _, l := range theirs.run.Levels {
		at := figure{Workload: l.Workload, Level: l.Name, Metric: "ttft", Printed: "s"}
		v := theirs.verdict(at)
		told := slices.ContainsFunc(p.Figures, func(f figure) bool {
			return f.Workload == at.Workload && f.Level == at.Level && f.Metric == at.Metric
		})
		if l.Workload != f.Workload || l.Kind != metric.Burst || l.Probe != nil || v == nil || told {
			continue
		}
		got, _ := theirs.measure(at)
		switch passed := v.Outcome == verdict.Pass; {
		case passed == (float64(l.N) <= printed):
			out.verdicts[0]++
			continue
		case math.Abs(float64(l.N)/printed-1) <= 0.1:
			out.verdicts[1]++
			lines = append(lines, fmt.Sprintf("%s: TTFT, by the printed limit of %s %s, measured %s s (%s), threshold %s s", at.levelName(), f.Printed, side(passed), digits(got), side(!passed), digits(theirs.limit(at))))
		default:
			out.verdicts[2]++
			out.bad = append(out.bad, "verdict of "+at.levelName()+" differs")
		}
	}
	return lines
}

// verdict returns the verdict on the threshold that the published report sets on a figure. It
// returns nil if there is no such threshold.
func (m *simulation) verdict(f figure) *verdict.Verdict {
	for i, v := range m.verdicts.List {
		if v.Workload == f.Workload && v.Name == "sla."+f.bounded()+".mean at "+f.Level && f.Against == "" {
			return &m.verdicts.List[i]
		}
	}
	return nil
}

// bounded returns the metric of the threshold that the published report sets on a figure.
func (f figure) bounded() string {
	if f.Metric == "speed" {
		return "request_speed"
	}
	return f.Metric
}

// limit returns the limit of the plan's threshold on the metric of a figure.
func (m *simulation) limit(f figure) float64 {
	for _, w := range m.plan.Workloads {
		if w.Address() != f.Workload {
			continue
		}
		for _, s := range w.SLAs {
			for _, t := range s.Thresholds {
				if t.Metric.Name == f.bounded() {
					return t.Limit
				}
			}
		}
	}
	return math.NaN()
}

// turns is the plan of the A/B article, but its two servers take turns.
var turns = system{name: "spark in turns", file: systems[4].file + "-ab"}

// change returns the simulated change for a published figure that is a change; nil if no comparison
// has it.
func (m *simulation) change(f figure) *compare.Change {
	stat := metric.Stat{Kind: metric.Mean}
	name, ok := strings.CutPrefix(f.Metric, "p99_")
	if ok {
		stat = metric.Stat{Kind: metric.Percentile, P: 99}
	} else if name == "throughput" {
		stat = metric.Stat{}
	}
	for _, c := range m.verdicts.Comparisons {
		if !strings.HasSuffix(c.Candidate, `["`+f.Server+`"]`) || !strings.HasSuffix(c.Control, `["`+f.Against+`"]`) {
			continue
		}
		for i, ch := range c.Changes {
			if ch.Workload == f.Workload && ch.Metric.Name == name && ch.Stat == stat {
				return &c.Changes[i]
			}
		}
	}
	return nil
}

// answer returns the decision of a comparison for a workload, such as "yes" or "no". The name of
// the comparison is compare. Without a decision the result is "".
func (m *simulation) answer(compare, workload string) string {
	for _, c := range m.verdicts.Comparisons {
		for _, d := range c.Decisions {
			if c.Name == compare && d.Workload == workload {
				return d.Answer
			}
		}
	}
	return ""
}

// bounded writes a change with the two bounds of its interval.
func bounded(c *compare.Change) string {
	return fmt.Sprintf("%s (%s to %s)", compare.FormatChange("", c.Change.V, false), compare.FormatChange("", c.Low.V, false), compare.FormatChange("", c.High.V, false))
}

// deltas writes tables of the changes that the A/B article reports, next to the same changes in our
// comparisons. The first table splits each change into two steps: first the requests no longer run
// in step, then speculation is switched on.
func deltas(t *testing.T, p published, fixed, jittered, ours *simulation) string {
	var w strings.Builder
	rows := func(against string, row func(test string, f figure, a, b, c *compare.Change)) {
		for _, f := range p.Figures {
			if f.Against != against {
				continue
			}
			a, b, c := fixed.change(f), jittered.change(f), ours.change(f)
			if a == nil || b == nil || c == nil {
				t.Errorf("%s of %s against %s was not compared", f.Metric, f.Workload, f.Against)
				continue
			}
			_, key, _ := strings.Cut(strings.TrimSuffix(f.Workload, `"]`), `["`)
			row(key, f, a, b, c)
		}
	}
	fmt.Fprintf(&w, "| test | figure | published | fixed lengths | of it leaving lock-step | of it speculation | jittered lengths | tokgate's conditions |\n|---|---|---|---|---|---|---|---|\n")
	rows("vanilla", func(test string, f figure, a, b, c *compare.Change) {
		lockStep := b.Control.V/a.Control.V - 1
		fmt.Fprintf(&w, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", test, titles[f.Metric], f.Printed, bounded(a),
			compare.FormatChange("", lockStep, false), compare.FormatChange("", (1+a.Change.V)/(1+lockStep)-1, false), bounded(b), bounded(c))
	})
	fmt.Fprintf(&w, "\nIs MTP better? By end-to-end time and throughput, where these tell a difference:\n\n| test | published | fixed lengths | jittered lengths | tokgate's conditions |\n|---|---|---|---|---|\n")
	for _, a := range p.Answers {
		_, key, _ := strings.Cut(strings.TrimSuffix(a.Workload, `"]`), `["`)
		fmt.Fprintf(&w, "| %s | %s | %s | %s | %s |\n", key, a.Printed, fixed.answer("mtp", a.Workload), jittered.answer("mtp", a.Workload), ours.answer("mtp", a.Workload))
	}
	fmt.Fprintf(&w, "\nThe control, Qwen3.5 on the same stack against Qwen3.6 without MTP:\n\n| test | figure | published | fixed lengths | tokgate's conditions |\n|---|---|---|---|---|\n")
	rows("control", func(test string, f figure, a, _, c *compare.Change) {
		fmt.Fprintf(&w, "| %s | %s | %s | %s | %s |\n", test, titles[f.Metric], f.Printed, bounded(a), bounded(c))
	})
	return w.String()
}

// peaks writes a table of the published peak throughputs. Each row also has our simulation's
// throughput, both by the formula of the published report and by the wall clock.
func peaks(t *testing.T, m map[string]*simulation) string {
	var w strings.Builder
	fmt.Fprintf(&w, "| system | published | formula | measured by it | by the wall clock | most of any level |\n|---|---|---|---|---|---|\n")
	for _, x := range []struct{ system, workload, level, metric, formula string }{
		{"rtx", `context["1K"]`, "5", "throughput", "output tokens / time of the test"},
		{"sglang", `context["1K"]`, "10", "throughput", "output tokens / time of the test"},
		{"h200", `context["1K"]`, "6", "throughput", "output tokens / time of the test"},
		{"h100", `burst["chatbot"]`, "burst 256", "sum_of_speeds", "256 × mean speed of a stream"},
	} {
		i := slices.IndexFunc(systems, func(s system) bool { return s.name == x.system })
		p := systems[i].published(t)
		i = slices.IndexFunc(p.Figures, func(f figure) bool {
			return f.Workload == x.workload && f.Level == x.level && f.Metric == x.metric
		})
		f := p.Figures[i]
		by, _ := m[x.system].measure(f)
		f.Metric = "throughput"
		clock, _ := m[x.system].measure(f)
		most, at := 0.0, ""
		for _, l := range m[x.system].run.Levels {
			if v := l.Value("throughput", metric.All, nil, nil); l.Probe == nil && v.OK && v.V > most {
				most, at = v.V, figure{Workload: l.Workload, Level: l.Name}.levelName()
			}
		}
		fmt.Fprintf(&w, "| %s | %s | %s | %s | %s | %s (%s) |\n", x.system, f.Printed, x.formula, f.show(by), f.show(clock), f.show(most), at)
	}
	return w.String()
}

// measured runs the tokgate binary on the system's plan, and returns the result. It adds the cost
// of this run to a table.
func (s system) measured(t *testing.T, binary string, costs *strings.Builder, vars ...string) *simulation {
	t.Helper()
	dir := t.TempDir()
	var out bytes.Buffer
	c := osexec.Command(binary, s.command(dir, vars)...)
	c.Stdout, c.Stderr = &out, &out
	begin := time.Now()
	must.Do(t, c.Start())
	memory := watchMemory(c.Process.Pid)
	err := c.Wait()
	wall, most := time.Since(begin), memory()
	if code := c.ProcessState.ExitCode(); err != nil && code != verdict.ExitFail && code != verdict.ExitInconclusive {
		t.Fatalf("%s: %v\n%s", s.file, err, out.String())
	}
	m := s.judged(t, dir, vars)
	must.Hold(t, most < 1<<20, "%s took %d MiB", s.file, most>>10)
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	must.Hold(t, cpu < time.Minute, "%s took %v of CPU time", s.file, cpu)
	fmt.Fprintf(costs, "| %s | %s | %.1f s | %.1f s | %d MiB | %s |\n", s.name, strings.Join(vars, ", "), wall.Seconds(),
		(c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds(), most>>10, m.run.End.Round(time.Minute))
	return m
}

// watchMemory begins to read the peak memory of a process, ten times a second. The returned
// function most ends this, and returns the peak in KiB, or 0 if it is not known.
func watchMemory(pid int) (most func() int64) {
	ended, result := make(chan bool), make(chan int64)
	go func() {
		peak := int64(0)
		for {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, rest, _ := strings.Cut(string(status), "VmHWM:")
			line, _, _ := strings.Cut(rest, " kB")
			if n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err == nil {
				peak = n
			}
			select {
			case <-ended:
				result <- peak
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() int64 { ended <- true; return <-result }
}

// summary returns a table with one row for each system.
func summary(pages map[string]*page) string {
	var w strings.Builder
	fmt.Fprintf(&w, "| system | fitted figures | median error | 90 %% within | within 20 %% | all figures within 20 %% | verdicts as published |\n|---|---|---|---|---|---|---|\n")
	for _, s := range systems {
		p := pages[s.name]
		servers := slices.Sorted(func(yield func(string) bool) {
			for k := range p.fitted {
				if !yield(k) {
					return
				}
			}
		})
		for i, server := range servers {
			errs := p.fitted[server]
			all, verdicts := "", ""
			if i == 0 {
				all = fmt.Sprintf("%d of %d", within(slices.Sorted(slices.Values(p.all)), 0.2), len(p.all))
				if sum := p.verdicts[0] + p.verdicts[1] + p.verdicts[2]; sum > 0 {
					verdicts = fmt.Sprintf("%d of %d", p.verdicts[0], sum)
				}
			}
			fmt.Fprintf(&w, "| %s | %d | %.1f%% | %.1f%% | %d | %s | %s |\n", strings.TrimSpace(s.name+" "+server), len(errs),
				100*median(errs), 100*errs[len(errs)*9/10], within(errs, 0.2), all, verdicts)
		}
	}
	return w.String()
}

// check reports each promise of the documentation about the system that the page does not keep.
func (s system) check(t *testing.T, p *page) {
	for _, b := range p.bad {
		t.Errorf("%s: %s", s.name, b)
	}
	fitted, close := 0, 0
	for server, errs := range p.fitted {
		if want := cmp.Or(s.promised[server], s.promised[""]); median(errs) > want+0.0005 {
			t.Errorf("%s %s: the median error is %.1f%%, more than %.1f%%", s.name, server, 100*median(errs), 100*want)
		}
		fitted, close = fitted+len(errs), close+within(errs, 0.2)
	}
	must.Hold(t, 10*close >= 9*fitted, "%s: %d of %d fitted figures lie within 20%%", s.name, close, fitted)
	all := slices.Sorted(slices.Values(p.all))
	n := within(all, 0.2)
	must.Hold(t, 100*n >= 85*len(all), "%s: %d of %d figures lie within 20%%", s.name, n, len(all))
}

const referenceDoc = "reference.md"

// generatedPart returns the generated part of docs/reference.md with the given name, and the text
// before and after it.
func generatedPart(doc, name string) (head, part, tail string, ok bool) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	head, rest, ok1 := strings.Cut(doc, begin)
	part, tail, ok2 := strings.Cut(rest, end)
	return head + begin, part, end + tail, ok1 && ok2
}

// The plans of the published systems are valid and can be simulated. One plan takes only a second,
// so it runs whole and must give the results in docs/reference.md. Of each other plan, one workload
// runs.
func TestLongReference(t *testing.T) {
	doc := read(t, filepath.Join("..", "..", "docs", referenceDoc))
	for _, s := range systems {
		t.Run(s.name, func(t *testing.T) {
			for _, conditions := range []string{"published", "tokgate"} {
				tokgate(t, "validate", s.plan(), "--var", "conditions="+conditions).check(t, verdict.ExitPass, "is valid")
			}
			p := s.published(t)
			_, want, _, ok := generatedPart(doc, s.name)
			must.Need(t, ok && want != "", "docs/%s has no part %q", referenceDoc, s.name)
			if s.quick != "" {
				r := tokgate(t, "run", "--simulate", "--quiet", "--out", t.TempDir(), "--only", s.quick, s.plan())
				if r.code != verdict.ExitPass && r.code != verdict.ExitFail || !strings.Contains(r.out, "SIMULATED") {
					t.Errorf("%s: exit %d\n%s%s", s.quick, r.code, r.out, r.err)
				}
				return
			}
			theirs := s.simulate(t)
			s.repeat(t, theirs)
			got := s.page(t, p, theirs, s.simulate(t, "conditions=tokgate"))
			s.check(t, got)
			if runtime.GOARCH != "amd64" {
				t.Skip("elsewhere floating-point numbers may round otherwise in the last digit")
			}
			must.Same(t, fmt.Sprintf("docs/%s is not current; `make reference` rewrites it (-doc +got)", referenceDoc), want, got.text.String())
		})
	}
}

// With servers that take turns, our decisions are the same as in the A/B article.
func TestLongReferenceTurns(t *testing.T) {
	m := turns.simulate(t)
	answers := systems[4].published(t).Answers
	must.Need(t, len(answers) == 4, "%d answers", len(answers))
	for _, a := range answers {
		got := m.answer("mtp", a.Workload)
		must.Hold(t, got == strings.TrimPrefix(a.Printed, "strong "), "%s: %q, published %q", a.Workload, got, a.Printed)
	}
	must.Hold(t, m.verdicts.Outcome == verdict.Pass, "the plan comes to %s", m.verdicts.Outcome)
	for _, f := range systems[4].published(t).Figures {
		must.Hold(t, f.Against == "" || m.change(f) != nil, "%s of %s against %s is not compared", f.Metric, f.Workload, f.Against)
	}
}

// TestLongReferenceDocument writes docs/reference.md. `make reference` calls it.
func TestLongReferenceDocument(t *testing.T) {
	if *reference == "" {
		t.Skip("it is written when -reference names the binary to measure")
	}
	var costs strings.Builder
	costs.WriteString("| plan | variables | wall | CPU | peak memory | virtual time |\n|---|---|---|---|---|---|\n")
	parts, pages, sims := map[string]string{}, map[string]*page{}, map[string]*simulation{}
	for _, s := range systems {
		p := s.published(t)
		theirs := s.measured(t, *reference, &costs, "conditions=published")
		ours := s.measured(t, *reference, &costs, "conditions=tokgate")
		s.repeat(t, theirs)
		pages[s.name], sims[s.name] = s.page(t, p, theirs, ours), theirs
		parts[s.name] = pages[s.name].text.String()
		s.check(t, pages[s.name])
		if s.name == "spark" {
			parts["lockstep"] = deltas(t, p, turns.measured(t, *reference, &costs, "conditions=published"),
				turns.simulate(t, "lengths=jittered"), turns.measured(t, *reference, &costs, "conditions=tokgate"))
		}
	}
	parts["summary"], parts["peaks"], parts["costs"] = summary(pages), peaks(t, sims), costs.String()
	path := filepath.Join("..", "..", "docs", referenceDoc)
	doc := read(t, path)
	for name, part := range parts {
		head, _, tail, ok := generatedPart(doc, name)
		must.Need(t, ok, "%s has no part %q", path, name)
		doc = head + part + tail
	}
	must.Do(t, os.WriteFile(path, []byte(doc), 0o644))
}
