package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/runner"
)

// snippet returns the fenced block of docs/ci.md whose first line names a file.
func snippet(t *testing.T, file string) string {
	t.Helper()
	m := regexp.MustCompile("(?s)```\\w+\n(?:#|//) " + regexp.QuoteMeta(file) + "\n(.*?)```").FindStringSubmatch(read(t, filepath.Join(repository, "docs", "ci.md")))
	must.Need(t, m != nil, "docs/ci.md shows no %s", file)
	return m[1]
}

// decoded returns a YAML snippet as a value.
func decoded(t *testing.T, file string) map[string]any {
	t.Helper()
	v, err := runner.DecodeYAML([]byte(snippet(t, file)))
	must.Need(t, err == nil, "%s: %v", file, err)
	return v.(map[string]any)
}

func texts(v any) (list []string) {
	for _, x := range v.([]any) {
		list = append(list, x.(string))
	}
	return list
}

// shell runs commands as CI systems do and returns the exit code. The PATH has tokgate and
// the checkout's stub programs.
func (c *checkout) shell(t *testing.T, commands string, environ ...string) (int, string) {
	t.Helper()
	bin := t.TempDir()
	text := read(t, c.With["version"])
	stub := "#!/bin/sh\necho \"buildkite-agent $*\"; cat\n"
	for name, script := range map[string]string{"tokgate": text, "buildkite-agent": stub} {
		must.Do(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755))
	}
	cmd := exec.Command("bash", "-eo", "pipefail", "-c", commands)
	cmd.Dir = c.Workspace
	cmd.Env = append(append(os.Environ(), c.Environ...), "CI=true", "GITHUB_ACTIONS=", "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, environ...)
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil || cmd.ProcessState != nil, "%v", err)
	return cmd.ProcessState.ExitCode(), string(out)
}

// present fails the test if no file matches the pattern.
func (c *checkout) present(t *testing.T, pattern string) {
	t.Helper()
	pattern = strings.ReplaceAll(pattern, "**/*", "*/*")
	pattern = strings.ReplaceAll(pattern, "**", "*")
	found, err := filepath.Glob(filepath.Join(c.Workspace, pattern))
	must.Hold(t, err == nil && len(found) != 0, "nothing is at %s (%v)", pattern, err)
}

// The examples in docs/ci.md work as described. The test runs them with a gate that passes, a gate
// that fails and a gate that is inconclusive.
func TestLongDocumentedCI(t *testing.T) {
	for _, tt := range []struct {
		name, limit string
		code        int
	}{{"green", "2s", 0}, {"red", "1ms", 1}, {"inconclusive", "60ms", 3}} {
		t.Run(tt.name, func(t *testing.T) {
			scratch := func() (c *checkout, base string) {
				c = newCheckout(t, "simulate")
				return c, c.commit(map[string]string{"plans/gate.hcl": fmt.Sprintf(gatePlan, "simulator {}", tt.limit)})
			}
			// A simulated run writes to results/gate-simulated instead of results/gate.
			simulated := func(s string) string { return strings.ReplaceAll(s, "results/gate", "results/gate-simulated") }

			t.Run("GitHub", func(t *testing.T) {
				c, base := scratch()
				c.GitHub["event"] = pullRequest("team/serving", base)
				job := must.Get(c.Run(t.Context(), []byte(snippet(t, ".github/workflows/gate.yml")), "gate", nil))(t)
				must.Hold(t, job.Failed == (tt.code != 0) && job.Step("gate").Outputs["exit-code"] == fmt.Sprint(tt.code), "failed %t\n%s", job.Failed, job.Log)
			})
			t.Run("GitLab", func(t *testing.T) {
				c, base := scratch()
				c.git("remote", "add", "origin", "file://"+c.Workspace)
				job := decoded(t, ".gitlab-ci.yml")["gate"].(map[string]any)
				code, log := c.shell(t, strings.Join(texts(job["script"]), "\n"), "CI_MERGE_REQUEST_DIFF_BASE_SHA="+base)
				must.Hold(t, code == tt.code, "exit code %d, want %d\n%s", code, tt.code, log)
				artifacts := job["artifacts"].(map[string]any)
				for _, path := range texts(artifacts["paths"]) {
					c.present(t, path)
				}
				c.present(t, simulated(artifacts["reports"].(map[string]any)["junit"].(string)))
			})
			t.Run("Jenkins", func(t *testing.T) {
				c, _ := scratch()
				file := snippet(t, "Jenkinsfile")
				sh := regexp.MustCompile(`sh '(.*)'`).FindAllStringSubmatch(file, -1)
				must.Need(t, len(sh) == 1, "commands %q", sh)
				if code, log := c.shell(t, sh[0][1]); code != tt.code {
					t.Errorf("exit code %d, want %d\n%s", code, tt.code, log)
				}
				for _, m := range regexp.MustCompile(`(?:testResults|artifacts): '(.*?)'`).FindAllStringSubmatch(file, -1) {
					c.present(t, simulated(m[1]))
				}
				must.Hold(t, strings.Count(file, "{") == strings.Count(file, "}"), "the braces do not match")
			})
			t.Run("Buildkite", func(t *testing.T) {
				c, _ := scratch()
				step := decoded(t, ".buildkite/pipeline.yml")["steps"].([]any)[0].(map[string]any)
				code, log := c.shell(t, simulated(strings.ReplaceAll(step["command"].(string), "$$", "$")))
				if code != tt.code || !strings.Contains(log, "buildkite-agent annotate") || !strings.Contains(log, "## ") {
					t.Errorf("exit code %d, want %d\n%s", code, tt.code, log)
				}
				c.present(t, step["artifact_paths"].(string))
			})
		})
	}
}
