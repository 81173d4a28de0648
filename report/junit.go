package report

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/tokgate/tokgate/report/text"
)

// These types add fields to the types of go-junit-report, such as the file and line of a failure.
// Without a file, some consumers take the last word of the class name for a file name.

type testsuites struct {
	junit.Testsuites
	Suites []testsuite `xml:"testsuite"`
}

type testsuite struct {
	junit.Testsuite
	Testcases []testcase    `xml:"testcase"`
	SystemOut *junit.Output `xml:"system-out,omitempty"` // last, as schemas require
}

type testcase struct {
	junit.Testcase
	File string `xml:"file,attr,omitempty"`
	Line int    `xml:"line,attr,omitempty"`
}

const (
	// passBytes is the number of bytes of a passed case's output that Jenkins keeps by default
	// (jenkinsci/junit-plugin, CaseResult.java, HALF_MAX_SIZE).
	passBytes = 1000
	// bodyBytes is the largest length of a body. GitHub takes at most 65,535 characters of text for
	// a check run (docs.github.com, REST API, check runs).
	bodyBytes = 60_000
	// lineBytes is the largest size of a message that is still readable as one line.
	lineBytes = 2_000
	// nameBytes is the largest size of a name, such as that of a check.
	nameBytes = 300
)

// JUnit writes the document as JUnit XML in flat suites: one for the servers, one for each server
// and workload, one for comparisons and one for asserts. Each verdict is a testcase, and each case
// has a testcase "load".
//
//	pass                     one line of system-out
//	severity warn, no pass   the same, "warning: …"
//	fail                     <failure type="sla"> (else "assert", "capacity" or "compare", by the kind of the verdict)
//	inconclusive             <failure type="inconclusive">, or <skipped> where the policy is to warn
//	error, pending           <error type="server"|"generator"|"invalid">
//	skipped                  <skipped>
//
// Consumers identify a testcase by classname and name. Both contain no measured value and together
// are unique in the file. If the run did not succeed but no other testcase shows it, there is a
// testcase "run".
func JUnit(w io.Writer, d *Document) error {
	j := junitWriter{doc: d, seen: map[string]int{}, cases: map[[3]string]*Case{}}
	for i := range d.Cases {
		c := &d.Cases[i]
		j.cases[[3]string{c.Server, c.Workload, c.Level}] = c
	}
	out := j.suites()
	bw := bufio.NewWriter(w)
	if _, err := bw.WriteString(xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(bw)
	enc.Indent("", "  ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	if err := bw.WriteByte('\n'); err != nil {
		return err
	}
	return bw.Flush()
}

type junitWriter struct {
	doc   *Document
	cases map[[3]string]*Case // cases by server, workload and level
	seen  map[string]int      // number of test cases by classname and name
	out   testsuites
}

func (j *junitWriter) suites() *testsuites {
	d := j.doc
	j.out.Name = attr(cmp.Or(d.Plan.Path, d.Plan.Name))

	var servers, comparisons, asserts []Verdict
	cases := map[string][]Verdict{}
	for _, v := range d.Verdicts {
		switch {
		case v.Kind == "server":
			servers = append(servers, v)
		case v.Kind == "compare" && v.Workload == "":
			comparisons = append(comparisons, v)
		case v.Workload == "":
			asserts = append(asserts, v)
		default:
			key := v.Server + "\x00" + v.Workload
			cases[key] = append(cases[key], v)
		}
	}
	j.suite("servers", "", servers, nil)
	for _, g := range Groups(j.doc) {
		j.suite(g.Server+"/"+g.Workload, g.Server, cases[g.Server+"\x00"+g.Workload], g.Cases, g.Capacities...)
	}
	j.suite("comparisons", "", comparisons, nil)
	j.suite("asserts", "", asserts, nil)
	j.run()
	// The total time is the duration of the run and not the sum of its testcases.
	j.out.Time = seconds(d.Duration)
	return &j.out
}

// unjudged returns verdicts for cases and capacities that have none. A case is an error, because
// its load was never judged. A capacity is an error only if the plan requires one.
func (j *junitWriter) unjudged(verdicts []Verdict, cases []*Case, capacities []*Capacity) []Verdict {
	var list []Verdict
	judged, measured := map[string]bool{}, false
	for _, v := range verdicts {
		measured = measured || v.Kind == "capacity"
		if v.Kind == "load" {
			judged[v.Level] = true
		}
	}
	for _, c := range capacities {
		if measured {
			break
		}
		v := Verdict{Kind: "capacity", Server: c.Server, Workload: c.Workload, Name: "capacity", Outcome: Pass, Message: c.Answer(), File: j.doc.Plan.Path}
		if c.Require > 0 {
			v.Outcome, v.Cause, v.Message = Pending, CauseInvalid, "the capacity was not judged"
		} else if c.Kind == "unknown" {
			v.Outcome, v.Message = Skipped, "" // the capacity's own line has the result
		}
		list = append(list, v)
	}
	for _, c := range cases {
		if !judged[c.Level] {
			v := Verdict{Kind: "load", Server: c.Server, Workload: c.Workload, Level: c.Level, Name: "load at " + c.Level,
				Outcome: Pending, Cause: CauseInvalid, Message: "the case was not judged", File: j.doc.Plan.Path}
			if c.Skipped != "" {
				v.Outcome, v.Message = Skipped, c.Skipped
			}
			list = append(list, v)
		}
	}
	return list
}

// suite adds a test suite, unless it has no test cases.
func (j *junitWriter) suite(name, server string, verdicts []Verdict, cases []*Case, capacities ...*Capacity) {
	verdicts = append(verdicts, j.unjudged(verdicts, cases, capacities)...)
	if len(verdicts) == 0 {
		return
	}
	s := testsuite{}
	s.ID = len(j.out.Suites)
	s.Name = attr(name)
	if j.doc.Simulated {
		s.Name += " (simulated)" // the name differs so that a CI system does not mix simulated and real runs in one history
		s.SystemOut = &junit.Output{Data: "SIMULATED: " + SimulatedNote}
	}
	s.Hostname = attr(j.doc.Host)
	s.File = attr(j.doc.Plan.Path)
	s.Timestamp = j.doc.Date("2006-01-02T15:04:05")
	for _, p := range append(j.properties(server, cases), capacityProperties(capacities)...) {
		s.AddProperty(attr(p.Key), attr(p.Value))
	}
	total := 0.0
	for i := range verdicts {
		v := &verdicts[i]
		took := 0.0
		if c := j.caseOf(v); c != nil && v.Kind == "load" {
			took = c.Duration
		}
		if c := j.doc.capacityOf(v); c != nil {
			took = c.Spent
		}
		total += took
		tc := j.testcase(v, took)
		s.AddTestcase(tc.Testcase) // counts the test case; the next line appends it
		s.Testcases = append(s.Testcases, tc)
	}
	s.Time = seconds(total)
	j.out.AddSuite(s.Testsuite)
	j.out.Suites = append(j.out.Suites, s)
}

func (j *junitWriter) properties(server string, cases []*Case) []Property {
	d := j.doc
	list := []Property{
		{"tokgate.version", d.Tool}, {"tokgate.run", d.Run}, {"tokgate.outcome", string(d.Outcome)},
		{"plan.sha256", d.Plan.Hash}, {"prompt.salt", d.Salt},
	}
	if d.Recording != "" {
		list = append(list, Property{"recording.sha256", d.Recording})
	}
	if d.Simulated {
		list = append(list, Property{"simulated", "true"})
	}
	if d.Partial {
		list = append(list, Property{"partial", "true"})
	}
	if s := seeds(cases); s != "" {
		list = append(list, Property{"prompt.seeds", s})
	}
	for _, s := range d.Servers {
		if s.Address == server {
			list = append(list, s.Fingerprint...)
		}
	}
	return list
}

// capacityProperties returns properties of a test suite, with the results of the capacity searches.
func capacityProperties(capacities []*Capacity) []Property {
	var list []Property
	for _, c := range capacities {
		list = append(list, Property{"capacity.limit", c.Limit()}, Property{"capacity.kind", c.Kind},
			Property{"capacity.over", c.Over})
		if c.OfRate() && c.Crossing.OK {
			list = append(list, Property{"capacity.estimate", c.Estimate()})
		} else {
			list = append(list, Property{"capacity.confirmed", strconv.FormatBool(c.Confirmed)})
		}
		if c.Binding != "" {
			list = append(list, Property{"capacity.binding", c.Binding})
		}
	}
	return list
}

// seeds lists the seeds of all rounds of the cases in the order of their first use, each seed once.
func seeds(cases []*Case) string {
	var list []string
	seen := map[int64]bool{}
	for _, c := range cases {
		for _, r := range c.Rounds {
			if !seen[r.Seed] {
				seen[r.Seed] = true
				list = append(list, strconv.FormatInt(r.Seed, 10))
			}
		}
	}
	return strings.Join(list, ", ")
}

// class returns the class name of a verdict's test case. With several servers the server is part of
// it, because consumers drop a second test case with the same class name and name.
func (j *junitWriter) class(v *Verdict) string {
	parts := []string{j.doc.Plan.Name}
	switch {
	case v.Kind == "server":
		parts = append(parts, "server", v.Server)
	case v.Workload == "":
		parts = append(parts, cmp.Or(v.Kind, "run"))
	case len(j.doc.Plan.Servers) > 1 || len(j.doc.Servers) > 1:
		parts = append(parts, v.Server, v.Workload)
	default:
		parts = append(parts, v.Workload)
	}
	return attr(strings.Join(parts, "."))
}

func (j *junitWriter) testcase(v *Verdict, took float64) testcase {
	tc := testcase{File: attr(cmp.Or(v.File, j.doc.Plan.Path)), Line: max(v.Line, 1)}
	tc.Classname = j.class(v)
	tc.Name = attr(cmp.Or(v.Name, v.Kind))
	key := tc.Classname + "\x00" + tc.Name
	j.seen[key]++
	if n := j.seen[key]; n > 1 {
		tc.Name += fmt.Sprintf(" #%d", n)
	}
	tc.Time = seconds(took)

	message := attr(v.Explain())
	if c := j.doc.capacityOf(v); c != nil && !c.Answers(v) {
		message = attr(strings.TrimPrefix(v.Explain()+" · "+c.Answer(), " · "))
	}
	result := func(kind string) *junit.Result {
		return &junit.Result{Message: message, Type: kind, Data: text.Tail(text.XML(text.Block(j.body(v))), bodyBytes)}
	}
	switch v.Status() {
	case StatusPass:
		tc.SystemOut = &junit.Output{Data: text.Bytes(cmp.Or(noted(message, v.Notes), "passed"), passBytes)}
	case StatusWarning:
		tc.SystemOut = &junit.Output{Data: text.Bytes(noted("warning: "+message, v.Notes), passBytes)}
	case StatusSkipped:
		tc.Skipped = &junit.Result{Message: message}
	case StatusInconclusive:
		tc.Failure = result("inconclusive")
	case StatusFail:
		kind := v.Kind
		if kind == "load" {
			kind = "sla"
		}
		tc.Failure = result(cmp.Or(kind, "sla"))
	default:
		tc.Error = result(cmp.Or(v.Cause, CauseInvalid))
	}
	return tc
}

// run adds a test case for a run that failed although no verdict failed. The run was interrupted,
// or ended before it measured anything.
func (j *junitWriter) run() {
	d := j.doc
	if d.ExitCode == 0 || j.out.Failures > 0 || j.out.Errors > 0 {
		return
	}
	message := cmp.Or(d.Why, d.Stopped, "the outcome of the run is "+string(d.Outcome))
	j.suite("run", "", []Verdict{{Name: "run", Outcome: Error, Cause: CauseInvalid,
		Message: fmt.Sprintf("%s (exit code %d)", message, d.ExitCode)}}, nil)
}

// body explains the verdict for people. It holds the plan's text, the numbers, the notes, the most
// frequent failures, and the end of the server's log.
func (j *junitWriter) body(v *Verdict) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", v.Explain())
	if v.File != "" {
		line("%s", place(v.File, v.Line))
	}
	if t := v.Threshold; t != nil {
		line("threshold:  %s = %q", t.Metric, t.Text)
		line("value:      %s", orWhy(t.Unit, v.Value, v.Why))
		if v.Low.OK || v.High.OK {
			line("bounds:     %s and %s, each at %s confidence", v.Low.Format(t.Unit), v.High.Format(t.Unit), percent(v.Confidence))
		}
		line("n:          %d%s", v.N, effective(v))
		line("decided by: %s", cmp.Or(v.Decide, "unknown"))
	}
	if v.Needs != "" {
		line("%s", v.Needs)
	}
	for _, n := range v.Notes {
		line("note:       %s", n)
	}
	if c := j.doc.capacityOf(v); c != nil {
		line("capacity:   %s (%s)", c.Carries(), c.Kind)
		line("            %s", text.Line(c.Answer()))
		for _, fact := range c.Facts() {
			line("            %s", text.Line(fact))
		}
		for _, p := range c.Probes {
			took := "–"
			if p.Spent > 0 {
				took = text.Clock(p.Spent)
			}
			said := []string{c.Named(p.N), cmp.Or(p.Purpose, "–"), strconv.Itoa(p.Requests), cmp.Or(p.Outcome, "–"), took, cmp.Or(strings.TrimSpace(p.Binding+" "+p.Shown), "–")}
			line("probe:      %s", text.Line(strings.Join(said, " · ")))
		}
	}
	if c := j.caseOf(v); c != nil {
		canceled := ""
		if c.Canceled > 0 {
			canceled = fmt.Sprintf(", %d canceled by the run", c.Canceled)
		}
		line("requests:   %d due, %d completed, %d failed%s", c.Due, c.Completed, c.Failed, canceled)
		for _, f := range c.Failures {
			line("failed:     %d × %s", f.Count, f.Kind)
			for _, m := range f.Messages {
				line("            %d × %s", m.Count, text.Line(m.Text))
			}
		}
	}
	if v.Cause == CauseServer {
		for _, s := range j.doc.Servers {
			if s.Address == v.Server && s.Log != "" {
				line("\nend of the server's log:\n%s", s.Log)
			}
		}
	}
	return b.String()
}

// caseOf returns the case that a verdict is about; nil for a verdict on no case.
func (j *junitWriter) caseOf(v *Verdict) *Case {
	return j.cases[[3]string{v.Server, v.Workload, v.Level}]
}

// noted returns a message, followed by its notes, in one line.
func noted(message string, notes []string) string {
	for _, n := range notes {
		message += " · " + attr(n)
	}
	return strings.TrimPrefix(message, " · ")
}

// attr makes s fit for an XML attribute: one line, no control characters.
func attr(s string) string { return text.Bytes(text.XML(text.Line(s)), lineBytes) }

// seconds formats a duration as a plain decimal number. An unknown or negative duration is 0.
func seconds(s float64) string {
	if math.IsNaN(s) || math.IsInf(s, 0) || s < 0 {
		s = 0
	}
	return strconv.FormatFloat(s, 'f', 3, 64)
}
