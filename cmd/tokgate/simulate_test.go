package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/record"
)

// simulatedPlan can only be simulated. Its server does not exist, and its secret is not set. A real
// run would take half an hour.
const simulatedPlan = `server "gpu" {
  engine = "vllm"
  endpoint {
    url     = "http://gpu.example:8000"
    api_key = env.SECRET_KEY
  }
  simulator {
    seed = 3
  }
}

workload "chat" {
  input_tokens  = 256
  output_tokens = { mean = 100, jitter = "10%" }
  load {
    concurrency = [1, 8]
    pause       = "5s"
    requests    = { 1 = 20, default = 120 }
  }
  sla {
    at   = [8, "capacity"]
    ttft = "p95 < 2s"
  }
  capacity {
    up_to  = 16
    budget = "12h"
  }
}
`

func TestLongSimulate(t *testing.T) {
	t.Chdir(t.TempDir())
	path := writePlan(t, simulatedPlan)
	extra := t.TempDir()
	levels := filepath.Join(extra, "levels.csv")
	r := tokgate(t, "run", "--simulate", "--csv", levels, path)
	r.check(t, verdict.ExitPass, "SIMULATED  Every server was", "of virtual time", "PASS", "sla.ttft.p95 at 8", "· simulated ·")
	const dir = "results/test-simulated"
	wellFormed(t, filepath.Join(dir, "junit.xml"))
	for file, words := range map[string][]string{
		filepath.Join(dir, "report.md"):            {"**Simulated.**", "in virtual time"},
		filepath.Join(dir, "junit.xml"):            {`name="gpu/chat (simulated)"`, `<property name="simulated" value="true">`, "SIMULATED"},
		filepath.Join(dir, "results.json"):         {`"simulated": true`},
		filepath.Join(dir, "samples.jsonl"):        {`"simulated":true`},
		levels:                                     {",true,gpu,chat,"},
		filepath.Join(extra, "levels.samples.csv"): {"simulated,server,", "\ntrue,gpu,chat,"},
	} {
		text := read(t, file)
		for _, w := range words {
			must.Hold(t, strings.Contains(text, w), "%s does not say %q:\n%.2000s", file, w, text)
		}
	}
	if !strings.Contains(r.err, "simulated: times are virtual") || !strings.Contains(r.err, "times as fast as real time") {
		t.Errorf("the progress does not say that it is simulated:\n%s", r.err)
	}

	// The command judge also marks the results as simulated.
	tokgate(t, "judge", dir, path).check(t, verdict.ExitPass, "SIMULATED", "· simulated ·")
	judgedAlike(t, dir, path)
	tokgate(t, "report", dir).check(t, verdict.ExitPass, "SIMULATED", "· simulated ·")
	tokgate(t, "plan", path).check(t, verdict.ExitPass, "by the simulation in "+dir)
}

// judgedAlike judges a recording on 1, 2 and 8 processors, and checks that the files have the same
// bytes each time.
func judgedAlike(t *testing.T, dir, path string) {
	t.Helper()
	again, want := filepath.Join(t.TempDir(), "again"), map[string]string{}
	for _, procs := range []int{1, 2, 8} {
		before := runtime.GOMAXPROCS(procs)
		said := tokgate(t, "judge", "--out", again, dir, path)
		runtime.GOMAXPROCS(before)
		got := map[string]string{"what is printed": said.out}
		for _, name := range []string{"results.json", "junit.xml", "report.html", "report.md"} {
			got[name] = read(t, filepath.Join(again, name))
		}
		for name, text := range got {
			if procs > 1 && text != want[name] {
				t.Errorf("on %d processors %s is another:\n%s", procs, name, cmp.Diff(want[name], text))
			}
		}
		want = got
	}
}

func TestCannotSimulate(t *testing.T) {
	t.Chdir(t.TempDir())
	tests := map[string]struct {
		src   string
		args  []string
		words []string
	}{
		"no simulator": {
			src:   strings.Replace(simulatedPlan, "simulator {\n    seed = 3\n  }", "", 1),
			words: []string{"No simulator", "test.hcl line 1", `server "gpu"`, "gpu has none", "Add simulator {", "nothing was started"},
		},
		"no such profile": {
			src:   strings.Replace(simulatedPlan, "seed = 3", `profile = "defualt"`, 1),
			words: []string{"No such profile", "test.hcl line 7", `did you mean "default"?`},
		},
		"an endpoint": {
			src: simulatedPlan, args: []string{"--endpoint", "gpu=http://127.0.0.1:1"},
			words: []string{"--endpoint and --simulate exclude each other"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"run", "--simulate", writePlan(t, tt.src)}, tt.args...)
			tokgate(t, args...).check(t, verdict.ExitPlan, tt.words...)
			_, err := os.Stat("results")
			must.Hold(t, err != nil, "a results folder was made")
		})
	}
}

// An interrupt also ends a simulated run.
func TestSimulationIsInterrupted(t *testing.T) {
	long := regexp.MustCompile(`requests    = .*`).ReplaceAllString(simulatedPlan, "requests = 100000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := tokgateWith(t, ctx, nil, "", "run", "--simulate", "--out", t.TempDir(), writePlan(t, long))
	r.check(t, verdict.ExitInterrupted, "interrupted")
}

// head matches a command in the comment at the head of a plan, with the exit code that the head
// promises. Without a promise it is 0.
var head = regexp.MustCompile(`(?m)^#   tokgate ([^#\n]+?)[ \t]*(?:#(?: exit (\d).*|.*))?$`)

// Every command at the head of a shipped plan that needs nothing but the binary ends as the head
// says. Commands that need a server, an image or a GPU are validated by other tests.
func TestLongHeadsOfPlans(t *testing.T) {
	run := 0
	for _, path := range shipped(t) {
		for _, m := range head.FindAllStringSubmatch(read(t, path), -1) {
			args := strings.Fields(m[1])
			for i, a := range args {
				if strings.HasPrefix(a, "plans/") {
					args[i] = filepath.Join(repository, a)
				}
			}
			if args[0] == "run" && !slices.Contains(args, "--simulate") {
				continue
			}
			run++
			t.Run(m[1], func(t *testing.T) {
				t.Parallel()
				want, _ := strconv.Atoi(m[2])
				out := t.TempDir()
				if args[0] == "run" {
					args = append(args, "--quiet", "--out", out)
				}
				if r := tokgateWith(t, t.Context(), shippedEnviron, "", args...); r.code != want {
					t.Errorf("exit %d, the head of %s says %d\n%s%s", r.code, path, want, r.out, r.err)
				} else if args[0] == "run" {
					audited(t, out, out)
				}
			})
		}
	}
	must.Hold(t, run >= 15, "only %d commands were found", run)
}

// The plans that are shipped for a first try pass in a simulation.
func TestLongShippedPlansSimulate(t *testing.T) {
	for _, name := range []string{"demo", "capacity", "conversations", "pull-request"} {
		path := filepath.Join("..", "..", "plans", name+".hcl")
		out := t.TempDir()
		tokgate(t, "run", "--simulate", "--out", out, path).check(t, verdict.ExitPass, "PASS", "simulated")
		audited(t, out, out)
	}
}

// A request with more tokens than the profile's context is found before servers start. It is an
// error with --simulate, or if the server is only a simulator. It is a warning if the simulator
// stands in for a real server.
func TestContextOfTheSimulator(t *testing.T) {
	const src = `
server "s" {
  TARGET
  simulator { profile = "PROFILE" }
}
workload "w" {
  input_tokens  = 40000
  output_tokens = 100
  load { concurrency = 1 }
  sla { e2e = "mean < 60s" }
}
`
	t.Chdir(t.TempDir())
	of := func(target, profile string) string {
		return writePlan(t, strings.NewReplacer("TARGET", target, "PROFILE", profile).Replace(src))
	}
	const says = "Context longer than the simulator's"
	tokgate(t, "validate", of("", "default")).check(t, verdict.ExitPlan, says, "40100", "32768", "h100")
	tokgate(t, "validate", of("", "nope")).check(t, verdict.ExitPlan, "No such profile")
	tokgate(t, "validate", of("", "/dev/zero")).check(t, verdict.ExitPlan, "Invalid profile", "lies outside the repository")
	with := of(`endpoint { url = "http://127.0.0.1:8000" }`, "default")
	tokgate(t, "validate", with).check(t, verdict.ExitPass, says, "is valid")
	tokgate(t, "run", "--simulate", with).check(t, verdict.ExitPlan, says)
	r := tokgate(t, "validate", of("", "qwen3.5-35b-a3b-fp8.1x-h100"))
	must.Hold(t, r.code == verdict.ExitPass && !strings.Contains(r.err, says), "exit %d: %s", r.code, r.err)
}

// BenchmarkSimulatedHour simulates shipped plans. It reports the processor time of the whole
// command for an hour of virtual time, including the recording, the verdict and the reports.
func BenchmarkSimulatedHour(b *testing.B) {
	plans, err := filepath.Glob(filepath.Join(plansDir, "reference", "*.hcl"))
	if err != nil || len(plans) == 0 {
		b.Fatal("no plans:", err)
	}
	for _, plan := range append(plans, filepath.Join(plansDir, "pull-request.hcl")) {
		b.Run(filepath.Base(plan), func(b *testing.B) {
			dir := b.TempDir()
			before, known := server.CPUTime()
			if !known {
				b.Skip("the system does not report processor time")
			}
			for b.Loop() {
				var out, errs bytes.Buffer
				code := Main(context.Background(), []string{"run", "--simulate", "--quiet", "--out", dir, plan}, os.Environ(), Streams{Out: &out, Err: &errs})
				must.Need(b, code == verdict.ExitPass || code == verdict.ExitFail, "exit %d: %s\n%.3000s", code, &errs, &out)
			}
			after, _ := server.CPUTime()
			run, _, err := record.Read(dir)
			must.Do(b, err)
			b.ReportMetric((after-before).Seconds()/float64(b.N)/run.End.Hours(), "cpu-s/hour")
			b.ReportMetric(run.End.Hours(), "hours")
			b.ReportMetric(0, "ns/op")
		})
	}
}

var repeats = flag.Int("repeats", 20, "how often TestLongSimulationsRepeat runs its plan; from 100 on niced, beside busy loops")

// A simulated run depends only on its plan and on this program. Its files stay the same to the
// byte. The number of processors, the load on the machine and earlier files in the results folder
// do not matter. The run has a search, a table of levels and server metrics.
func TestLongSimulationsRepeat(t *testing.T) {
	// Run a copy, so that nobody can edit the plan during a thousand runs.
	shipped := system{file: "qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000"}.plan()
	folder := t.TempDir()
	must.Do(t, os.CopyFS(folder, os.DirFS(filepath.Dir(shipped))))
	t.Chdir(folder)
	plan := filepath.Base(shipped)
	command := []string{programFile(t, ""), "run", "--simulate", "--quiet", "--out", "out", "--only", `use_case["coding_assistant"]`, plan}
	if *repeats >= 100 {
		command = append([]string{"nice", "-n", "19"}, command...)
		defer spin()()
	}
	files := []string{"samples.jsonl", "results.json"}
	want := map[string]string{}
	for i := range *repeats {
		procs := []int{1, 2, 8}[i%3]
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", procs))
		if said, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != verdict.ExitPass {
			t.Fatalf("run %d: %v\n%s", i, err, said)
		}
		for _, name := range files {
			got := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, filepath.Join("out", name)))))
			if i == 0 {
				want[name] = got
			} else if got != want[name] {
				t.Errorf("run %d, on %d processors: %s is %s, and was %s in the first run", i, procs, name, got, want[name])
			}
		}
	}
	if !t.Failed() {
		t.Logf("%d runs, the same bytes in each of %s", *repeats, files)
	}
}

// spin keeps every processor busy until it is stopped.
func spin() (stop func()) {
	var over atomic.Bool
	for range runtime.NumCPU() {
		go func() {
			for !over.Load() {
			}
		}()
	}
	return func() { over.Store(true) }
}
