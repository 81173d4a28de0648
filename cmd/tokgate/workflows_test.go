package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec/server"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/runner"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record/history"
)

// asProgram is the environment variable that makes the test binary behave like tokgate. With
// "simulate", the commands run and bisect simulate. With "virtual", every command runs in virtual time over a
// network in memory. So a busy machine does not change the results.
const asProgram = "TOKGATE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	server.Keep()
	mode, ok := os.LookupEnv(asProgram)
	if !ok || mode == "virtual" {
		// The first call of signal.Notify starts a goroutine, which must not belong to a synctest
		// bubble.
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt)
		signal.Stop(signals)
		if ok {
			os.Exit(virtually(m))
		}
		os.Exit(m.Run())
	}
	args := os.Args[1:]
	if mode == "simulate" && len(args) > 0 && (args[0] == "run" || args[0] == "bisect") && !slices.Contains(args, "--simulate") {
		args = slices.Insert(slices.Clone(args), 1, "--simulate")
	}
	os.Exit(program(args, Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// virtualProgram runs this process's command line in virtual time; nil while this process runs
// tests.
var virtualProgram func(*testing.T)

// virtually runs a command line in virtual time. The hidden test TestVirtualProgram does the work,
// because only a test can start a synctest bubble.
func virtually(m *testing.M) (code int) {
	now := time.Now()
	args, streams := os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	virtualProgram = func(t *testing.T) {
		time.Sleep(time.Until(now)) // the virtual clock begins in the year 2000: advance it to now
		code = (&app{Streams: streams, environ: os.Environ(), network: inMemory, salts: func() uint64 { return 1 }}).main(t.Context(), args)
	}
	os.Args = []string{os.Args[0], "-test.run=^TestVirtualProgram$"}
	quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // hide the last lines of the test framework
	if err != nil {
		panic(err)
	}
	os.Stdout = quiet
	if failed := m.Run(); failed != 0 {
		return failed
	}
	return code
}

func TestVirtualProgram(t *testing.T) {
	if virtualProgram == nil {
		t.Skip("it is what TestMain runs in a process that stands for the program")
	}
	synctest.Test(t, virtualProgram)
}

// programFile returns the path of a script that runs tokgate.
func programFile(t *testing.T, mode string) string {
	t.Helper()
	test := must.Get(os.Executable())(t)
	path := filepath.Join(t.TempDir(), "tokgate")
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %q \"$@\"\n", asProgram, mode, test)
	must.Do(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

var repository = func() string {
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		panic(err)
	}
	return dir
}()

// checkout is a temporary repository with a runner.
type checkout struct {
	*runner.Machine
	t         *testing.T
	artifacts map[string][]string // files of each artifact, by its name; paths have slashes
}

func newCheckout(t *testing.T, mode string) *checkout {
	t.Helper()
	for _, tool := range []string{"bash", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	dir := t.TempDir()
	c := &checkout{t: t, artifacts: map[string][]string{}}
	c.Machine = &runner.Machine{
		Workspace: filepath.Join(dir, "workspace"), Temp: filepath.Join(dir, "temp"),
		Local: map[string]string{"tokgate/tokgate": repository},
		With:  map[string]string{"version": programFile(t, mode)},
		Actions: map[string]runner.Action{
			"actions/checkout":        func(map[string]string) (map[string]string, error) { return nil, nil }, // it is there
			"actions/upload-artifact": c.upload,
			"actions/setup-go":        func(map[string]string) (map[string]string, error) { return nil, nil },
		},
		GitHub:  map[string]any{"repository": "team/serving"},
		Environ: []string{"GIT_CONFIG_GLOBAL=" + os.DevNull},
	}
	for _, dir := range []string{c.Workspace, c.Temp} {
		must.Do(t, os.MkdirAll(dir, 0o755))
	}
	c.git("init", "--quiet", "--initial-branch=main")
	return c
}

// upload stands in for the action actions/upload-artifact, and knows the inputs of its action.yml.
// The input path may have several lines. Hidden files are skipped by default. Each artifact needs a
// new name.
func (c *checkout) upload(with map[string]string) (map[string]string, error) {
	for name := range with {
		if !slices.Contains([]string{"name", "path", "if-no-files-found", "retention-days", "include-hidden-files"}, name) {
			return nil, fmt.Errorf("upload-artifact has no input %q", name)
		}
	}
	if _, ok := c.artifacts[with["name"]]; ok {
		return nil, fmt.Errorf("there is an artifact %q already", with["name"])
	}
	var files []string
	for path := range strings.Lines(with["path"]) {
		path = strings.TrimSpace(path)
		if path == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Workspace, path)
		}
		_ = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			hidden := err == nil && strings.HasPrefix(d.Name(), ".") && with["include-hidden-files"] != "true"
			if err == nil && !d.IsDir() && !hidden {
				rel, _ := filepath.Rel(c.Workspace, file)
				files = append(files, filepath.ToSlash(rel))
			}
			return nil
		})
	}
	if len(files) == 0 && with["if-no-files-found"] == "error" {
		return nil, fmt.Errorf("no files to upload at %q", with["path"])
	}
	if len(files) > 0 {
		c.artifacts[with["name"]] = files
	}
	return nil, nil
}

// downloadInto stands in for the action actions/download-artifact, in a job with another workspace.
// It downloads all artifacts, each into a folder of its name. Paths in this folder are relative to
// the common folder of the artifact's files.
func (c *checkout) downloadInto(workspace string) runner.Action {
	return func(with map[string]string) (map[string]string, error) {
		for name := range with {
			if name != "path" {
				return nil, fmt.Errorf("this stands in for no download with %q", name)
			}
		}
		for name, files := range c.artifacts {
			common := filepath.Dir(files[0])
			for _, file := range files {
				for common != "." && !strings.HasPrefix(file, common+"/") {
					common = filepath.Dir(common)
				}
			}
			for _, file := range files {
				rel, _ := filepath.Rel(common, file)
				to := filepath.Join(workspace, with["path"], name, rel)
				if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
					return nil, err
				}
				text, err := os.ReadFile(filepath.Join(c.Workspace, file))
				if err == nil {
					err = os.WriteFile(to, text, 0o644)
				}
				if err != nil {
					return nil, err
				}
			}
		}
		return nil, nil
	}
}

func (c *checkout) git(args ...string) string {
	c.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", c.Workspace, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), c.Environ...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes and commits files, and returns the commit's hash.
func (c *checkout) commit(files map[string]string) string {
	c.t.Helper()
	for name, text := range files {
		path := filepath.Join(c.Workspace, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	c.git("add", "--all")
	c.git("commit", "--quiet", "--allow-empty", "--message", "x")
	return c.git("rev-parse", "HEAD")
}

// run runs a job of a workflow of this repository.
func (c *checkout) run(workflow, job string, more map[string]any) *runner.Job {
	c.t.Helper()
	src, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(workflow)))
	if err != nil {
		c.t.Fatal(err)
	}
	j, err := c.Run(c.t.Context(), src, job, more)
	if err != nil {
		c.t.Fatalf("%s: %v", workflow, err)
	}
	return j
}

// annotations returns the annotations of a step without the warning "Nothing bounds decoding". All
// gates in these tests cause this warning, because they bound only the TTFT.
func annotations(commands []runner.Command) []string {
	return slices.DeleteFunc(stepResult{commands: commands}.annotations(), func(a string) bool {
		return strings.HasSuffix(a, " Nothing bounds decoding")
	})
}

// gatePlan is a plan with a gate, as a format. Its two verbs stand for the body of the server and
// the limit of the TTFT.
const gatePlan = `server "vllm" {
  %s
}

workload "chat" {
  input_tokens  = 256
  output_tokens = { mean = 16, jitter = "10%%" }

  load {
    concurrency = 4
    requests    = 200
  }

  sla {
    ttft = "p95 < %s"
  }
}
`

// compared adds a comparison with the server of the base branch to the plan, and enough requests
// for a decision. Each branch may set the plan's variable in a file.
func compared(plan string) string { return strings.Replace(plan, "= 200", "= 1600", 1) + againstBase }

const againstBase = `
variable "profile" {
  type    = string
  default = ""
}

compare "pull_request" {
  control   = base.server.vllm
  candidate = server.vllm
  changed   = ["profile"]

  tolerate {
    e2e = "mean +5%"
  }
}
`

// servers lists servers with different faults, and the verdict that a gate gives each.
var servers = []struct {
	name, mode, server, limit string
	base, head                string // simulator profiles of base branch and pull request; "" if none
	code                      int
	verdict                   string
	annotations               []string
	summary                   []string
	failures                  string // text that must be in the JUnit file
}{
	{"green", "simulate", "simulator { profile = var.profile }", "2s", "today", "tomorrow", 0, "pass", []string{},
		[]string{"## ✅ PASS · gate", "| ✅ passed | chat at 4 | E2E mean "}, ""},
	{"red", "simulate", "simulator { profile = var.profile }", "2s", "today", "slower", 1, "fail",
		[]string{"error plans/gate.hcl:24 fail: compare.pull_request (vllm)", "error plans/gate.hcl:30 fail: compare.pull_request.tolerate.e2e.mean at 4 (chat on vllm)",
			"error plans/gate.hcl:15 inconclusive: sla.ttft.p95 at 4 (chat on vllm)"},
		[]string{"## ❌ FAIL · gate", "| ❌ failed | chat at 4 | E2E mean "}, "<failure"},
	{"red by itself", "simulate", "simulator {}", "1ms", "", "", 1, "fail",
		[]string{"error plans/gate.hcl:15 fail: sla.ttft.p95 at 4 (chat on vllm)"},
		[]string{"## ❌ FAIL · gate", "| ❌ failed | chat | vllm |"}, "<failure"},
	// 3 % of 200 requests are slow. The limit allows 5 %, which is too near for a verdict.
	{"inconclusive", "simulate", "simulator {}", "60ms", "", "", 3, "inconclusive",
		[]string{"error plans/gate.hcl:15 inconclusive: sla.ttft.p95 at 4 (chat on vllm)"},
		[]string{"## ❔ INCONCLUSIVE · gate", "| ❔ inconclusive | chat | vllm |"}, "<failure"},
	{"broken", "", "process {\n    command = [\"sh\", \"-c\", \"echo '::error::CUDA out of memory'; exit 3\", \"{port}\"]\n  }", "2s", "", "", 4, "error", nil,
		[]string{"## 🛑 ERROR · gate"}, "<error"},
}

// For `make junit-consumers`.
var keepJUnit = flag.String("keep-junit", "", "keep the JUnit files of TestLongWorkflowGate in this folder")

func TestLongWorkflowGate(t *testing.T) {
	profiles := map[string]string{
		"today": read(t, filepath.Join(plansDir, "profiles", "today.json")), "slower": read(t, filepath.Join(plansDir, "profiles", "slower.json")),
	}
	profiles["tomorrow"] = strings.Replace(profiles["today"], `"today"`, `"tomorrow"`, 1)
	for _, tt := range servers {
		t.Run(tt.name, func(t *testing.T) {
			c := newCheckout(t, tt.mode)
			at := func(profile string) map[string]string {
				files := map[string]string{"plans/gate.hcl": fmt.Sprintf(gatePlan, tt.server, tt.limit), "plans/gate.vars.hcl": ""}
				if profile != "" {
					files["plans/gate.hcl"] = compared(files["plans/gate.hcl"])
					files["plans/gate.vars.hcl"] = fmt.Sprintf("profile = \"%s.json\"\n", profile)
					files["plans/"+profile+".json"] = profiles[profile]
				}
				return files
			}
			base := c.commit(at(tt.base))
			c.commit(at(tt.head))
			c.GitHub["event"] = pullRequest("team/serving", base)
			job := c.run("docs/workflows/gate.yml", "gate", nil)
			gate := job.Step("gate")
			if job.Failed != (tt.code != 0) || gate.Outputs["verdict"] != tt.verdict || gate.Outputs["exit-code"] != fmt.Sprint(tt.code) {
				t.Errorf("failed %t, outputs %v\n%s", job.Failed, gate.Outputs, job.Log)
			}
			s := job.Step("run")
			must.Hold(t, s.ExitCode == tt.code, "the step that runs tokgate ended with %d, want %d", s.ExitCode, tt.code)
			got := annotations(job.Commands)
			if tt.annotations != nil {
				must.Same(t, "annotations (-want +got)", tt.annotations, got)
			} else if len(got) == 0 || len(got) > runner.MostAnnotations {
				t.Errorf("%d annotations", len(got))
			}
			for _, a := range got {
				must.Hold(t, strings.HasPrefix(a, "error plans/gate.hcl:"), "annotation %q is beside no line of the plan", a)
			}
			summary := job.Summary()
			for _, want := range tt.summary {
				must.Hold(t, strings.Contains(summary, want), "the summary does not say %q:\n%.3000s", want, summary)
			}
			must.Hold(t, strings.HasPrefix(strings.TrimSpace(summary), tt.summary[0]), "the summary begins %.200q", summary)
			// Whatever its verdict, every gate uploads its results.
			results := gate.Outputs["results"]
			for _, name := range []string{"junit.xml", "report.md", "results.json", "samples.jsonl"} {
				must.Hold(t, slices.Contains(c.artifacts["tokgate-results"], results+"/"+name), "%s/%s is not in the artifact: %v", results, name, c.artifacts)
			}
			junit := read(t, filepath.Join(c.Workspace, gate.Outputs["junit"]))
			must.Hold(t, strings.Contains(junit, tt.failures), "the JUnit file has no %s:\n%s", tt.failures, junit)
			if *keepJUnit != "" {
				must.Do(t, os.WriteFile(filepath.Join(*keepJUnit, strings.ReplaceAll(tt.name, " ", "-")+".xml"), []byte(junit), 0o644))
			}
		})
	}
}

func pullRequest(repository, base string) map[string]any {
	return map[string]any{"pull_request": map[string]any{
		"head": map[string]any{"repo": map[string]any{"full_name": repository}},
		"base": map[string]any{"sha": base},
	}}
}

// A pull request from a fork does not run on the project's own runners, because its code is not
// trusted.
func TestLongWorkflowGateForks(t *testing.T) {
	c := newCheckout(t, "simulate")
	c.GitHub["event"] = pullRequest("someone/serving", c.commit(nil))
	if job := c.run("docs/workflows/gate.yml", "gate", nil); !job.Skipped {
		t.Errorf("a fork's job ran:\n%s", job.Log)
	}
}

func TestLongWorkflowPlans(t *testing.T) {
	good := fmt.Sprintf(gatePlan, "simulator {}", "2s")
	typo := []string{"error plans/gate.hcl:15 Unsupported argument"}
	for _, tt := range []struct {
		name, plan  string
		steps       string // exit codes of the steps run, fmt and validate
		annotations []string
	}{
		{"good", good, "0 0 0", []string{}},
		{"not formatted", strings.Replace(good, "input_tokens  =", "input_tokens =", 1), "0 1 0", []string{"error plans/gate.hcl:6 not formatted"}},
		{"a typo", strings.Replace(good, "ttft =", "tftt =", 1), "2 0 2", append(typo, typo...)},
		{"fails", strings.Replace(good, "2s", "1ms", 1), "1 0 0", []string{"error plans/gate.hcl:15 fail: sla.ttft.p95 at 4 (chat on vllm)"}},
		{"no simulator", strings.Replace(good, "simulator {}", `endpoint { url = "http://127.0.0.1:1" }`, 1), "2 0 0", []string{"error plans/gate.hcl:1 No simulator"}},
		// A pull request has a base branch, so base.server exists for the plan's comparison.
		{"against the base", strings.Replace(compared(strings.Replace(good, "simulator {}", "simulator { profile = var.profile }", 1)), `""`, `"default"`, 1), "0 0 0", []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCheckout(t, "")
			c.GitHub["event"] = pullRequest("team/serving", c.commit(map[string]string{"plans/gate.hcl": good}))
			c.commit(map[string]string{"plans/gate.hcl": tt.plan})
			job := c.run("docs/workflows/plans.yml", "plans", nil)
			var codes []string
			for _, name := range []string{"run", "Are they formatted?", "Are they valid?"} {
				codes = append(codes, fmt.Sprint(job.Step(name).ExitCode))
			}
			if got := strings.Join(codes, " "); got != tt.steps || job.Failed != (tt.steps != "0 0 0") {
				t.Errorf("the steps ended with %s, want %s; failed %t\n%s", got, tt.steps, job.Failed, job.Log)
			}
			must.Same(t, "annotations (-want +got)", tt.annotations, annotations(job.Commands))
			ran := tt.steps[0] != '2'
			must.Hold(t, ran == (len(c.artifacts["simulated"]) > 0), "artifacts %v", c.artifacts)
		})
	}
}

// Each job of the matrix sets the image, and uploads an artifact with its own name.
func TestLongWorkflowMatrix(t *testing.T) {
	c := newCheckout(t, "simulate")
	plan := "variable \"image\" {\n  type = string\n}\n\nserver \"vllm\" {\n  model = var.image\n  simulator {}\n}\n" +
		strings.SplitN(fmt.Sprintf(gatePlan, "", "2s"), "}\n", 2)[1]
	c.commit(map[string]string{"plans/gate.hcl": plan})
	for _, engine := range []string{"v0.19.1", "v0.20.0"} {
		job := c.run("docs/workflows/matrix.yml", "measure", map[string]any{
			"inputs": map[string]any{"plan": "plans/gate.hcl"},
			"matrix": map[string]any{"engine": engine, "driver": "570"},
		})
		if job.Failed { // fails without the image, because the variable has no default
			t.Errorf("it failed\n%s", job.Log)
		}
	}
	got := slices.Sorted(maps.Keys(c.artifacts))
	must.Hold(t, cmp.Equal(got, []string{"results-v0.19.1-driver-570", "results-v0.20.0-driver-570"}), "artifacts %v", got)
}

// nightly is the workflow of the nights with an origin, and an issue tracker that a script named gh
// stands for. Each night runs on a machine of its own.
type nightly struct {
	t       *testing.T
	origin  string
	tracker string // folder with the number of the open issue, and what gh and curl were asked for
}

func newNightly(t *testing.T) *nightly {
	n := &nightly{t, t.TempDir(), t.TempDir()}
	open, asked := filepath.Join(n.tracker, "open"), filepath.Join(n.tracker, "asked")
	for name, script := range map[string]string{
		"gh": fmt.Sprintf(`#!/bin/sh
case "$2" in
  list) [ ! -e %[1]q ] || cat %[1]q; exit ;;
  create) echo 7 > %[1]q ;;
  close) rm %[1]q ;;
esac
echo "gh $*" >> %[2]q
[ "$2" = close ] || cat body.md >> %[2]q
`, open, asked),
		"curl": fmt.Sprintf("#!/bin/sh\nfor a; do last=$a; done\necho \"curl $last $9\" >> %q\n", asked),
	} {
		must.Do(t, os.WriteFile(filepath.Join(n.tracker, name), []byte(script), 0o755))
	}
	return n
}

// night runs both jobs with a plan. It returns the verdict of the control, and what gh and curl were
// asked for.
func (n *nightly) night(plan string, more map[string]any) (verdict, asked string, control *runner.Job) {
	n.t.Helper()
	const workflow = "docs/workflows/nightly.yml"
	c := newCheckout(n.t, "virtual") // not "simulate": a simulated night does not enter a history
	c.commit(map[string]string{"plans/control.hcl": plan})
	if _, err := os.Stat(filepath.Join(n.origin, "HEAD")); err != nil {
		c.git("init", "--quiet", "--bare", n.origin)
	}
	c.git("remote", "add", "origin", n.origin)
	c.git("fetch", "--quiet", "origin")
	control = c.run(workflow, "control", more)
	result := "success"
	if control.Failed {
		result = "failure"
	}
	p := newCheckout(n.t, "")
	p.Path = n.tracker
	p.git("remote", "add", "origin", n.origin)
	p.git("fetch", "--quiet", "origin")
	p.Actions["actions/download-artifact"] = c.downloadInto(p.Workspace)
	p.GitHub["server_url"], p.GitHub["run_id"] = "https://github.com", "17"
	context := map[string]any{
		"secrets": map[string]any{"GITHUB_TOKEN": "token", "SLACK_WEBHOOK": "https://slack.example", "TEAMS_WEBHOOK": "https://teams.example"},
		"needs":   map[string]any{"control": map[string]any{"result": result, "outputs": map[string]any{"verdict": control.Outputs["verdict"]}}},
	}
	maps.Copy(context, more)
	published := p.run(workflow, "publish", context)
	if published.Failed {
		n.t.Fatalf("publishing failed:\n%s", published.Log)
	}
	if published.Skipped {
		return control.Outputs["verdict"], "skipped", control
	}
	b, _ := os.ReadFile(filepath.Join(n.tracker, "asked"))
	_ = os.Remove(filepath.Join(n.tracker, "asked"))
	return control.Outputs["verdict"], string(b), control
}

// kept returns the nights on the history's branch. Besides them it holds the badge and .gitattributes.
func (n *nightly) kept() metric.History {
	n.t.Helper()
	dir := n.t.TempDir()
	c := newCheckout(n.t, "")
	for _, name := range strings.Fields(c.git("--git-dir", n.origin, "ls-tree", "--name-only", "-r", "tokgate-history")) {
		if !strings.HasSuffix(name, ".jsonl") && name != ".gitattributes" && name != "badge.json" {
			n.t.Errorf("the branch holds %q", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(c.git("--git-dir", n.origin, "show", "tokgate-history:"+name)+"\n"), 0o644); err != nil {
			n.t.Fatal(err)
		}
	}
	h, problems, err := history.Read(dir)
	if err != nil || problems != nil {
		n.t.Fatal(problems, err)
	}
	return h
}

// Each measured night is committed to the history's branch. One issue is open while the nights are not
// green: it is opened, edited, and closed by the night that ended it. A suspect night passes.
func TestLongWorkflowNightly(t *testing.T) {
	good := strings.TrimSpace(nightlyPlan)
	// 60 requests decide a p95 only if none is slower than the limit.
	undecided := strings.NewReplacer(`decide = "estimate"`, "", "= 20", "= 60", "20s", "23.9ms").Replace(good)
	broken := strings.Replace(good, "simulator {}", `endpoint { url = "http://127.0.0.1:1" }`, 1)
	n := newNightly(t)
	const run = "https://github.com/team/serving/actions/runs/17"
	for i, tt := range []struct {
		plan, verdict string
		nights        int      // on the branch, after this one
		words         []string // what gh and curl were asked for, in order; nil if nothing
	}{
		{good, "pass", 1, nil},
		{strings.Replace(good, "20s", "1us", 1), "fail", 2, []string{"gh issue create --title The nightly control run is not green", "**fail**, " + run, "## ❌ FAIL",
			`curl https://slack.example {"text":"The nightly control run is not green: fail. ` + run + `"}`, `AdaptiveCard`}},
		{undecided, "inconclusive", 3, []string{"gh issue edit 7", "**inconclusive**, " + run, "INCONCLUSIVE"}},
		{broken, "error", 3, []string{"gh issue edit 7", "**error**, " + run, "ERROR"}},
		{good, "pass", 4, []string{"gh issue close 7 --comment It ended with this night: " + run, "is green again"}},
		{good, "pass", 5, nil},
	} {
		verdict, asked, control := n.night(tt.plan, nil)
		if verdict != tt.verdict || tt.words == nil && asked != "" {
			t.Errorf("night %d: verdict %s, want %s; gh was asked for %q\n%s", i, verdict, tt.verdict, asked, control.Log)
		}
		rest := asked
		for _, word := range tt.words {
			_, after, ok := strings.Cut(rest, word)
			must.Hold(t, ok, "night %d: gh and curl were asked for %q, which lacks %q at its place", i, asked, word)
			rest = after
		}
		badge := newCheckout(t, "").git("--git-dir", n.origin, "show", "tokgate-history:badge.json")
		want := map[bool]string{true: `"message":"recorded"`, false: fmt.Sprintf(`"message":%q`, verdict)}[verdict == "pass"]
		must.Hold(t, strings.Contains(badge, want), "night %d: badge %s, want %s", i, badge, want)
		got := len(n.kept().Nights)
		must.Hold(t, got == tt.nights, "night %d: the branch holds %d nights, want %d", i, got, tt.nights)
	}
	n.suspectNight(good)
}

// suspectNight makes twelve nights of the last one, but a fifth faster. So the next is suspect: it
// passes, the summary names the command that measures again, and that run is no night.
func (n *nightly) suspectNight(plan string) {
	t := n.t
	h := n.kept()
	before := metric.History{}
	for i := range 12 {
		night := h.Nights[len(h.Nights)-1]
		night.Run, night.Started, night.Figures = fmt.Sprintf("before-%d", i), night.Started.AddDate(0, 0, i-20), slices.Clone(night.Figures)
		for k := range night.Figures {
			if f := &night.Figures[k]; f.Metric == "e2e" {
				f.Value *= 0.8 * (1 + 0.005*float64(i%3))
			}
		}
		before.Nights = append(before.Nights, night)
	}
	dir := t.TempDir()
	_, _, err := history.Import(dir, before)
	must.Need(t, err == nil, "%v", err)
	c := newCheckout(t, "")
	files := map[string]string{}
	entries, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, path := range entries {
		files[filepath.Base(path)] = read(t, path)
	}
	c.commit(files)
	c.git("push", "--quiet", "--force", n.origin, "HEAD:refs/heads/tokgate-history")
	verdict, asked, control := n.night(plan, nil)
	if verdict != "pass" || asked != "" || !strings.Contains(control.Summary(), "Suspect: w at 4, e2e mean +") || !strings.Contains(control.Summary(), "tokgate run plans/control.hcl --only w") {
		t.Errorf("a suspect night: verdict %s, gh was asked for %q, summary:\n%s", verdict, asked, control.Summary())
	}
	badge := c.git("--git-dir", n.origin, "show", "tokgate-history:badge.json")
	must.Hold(t, strings.Contains(badge, "suspect"), "badge %s", badge)
	again, asked, control := n.night(plan, map[string]any{"inputs": map[string]any{"only": "w"}})
	if again != "pass" || asked != "skipped" || len(n.kept().Nights) != 13 {
		t.Errorf("measured again: verdict %s, gh was asked for %q; %d nights\n%s", again, asked, len(n.kept().Nights), control.Log)
	}
}

// A cancelled or interrupted night says nothing. A job that died without a verdict is told.
func TestLongWorkflowNightlyCancelled(t *testing.T) {
	for _, tt := range []struct {
		result, verdict string
		skipped         bool
	}{{"cancelled", "", true}, {"failure", "interrupted", true}, {"failure", "", false}} {
		n := newNightly(t)
		c := newCheckout(t, "")
		c.Path = n.tracker
		c.commit(nil)
		c.git("init", "--quiet", "--bare", n.origin)
		c.git("remote", "add", "origin", n.origin)
		c.Actions["actions/download-artifact"] = func(map[string]string) (map[string]string, error) { return nil, nil }
		c.GitHub["server_url"], c.GitHub["run_id"] = "https://github.com", "17"
		job := c.run("docs/workflows/nightly.yml", "publish", map[string]any{"needs": map[string]any{
			"control": map[string]any{"result": tt.result, "outputs": map[string]any{"verdict": tt.verdict}}}})
		b, _ := os.ReadFile(filepath.Join(n.tracker, "asked"))
		if !tt.skipped {
			b = append(b, c.git("--git-dir", n.origin, "show", "tokgate-history:badge.json")...)
		}
		if job.Skipped != tt.skipped || !tt.skipped && (!strings.Contains(string(b), "**no verdict**") || !strings.Contains(string(b), `"message":"no verdict"`)) {
			t.Errorf("%v: skipped %t, gh was asked for %q\n%s", tt, job.Skipped, b, job.Log)
		}
	}
}

// The workflow bisects over a good value, what lies between, and a bad one. Started again, it goes on in
// the folder that it kept, and measures nothing twice.
func TestLongWorkflowBisect(t *testing.T) {
	c := newCheckout(t, "simulate")
	dir, _ := bisectFolder(t, 6)
	must.Do(t, os.CopyFS(c.Workspace, os.DirFS(dir)))
	must.Do(t, os.Remove(filepath.Join(c.Workspace, "values.txt")))
	home := t.TempDir()
	t.Setenv("HOME", home)
	inputs := map[string]any{"inputs": map[string]any{"plan": "plan.hcl", "variable": "profile", "good": "v0.json",
		"between": "v1.json v2.json v3.json v4.json v5.json v6.json", "bad": "v7.json", "metric": "throughput", "at": "chat/8", "claimed": "+10%"}}
	var journals []string
	for range 2 {
		job := c.run("docs/workflows/bisect.yml", "bisect", inputs)
		must.Need(t, !job.Failed, "%s", job.Log)
		must.Hold(t, strings.Contains(job.Summary(), "The change came with v6.json"), "the summary is\n%s", job.Summary())
		kept := must.Get(filepath.Glob(filepath.Join(home, "tokgate", "bisect-*")))(t)
		must.Need(t, len(kept) == 1, "kept %v", kept)
		journals = append(journals, read(t, filepath.Join(kept[0], journalFile)))
	}
	must.Hold(t, journals[0] == journals[1], "the second run measured again")
	inputs["inputs"].(map[string]any)["variable"] = "$(touch ran)"
	job := c.run("docs/workflows/bisect.yml", "bisect", inputs)
	_, err := os.Stat(filepath.Join(c.Workspace, "ran"))
	must.Hold(t, job.Failed && os.IsNotExist(err), "an input is a command\n%s", job.Log)
}

// The project's own nightly run uses the action of the checkout.
func TestLongWorkflowOwnNightly(t *testing.T) {
	c := newCheckout(t, "simulate")
	c.Local["./"] = repository
	files := map[string]string{}
	for _, name := range []string{"plans/demo.hcl", "plans/capacity.hcl"} {
		files[name] = read(t, filepath.Join(repository, name))
	}
	c.commit(files)
	if job := c.run(".github/workflows/nightly.yml", "gate", nil); job.Failed {
		t.Errorf("outputs %v\n%s", job.Step("gate").Outputs, job.Log)
	}
}

// actionStep returns a workflow with one step that uses the action.
func actionStep(with string) []byte {
	return []byte("jobs: {j: {steps: [{id: gate, uses: tokgate/tokgate@0, with: {" + with + "}}]}}")
}

// The action passes its inputs to tokgate unchanged. A shell does not interpret special characters
// in them.
func TestActionInputs(t *testing.T) {
	c := newCheckout(t, "")
	// The script echo replaces tokgate and prints its arguments.
	echo := filepath.Join(t.TempDir(), "tokgate")
	must.Do(t, os.WriteFile(echo, []byte("#!/bin/sh\nfor a; do echo \"<$a>\"; done\n"), 0o755))
	c.With["version"] = echo
	base := c.commit(map[string]string{"serving/plans/a.hcl": ""})
	job, err := c.Run(t.Context(), actionStep(`working-directory: serving, base: main,
		policy: rules/policy.hcl, plan: "plans\n-odd name.hcl\n", vars: "a=1; $(touch pwned) ${{ 'x' }}\nb='2'\n\n", var-files: "v.hcl", args: "--simulate\n--only\nw/2"`), "j", nil)
	must.Do(t, err)
	want := []string{"run", "--var-file", "v.hcl", "--var", "a=1; $(touch pwned) x", "--var", "b='2'",
		"--base", filepath.Join(c.Temp, "tokgate-base"), "--policy", filepath.Join(c.Temp, "tokgate-base") + "/rules/policy.hcl", "--simulate", "--only", "w/2", "--", "plans", "-odd name.hcl"}
	must.Hold(t, !strings.Contains(job.Step("install").Log, "::notice"), "there is a plan: %s", job.Step("install").Log)
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^<(.*)>$`).FindAllStringSubmatch(job.Step("run").Log, -1) {
		got = append(got, m[1])
	}
	diff := cmp.Diff(want, got)
	must.Hold(t, diff == "", "arguments (-want +got):\n%s\n%s", diff, job.Log)
	must.Same(t, "the base", base, c.git("-C", filepath.Join(c.Temp, "tokgate-base"), "rev-parse", "HEAD"))
	// Without the base branch the action refuses to run, because the pull request itself could have
	// changed the policy.
	alone, err := c.Run(t.Context(), actionStep(`plan: plans, policy: policy.hcl`), "j", nil)
	if err != nil || alone.Step("run").ExitCode != 2 || !strings.Contains(alone.Step("run").Log, "policy needs base") {
		t.Errorf("a policy without a base: %v\n%s", err, alone.Log)
	}
	for _, dir := range []string{"", "serving"} {
		if _, err := os.Stat(filepath.Join(c.Workspace, dir, "pwned")); err == nil {
			t.Error("an input was run by the shell")
		}
	}
}

// The action finds the newest commit of the base branch, even in a shallow checkout. An older copy
// from an earlier job does not count.
func TestActionBase(t *testing.T) {
	origin := newCheckout(t, "")
	old := origin.commit(map[string]string{"f": "old"})
	head := origin.commit(map[string]string{"f": "new"})
	c := newCheckout(t, "")
	c.With["version"] = "/bin/true"
	c.git("remote", "add", "origin", "file://"+origin.Workspace)
	c.git("fetch", "--quiet", "--depth=1", "origin", "main")
	c.git("checkout", "--quiet", "--detach", "FETCH_HEAD")
	for _, tt := range []struct{ base, want string }{{"main", head}, {head, head}, {old, old}, {"main", head}, {"absent", ""}, {"--upload-pack=x", ""}} {
		job := must.Get(c.Run(t.Context(), actionStep(`plan: p.hcl, upload: "", base: "`+tt.base+`"`), "j", nil))(t)
		step := job.Step("base")
		if tt.want == "" {
			must.Hold(t, step.ExitCode == 2 && strings.Contains(job.Log, "::error"), "base %q: %+v", tt.base, step)
			continue
		}
		must.Hold(t, step.ExitCode == 0 && strings.Contains(step.Log, "base: "+tt.want), "base %q: %+v, want %s", tt.base, step, tt.want)
	}
}

// The action uses a downloaded release only if its checksum is the published one.
func TestActionRelease(t *testing.T) {
	releases := t.TempDir()
	folder := filepath.Join(releases, "v1.2.3")
	archive := filepath.Join(folder, "tokgate_1.2.3_linux_amd64.tar.gz")
	sums := filepath.Join(folder, "checksums.txt")
	must.Do(t, os.MkdirAll(folder, 0o755))
	out, err := exec.Command("tar", "-czf", archive, "-C", filepath.Dir(programFile(t, "")), "tokgate").CombinedOutput()
	must.Need(t, err == nil, "%v: %s", err, out)
	released := sha256.Sum256([]byte(read(t, archive)))
	for _, tt := range []struct {
		name, version, sums, says string
	}{
		{"as released", "v1.2.3", hex.EncodeToString(released[:]) + "  tokgate_1.2.3_linux_amd64.tar.gz\n", ""},
		{"another archive", "v1.2.3", strings.Repeat("0", 64) + "  tokgate_1.2.3_linux_amd64.tar.gz\n", "it is not what was released"},
		{"no checksum", "v1.2.3", hex.EncodeToString(released[:]) + "  tokgate_1.2.3_linux_arm64.tar.gz\n", "do not list"},
		{"no such release", "v9.9.9", "", "could not download"},
		{"no release", "v1.2.3/../x", "", "no program"},
		{"no version", "latest", "", "neither a release"},
		{"odd version", "v1.2.3;x", "", "is no release"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			must.Do(t, os.WriteFile(sums, []byte(tt.sums), 0o644))
			c := newCheckout(t, "")
			c.With["version"] = tt.version
			c.Environ = append(c.Environ, "TOKGATE_RELEASES=file://"+releases)
			job := must.Get(c.Run(t.Context(), actionStep(""), "j", nil))(t)
			step := job.Step("install")
			if tt.says == "" {
				if step.ExitCode != 0 || !strings.Contains(step.Log, "tokgate ") || !strings.Contains(step.Log, "::notice title=tokgate::plan is empty") {
					t.Errorf("%+v", step)
				}
			} else if step.ExitCode == 0 || !strings.Contains(step.Log, tt.says) {
				t.Errorf("%+v, want it to say %q", step, tt.says)
			}
		})
	}
}

// Without the input version, the action builds tokgate from the commit at which the action is
// pinned.
func TestActionBuilds(t *testing.T) {
	if os.Getenv("TOKGATE_ACTION_BUILDS") == "" {
		t.Skip("it builds tokgate: `make actions` tries it")
	}
	c := newCheckout(t, "")
	delete(c.With, "version")
	// The step of the job uses the caches of this test's go command.
	c.Environ = append(c.Environ, "GOCACHE="+goenv(t, "GOCACHE"), "GOMODCACHE="+goenv(t, "GOMODCACHE"), "GOFLAGS="+os.Getenv("GOFLAGS"), "GOPROXY="+goenv(t, "GOPROXY"))
	job := must.Get(c.Run(t.Context(), actionStep(""), "j", nil))(t)
	must.Hold(t, !job.Failed && strings.Contains(job.Step("install").Log, "tokgate ") && job.Step("run").Skipped, "%s", job.Log)
}

func goenv(t *testing.T, name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Skip("there is no go command")
	}
	return strings.TrimSpace(string(out))
}
