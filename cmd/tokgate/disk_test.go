package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/runner"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/record/disk"
	"github.com/tokgate/tokgate/record/history"
	"github.com/tokgate/tokgate/report"
)

// diskPlan gates an endpoint, and records answers and a history of nights. Its two format verbs
// stand for the URL and the limit of TTFT.
const diskPlan = `
gate {
  decide = "estimate"
}
server "s" {
  endpoint { url = %q }
}
workload "w" {
  input_tokens  = 64
  output_tokens = { natural = true, max = 16 }
  answers { store = "text" }
  load {
    concurrency = 2
    requests    = 10
    seeds       = [1, 2, 3, 4, 5]
  }
  sla { ttft = "p95 < %s" }
}
history { folder = "history" }
`

// diskFaults lists ways in which call n to the disk fails, counted from 1. The returned function
// counts all calls in *calls.
var diskFaults = []struct {
	name  string
	fault func(n int, calls *int) disk.Fault
}{
	{"an error", func(n int, calls *int) disk.Fault {
		return func(disk.Call) (int, error) {
			if *calls++; *calls == n {
				return 0, syscall.EIO
			}
			return 0, nil
		}
	}},
	{"half written", func(n int, calls *int) disk.Fault {
		return func(c disk.Call) (int, error) {
			if *calls++; *calls == n {
				return c.Size / 2, syscall.ENOSPC
			}
			return 0, nil
		}
	}},
	{"full from then on", func(n int, calls *int) disk.Fault {
		return func(c disk.Call) (int, error) {
			*calls++
			if *calls >= n && (c.Op == "write" || c.Op == "open" || c.Op == "mkdir" || c.Op == "sync") {
				return c.Size / 2, syscall.ENOSPC
			}
			return 0, nil
		}
	}},
}

// diskNight is one night of a gate in CI, with all its files in one folder.
type diskNight struct {
	t      *testing.T
	url    string // of the server
	passes bool   // whether the run of this night passes if the disk works
	dir    string // folder with the plan and all output
}

func newDiskNight(t *testing.T, url string, passes bool) *diskNight {
	n := &diskNight{t, url, passes, t.TempDir()}
	limit := map[bool]string{true: "2s", false: "1us"}[passes]
	must.Do(t, os.WriteFile(n.path("gate.hcl"), fmt.Appendf(nil, diskPlan, url, limit), 0o644))
	return n
}

// before returns a copy of the night in a new folder, in the state just before command i.
func (n *diskNight) before(i int) *diskNight {
	c := newDiskNight(n.t, n.url, n.passes)
	if i == 0 {
		return c
	}
	os.Remove(c.path("gate.hcl"))
	if err := os.CopyFS(c.dir, os.DirFS(n.dir)); err != nil {
		n.t.Fatal(err)
	}
	return c
}

func (n *diskNight) path(name string) string { return filepath.Join(n.dir, name) }

func (n *diskNight) tokgate(args ...string) result {
	environ := []string{"GITHUB_ACTIONS=true", "GITHUB_WORKSPACE=" + n.dir, "GITHUB_OUTPUT=" + n.path("output"), "GITHUB_STEP_SUMMARY=" + n.path("summary")}
	return tokgateWith(n.t, n.t.Context(), environ, "", args...)
}

// commands lists the commands of a night. Each has a function that checks the files after its
// success.
func (n *diskNight) commands() []diskCommand {
	results, again := n.path("results"), n.path("again")
	return []diskCommand{
		{"run", []string{"run", "-q", "--out", results, "--csv", n.path("levels.csv"), n.path("gate.hcl")}, n.ran},
		{"judge", []string{"judge", results, n.path("gate.hcl"), "--out", again}, func(result) error { return n.reported(again) }},
		{"report", []string{"report", results, "--json", n.path("r.json"), "--html", n.path("r.html"), "--csv", n.path("r.csv")}, func(result) error {
			_, err := n.document(n.path("r.json"))
			return errors.Join(err, ends(n.path("r.html"), "</html>\n"), ends(n.path("r.csv"), "\n"), lines(n.path("r.samples.csv"), 11))
		}},
		{"history add", []string{"history", "add", n.path("nights"), results}, func(result) error { return n.night(n.path("nights")) }},
		{"history check", []string{"history", "check", n.path("history"), "--max-age", "0", "--junit", n.path("h.xml")}, func(result) error {
			return ends(n.path("h.xml"), "</testsuites>\n")
		}},
		{"compare", []string{"compare", n.path("earlier"), results, "--out", n.path("compared")}, func(result) error {
			return ends(n.path("compared/junit.xml"), "</testsuites>\n")
		}},
	}
}

type diskCommand struct {
	name string
	args []string
	left func(result) error
}

// ran returns an error if a run succeeded but its reports, samples or history are incomplete.
func (n *diskNight) ran(result) error {
	if err := n.reported(n.path("results")); err != nil {
		return err
	}
	run, problems, err := record.Read(n.path("results"))
	if err != nil || len(problems) > 0 {
		return fmt.Errorf("the recording: %v %w", problems, err)
	}
	doc, err := n.document(n.path("results/results.json"))
	switch {
	case err != nil:
		return err
	case run.Recording == "" || doc.Recording != run.Recording:
		return fmt.Errorf("the recording is %q, and the report is of %q", run.Recording, doc.Recording)
	case len(run.Levels) != 1 || len(run.Levels[0].MeasuredSamples()) != 10:
		return errors.New("requests are missing")
	}
	for _, s := range run.Levels[0].MeasuredSamples() {
		if s.Said == nil || s.Said.Text == "" {
			return fmt.Errorf("the answer of %v is missing", s)
		}
	}
	outputs, err := os.ReadFile(n.path("output"))
	if err != nil {
		return err
	}
	pairs, err := runner.Pairs(string(outputs))
	if err != nil || pairs["verdict"] != "pass" {
		return fmt.Errorf("the step's outputs are %v, %v", pairs, err)
	}
	return errors.Join(lines(n.path("levels.csv"), 2), lines(n.path("levels.samples.csv"), 11), n.night(n.path("history")))
}

// reported returns an error if the reports in a folder are not as they should be.
func (n *diskNight) reported(dir string) error {
	doc, err := n.document(filepath.Join(dir, "results.json"))
	if err != nil {
		return err
	}
	if (doc.ExitCode == 0) != n.passes {
		return fmt.Errorf("results.json says exit %d", doc.ExitCode)
	}
	return errors.Join(ends(filepath.Join(dir, "junit.xml"), "</testsuites>\n"), ends(filepath.Join(dir, "report.html"), "</html>\n"), ends(filepath.Join(dir, "report.md"), "\n"))
}

func (n *diskNight) document(path string) (*report.Document, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return report.ReadDocument(f)
}

func (n *diskNight) night(dir string) error {
	h, problems, err := history.Read(dir)
	if err != nil || len(problems) > 0 || len(h.Nights) != 1 {
		return fmt.Errorf("%d nights, %v, %w", len(h.Nights), problems, err)
	}
	return nil
}

func ends(path, with string) error {
	b, err := os.ReadFile(path)
	if err == nil && !bytes.HasSuffix(b, []byte(with)) {
		err = fmt.Errorf("%s ends with %.20q", path, b[max(len(b)-20, 0):])
	}
	return err
}

// lines returns an error if the file has too few lines. least is the smallest number.
func lines(path string, least int) error {
	b, err := os.ReadFile(path)
	if n := bytes.Count(b, []byte("\n")); err == nil && n < least {
		err = fmt.Errorf("%s has %d lines", path, n)
	}
	return err
}

var saidExit = regexp.MustCompile(`(?m)· exit (\d+)`)

// agrees reports whether the exit code agrees with the one that the output states last. After a
// printed error, the exit code must not be 0.
func agrees(r result) bool {
	if strings.HasPrefix(r.err, "tokgate: ") || strings.Contains(r.err, "\ntokgate: ") {
		return r.code != verdict.ExitPass || strings.Contains(r.err, " added to ")
	}
	said := saidExit.FindAllStringSubmatch(r.out, -1)
	return len(said) == 0 || said[len(said)-1][1] == fmt.Sprint(r.code)
}

var everyCall = flag.Int("disk-step", 79, "which calls to the disk TestLongDiskFaults has fail: every so many")

// TestLongDiskFaults runs commands in which one call to the disk fails, each time a different call.
//
// A command that still ends with 0 must write all promised files. Its last line must agree with the
// exit code. No file may show a better verdict than the measurement. `make faults` tries every
// call.
func TestLongDiskFaults(t *testing.T) {
	first := 0
	for _, passes := range []bool{true, false} {
		for i, c := range (&diskNight{}).commands() {
			name := fmt.Sprintf("%s of one that passes", c.name)
			if !passes {
				name = fmt.Sprintf("%s of one that fails", c.name)
			}
			t.Run(name, inVirtualTime(func(t *testing.T) {
				ran := newDiskNight(t, simServer(t).URL(), passes)
				ran.try(0)
				must.Do(t, os.Rename(ran.path("results"), ran.path("earlier")))
				ran.try(0)
				want := ran.before(i).try(i).code // exit code with a disk that works
				tried := 0
				for _, kind := range diskFaults {
					first = (first + 7) % *everyCall
					for at := 1 + first; ; at += *everyCall {
						calls := tryDisk(ran, i, want, kind.name, func(calls *int) disk.Fault { return kind.fault(at, calls) }, at)
						if at > calls || t.Failed() {
							break
						}
						tried++
					}
				}
				t.Logf("%d calls failed", tried)
			}))
		}
	}
}

// tryDisk runs command i of a night, after the earlier commands succeeded. The parameter at is the
// number of the disk call that fails. tryDisk returns how many disk calls the command made.
func tryDisk(ran *diskNight, i, want int, kind string, fault func(*int) disk.Fault, at int) (calls int) {
	n := ran.before(i)
	c := n.commands()[i]
	counted := 0
	injected := fault(&counted)
	undo := disk.Inject(func(call disk.Call) (int, error) {
		if !strings.HasPrefix(call.Path, n.dir) {
			return 0, nil
		}
		return injected(call)
	})
	r := n.try(i)
	undo()
	fail := func(format string, args ...any) {
		n.t.Helper()
		n.t.Errorf("%s (passes: %t), %s at call %d of %d: %s\nexit %d\n%s%s", c.name, n.passes, kind, at, counted, fmt.Sprintf(format, args...), r.code, r.out, r.err)
	}
	if r.code == verdict.ExitPass {
		if err := c.left(r); err != nil {
			fail("it ended well, and %v", err)
		}
	}
	if r.code != verdict.ExitError && at <= counted && r.code != want {
		fail("what a disk does is an error or nothing")
	}
	if c.name != "report" && !agrees(r) { // report has its own exit code
		fail("its last line is of another exit code")
	}
	n.readable(fail)
	if err := os.RemoveAll(n.dir); err != nil {
		n.t.Error(err)
	}
	return counted
}

func (n *diskNight) try(i int) result { return n.tokgate(n.commands()[i].args...) }

// readable checks that the files of a night can be read.
func (n *diskNight) readable(fail func(string, ...any)) {
	run, _, err := record.Read(n.path("results"))
	if err != nil {
		return
	}
	code := n.tokgate("judge", n.path("results"), n.path("gate.hcl")).code
	whole := run.Recording != "" && run.Stopped == "" && len(run.Levels) == 1 && len(run.Levels[0].MeasuredSamples()) == 10
	if code == verdict.ExitPass && !(whole && n.passes) {
		fail("what is left is judged %d", code)
	}
	if _, err := os.Stat(n.path("history")); !errors.Is(err, fs.ErrNotExist) {
		h, _, err := history.Read(n.path("history"))
		if err != nil || len(h.Nights) > 2 {
			fail("the history has %d nights: %v", len(h.Nights), err)
		}
	}
}
