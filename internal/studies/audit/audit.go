package audit

import (
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Report is the result of an audit.
type Report struct {
	Compared    int // number of figures in the results that the audit compared with its own
	Differences []Difference
	Notes       []string // figures that the audit could not compute, each with the reason
}

// Difference is a figure of the results that differs from the recording.
type Difference struct {
	Where string  // level or file with the difference, such as "chat at 8 on vllm" or "junit.xml"
	What  string  // figure that differs, such as "ttft p95"
	Says  string  // value in the results
	Is    string  // value by the recording
	Size  float64 // difference as a share of the recording's value; NaN without numbers
}

func (d Difference) String() string {
	size := ""
	if !math.IsNaN(d.Size) {
		size = fmt.Sprintf(" (%+.3g%%)", 100*d.Size)
	}
	return fmt.Sprintf("%s: %s is %s, and the recording gives %s%s", d.Where, d.What, d.Says, d.Is, size)
}

// results holds the parts of results.json that are read.
type results struct {
	Recording string `json:"recording"`
	Outcome   string `json:"outcome"`
	Why       string `json:"why"` // reason of the run's outcome if no verdict explains it
	ExitCode  int    `json:"exit_code"`
	Run       struct {
		Levels []levelOf `json:"levels"`
	} `json:"run"`
	Cases []struct {
		levelOf `json:"-"` // the level at the same place of the run
		Window  string     `json:"window"`
		WindowS float64    `json:"window_s"`
		Counts  counts     `json:"-"`
		Metrics []figure   `json:"metrics"`
	} `json:"cases"`
	Verdicts []struct {
		Kind      string `json:"kind"`
		Server    string `json:"server"`
		Workload  string `json:"workload"`
		Level     string `json:"level"`
		Name      string `json:"name"`
		Outcome   string `json:"outcome"`
		Severity  string `json:"severity"`
		Warn      bool   `json:"warn"`
		Cause     string `json:"cause"`
		Sure      bool   `json:"sure"`
		Value     number `json:"value"`
		Threshold *struct {
			Metric struct {
				Name string `json:"name"`
			} `json:"metric"`
			Stat  string `json:"stat"`
			Op    string `json:"op"`
			Limit number `json:"limit"`
		} `json:"threshold"`
	} `json:"verdicts"`
}

// levelOf is what the results say of a level itself.
type levelOf struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`
	Level    string `json:"name"`
	Skipped  string `json:"skipped"`
	Rounds   []struct {
		Due float64 `json:"due"`
	} `json:"rounds"`
}

// counts holds the counts of a case by name, such as that of its failed requests.
type counts map[string]float64

// figure is one metric of a case.
type figure struct {
	Metric      string            `json:"metric"`
	N           float64           `json:"n"`
	Worst       float64           `json:"worst"`
	LeftOut     float64           `json:"left_out"`
	Value       number            `json:"value"`
	Mean        number            `json:"mean"`
	Min         number            `json:"min"`
	Max         number            `json:"max"`
	Percentiles map[string]number `json:"percentiles"`
}

// number is a numeric value in results.json: null, a reason, a number, "+Inf" or "-Inf".
type number struct {
	v  float64
	ok bool
}

// UnmarshalJSON reads a number.
func (n *number) UnmarshalJSON(b []byte) error {
	if b[0] == '{' { // the reason why there is none
		b = []byte("null")
	}
	switch string(b) {
	case "null":
		*n = number{}
		return nil
	case `"+Inf"`, `"-Inf"`:
		*n = number{math.Inf(map[byte]int{'+': 1, '-': -1}[b[1]]), true}
		return nil
	}
	n.ok = true
	return json.Unmarshal(b, &n.v)
}

// maxReport bounds results.json and junit.xml, in bytes.
const maxReport = 512 << 20

// Run audits the recording (samples.jsonl), the results (results.json) and the JUnit file
// (junit.xml; nil if there is none) of a run. It returns an error if it cannot read one of them.
func Run(recording, resultsJSON, junit io.Reader) (*Report, error) {
	rec, err := readRecording(recording)
	if err != nil {
		return nil, fmt.Errorf("samples.jsonl: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(resultsJSON, maxReport))
	if err != nil {
		return nil, fmt.Errorf("results.json: %w", err)
	}
	var res results
	var numbers struct {
		Cases []map[string]any `json:"cases"`
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		return nil, fmt.Errorf("results.json: %w", err)
	}
	if err := json.Unmarshal(raw, &numbers); err != nil {
		return nil, fmt.Errorf("results.json: %w", err)
	}
	a := &auditor{rec: rec, res: &res}
	if len(res.Run.Levels) != len(res.Cases) {
		return nil, fmt.Errorf("results.json: %d levels, but %d cases", len(res.Run.Levels), len(res.Cases))
	}
	for i := range res.Cases {
		res.Cases[i].levelOf, res.Cases[i].Counts = res.Run.Levels[i], counts{}
		for _, r := range res.Cases[i].Rounds {
			res.Cases[i].Counts["due"] += r.Due
		}
		for _, name := range countNames {
			if v, ok := numbers.Cases[i][name].(float64); ok {
				res.Cases[i].Counts[name] = v
			}
		}
	}
	a.identity()
	a.cases()
	a.outcome()
	if junit == nil {
		a.note("there is no junit.xml")
	} else if err := a.junit(junit); err != nil {
		return nil, fmt.Errorf("junit.xml: %w", err)
	}
	return &a.Report, nil
}

var countNames = []string{"due", "completed", "failed", "canceled", "reconnects", "input_tokens", "output_tokens"}

type auditor struct {
	Report
	rec     *recording
	res     *results
	derived map[key]figures
}

func (a *auditor) note(format string, args ...any) {
	a.Notes = append(a.Notes, fmt.Sprintf(format, args...))
}

func (a *auditor) words(where, what, says, is string) {
	a.Compared++
	if says != is {
		a.Differences = append(a.Differences, Difference{where, what, says, is, math.NaN()})
	}
}

// near is the largest relative difference between two figures that count as equal. Sums in a
// different order differ slightly by rounding.
const near = 1e-9

func (a *auditor) number(where, what string, says number, is float64, known bool) {
	switch {
	case !says.ok && !known:
		return
	case says.ok && !known:
		a.Compared++
		a.Differences = append(a.Differences, Difference{where, what, text(says.v), "no value", math.NaN()})
		return
	case !says.ok:
		return // the results explain why there is no value
	}
	a.Compared++
	if says.v == is || math.Abs(says.v-is) <= near*math.Max(math.Abs(is), 1e-3) {
		return
	}
	size := (says.v - is) / math.Abs(is)
	if math.IsInf(size, 0) {
		size = math.NaN()
	}
	a.Differences = append(a.Differences, Difference{where, what, text(says.v), text(is), size})
}

func text(v float64) string { return fmt.Sprintf("%.6g", v) }

// identity compares the hash of the recording with the hash in the results.
func (a *auditor) identity() {
	if a.rec.plain {
		a.note("the recording is from an older version and has no checksums, so lines may be missing")
		return
	}
	a.words("results.json", "recording", a.res.Recording, hex.EncodeToString(a.rec.sum[:]))
	if !a.rec.ended {
		a.note("the recording has no end: its run was killed")
	}
}

// cases compares every figure of every case with the recording.
func (a *auditor) cases() {
	a.derived = map[key]figures{}
	seen := map[key]bool{}
	other := map[string]bool{}
	for i := range a.res.Cases {
		c := &a.res.Cases[i]
		k := key{c.Server, c.Workload, c.Level}
		l := a.rec.levels[k]
		seen[k] = true
		if l == nil && c.Skipped == "" {
			a.words(k.String(), "case", "measured", "nothing")
		}
		if l == nil || c.Skipped != "" {
			continue
		}
		f := l.derive(c.Window == "all")
		a.derived[k] = f
		for _, r := range l.inOrder() {
			from, to, known := l.window(r)
			a.number(k.String(), fmt.Sprintf("window of round %d", r.Index+1), number{seconds(r.WindowStart, r.WindowEnd), known}, seconds(from, to), known)
		}
		for _, name := range countNames {
			a.number(k.String(), name, number{c.Counts[name], true}, f[name], true)
		}
		a.number(k.String(), "window_s", number{c.WindowS, true}, f["window_s"], true)
		for _, m := range c.Metrics {
			if !a.metric(k, f, m) && (m.Value.ok || m.Mean.ok) {
				other[m.Metric] = true
			}
		}
	}
	for _, k := range a.rec.order {
		if l := a.rec.levels[k]; !seen[k] && l.Skipped == "" && len(l.rounds) > 0 {
			a.words(k.String(), "case", "nothing", "measured")
		}
	}
	a.scaling()
	if len(other) > 0 {
		a.note("not derived: %s, which are the server's own or follow from the plan", strings.Join(sorted(other), ", "))
	}
}

// metric compares the statistics of one metric with the audit's own figures. It returns false if
// the audit cannot compute the metric from the requests.
func (a *auditor) metric(k key, f figures, m figure) bool {
	if n, ok := f[m.Metric+" n"]; ok {
		a.number(k.String(), m.Metric+" n", number{m.N, true}, n, true)
		a.number(k.String(), m.Metric+" worst", number{m.Worst, true}, f[m.Metric+" worst"], true)
		a.number(k.String(), m.Metric+" left_out", number{m.LeftOut, true}, f[m.Metric+" left_out"], true)
		stats := map[string]number{"mean": m.Mean, "min": m.Min, "max": m.Max}
		for p, n := range m.Percentiles {
			stats[p] = n
		}
		for _, stat := range sorted(stats) {
			is, known := f[m.Metric+" "+stat]
			a.number(k.String(), m.Metric+" "+stat, stats[stat], is, known)
		}
		return true
	}
	switch m.Metric {
	case "success", "throughput", "input_throughput", "request_rate":
		is, known := f[m.Metric]
		a.number(k.String(), m.Metric, m.Value, is, known)
		return true
	case "cache_hit_rate": // without cached tokens in the usage, the server's metrics give it
		if is, known := f[m.Metric]; known {
			a.number(k.String(), m.Metric, m.Value, is, true)
			return true
		}
		return false
	case "scaling_efficiency":
		return true // the method scaling checks it
	}
	return false
}

// scaling checks the scaling efficiency of every case. It needs the throughput of the case and the
// throughput at one request in flight.
func (a *auditor) scaling() {
	for i := range a.res.Cases {
		c := &a.res.Cases[i]
		k := key{c.Server, c.Workload, c.Level}
		l, one := a.rec.levels[k], a.derived[key{c.Server, c.Workload, "1"}]
		for _, m := range c.Metrics {
			if m.Metric == "scaling_efficiency" && m.Value.ok && l != nil && one["throughput"] > 0 {
				a.number(k.String(), m.Metric, m.Value, a.derived[k]["throughput"]/(float64(l.N)*one["throughput"]), true)
			}
		}
	}
}

// worst returns the outcome of the run that its verdicts give. A sure failure outranks errors if all
// of these are the generator's.
func (a *auditor) worst() string {
	rank := map[string]int{"pass": 0, "skipped": 0, "inconclusive": 1, "fail": 2, "error": 3, "pending": 3}
	worst, sure, disturbed := "pass", false, true
	for _, v := range a.res.Verdicts {
		outcome := v.Outcome
		if v.Severity != "error" || v.Warn && outcome == "inconclusive" {
			outcome = "pass"
		}
		if _, known := rank[outcome]; !known {
			a.words("results.json", v.Name, outcome, "no such outcome")
		}
		if rank[outcome] > rank[worst] {
			worst = outcome
		}
		sure, disturbed = sure || outcome == "fail" && v.Sure, disturbed && (rank[outcome] < 3 || v.Cause == "generator")
	}
	if worst == "error" && sure && disturbed {
		return "fail"
	}
	return worst
}

// outcome checks each verdict against its value, and the outcome of the run against its verdicts.
func (a *auditor) outcome() {
	for _, v := range a.res.Verdicts {
		k := key{v.Server, v.Workload, v.Level}
		f, t := a.derived[k], v.Threshold
		if t == nil || v.Kind != "sla" || f == nil {
			continue
		}
		is, known := f.value(t.Metric.Name, t.Stat)
		if known {
			a.number(k.String(), v.Name, v.Value, is, true)
		}
		if known && v.Outcome == "pass" && t.Op != "" && t.Limit.ok && !holds(is, t.Op, t.Limit.v) {
			a.words(k.String(), v.Name, "pass", fmt.Sprintf("%s, which is not %s %s", text(is), t.Op, text(t.Limit.v)))
		}
	}
	if worst := a.worst(); a.res.Why == "" {
		a.words("results.json", "outcome", a.res.Outcome, worst)
	}
	// An interrupted run has exit code 130, with any outcome.
	if code := map[string]int{"pass": 0, "inconclusive": 3, "fail": 1, "error": 4}[a.res.Outcome]; a.res.ExitCode != 130 {
		a.words("results.json", "exit_code", fmt.Sprint(a.res.ExitCode), fmt.Sprint(code))
	}
}

// value returns the value of a figure, named by the metric and statistic of a threshold. known is
// false if the audit could not compute the figure.
func (f figures) value(metric, stat string) (v float64, known bool) {
	name := strings.TrimSpace(metric + " " + stat)
	switch {
	case metric == "success":
		name = metric
	case stat == "every" && f[metric+" n"] > 0:
		name = metric + " max"
		if strings.HasSuffix(metric, "speed") {
			name = metric + " min"
		}
	}
	v, known = f[name]
	return v, known
}

func holds(v float64, op string, limit float64) bool {
	switch op {
	case "<":
		return v < limit
	case "<=":
		return v <= limit
	case ">":
		return v > limit
	case ">=":
		return v >= limit
	}
	return false
}

// junit compares the JUnit file with the results: the identity of the run, its
// outcome, and the sums of its test cases.
func (a *auditor) junit(r io.Reader) error {
	type testcase struct {
		Failure *struct{} `xml:"failure"`
		Error   *struct{} `xml:"error"`
		Skipped *struct{} `xml:"skipped"`
	}
	var doc struct {
		XMLName  xml.Name `xml:"testsuites"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Suites   []struct {
			Properties []struct {
				Name  string `xml:"name,attr"`
				Value string `xml:"value,attr"`
			} `xml:"properties>property"`
			Cases []testcase `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.NewDecoder(io.LimitReader(r, maxReport)).Decode(&doc); err != nil {
		return err
	}
	if len(doc.Suites) == 0 {
		return errors.New("it has no testsuite")
	}
	var tests, failures, failed int
	for _, s := range doc.Suites {
		for _, p := range s.Properties {
			switch p.Name {
			case "recording.sha256":
				a.words("junit.xml", p.Name, p.Value, a.res.Recording)
			case "tokgate.outcome":
				a.words("junit.xml", p.Name, p.Value, a.res.Outcome)
			}
		}
		for _, c := range s.Cases {
			tests++
			if c.Failure != nil {
				failures++
			}
			if c.Error != nil {
				failed++
			}
		}
	}
	a.words("junit.xml", "tests", fmt.Sprint(doc.Tests), fmt.Sprint(tests))
	a.words("junit.xml", "failures", fmt.Sprint(doc.Failures), fmt.Sprint(failures))
	a.words("junit.xml", "errors", fmt.Sprint(doc.Errors), fmt.Sprint(failed))
	if bad := failures+failed > 0; bad != (a.res.Outcome == "fail" || a.res.Outcome == "error" || a.res.Outcome == "inconclusive") {
		a.words("junit.xml", "failures and errors", fmt.Sprint(failures+failed), "those of an outcome "+a.res.Outcome)
	}
	return nil
}
