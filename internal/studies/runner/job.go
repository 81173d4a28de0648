package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Machine is the place where jobs run: a workspace with a checkout, and replacements for the
// actions that the jobs use.
type Machine struct {
	Workspace string // GITHUB_WORKSPACE
	Temp      string // RUNNER_TEMP: the folder with the files that the steps write for the runner
	// Local maps actions, by owner/name, to folders with their action.yml. These actions run from
	// their folders. Their inputs in With replace the values in the workflow.
	Local map[string]string
	With  map[string]string
	// Actions are Go functions that run in place of actions, by owner/name. A step with an action
	// that is in neither Local nor Actions is an error.
	Actions map[string]Action
	GitHub  map[string]any // the github context: event, ref_name, repository, …
	Environ []string       // environment variables of every step, besides those of the runner
	Path    string         // folder that comes first in the PATH; "" means none
}

// Action is a Go function that runs in place of an action. It gets the action's inputs and returns
// its outputs.
type Action func(with map[string]string) (map[string]string, error)

// Job is a job of a workflow after it has run.
type Job struct {
	Skipped  bool // the "if" condition of the job was false
	Failed   bool
	Outputs  map[string]string
	Steps    []Step    // in the order in which they ran; an action comes before its steps
	Commands []Command // commands of all steps
	Log      string
}

// Step is a step of a job that ran.
type Step struct {
	Name     string
	ID       string
	Skipped  bool
	ExitCode int
	Err      string // reason of a failure without an exit code
	Outputs  map[string]string
	Summary  string // content of its GITHUB_STEP_SUMMARY
	Commands []Command
	Log      string
}

// Step returns the step with the given id or name; nil if there is none.
func (j *Job) Step(name string) *Step {
	for i := range j.Steps {
		if j.Steps[i].ID == name || j.Steps[i].Name == name {
			return &j.Steps[i]
		}
	}
	return nil
}

// Summary returns the summaries of the job's steps. A summary above the runner's size limit is left
// out.
func (j *Job) Summary() string {
	var b strings.Builder
	for _, s := range j.Steps {
		if len(s.Summary) <= summaryBytes {
			b.WriteString(s.Summary)
		}
	}
	return b.String()
}

// Run runs one job of a workflow. The map more holds further contexts that the expressions of the
// job use: needs, matrix, inputs and so on.
func (m *Machine) Run(ctx context.Context, workflow []byte, job string, more map[string]any) (*Job, error) {
	doc, err := DecodeYAML(workflow)
	if err != nil {
		return nil, err
	}
	def := object(at(doc, "jobs", job))
	if def == nil {
		return nil, fmt.Errorf("the workflow has no job %q", job)
	}
	r := &run{machine: m, ctx: ctx, job: &Job{Outputs: map[string]string{}}, env: map[string]string{}, path: os.Getenv("PATH")}
	if m.Path != "" {
		r.path = m.Path + string(filepath.ListSeparator) + r.path
	}
	c := contexts{"github": m.github(), "env": map[string]any{}, "steps": map[string]any{}, "needs": map[string]any{}, "matrix": map[string]any{},
		"inputs": map[string]any{}, "vars": map[string]any{}, "secrets": map[string]any{"GITHUB_TOKEN": "token"},
		"runner": map[string]any{"temp": m.Temp, "os": "Linux", "arch": "X64"}}
	maps.Copy(c, more)
	st := status{}
	for _, need := range object(c["needs"]) {
		st.failed = st.failed || at(need, "result") != "success"
	}
	if ok, err := condition(toString(def["if"]), c, st); err != nil || !ok {
		r.job.Skipped = true
		return r.job, err
	}
	if err := r.setEnv(object(doc)["env"], c); err != nil {
		return nil, err
	}
	if err := r.setEnv(def["env"], c); err != nil {
		return nil, err
	}
	if err := r.steps(list(def["steps"]), c, scope{}); err != nil {
		return nil, err
	}
	for name, value := range object(def["outputs"]) {
		if r.job.Outputs[name], err = interpolate(toString(value), c, status{}); err != nil {
			return nil, err
		}
	}
	r.job.Commands, _ = Commands(r.job.Log)
	return r.job, nil
}

func (m *Machine) github() map[string]any {
	g := map[string]any{"workspace": m.Workspace, "token": "token", "event": map[string]any{}}
	maps.Copy(g, m.GitHub)
	return g
}

// run is the state of a running job.
type run struct {
	machine *Machine
	ctx     context.Context
	job     *Job
	env     map[string]string // variables of the job, and variables that its steps added
	path    string
}

// scope says to what a step belongs: to a composite action, or to the job itself.
type scope struct {
	action string            // folder of the composite action; "" for a step of the job
	env    map[string]string // environment variables of the step that runs the composite action
}

func (r *run) setEnv(env any, c contexts) error {
	for name, value := range object(env) {
		s, err := interpolate(toString(value), c, status{})
		if err != nil {
			return err
		}
		r.env[name] = s
	}
	c["env"] = anyOf(r.env)
	return nil
}

// steps runs the steps in order. It goes on after a failed step, because each step's condition
// decides whether it runs. A failed step is no error, but a step that cannot be parsed is.
func (r *run) steps(steps []any, c contexts, s scope) error {
	failed := false
	for i, x := range steps {
		def := object(x)
		step := Step{ID: toString(def["id"]), Outputs: map[string]string{}}
		step.Name = toString(def["name"])
		if step.Name == "" {
			step.Name = fmt.Sprintf("step %d", i+1)
		}
		due, err := condition(toString(def["if"]), c, status{failed: failed})
		if err != nil {
			return fmt.Errorf("%s: %w", step.Name, err)
		}
		at := len(r.job.Steps)
		r.job.Steps = append(r.job.Steps, step)
		if !due {
			step.Skipped = true
		} else if err := r.step(&step, def, c, s); err != nil {
			return fmt.Errorf("%s: %w", step.Name, err)
		}
		r.job.Steps[at] = step
		outcome := "success"
		switch {
		case step.Skipped:
			outcome = "skipped"
		case step.ExitCode != 0 || step.Err != "":
			outcome = "failure"
		}
		conclusion := outcome
		if outcome == "failure" && truthy(def["continue-on-error"]) {
			conclusion = "success"
		}
		failed = failed || conclusion == "failure"
		if step.ID != "" {
			object(c["steps"])[step.ID] = map[string]any{"outcome": outcome, "conclusion": conclusion, "outputs": anyOf(step.Outputs)}
		}
	}
	if s.action == "" {
		r.job.Failed = failed
	} else if failed {
		return errFailed
	}
	return nil
}

// errFailed means that a step of a composite action failed.
var errFailed = errors.New("a step of the action failed")

// step runs one step.
func (r *run) step(step *Step, def map[string]any, c contexts, s scope) error {
	env := maps.Clone(s.env)
	if env == nil {
		env = map[string]string{}
	}
	// A step's env may use variables in the job's env.
	for name, value := range object(def["env"]) {
		v, err := interpolate(toString(value), c, status{})
		if err != nil {
			return err
		}
		env[name] = v
	}
	known := maps.Clone(r.env)
	maps.Copy(known, env)
	c = maps.Clone(c)
	c["env"] = anyOf(known)
	if uses := toString(def["uses"]); uses != "" {
		return r.uses(step, uses, def, c, env)
	}
	return r.script(step, def, c, s, env)
}

// uses runs an action.
func (r *run) uses(step *Step, uses string, def map[string]any, c contexts, env map[string]string) error {
	name, _, _ := strings.Cut(uses, "@") // the path of an action in the workspace begins with "./"
	with := map[string]string{}
	for k, v := range object(def["with"]) {
		value, err := interpolate(toString(v), c, status{})
		if err != nil {
			return err
		}
		with[k] = value
	}
	if dir, ok := r.machine.Local[name]; ok {
		maps.Copy(with, r.machine.With)
		return r.composite(step, dir, with, c, env)
	}
	action, ok := r.machine.Actions[name]
	if !ok {
		return fmt.Errorf("nothing stands in for the action %s", uses)
	}
	outputs, err := action(with)
	if err != nil {
		step.Err = err.Error()
		r.job.Log += "##[error]" + err.Error() + "\n"
	}
	maps.Copy(step.Outputs, outputs)
	return nil
}

// composite runs the steps of a composite action, which are in the file action.yml.
func (r *run) composite(step *Step, dir string, with map[string]string, c contexts, env map[string]string) error {
	src, err := os.ReadFile(filepath.Join(dir, "action.yml"))
	if err != nil {
		return err
	}
	doc, err := DecodeYAML(src)
	if err != nil {
		return err
	}
	if using := at(doc, "runs", "using"); using != "composite" {
		return fmt.Errorf("%s is not composite", dir)
	}
	declared := object(at(doc, "inputs"))
	inputs := map[string]any{}
	for name := range with {
		if _, ok := declared[name]; !ok {
			return fmt.Errorf("the action has no input %q", name)
		}
	}
	for name, input := range declared {
		value, given := with[name]
		switch {
		case given:
		case truthy(at(input, "required")):
			return fmt.Errorf("the action needs input %q", name)
		default:
			if value, err = interpolate(toString(at(input, "default")), c, status{}); err != nil {
				return err
			}
		}
		inputs[name] = value
	}
	github := maps.Clone(object(c["github"]))
	github["action_path"] = dir
	inner := contexts{"github": github, "inputs": inputs, "steps": map[string]any{}, "env": c["env"], "runner": c["runner"]}
	switch err := r.steps(list(at(doc, "runs", "steps")), inner, scope{action: dir, env: env}); {
	case errors.Is(err, errFailed):
		step.Err = err.Error()
	case err != nil:
		return err
	}
	for name, output := range object(at(doc, "outputs")) {
		if step.Outputs[name], err = interpolate(toString(at(output, "value")), inner, status{}); err != nil {
			return err
		}
	}
	return nil
}

// shells lists the command lines of the shells, as GitHub's runner has them
// (src/Runner.Worker/Handlers/ScriptHandlerHelpers.cs). "" is the default shell.
var shells = map[string][]string{
	"":     {"bash", "-e"},
	"bash": {"bash", "--noprofile", "--norc", "-e", "-o", "pipefail"},
	"sh":   {"sh", "-e"},
}

// script runs the commands of a step in a shell.
func (r *run) script(step *Step, def map[string]any, c contexts, s scope, env map[string]string) error {
	shell, ok := shells[toString(def["shell"])]
	if !ok || s.action != "" && def["shell"] == nil {
		return fmt.Errorf("shell %q", def["shell"])
	}
	script, err := interpolate(toString(def["run"]), c, status{})
	if err != nil {
		return err
	}
	dir, err := interpolate(toString(def["working-directory"]), c, status{})
	if err != nil {
		return err
	}
	files, err := os.MkdirTemp(r.machine.Temp, "step-")
	if err != nil {
		return err
	}
	file := func(name string) string { return filepath.Join(files, name) }
	for _, name := range []string{"output", "summary", "env", "path"} {
		if err := os.WriteFile(file(name), nil, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(file("script.sh"), []byte(script), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(r.ctx, shell[0], append(slices.Clone(shell[1:]), file("script.sh"))...)
	cmd.Dir = filepath.Join(r.machine.Workspace, dir)
	cmd.Env = append(slices.Clone(r.machine.Environ),
		"PATH="+r.path, "HOME="+os.Getenv("HOME"), "CI=true", "GITHUB_ACTIONS=true", "RUNNER_OS=Linux", "RUNNER_ARCH=X64",
		"RUNNER_TEMP="+r.machine.Temp,
		"GITHUB_OUTPUT="+file("output"), "GITHUB_STEP_SUMMARY="+file("summary"), "GITHUB_ENV="+file("env"), "GITHUB_PATH="+file("path"))
	for name, value := range object(c["github"]) {
		if value, ok := value.(string); ok && name != "token" {
			cmd.Env = append(cmd.Env, "GITHUB_"+strings.ToUpper(name)+"="+value)
		}
	}
	for name, value := range r.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	var exit *exec.ExitError
	switch err := cmd.Run(); {
	case errors.As(err, &exit):
		step.ExitCode = exit.ExitCode()
	case err != nil:
		step.Err = err.Error()
	}
	step.Log = log.String()
	step.Commands, _ = Commands(step.Log)
	r.job.Log += step.Log
	return r.collect(step, file)
}

// collect reads the files that a step wrote for the runner: outputs, variables and summary.
func (r *run) collect(step *Step, file func(string) string) error {
	read := func(name string) string {
		b, _ := os.ReadFile(file(name))
		return string(b)
	}
	outputs, err := Pairs(read("output"))
	if err != nil {
		return fmt.Errorf("GITHUB_OUTPUT: %w", err)
	}
	maps.Copy(step.Outputs, outputs)
	env, err := Pairs(read("env"))
	if err != nil {
		return fmt.Errorf("GITHUB_ENV: %w", err)
	}
	maps.Copy(r.env, env)
	for line := range strings.Lines(read("path")) {
		if dir := strings.TrimSpace(line); dir != "" {
			r.path = dir + string(filepath.ListSeparator) + r.path
		}
	}
	step.Summary = read("summary")
	return nil
}

func anyOf(m map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}
