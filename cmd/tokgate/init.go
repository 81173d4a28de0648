package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/plan/starter"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/report/progress"
)

// initOptions are the flags of `tokgate init`.
type initOptions struct {
	answers        starter.Answers
	file           string
	github, gitlab bool
	force          bool
	measure        bool
}

// detectWithin bounds how long a server is asked what it is.
const detectWithin = 10 * time.Second

func (a *app) initCommand() *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first plan, and the workflow that runs it",
		Long: `Writes a commented plan, a .gitignore line for the results, and with --github or
--gitlab the file that runs the plan in CI. What it writes is valid and runs.

Name a running server (--url), an image to start (--image) or a command
(--command). On a terminal, init asks for what is missing. It overwrites no file
without --force.

The thresholds come from the use case. With --measure they come from two minutes
of load on the server at --url, with a margin: a server that becomes slower by a
quarter fails. With --upgrade the plan also compares the server of a branch with
the server of its base.

The load is a number of requests in flight; with --rate requests arrive at a rate.

Exit code 4: the server at --url does not answer, or cannot be measured.`,
		Example: `  tokgate init                                   # asks
  tokgate init --url http://127.0.0.1:8000
  tokgate init --engine vllm --model Qwen/Qwen3-8B --image vllm/vllm-openai:v0.19.1 --github
  tokgate init --url http://127.0.0.1:8000 --use-case general_chatbot,rag
  tokgate init --url http://127.0.0.1:8000 --measure
  tokgate init --url http://127.0.0.1:8000 --rate "4 req/s"
  tokgate init --image vllm/vllm-openai:v0.19.1 --model Qwen/Qwen3-8B --upgrade --github`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.init(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.answers.URL, "url", "", "the `URL` of a server that runs")
	f.StringVar(&o.answers.Image, "image", "", "the container `image` to start")
	f.StringVar(&o.answers.Command, "command", "", "the `command` to start, with its arguments; {port} stands for a free port")
	f.StringVar(&o.answers.Engine, "engine", "", "`engine`: "+strings.Join(engine.Names(engine.Engine.Known), ", ")+" or "+engine.Plain+" (default: what the server says)")
	f.StringVar(&o.answers.Model, "model", "", "the `model` to start; with --url the model to expect")
	f.StringSliceVar(&o.answers.UseCases, "use-case", nil, "`use cases` to gate: "+strings.Join(starter.Names(), ", ")+" (default: "+starter.UseCases[0].Name+")")
	f.StringSliceVar(&o.answers.Rates, "rate", nil, "`rates` at which requests arrive, such as \"4 req/s\" (default: the use case's requests in flight)")
	f.StringVar(&o.file, "plan", "tokgate.hcl", "the `file` to write")
	f.BoolVar(&o.github, "github", false, "write .github/workflows/tokgate.yml; with --upgrade also tokgate-comment.yml, which comments on the pull request")
	f.BoolVar(&o.gitlab, "gitlab", false, "write .gitlab/tokgate.yml, to be included")
	f.BoolVar(&o.measure, "measure", false, "load the server at --url for two minutes, and derive the thresholds from the result")
	f.BoolVar(&o.answers.Upgrade, "upgrade", false, "add a compare block against the base branch, and with --github a workflow that checks it out")
	f.BoolVar(&o.force, "force", false, "overwrite what exists")
	_ = cmd.RegisterFlagCompletionFunc("engine", cobra.FixedCompletions(engine.Names(nil), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("use-case", cobra.FixedCompletions(starter.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) init(ctx context.Context, o initOptions) error {
	in, asking := a.In.(*os.File)
	if o.measure && o.answers.URL == "" && (o.answers.Image != "" || o.answers.Command != "") {
		return usageError("start the server and name it with --url", "--measure needs a running server: --url")
	}
	if o.measure && len(o.answers.Rates) > 0 {
		return usageError("tokgate init --help", "--measure cannot be combined with --rate")
	}
	if err := a.complete(ctx, &o.answers, asking && term.IsTerminal(int(in.Fd()))); err != nil {
		return err
	}
	o.answers.File = filepath.ToSlash(filepath.Clean(o.file))
	if _, err := o.plan(); err != nil {
		return err
	}
	files, err := o.files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := os.Stat(f.path); err == nil && !o.force {
			return usageError("--force overwrites it, --plan writes another", "%s is there already", f.path)
		}
	}
	if o.measure {
		if o.answers.Measured, err = a.measured(ctx, o); err != nil {
			return err
		}
		a.sayMeasured(o.answers)
	}
	text, err := o.plan()
	if err != nil {
		return err
	}
	for _, f := range append([]written{{o.file, text}}, files[1:]...) {
		if err := record.WriteFile(filepath.FromSlash(f.path), f.text); err != nil {
			return measureError(err)
		}
		fmt.Fprintf(a.Out, "wrote %s\n", f.path)
	}
	if added, err := ignoreResults(".gitignore"); err != nil {
		return measureError(err)
	} else if added {
		fmt.Fprintln(a.Out, "wrote .gitignore: results/")
	}
	a.sayNext(o)
	return nil
}

// sayNext says what to do with the files.
func (a *app) sayNext(o initOptions) {
	try, gate := "", ""
	if o.answers.Upgrade {
		try, gate = "--base . ", "--base DIR "
	}
	fmt.Fprintf(a.Out, "\nNext:\n  tokgate plan %s\n  tokgate run --simulate %[2]s%[1]s\n  tokgate run %[3]s%[1]s\n", o.file, try, gate)
	if o.answers.Upgrade {
		fmt.Fprintln(a.Out, "\nDIR is a checkout of the base branch. With \".\" nothing changed, so that the sla alone is tried.")
	}
}

// plan is the text of the plan. It is decoded: what was given by flags may not
// fit into a plan.
func (o initOptions) plan() ([]byte, error) {
	text, err := starter.Plan(o.answers)
	if err != nil {
		return nil, usageError("tokgate init --help names them all", "%v", err)
	}
	if _, diags := decode.File(decode.Options{Path: o.file, Source: text}); diags.HasErrors() {
		// No file has the lines that they name.
		i := slices.IndexFunc(diags, func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagError })
		return nil, usageError("--url, --image, --command, --model or --rate has a value that a plan cannot contain", "%s: %s", strings.ToLower(diags[i].Summary), strings.TrimSuffix(diags[i].Detail, "."))
	}
	return text, nil
}

// files are those to write, the plan first and still without its text.
func (o initOptions) files() ([]written, error) {
	files := []written{{path: o.file}}
	ci := starter.CI{
		Plan: o.answers.File, Commit: buildInfo().Commit, Budget: starter.Budget(o.answers),
		Upgrade: o.answers.Upgrade, Token: o.answers.Upgrade && o.answers.Image != "",
	}
	for _, w := range []struct {
		wanted bool
		file   string
		make   func(starter.CI) ([]byte, error)
	}{
		{o.github, ".github/workflows/tokgate.yml", starter.GitHub},
		{o.github && o.answers.Upgrade, ".github/workflows/tokgate-comment.yml", starter.Comment},
		{o.gitlab, ".gitlab/tokgate.yml", starter.GitLab},
	} {
		if !w.wanted {
			continue
		}
		ci.File = w.file
		text, err := w.make(ci)
		if err != nil {
			return nil, measureError(err)
		}
		files = append(files, written{w.file, text})
	}
	return files, nil
}

// written is a file to write.
type written struct {
	path string
	text []byte
}

// complete fills in what was not said: by asking the server, by asking the
// person, by default.
func (a *app) complete(ctx context.Context, w *starter.Answers, ask bool) error {
	answer := a.questions(ask)
	if err := needServer(w, ask, answer); err != nil {
		return err
	}
	if w.URL != "" && w.Engine == "" {
		if err := a.recognize(ctx, w); err != nil {
			return err
		}
	}
	if w.Engine == "" {
		w.Engine = engine.Guessed(w.Image + w.Command)
	}
	var err error
	if w.Engine == "" {
		if w.Engine, err = answer("Engine: "+strings.Join(engine.Names(nil), ", "), engine.Plain); err != nil {
			return err
		}
	}
	// The engines that are known by name take their port so.
	if w.Command != "" && w.Engine != engine.Plain && !strings.Contains(w.Command, "port") {
		w.Command += " --port {port}"
		fmt.Fprintln(a.Out, "added to the command: --port {port}, a free one in each run")
	}
	if w.Image != "" && w.Model == "" && ask {
		if w.Model, err = answer("Model to serve", "Qwen/Qwen3-8B"); err != nil {
			return err
		}
	}
	if len(w.UseCases) > 0 {
		return nil
	}
	if ask {
		a.listUseCases()
	}
	said, err := answer("Which, separated by commas", starter.UseCases[0].Name)
	w.UseCases = strings.FieldsFunc(said, func(r rune) bool { return r == ',' || r == ' ' })
	return err
}

func needServer(w *starter.Answers, ask bool, answer func(question, fallback string) (string, error)) error {
	if given := slices.DeleteFunc([]string{w.URL, w.Image, w.Command}, func(s string) bool { return s == "" }); len(given) > 1 {
		return usageError("tokgate init --help", "name one server: --url, --image or --command")
	} else if len(given) == 1 {
		return nil
	}
	if !ask {
		return usageError("for example: tokgate init --url http://127.0.0.1:8000", "init needs a server: --url, --image or --command")
	}
	said, err := answer("URL of a server that runs, or an image to start", "http://127.0.0.1:8000")
	if strings.Contains(said, "://") {
		w.URL = said
	} else {
		w.Image = said
	}
	return err
}

// questions returns what asks the person; nobody is asked without ask, and the
// answer is the fallback.
func (a *app) questions(ask bool) func(question, fallback string) (string, error) {
	if !ask {
		return func(_, fallback string) (string, error) { return fallback, nil }
	}
	in := bufio.NewReader(a.In)
	return func(question, fallback string) (string, error) {
		fmt.Fprintf(a.Out, "%s [%s]: ", question, fallback)
		line, err := in.ReadString('\n')
		if err != nil && line == "" {
			return "", usageError("say it with flags: tokgate init --help", "no answer")
		}
		return cmp.Or(strings.TrimSpace(line), fallback), nil
	}
}

func (a *app) listUseCases() {
	fmt.Fprintln(a.Out, "Use cases:")
	for _, u := range starter.UseCases {
		fmt.Fprintf(a.Out, "  %-20s %s\n", u.Name, u.Doc)
	}
}

// recognize asks the server at the URL what it is.
func (a *app) recognize(ctx context.Context, w *starter.Answers) error {
	ctx, cancel := context.WithTimeout(ctx, detectWithin)
	defer cancel()
	found, err := server.Detect(ctx, clock.NewReal(), a.network, w.URL, "")
	if err != nil {
		return measureError(err, "start the server first; with --engine a plan is written without asking it")
	}
	w.Engine, w.Longest = found.Engine, found.Context
	said := found.Engine
	for _, s := range []string{found.Version, found.Model, found.Gateway} {
		if s != "" {
			said += ", " + s
		}
	}
	fmt.Fprintf(a.Out, "found %s\n", said)
	return nil
}

// ignoreResults has git ignore results/; false when it did already.
func ignoreResults(path string) (added bool, err error) {
	src, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("could not read %s: %w", path, err)
	}
	lines := strings.Fields(string(src))
	for _, known := range []string{"results/", "/results/", "results", "/results"} {
		if slices.Contains(lines, known) {
			return false, nil
		}
	}
	if len(src) > 0 && !bytes.HasSuffix(src, []byte("\n")) {
		src = append(src, '\n')
	}
	return true, record.WriteFile(path, append(src, "results/\n"...))
}

const (
	// measureFor bounds how long `init --measure` loads a server.
	measureFor = 2 * time.Minute
	// measureWaves is the number of requests of each slot in a measured round; 1 for long ones, and
	// if several use cases share the time.
	measureWaves = 2
	// leastMargin is what a threshold leaves to spare: less than half of what a
	// server that is slower by a quarter loses.
	leastMargin = 0.1
)

// measured loads the server for each use case in turn, and returns thresholds of
// what it does.
func (a *app) measured(ctx context.Context, o initOptions) (map[string][]starter.Measured, error) {
	dir, err := os.MkdirTemp("", "tokgate-init-")
	if err != nil {
		return nil, measureError(err)
	}
	defer os.RemoveAll(dir)
	wall, started := clock.NewReal(), time.Now()
	return o.measureEach(func(p *plan.Plan, budget time.Duration) (*metric.Run, error) {
		config := exec.Config{
			Plan: p, Budget: budget,
			Run: metric.Run{ID: runID(started), Salt: salt(), Started: started, Tool: buildInfo().Version, Plan: p.Path, PlanHash: p.Hash},
		}
		a.launch(&config, wall, ctx, dir, false)
		display, stop, err := a.progress(progress.Options{Now: wall.Now, Forecast: (*lastRun)(nil).forecast(p, nil, nil)})
		if err != nil {
			return nil, err
		}
		defer stop()
		config.Observer = observers{display}
		return exec.Run(ctx, config)
	})
}

// sayMeasured says what became a threshold, and what there was no time for.
func (a *app) sayMeasured(w starter.Answers) {
	for _, name := range w.UseCases {
		u, _ := starter.Named(name)
		for _, m := range w.Measured[name] {
			for _, b := range m.Bounds {
				fmt.Fprintf(a.Out, "%s at %d: %s %s, %s\n", name, m.InFlight, b.Metric, b.Text, b.Why)
			}
		}
		for _, n := range w.Unmeasured(u) {
			fmt.Fprintf(a.Out, "%s at %d: there was no time to measure it; it is held to what users are promised\n", name, n)
		}
	}
}

// measureEach runs a plan of each use case within its share of the time.
func (o initOptions) measureEach(run func(*plan.Plan, time.Duration) (*metric.Run, error)) (map[string][]starter.Measured, error) {
	out := map[string][]starter.Measured{}
	for _, name := range o.answers.UseCases {
		u, _ := starter.Named(name)
		p, err := o.measuring(u)
		if err != nil {
			return nil, err
		}
		r, err := run(p, measureFor/time.Duration(len(o.answers.UseCases)))
		if err != nil {
			return nil, measureError(err)
		}
		if out[name], err = thresholds(p, r, assert.Judge(p, r, assert.Options{}), u.Requests); err != nil {
			return nil, measureError(fmt.Errorf("%s: %w", name, err), "without --measure thresholds are what users are promised")
		}
	}
	return out, nil
}

// measuring is the plan by which a use case is measured: that which is to be
// written, with few requests, of which nothing is required but that they succeed.
func (o initOptions) measuring(u starter.UseCase) (*plan.Plan, error) {
	waves := measureWaves
	if u.Output >= 1024 || u.Input >= 16<<10 || len(o.answers.UseCases) > 1 {
		waves = 1
	}
	var levels []starter.Measured
	for _, n := range u.InFlight {
		levels = append(levels, starter.Measured{InFlight: n, Bounds: []starter.Bound{
			{Metric: "ttft", Text: "mean < 10000s"}, {Metric: "speed", Text: "mean > 0.001 tok/s"},
		}})
	}
	o.answers.UseCases, o.answers.Measured = []string{u.Name}, map[string][]starter.Measured{u.Name: levels}
	text, err := o.plan()
	if err != nil {
		return nil, err
	}
	p, _ := decode.File(decode.Options{Path: o.file, Source: text})
	p.Gate.MeasureOnly = true
	w := p.Workloads[0]
	var loads []*plan.Load
	for _, level := range w.Loads[0].Levels {
		l := *w.Loads[0]
		level.Requests = level.Rounds * level.N * waves
		if level.N == 1 {
			l.Warmup = 0 // no other request is to be under way
		}
		l.Levels = []plan.Level{level}
		loads = append(loads, &l)
	}
	w.Loads = loads
	return p, nil
}

// thresholds are what each level came to, with a margin for a gate of so many
// planned requests of a level. One for which there was
// no time is left out, but not the first; whatever was not measured validly is an
// error.
func thresholds(p *plan.Plan, run *metric.Run, judged assert.Verdicts, planned int) ([]starter.Measured, error) {
	var out []starter.Measured
	for _, l := range run.Levels {
		if whole := wholeRounds(l); whole < metric.LeastRounds && len(out) > 0 {
			break
		}
		m := starter.Measured{InFlight: l.N}
		for _, r := range l.Rounds {
			m.Requests += r.Due
		}
		for i := range judged.List {
			v := &judged.List[i]
			switch {
			case v.Level != l.Name && v.Kind != assert.KindServer:
			case v.Threshold != nil && v.Value.OK && (v.Threshold.Metric.Name == "ttft" || v.Threshold.Metric.Name == "speed"):
				m.Bounds = append(m.Bounds, spared(v, m.Requests, planned))
			case v.Outcome != assert.Pass && v.Outcome != assert.Skipped:
				return nil, fmt.Errorf("at %s: %s", l.Name, v.Message)
			}
		}
		if len(m.Bounds) == 0 {
			return nil, fmt.Errorf("at %s: nothing was measured", l.Name)
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, errors.New("nothing was measured")
	}
	return out, nil
}

// wholeRounds is how many rounds of a level came to their end.
func wholeRounds(l *metric.Level) int {
	n := 0
	for _, r := range l.Rounds {
		if r.Complete {
			n++
		}
	}
	return n
}

// spared is a threshold on the mean that was measured with so many requests. Its
// margin covers the error of this measurement and twice that of the gate's own,
// with planned requests, and is a tenth at least.
func spared(v *assert.Verdict, measured, planned int) starter.Bound {
	value, half := v.Value.V, 0.0
	for _, end := range []metric.Value{v.Low, v.High} {
		if end.OK {
			half = max(half, math.Abs(end.V-value)/value)
		}
	}
	margin := max(leastMargin, half*(1+2*math.Sqrt(float64(measured)/float64(planned))))
	unit, op, limit := v.Threshold.Metric.Unit, v.Threshold.Op, value*(1+margin)
	if op == ">" {
		limit = value / (1 + margin)
	}
	text := metric.Format(unit, limit)
	if unit == metric.Seconds {
		text = strings.ReplaceAll(text, " ", "")
	}
	return starter.Bound{
		Metric: v.Threshold.Metric.Name, Text: "mean " + op + " " + text,
		Why: fmt.Sprintf("measured %s, %s to spare", metric.Format(unit, value), metric.FormatDigits(metric.Ratio, margin, 2)),
	}
}
