package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestExpressions(t *testing.T) {
	c := contexts{
		"github": map[string]any{"event": map[string]any{"number": 17.0}, "ref": "main"},
		"steps":  map[string]any{"run": map[string]any{"outputs": map[string]any{"exit-code": "3"}}},
	}
	for src, want := range map[string]string{
		"github.EVENT.number":                    "17",
		"format('{0}/{1}', github.ref, 'it''s')": "main/it's",
		"'it''s'":                                "it's",
		"github.event.number":                    "17",
		"github.absent.more":                     "",
		"steps.run.outputs.exit-code":            "3",
		"steps.run.outputs.exit-code == 3":       "true", // as numbers
		"github.ref == 'MAIN'":                   "true", // without case
		"github.ref != 'main' || 'other'":        "other",
		"github.ref && 'yes' || 'no'":            "yes",
		"'' && 'yes' || 'no'":                    "no",
		"!github.ref":                            "false",
		"!(1 == 2) && true":                      "true",
		"null == ''":                             "true",
		"1.5":                                    "1.5",
	} {
		got, err := interpolate("<${{ "+src+" }}>", c, status{})
		must.Hold(t, err == nil && got == "<"+want+">", "%s = %q, %v; want %q", src, got, err, want)
	}
	for _, src := range []string{"github.", "(1", "'a", "absent.x", "nothing()", "always(1)", "github.ref[0]", "1 + 2", "1 2", "== 1", ""} {
		got, err := interpolate("${{"+src+"}}", c, status{})
		must.Hold(t, err != nil, "%q = %q, want an error", src, got)
	}
}

// A condition without a status function holds only if no earlier step has failed.
func TestConditions(t *testing.T) {
	c := contexts{"github": map[string]any{"ref": "main"}}
	for _, tt := range []struct {
		src        string
		fine, late bool // whether the condition holds before and after a failed step
	}{
		{"", true, false}, {"success()", true, false}, {"failure()", false, true}, {"always()", true, true},
		{"github.ref == 'main'", true, false}, {"${{ always() && github.ref == 'main' }}", true, true}, {"always() && github.ref == 'x'", false, false},
	} {
		fine, err := condition(tt.src, c, status{})
		late, err2 := condition(tt.src, c, status{failed: true})
		if fine != tt.fine || late != tt.late || err != nil || err2 != nil {
			t.Errorf("%q holds %t before and %t after a failure, want %t and %t", tt.src, fine, late, tt.fine, tt.late)
		}
	}
}

func TestRunJob(t *testing.T) {
	action := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(action, "action.yml"), []byte(`
inputs:
  who: { default: nobody }
outputs:
  said: { value: "${{ steps.say.outputs.word }}" }
runs:
  using: composite
  steps:
    - id: say
      shell: bash
      env: { WHO: "${{ inputs.who }}" }
      run: |
        test -f "$GITHUB_ACTION_PATH/action.yml"
        echo "word=hello $WHO" >> "$GITHUB_OUTPUT"
        exit 3
    - run: echo never
      shell: bash
    - if: always()
      uses: some/upload@v1
      with: { name: "${{ steps.say.outcome }}" }
`), 0o644))
	var uploaded []string
	m := &Machine{
		Workspace: t.TempDir(), Temp: t.TempDir(),
		Local: map[string]string{"our/action": action},
		Actions: map[string]Action{"some/upload": func(with map[string]string) (map[string]string, error) {
			uploaded = append(uploaded, with["name"])
			return nil, nil
		}},
		GitHub: map[string]any{"ref": "main"},
	}
	job := must.Get(m.Run(t.Context(), []byte(`
env: { A: "${{ github.ref }}" }
jobs:
  j:
    outputs: { said: "${{ steps.act.outputs.said }}" }
    env: { B: "${{ matrix.x }}" }
    steps:
      - name: first
        run: |
          echo "C=3" >> "$GITHUB_ENV"
          mkdir bin; printf '#!/bin/sh\necho mine' > bin/mine; chmod +x bin/mine; pwd | sed 's,$,/bin,' >> "$GITHUB_PATH"
          echo "::warning file=a::w"
          echo "# $A $B $GITHUB_REF" >> "$GITHUB_STEP_SUMMARY"
      - id: act
        uses: our/action@0000
        with: { who: "${{ env.C }}" }
      - id: skipped
        run: echo no
      - id: last
        if: failure()
        run: mine
`), "j", map[string]any{"matrix": map[string]any{"x": "y"}}))(t)
	must.Hold(t, job.Failed && job.Outputs["said"] == "hello 3", "failed %t, outputs %v\n%s", job.Failed, job.Outputs, job.Log)
	must.Same(t, "uploaded (-want +got)", []string{"failure"}, uploaded)
	s := job.Step("say")
	must.Hold(t, s != nil && s.ExitCode == 3, "say is %+v", s)
	if !job.Step("skipped").Skipped || !strings.Contains(job.Step("last").Log, "mine") {
		t.Errorf("skipped is %+v, last %+v", job.Step("skipped"), job.Step("last"))
	}
	must.Hold(t, len(job.Commands) == 1 && job.Summary() == "# main y main\n", "commands %v, summary %q", job.Commands, job.Summary())
}

// If a step cannot be run, the job reports an error and does not skip the step.
func TestRunRefuses(t *testing.T) {
	m := &Machine{Workspace: t.TempDir(), Temp: t.TempDir()}
	for name, steps := range map[string]string{
		"an unknown action":   "[{uses: some/thing@v1}]",
		"an unknown context":  `[{run: "echo ${{ nothing.x }}"}]`,
		"an unknown shell":    "[{run: echo, shell: pwsh}]",
		"half a heredoc":      `[{run: "echo 'a<<b' >> $GITHUB_OUTPUT"}]`,
		"an unknown function": "[{run: echo, if: maybe()}]",
	} {
		job, err := m.Run(t.Context(), []byte("jobs: {j: {steps: "+steps+"}}"), "j", nil)
		must.Hold(t, err != nil, "%s: %+v", name, job)
	}
	_, err := m.Run(t.Context(), []byte("jobs: {}"), "j", nil)
	must.Hold(t, err != nil, "an absent job ran")
}
