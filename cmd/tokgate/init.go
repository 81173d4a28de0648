package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/plan/starter"
	"github.com/tokgate/tokgate/record"
)

type initOptions struct {
	answers        starter.Answers
	from           string // a file or command line of another tool; "" if the plan is new
	file           string
	github, gitlab bool
	force          bool
	measure        bool
}

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

With --from the plan says what another tool measures: the same lengths, load and
counts. What it cannot say is a comment in it. --url, --image, --engine and --model
replace the server that the source names.

Exit code 4: the server at --url does not answer, or cannot be measured.`,
		Example: `  tokgate init                                   # asks
  tokgate init --url http://127.0.0.1:8000
  tokgate init --engine vllm --model Qwen/Qwen3-8B --image vllm/vllm-openai:v0.19.1 --github
  tokgate init --url http://127.0.0.1:8000 --use-case general_chatbot,rag
  tokgate init --url http://127.0.0.1:8000 --measure
  tokgate init --url http://127.0.0.1:8000 --rate "4 req/s"
  tokgate init --from workloads/qwen3_5_h200.yaml
  tokgate init --from "vllm bench serve --random-input-len 2048 --max-concurrency 16"
  tokgate init --image vllm/vllm-openai:v0.19.1 --model Qwen/Qwen3-8B --upgrade --github`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.init(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.answers.URL, "url", "", "the `URL` of a running server")
	f.StringVar(&o.answers.Image, "image", "", "the container `image` to start")
	f.StringVar(&o.answers.Command, "command", "", "the `command` to start, with its arguments; {port} stands for a free port")
	f.StringVar(&o.answers.Engine, "engine", "", "`engine`: "+strings.Join(engine.Names(engine.Engine.Known), ", ")+" or "+engine.Plain+" (default: what the server says)")
	f.StringVar(&o.answers.Model, "model", "", "the `model` to start; with --url the model to expect")
	f.StringSliceVar(&o.answers.UseCases, "use-case", nil, "`use cases` to gate: "+strings.Join(starter.Names(), ", ")+" (default: "+starter.UseCases[0].Name+")")
	f.StringSliceVar(&o.answers.Rates, "rate", nil, "`rates` at which requests arrive, such as \"4 req/s\" (default: the use case's requests in flight)")
	f.StringVar(&o.from, "from", "", "`file or line` of another tool to carry over: a perf-eval or srt-slurm recipe, a command line of vllm bench serve, guidellm or aiperf, prompts or a trace")
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
	if o.from != "" {
		return a.initFrom(o)
	}
	in, asking := a.In.(*os.File)
	if err := o.measurable(); err != nil {
		return err
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
			return usageError("--force overwrites it, --plan names another file", "%s already exists", f.path)
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

func (a *app) sayNext(o initOptions) {
	try, gate := "", ""
	if o.answers.Upgrade {
		try, gate = "--base . ", "--base DIR "
	}
	fmt.Fprintf(a.Out, "\nNext:\n  tokgate plan %s\n  tokgate run --simulate %[2]s%[1]s\n  tokgate run %[3]s%[1]s\n", o.file, try, gate)
	if o.answers.Upgrade {
		fmt.Fprintln(a.Out, "\nDIR is a checkout of the base branch. Write \".\" to try only the sla blocks: both servers are then the same.")
	}
}

// plan returns the text of the plan. It decodes the text, because a flag may have a value that is
// invalid in a plan.
func (o initOptions) plan() ([]byte, error) {
	text, err := starter.Plan(o.answers)
	if err != nil {
		return nil, usageError("`tokgate init --help` lists all flags", "%v", err)
	}
	return text, o.valid(text)
}

func (o initOptions) valid(text []byte) error {
	if _, diags := decode.File(decode.Options{Path: o.file, Source: text}); diags.HasErrors() {
		// Leave out the file and line of the error, because the plan was not written to a file.
		i := slices.IndexFunc(diags, func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagError })
		return usageError("a flag of init, or what --from names, has a value that a plan cannot contain", "%s: %s", strings.ToLower(diags[i].Summary), strings.TrimSuffix(diags[i].Detail, "."))
	}
	return nil
}

func (o initOptions) files() ([]written, error) {
	files := []written{{path: o.file}}
	ci := starter.CI{
		Plan: o.answers.File, Commit: buildInfo().Commit, Budget: starter.Budget(o.answers),
		Upgrade: o.answers.Upgrade,
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

type written struct {
	path string
	text []byte
}

func (a *app) complete(ctx context.Context, w *starter.Answers, ask bool) error {
	answer := a.questions(ask)
	if err := needServer(w, ask, answer); err != nil {
		return err
	}
	if w.URL != "" && !strings.Contains(w.URL, "://") {
		w.URL = "http://" + w.URL
	}
	if w.URL != "" && w.Engine == "" {
		if err := a.recognize(ctx, w, answer); err != nil {
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
	// Every known engine has a flag --port.
	if w.Command != "" && w.Engine != engine.Plain && !strings.Contains(w.Command, "port") {
		w.Command += " --port {port}"
		fmt.Fprintln(a.Out, "added --port {port} to the command; each run replaces {port} by a free port")
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

// address matches what people write for a server without http://: a local host or an IP address,
// with a port. An image has neither, unless its registry is on the same machine.
var address = regexp.MustCompile(`^(?:localhost|[0-9]+(?:\.[0-9]+){3}|\[[0-9a-fA-F:]+\]):[0-9]+/?$`)

func needServer(w *starter.Answers, ask bool, answer func(question, fallback string) (string, error)) error {
	if given := slices.DeleteFunc([]string{w.URL, w.Image, w.Command}, func(s string) bool { return s == "" }); len(given) > 1 {
		return usageError("tokgate init --help", "a plan has only one server: set one of --url, --image and --command")
	} else if len(given) == 1 {
		return nil
	}
	if !ask {
		return usageError("for example: tokgate init --url http://127.0.0.1:8000", "init needs a server: --url, --image or --command")
	}
	said, err := answer("URL of a running server, or an image to start", "http://127.0.0.1:8000")
	if strings.Contains(said, "://") || address.MatchString(said) {
		w.URL = said
	} else {
		w.Image = said
	}
	return err
}

func (a *app) questions(ask bool) func(question, fallback string) (string, error) {
	if !ask {
		return func(_, fallback string) (string, error) { return fallback, nil }
	}
	in := bufio.NewReader(a.In)
	return func(question, fallback string) (string, error) {
		if fallback != "" {
			question += " [" + fallback + "]"
		}
		fmt.Fprintf(a.Out, "%s: ", question)
		line, err := in.ReadString('\n')
		if err != nil && line == "" {
			return "", usageError("write flags instead: tokgate init --help", "init got no answer")
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

func (a *app) recognize(ctx context.Context, w *starter.Answers, answer func(question, fallback string) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, detectWithin)
	defer cancel()
	found, err := server.Detect(ctx, clock.NewReal(), a.network, w.URL, "")
	if err != nil {
		return measureError(err, "start the server first, or set --engine to write a plan without asking the server")
	}
	w.Engine, w.Longest = found.Engine, found.Context
	said := found.Engine
	models := strings.Join(found.Models, ", ")
	for _, s := range []string{found.Version, models, found.Gateway} {
		if s != "" {
			said += ", " + s
		}
	}
	fmt.Fprintf(a.Out, "found %s\n", said)
	w.Unlisted = len(found.Models) == 0
	if len(found.Models) == 1 || w.Model != "" {
		return nil
	}
	// Requests must name a model, and the server does not say which.
	if w.Model, err = answer("Model to ask for", ""); err == nil && w.Model == "" {
		err = usageError("--model names the model to ask for", "the server at %s lists %s", w.URL, cmp.Or(models, "no model"))
	}
	return err
}

// ignoreResults adds results/ to the .gitignore file at path. added is false if it already is
// there.
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
