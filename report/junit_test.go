package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// node is an XML element, read independently of the types that write JUnit files.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Nodes   []*node    `xml:",any"`
}

func (n *node) attr(name string) (string, bool) {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

func (n *node) must(t *testing.T, name string) string {
	t.Helper()
	v, ok := n.attr(name)
	if !ok || v == "" {
		t.Errorf("<%s> has no %s", n.XMLName.Local, name)
	}
	return v
}

func (n *node) all(name string) (out []*node) {
	for _, c := range n.Nodes {
		if c.XMLName.Local == name {
			out = append(out, c)
		}
	}
	return out
}

func junitOf(t testing.TB, d *Document) (*node, []byte) {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, JUnit(&b, d))
	var root node
	if err := xml.Unmarshal(b.Bytes(), &root); err != nil {
		t.Fatalf("does not parse: %v\n%s", err, b.Bytes())
	}
	return &root, b.Bytes()
}

func cases(root *node) (out []*node) {
	for _, s := range root.all("testsuite") {
		out = append(out, s.all("testcase")...)
	}
	return out
}

// consumers lists the rules of CI systems that read JUnit files. source is the place of the rule in
// the code of the CI system.
var consumers = []struct {
	name   string
	source string
	rule   func(t *testing.T, root *node)
}{
	{
		"action-junit-report: a case has its own file and line, or the last word of its classname is taken for a file",
		"mikepenz/action-junit-report src/testParser.ts (resolveFileAndLine)",
		func(t *testing.T, root *node) {
			for _, c := range cases(root) {
				c.must(t, "file")
				if n, err := strconv.Atoi(c.must(t, "line")); err != nil || n < 1 {
					t.Errorf("line %d, %v", n, err)
				}
			}
		},
	},
	{
		"consumers differ in which of several outcomes of a case counts, or count each, so that it has one",
		"mikepenz/action-junit-report src/testParser.ts (skipped and failed are counted apart); EnricoMi/publish-unit-test-result-action python/publish/junit.py (get_results: the worst); gitlab-org/gitlab lib/gitlab/ci/parsers/test/junit.rb (create_test_case: failure, error, skipped)",
		func(t *testing.T, root *node) {
			for _, c := range cases(root) {
				if n := len(c.all("failure")) + len(c.all("error")) + len(c.all("skipped")) + len(c.all("system-out")); n != 1 || len(c.Nodes) != 1 {
					name, _ := c.attr("name")
					t.Errorf("%s: %d children, want exactly one outcome", name, len(c.Nodes))
				}
			}
		},
	},
	{
		"publish-unit-test-result: a case is known by file, classname and name across runs: no measured value in them",
		"EnricoMi/publish-unit-test-result-action python/publish/unittestresults.py (get_test_results)",
		func(t *testing.T, root *node) {
			measured := regexp.MustCompile(`\d ?(s|ms|tok/s|%)( |$)`)
			for _, c := range cases(root) {
				if name := c.must(t, "name"); measured.MatchString(name) {
					t.Errorf("name %q holds a measured value", name)
				}
			}
		},
	},
	{
		"publish-unit-test-result: time is a number of seconds",
		"EnricoMi/publish-unit-test-result-action python/publish/junit.py (process_junit_xml_elems); dorny/test-reporter src/parsers/java-junit/java-junit-parser.ts (getGroups); docs.gitlab.com, unit test reports (time: seconds)",
		func(t *testing.T, root *node) {
			for _, n := range append(append([]*node{root}, root.all("testsuite")...), cases(root)...) {
				if s := n.must(t, "time"); !regexp.MustCompile(`^\d+\.\d{3}$`).MatchString(s) {
					t.Errorf("<%s> time = %q", n.XMLName.Local, s)
				}
			}
		},
	},
	{
		"test-reporter, java-junit: suites are flat, and suite and case have a name to trim",
		"dorny/test-reporter src/parsers/java-junit/java-junit-parser.ts (getTestRunResult, getGroups)",
		func(t *testing.T, root *node) {
			if root.XMLName.Local != "testsuites" {
				t.Errorf("root is <%s>", root.XMLName.Local)
			}
			for _, s := range root.all("testsuite") {
				s.must(t, "name")
				if len(s.all("testsuite")) > 0 {
					t.Error("a suite in a suite")
				}
			}
			for _, c := range cases(root) {
				c.must(t, "name")
			}
		},
	},
	{
		"test-reporter, phpunit-junit: a case's file is a path of the repository, not absolute and without line",
		"dorny/test-reporter src/parsers/phpunit-junit/phpunit-junit-parser.ts (getTestCaseError)",
		func(t *testing.T, root *node) {
			for _, c := range cases(root) {
				if f, _ := c.attr("file"); f != "plans/chatbot.hcl" && f != "p.hcl" {
					t.Errorf("file = %q", f)
				}
			}
		},
	},
	{
		"test-reporter: type and message are shown as one line",
		"dorny/test-reporter src/parsers/phpunit-junit/phpunit-junit-parser.ts (getTestCaseError)",
		func(t *testing.T, root *node) {
			for _, c := range cases(root) {
				for _, kind := range []string{"failure", "error"} {
					for _, f := range c.all(kind) {
						if m := f.must(t, "message"); strings.ContainsAny(m, "\r\n\t") {
							t.Errorf("message %q has a line break", m)
						}
						switch typ := f.must(t, "type"); typ {
						case "sla", "assert", "capacity", "inconclusive", "server", "generator", "invalid":
						default:
							t.Errorf("type = %q", typ)
						}
					}
				}
			}
		},
	},
	{
		"GitLab: of cases with one name only the first is used",
		"docs.gitlab.com, unit test reports, file format and size limits; gitlab-org/gitlab lib/gitlab/ci/reports/test_suite.rb (add_test_case)",
		func(t *testing.T, root *node) {
			seen := map[string]bool{}
			for _, c := range cases(root) {
				key := c.must(t, "classname") + "\x00" + c.must(t, "name")
				if seen[key] {
					t.Errorf("%q came twice", key)
				}
				seen[key] = true
			}
		},
	},
	{
		"Jenkins: of a green case's output 1,000 bytes are kept, so that it is one short line",
		"jenkinsci/junit-plugin src/main/java/hudson/tasks/junit/CaseResult.java (HALF_MAX_SIZE)",
		func(t *testing.T, root *node) {
			for _, c := range cases(root) {
				for _, o := range c.all("system-out") {
					if len(o.Text) > 1000 || o.Text == "" || strings.Contains(o.Text, "\n") {
						t.Errorf("system-out of %d bytes: %q", len(o.Text), o.Text)
					}
				}
			}
		},
	},
	{
		"Jenkins: properties of suites have a name and a value",
		"jenkinsci/junit-plugin src/main/java/hudson/tasks/junit/SuiteResult.java (properties), CaseResult.java (keepProperties)",
		func(t *testing.T, root *node) {
			for _, s := range root.all("testsuite") {
				p := s.all("properties")
				if len(p) != 1 || len(p[0].all("property")) == 0 {
					t.Fatal("a suite without properties")
				}
				for _, p := range p[0].all("property") {
					p.must(t, "name")
					if _, ok := p.attr("value"); !ok {
						t.Error("a property without value")
					}
				}
			}
		},
	},
	{
		"Buildkite: classname and name are required",
		"buildkite.com/docs, importing JUnit XML, mandatory attributes",
		func(t *testing.T, root *node) {
			for _, c := range cases(root) {
				c.must(t, "classname")
				c.must(t, "name")
			}
		},
	},
	{
		"a GitHub check run takes 65,535 characters of text",
		"docs.github.com, REST API, check runs (output.summary, output.text); github/rest-api-description issue 5399",
		func(t *testing.T, root *node) {
			for _, c := range cases(root) {
				for _, n := range c.Nodes {
					if utf8.RuneCountInString(n.Text) > 60_000 {
						t.Errorf("a body of %d characters", utf8.RuneCountInString(n.Text))
					}
				}
			}
		},
	},
}

// sameNames is a document with three verdicts of the same name, a case without a verdict, and a
// long log.
func sameNames() *Document {
	run, p, v, m := fixture()
	run.Servers[1].Log = strings.Repeat("漢字 "+hostile+"\n", 5000)
	v.List = append(v.List, v.List[3], v.List[3])
	run.Levels = append(run.Levels, &metric.Level{Server: `vllm["on"]`, Workload: "other", Name: "1", Kind: metric.ClosedLoop, N: 1})
	v.List[3].Message = strings.Repeat("long ", 1000)
	return New(run, p, v, m)
}

func TestJUnitConsumers(t *testing.T) {
	for name, d := range map[string]*Document{"rich": document(), "pass": passing(), "empty": emptyDocument(), "many": sameNames()} {
		root, _ := junitOf(t, d)
		for _, c := range consumers {
			t.Run(name+"/"+c.name, func(t *testing.T) { c.rule(t, root) })
		}
	}
}

func TestJUnitTotals(t *testing.T) {
	for name, d := range map[string]*Document{"rich": document(), "pass": passing(), "empty": emptyDocument(), "many": sameNames()} {
		root, b := junitOf(t, d)
		if !strings.HasPrefix(string(b), "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n") {
			t.Errorf("%s: no XML header", name)
		}
		total := map[string]int{}
		for _, s := range root.all("testsuite") {
			for attr, child := range map[string]string{"tests": "", "failures": "failure", "errors": "error", "skipped": "skipped"} {
				n := 0
				for _, c := range s.all("testcase") {
					if child == "" || len(c.all(child)) > 0 {
						n++
					}
				}
				total[attr] += n
				if got, _ := s.attr(attr); got != strconv.Itoa(n) && (n > 0 || got != "") && got != "0" {
					t.Errorf("%s: suite says %s=%q, has %d", name, attr, got, n)
				}
			}
		}
		for attr, n := range total {
			got, ok := root.attr(attr)
			if !ok {
				got = "0"
			}
			if got != strconv.Itoa(n) {
				t.Errorf("%s: %s=%q, has %d", name, attr, got, n)
			}
		}
	}
}

// Each outcome is written under each severity and policy.
func TestJUnitOutcomes(t *testing.T) {
	tests := []struct {
		name     string
		outcome  verdict.Outcome
		severity plan.Severity
		policy   plan.OnInconclusive
		want     string // child and type
	}{
		{"pass", verdict.Pass, plan.SeverityError, plan.Stop, "system-out"},
		{"pass of a warning", verdict.Pass, plan.SeverityWarn, plan.Stop, "system-out"},
		{"fail", verdict.Fail, plan.SeverityError, plan.Stop, "failure sla"},
		{"fail under warn stays one", verdict.Fail, plan.SeverityError, plan.Warn, "failure sla"},
		{"missed warning", verdict.Fail, plan.SeverityWarn, plan.Stop, "system-out warning"},
		{"no severity is error", verdict.Fail, "", plan.Stop, "failure sla"},
		{"inconclusive", verdict.Inconclusive, plan.SeverityError, plan.Stop, "failure inconclusive"},
		{"inconclusive after extension", verdict.Inconclusive, plan.SeverityError, plan.Extend, "failure inconclusive"},
		{"inconclusive under warn", verdict.Inconclusive, plan.SeverityError, plan.Warn, "skipped"},
		{"inconclusive warning", verdict.Inconclusive, plan.SeverityWarn, plan.Stop, "system-out warning"},
		{"error", verdict.Error, plan.SeverityError, plan.Warn, "error invalid"},
		{"error of a warning", verdict.Error, plan.SeverityWarn, plan.Stop, "system-out warning"},
		{"pending of a warning is an error: nobody looked", verdict.Pending, plan.SeverityWarn, plan.Stop, "error invalid"},
		{"pending is an error", verdict.Pending, plan.SeverityError, plan.Stop, "error invalid"},
		{"unknown is an error", verdict.Outcome(42), plan.SeverityError, plan.Stop, "error invalid"},
		{"skipped", verdict.Skipped, plan.SeverityError, plan.Stop, "skipped"},
	}
	for _, tt := range tests {
		run, p, v, m := fixture()
		run.Servers, run.Levels, p.Servers = run.Servers[:1], run.Levels[:1], p.Servers[:1]
		x := v.List[3]
		x.Outcome, x.Severity, x.Warn = tt.outcome, verdict.Severity(tt.severity), tt.policy == plan.Warn
		v.List = []verdict.Verdict{v.List[2], x}
		root, _ := junitOf(t, New(run, p, v, m))
		for _, c := range cases(root) {
			if name, _ := c.attr("name"); name != "sla.ttft.p95 at 1" {
				continue
			}
			child := c.Nodes[0]
			got := child.XMLName.Local
			if typ, _ := child.attr("type"); typ != "" {
				got += " " + typ
			} else if strings.HasPrefix(child.Text, "warning: ") {
				got += " warning"
			}
			if got != tt.want {
				t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
			}
		}
	}
}

// If a run did not succeed, its JUnit file has at least one test case that is not green.
func TestJUnitNeverGreenByAccident(t *testing.T) {
	d := passing()
	d.ExitCode, d.Outcome, d.Run.Stopped = 130, verdict.Pass, "interrupted"
	for name, d := range map[string]*Document{"interrupted": d, "empty": emptyDocument()} {
		root, _ := junitOf(t, d)
		if n, _ := root.attr("errors"); n != "1" {
			t.Errorf("%s: errors = %q, want 1", name, n)
		}
	}
	if root, _ := junitOf(t, passing()); len(cases(root)) != 4 {
		t.Errorf("a passing run has %d cases, want its 4 verdicts", len(cases(root)))
	}
}

func TestJUnitCaseWithoutVerdictIsAnError(t *testing.T) {
	root, _ := junitOf(t, sameNames())
	for _, c := range cases(root) {
		if class, _ := c.attr("classname"); class == `chatbot.vllm["on"].other` {
			if len(c.all("error")) != 1 {
				t.Error("a case that nobody judged is no error")
			}
			return
		}
	}
	t.Error("a case that nobody judged is missing")
}

// The class name of a test case contains the server if the plan has several servers.
func TestJUnitClass(t *testing.T) {
	root, _ := junitOf(t, passing())
	if class, _ := cases(root)[1].attr("classname"); class != "chatbot.general_chatbot" {
		t.Errorf("one server: classname %q", class)
	}
	root, _ = junitOf(t, document())
	if class, _ := cases(root)[2].attr("classname"); class != `chatbot.vllm["on"].general_chatbot` {
		t.Errorf("two servers: classname %q", class)
	}
}

func TestJUnitError(t *testing.T) {
	if err := JUnit(failing{}, document()); err == nil {
		t.Error("a full disk is no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, fmt.Errorf("no space left on device") }

// The XML file is valid for any text of a server or plan. It keeps its structure and contains the
// visible part of the text.
func FuzzJUnitText(f *testing.F) {
	f.Add(hostile)
	f.Add("]]>")
	f.Add("\x1b")
	f.Add("\x1b]0;title")
	f.Add("\xed\xa0\x80\ufffe\uffff")
	f.Add("a\r\nb\rc\u2028d")
	f.Fuzz(func(t *testing.T, s string) {
		run, p, v, m := fixture()
		p.Secrets = nil
		run.Servers[1].Error, run.Servers[1].Log = s, s
		run.Servers[0].Fingerprint[s] = s
		run.Levels[1].Rounds[0].Samples[0].Failure.Message = s
		for i := range v.List {
			v.List[i].Message, v.List[i].Notes, v.List[i].Needs = s, []verdict.Note{{Text: s}}, s
			v.List[i].File = s
		}
		v.List[len(v.List)-1].Name = s
		m.Host = s
		d := New(run, p, v, m)
		root, _ := junitOf(t, d)
		// Two levels with a rate have no thresholds, but each has a test case.
		if got, want := len(cases(root)), len(v.List)+2; got != want {
			t.Errorf("%d cases, want %d", got, want)
		}
		conforms(t, d)
		var b bytes.Buffer
		for _, f := range written {
			b.Reset()
			if err := f.write(&b, d); err != nil {
				t.Fatalf("%s: %v", f.file, err)
			}
			if !utf8.Valid(b.Bytes()) {
				t.Errorf("%s is not UTF-8", f.file)
			}
		}
	})
}
