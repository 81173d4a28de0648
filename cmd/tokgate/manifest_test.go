package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tokgate/tokgate/internal/must"
)

// The manifest of Kubernetes has what keeps a worker that ended from being started again, or taken for a success.
func TestKubernetesManifest(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(token, []byte("0123456789abcdef: \"x\"\n"), 0o600))
	r := tokgate(t, "worker", "--join", "https://controller:7443", "--token-file", token, "--fingerprint", "ab", "--manifest", "kubernetes",
		"--workers", "3", "--queue", "gpus", "--deadline", "90m")
	r.check(t, 0)
	found := map[string]map[string]any{}
	for d := yaml.NewDecoder(strings.NewReader(r.out)); ; {
		var object map[string]any
		if d.Decode(&object) != nil {
			break
		}
		found[object["kind"].(string)] = object
	}
	at := func(kind, path string) any {
		var v any = found[kind]
		for _, key := range strings.Split(path, "/") {
			if list, ok := v.([]any); ok {
				v = list[0]
			}
			v = v.(map[string]any)[key]
		}
		return v
	}
	for path, want := range map[string]any{
		"Secret stringData/token":                            `0123456789abcdef: "x"`,
		"Service spec/clusterIP":                             "None",
		"Job spec/completionMode":                            "Indexed",
		"Job spec/completions":                               3,
		"Job spec/parallelism":                               3,
		"Job spec/backoffLimit":                              0,
		"Job spec/activeDeadlineSeconds":                     5400,
		"Job spec/podFailurePolicy/rules/action":             "FailJob",
		"Job spec/template/spec/restartPolicy":               "Never",
		"Job spec/template/spec/containers/resources/limits": nil,
	} {
		kind, path, _ := strings.Cut(path, " ")
		must.Same(t, path, want, at(kind, path))
	}
	labels := found["Job"]["metadata"].(map[string]any)["labels"].(map[string]any)
	must.Same(t, "the queue", any("gpus"), labels["kueue.x-k8s.io/queue-name"])
	must.Same(t, "arguments", any([]any{"worker", "--join=https://controller:7443", "--fingerprint=ab", "--token-file=/run/tokgate/token"}),
		at("Job", "spec/template/spec/containers/args"))
}

// The file for sbatch is one that a shell reads.
func TestSlurmManifest(t *testing.T) {
	token := filepath.Join(t.TempDir(), "it's a token")
	must.Do(t, os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600))
	join := []string{"worker", "--join", "https://controller:7443", "--token-file", token, "--fingerprint", "ab"}
	r := tokgate(t, append(join, "--manifest", "slurm", "--workers", "3", "--deadline", "1h30m")...)
	r.check(t, 0, "#SBATCH --ntasks=3\n", "#SBATCH --time=1:30:00\n", "#SBATCH --no-requeue\n", "srun --kill-on-bad-exit=1")
	must.Hold(t, !strings.Contains(r.out, "partition"), "it names a partition that nobody gave")
	script := strings.Replace(r.out, "exec srun --kill-on-bad-exit=1 tokgate", "printf '%s\\n'", 1)
	said := must.Get(exec.Command("bash", "-c", script).Output())(t)
	must.Same(t, "what the shell reads", strings.Join(join, "\n")+"\n", string(said))
}

// What a worker or its manifest lacks is refused with what to do.
func TestWorkerMistakes(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(token, []byte("short\n"), 0o600))
	plan := writePlan(t, `server "s" {
  process {
    command = ["true"]
    port    = 9
  }
}
workload "w" {
  input_tokens  = 64
  output_tokens = 8
  load { concurrency = 1 }
  sla { ttft = "p50 < 1s" }
}
`)
	join := []string{"worker", "--join", "https://c:1", "--token-file", token, "--fingerprint", "ab"}
	for words, args := range map[string][]string{
		"--join is missing":             {"worker"},
		"is not https://HOST:PORT":      {"worker", "--join", "http://c:1", "--token-file", token, "--fingerprint", "ab"},
		"--fingerprint is missing":      {"worker", "--join", "https://c:1", "--token-file", token},
		"needs at least 16":             join,
		"--workers needs a token":       {"run", plan, "--workers", "2"},
		"would start s itself":          {"run", plan, "--workers", "2", "--token-file", token + "2"},
		"--token-file goes with":        {"run", plan, "--token-file", token},
		"number from 1":                 {"run", plan, "--workers", "-1"},
		"sends the load of one plan":    {"run", plan, plan, "--workers", "2", "--token-file", token + "2"},
		"could not read the token":      {"worker", "--join", "https://c:1", "--token-file", token + "3", "--fingerprint", "ab"},
		"is kubernetes or slurm":        {"worker", "--join", "https://c:1", "--token-file", token + "2", "--fingerprint", "ab", "--manifest", "nomad"},
		"needs the number of workers":   {"worker", "--join", "https://c:1", "--token-file", token + "2", "--fingerprint", "ab", "--manifest", "slurm"},
		"--workers and --continue excl": {"run", plan, "--workers", "2", "--token-file", token + "2", "--continue", t.TempDir()},
	} {
		if _, err := os.Stat(token + "2"); err != nil {
			must.Do(t, os.WriteFile(token+"2", []byte("0123456789abcdef\n"), 0o600))
		}
		tokgate(t, args...).check(t, 2, words)
	}
}
