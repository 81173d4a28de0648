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

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
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
		j.cases[[3]string{c.Server, c.Workload, c.Name}] = c
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

	var servers, comparisons, asserts []verdict.Verdict
	cases := map[string][]verdict.Verdict{}
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
	j.out.Time = seconds(d.Run.End.Seconds())
	return &j.out
}

// unjudged returns verdicts for cases and capacities that have none. A case is an error, because
// its load was never judged. A capacity is an error only if the plan requires one.
func (j *junitWriter) unjudged(verdicts []verdict.Verdict, cases []*Case, capacities []*metric.Capacity) []verdict.Verdict {
	var list []verdict.Verdict
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
		v := verdict.Verdict{Kind: "capacity", Server: c.Server, Workload: c.Workload, Name: "capacity", Outcome: verdict.Pass, Message: c.Answer(),
			Place: verdict.Place{File: j.doc.Plan.Path}}
		if c.Require > 0 {
			v.Outcome, v.Cause, v.Message = verdict.Pending, verdict.CauseInvalid, "the capacity was not judged"
		} else if c.Kind == metric.CapacityUnknown {
			v.Outcome, v.Message = verdict.Skipped, "" // the capacity's own line has the result
		}
		list = append(list, v)
	}
	for _, c := range cases {
		if !judged[c.Name] {
			v := verdict.Verdict{Kind: "load", Server: c.Server, Workload: c.Workload, Level: c.Name, Name: "load at " + c.Name,
				Outcome: verdict.Pending, Cause: verdict.CauseInvalid, Message: "the case was not judged", Place: verdict.Place{File: j.doc.Plan.Path}}
			if c.Skipped != "" {
				v.Outcome, v.Message = verdict.Skipped, c.Skipped
			}
			list = append(list, v)
		}
	}
	return list
}

func (j *junitWriter) suite(name, server string, verdicts []verdict.Verdict, cases []*Case, capacities ...*metric.Capacity) {
	verdicts = append(verdicts, j.unjudged(verdicts, cases, capacities)...)
	if len(verdicts) == 0 {
		return
	}
	s := testsuite{}
	s.ID = len(j.out.Suites)
	s.Name = attr(name)
	if j.doc.Run.Simulated {
		s.Name += " (simulated)" // the name differs so that a CI system does not mix simulated and real runs in one history
		s.SystemOut = &junit.Output{Data: "SIMULATED: " + SimulatedNote}
	}
	s.Hostname = attr(j.doc.Host)
	s.File = attr(j.doc.Plan.Path)
	s.Timestamp = j.doc.Date("2006-01-02T15:04:05")
	for _, p := range append(j.properties(server, cases), capacityProperties(capacities)...) {
		s.AddProperty(attr(p.key), attr(p.value))
	}
	total := 0.0
	for i := range verdicts {
		v := &verdicts[i]
		took := 0.0
		if c := j.caseOf(v); c != nil && v.Kind == "load" {
			took = c.Took()
		}
		if c := j.doc.capacityOf(v); c != nil {
			took = c.Spent.Seconds()
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

// property is a fact about a test suite.
type property struct{ key, value string }

func (j *junitWriter) properties(server string, cases []*Case) []property {
	d := j.doc
	salt := ""
	if d.Run.ID != "" { // the nights of a history have none
		salt = strconv.FormatUint(d.Run.Salt, 10)
	}
	list := []property{
		{"tokgate.version", d.Run.Tool}, {"tokgate.run", d.Run.ID}, {"tokgate.outcome", d.Outcome.String()},
		{"plan.sha256", d.Plan.Hash}, {"prompt.salt", salt},
	}
	if d.Recording != "" {
		list = append(list, property{"recording.sha256", d.Recording})
	}
	if d.Run.Simulated {
		list = append(list, property{"simulated", "true"})
	}
	if d.Partial {
		list = append(list, property{"partial", "true"})
	}
	if s := seeds(cases); s != "" {
		list = append(list, property{"prompt.seeds", s})
	}
	list = append(list, costProperties(cases)...)
	if s := d.Run.Server(server); s != nil {
		for _, key := range s.Fingerprint.Keys() {
			list = append(list, property{key, s.Fingerprint[key]})
		}
	}
	return list
}

func costProperties(cases []*Case) []property {
	var s Spent
	for _, c := range cases {
		s.Add(c.Spent)
	}
	if s.Sent == 0 {
		return nil
	}
	return []property{{"requests.sent", strconv.Itoa(s.Sent)}, {"requests.measured", strconv.Itoa(s.Measured)},
		{"load.seconds", seconds(s.Load)}, {"load.seconds.measured", seconds(s.Judged)}}
}

func capacityProperties(capacities []*metric.Capacity) []property {
	var list []property
	for _, c := range capacities {
		list = append(list, property{"capacity.limit", c.Limit()}, property{"capacity.kind", string(c.Kind)},
			property{"capacity.over", string(c.Over)})
		if c.OfRate() && c.Crossing > 0 {
			list = append(list, property{"capacity.estimate", c.Estimate()})
		} else {
			list = append(list, property{"capacity.confirmed", strconv.FormatBool(c.Confirmed)})
		}
		if c.Binding != "" {
			list = append(list, property{"capacity.binding", c.Binding})
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
func (j *junitWriter) class(v *verdict.Verdict) string {
	parts := []string{j.doc.Plan.Name}
	switch {
	case v.Kind == "server":
		parts = append(parts, "server", v.Server)
	case v.Workload == "":
		parts = append(parts, cmp.Or(string(v.Kind), "run"))
	case len(j.doc.Plan.Servers) > 1 || len(j.doc.Run.Servers) > 1:
		parts = append(parts, v.Server, v.Workload)
	default:
		parts = append(parts, v.Workload)
	}
	return attr(strings.Join(parts, "."))
}

func (j *junitWriter) testcase(v *verdict.Verdict, took float64) testcase {
	tc := testcase{File: attr(cmp.Or(v.File, j.doc.Plan.Path)), Line: max(v.Line, 1)}
	tc.Classname = j.class(v)
	tc.Name = attr(cmp.Or(v.Name, string(v.Kind)))
	key := tc.Classname + "\x00" + tc.Name
	j.seen[key]++
	if n := j.seen[key]; n > 1 {
		tc.Name += fmt.Sprintf(" #%d", n)
	}
	tc.Time = seconds(took)

	message := attr(v.Explain())
	if c := j.doc.capacityOf(v); c != nil && !States(v, c) {
		message = attr(strings.TrimPrefix(v.Explain()+" · "+c.Answer(), " · "))
	}
	result := func(kind string) *junit.Result {
		return &junit.Result{Message: message, Type: kind, Data: text.Tail(text.XML(text.Block(j.body(v))), bodyBytes)}
	}
	switch v.Status() {
	case verdict.StatusPass:
		tc.SystemOut = &junit.Output{Data: text.Bytes(cmp.Or(noted(message, v.NotesOf()), "passed"), passBytes)}
	case verdict.StatusWarning:
		tc.SystemOut = &junit.Output{Data: text.Bytes(noted("warning: "+message, v.NotesOf()), passBytes)}
	case verdict.StatusSkipped:
		tc.Skipped = &junit.Result{Message: message}
	case verdict.StatusInconclusive:
		tc.Failure = result("inconclusive")
	case verdict.StatusFail:
		kind := cmp.Or(v.Kind, verdict.KindSLA)
		if kind == verdict.KindLoad {
			kind = verdict.KindSLA
		}
		tc.Failure = result(string(kind))
	default:
		tc.Error = result(string(cmp.Or(v.Cause, verdict.CauseInvalid)))
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
	message := cmp.Or(d.Why, d.Run.Stopped, "the outcome of the run is "+d.Outcome.String())
	j.suite("run", "", []verdict.Verdict{{Name: "run", Outcome: verdict.Error, Cause: verdict.CauseInvalid,
		Message: fmt.Sprintf("%s (exit code %d)", message, d.ExitCode)}}, nil)
}

// body explains the verdict for people. It holds the plan's text, the numbers, the notes, the most
// frequent failures, and the end of the server's log.
func (j *junitWriter) body(v *verdict.Verdict) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", v.Explain())
	if v.File != "" {
		line("%s", place(v.File, v.Line))
	}
	if t := v.Threshold; t != nil {
		line("threshold:  %s = %q", t.Metric.Name, t.Text)
		line("value:      %s", orWhy(t.Unit(), v.Value))
		if v.Low.OK || v.High.OK {
			line("bounds:     %s and %s, each at %s confidence", v.Low.Format(t.Unit()), v.High.Format(t.Unit()), metric.Format(metric.Ratio, v.Confidence))
		}
		line("n:          %d%s", v.N, effective(v))
		line("decided by: %s", cmp.Or(v.Decide, "unknown"))
	}
	if v.Needs != "" {
		line("%s", v.Needs)
	}
	for _, n := range v.NotesOf() {
		line("note:       %s", n)
	}
	if c := j.doc.capacityOf(v); c != nil {
		line("capacity:   %s (%s)", c.Carries(), c.Kind)
		line("            %s", text.Line(c.Answer()))
		for _, fact := range j.doc.Facts(c) {
			line("            %s", text.Line(fact))
		}
		for _, p := range c.Probes {
			took := "–"
			if p.Spent > 0 {
				took = text.Clock(p.Spent.Seconds())
			}
			said := []string{c.Named(p.N), cmp.Or(p.Purpose, "–"), strconv.Itoa(p.Requests), p.Outcome.String(), took,
				cmp.Or(strings.TrimSpace(p.Binding+" "+p.Shown), "–")}
			line("probe:      %s", text.Line(strings.Join(said, " · ")))
		}
	}
	if c := j.caseOf(v); c != nil {
		canceled := ""
		if c.Canceled > 0 {
			canceled = fmt.Sprintf(", %d canceled by the run", c.Canceled)
		}
		line("requests:   %d due, %d completed, %d failed%s", c.Due(), c.Completed, c.Failed, canceled)
		for _, f := range c.Failures {
			line("failed:     %d × %s", f.Count, f.Kind)
			for _, m := range f.Messages {
				line("            %d × %s", m.Count, text.Line(m.Text))
			}
		}
	}
	if v.Cause == verdict.CauseServer {
		if s := j.doc.Run.Server(v.Server); s != nil && s.Log != "" {
			line("\nend of the server's log:\n%s", s.Log)
		}
	}
	return b.String()
}

// caseOf returns the case that a verdict is about; nil for a verdict on no case.
func (j *junitWriter) caseOf(v *verdict.Verdict) *Case {
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

// orWhy formats a value, or says why there is none.
func orWhy(unit metric.Unit, v metric.Value) string {
	switch {
	case v.OK:
		return v.Format(unit)
	case v.Why == "":
		return "no value"
	}
	return "no value: " + v.Why
}
