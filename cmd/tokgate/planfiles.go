package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/pflag"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/plan/policy"
	"github.com/tokgate/tokgate/plan/suggest"
	"github.com/tokgate/tokgate/sim"
)

// isPlanFile returns whether a file in a folder is a plan, judged by its name. Variable files and
// backups of editors are not plans.
func isPlanFile(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") {
		return false
	}
	return strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json")
}

// planFiles expands the arguments of a command. A folder stands for the plan files in
// it (and below it if recursive), in lexical order.
func planFiles(args []string, recursive bool) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, noSuchPlan(arg, err)
		}
		if !info.IsDir() {
			files = append(files, arg)
			continue
		}
		before := len(files)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != arg && (!recursive || strings.HasPrefix(d.Name(), ".")):
				return filepath.SkipDir
			case !d.IsDir() && isPlanFile(d.Name()):
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, usageError("", "could not read folder %q: %w", arg, err)
		}
		if len(files) == before {
			return nil, usageError("a plan file ends in .hcl or .hcl.json", "no plan in folder %q", arg)
		}
	}
	return files, nil
}

func noSuchPlan(path string, err error) error {
	var names []string
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if e.IsDir() || isPlanFile(e.Name()) {
			names = append(names, e.Name())
		}
	}
	hint := ""
	if near := suggest.Nearest(filepath.Base(path), names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", filepath.Join(filepath.Dir(path), near))
	}
	return usageError(hint, "could not read plan: %w", err)
}

type inputs struct {
	list []decode.Input
	base string // checkout of the base branch; "" if there is none
	self bool   // if base is "", compare the plan with itself; nothing is run
	// baseMissing is what a comparison decides if the base branch lacks the plan; "" if not given.
	baseMissing wordFlag

	files     []string // folders outside the repository whose files the plan may read
	rulesFile string   // policy file for plans; "" if there is none
	judgedAt
}

// flags adds the flags --var and --var-file. If both set the same variable, the last flag on the
// command line wins, as in Terraform.
func (in *inputs) flags(f *pflag.FlagSet) {
	f.Var(&inputFlag{in, func(s string) decode.Input { return decode.Input{Var: s} }}, "var",
		"set a variable, `name=value`; may be repeated, the last one wins")
	f.Var(&inputFlag{in, func(s string) decode.Input { return decode.Input{File: s} }}, "var-file",
		"read variables from a `file` (HCL or JSON); may be repeated")
	f.StringArrayVar(&in.files, "files", nil, "`folder` outside the repository whose files the plan may read, such as /data; may be repeated")
	f.StringVar(&in.base, "base", "", "`folder` with a checkout of the base branch; base.server.NAME is the server of the same plan there")
	in.baseMissing.known = plan.BaseMissings
	f.Var(&in.baseMissing, "base-missing", "what a comparison decides if the base branch has no such plan or server: `others` (the other requirements decide, inconclusive without any), fail or pass")
}

func (in *inputs) policyFlag(f *pflag.FlagSet) {
	f.StringVar(&in.rulesFile, "policy", "", "policy `file`: what plans may use and must require")
}

func (in *inputs) rules() (*policy.Policy, hcl.Diagnostics) {
	if in.rulesFile == "" {
		return nil, nil
	}
	return decode.Policy(in.rulesFile, nil)
}

type wordFlag struct {
	word  string
	known []string
}

func (v *wordFlag) Set(s string) error {
	if !slices.Contains(v.known, s) {
		return fmt.Errorf("write one of %s", strings.Join(v.known, ", "))
	}
	v.word = s
	return nil
}
func (v *wordFlag) Type() string   { return "string" }
func (v *wordFlag) String() string { return v.word }

type inputFlag struct {
	in  *inputs
	new func(string) decode.Input
}

func (v *inputFlag) Set(s string) error { v.in.list = append(v.in.list, v.new(s)); return nil }
func (v *inputFlag) Type() string       { return "string" }
func (v *inputFlag) String() string     { return "" }

// load reads one plan. It adds diagnostics about thresholds that cannot be certified. The plan is
// not nil even after errors, because its field Files has the source lines for diagnostics.
func (a *app) load(path string, in inputs, requireEnv bool) (*plan.Plan, hcl.Diagnostics) {
	l := a.bounds.within(path, func(reading func(read func())) loaded {
		rules, diags := in.rules()
		if diags.HasErrors() {
			return loaded{&plan.Plan{Path: path, Files: rules.Files}, decode.Gather(diags)}
		}
		if info, err := os.Stat(in.base); in.base != "" && (err != nil || !info.IsDir()) {
			return loaded{&plan.Plan{Path: path}, hcl.Diagnostics{{
				Severity: hcl.DiagError, Summary: "No checkout of the base branch",
				Detail: fmt.Sprintf("--base %s is not a folder, so nothing could be compared. Check out the base branch there.", in.base),
			}}}
		}
		opts := decode.Options{
			Path:       path,
			Inputs:     in.list,
			Environ:    a.environ,
			RequireEnv: requireEnv,
			Base:       in.base,
			Self:       in.self,

			BaseMissing: cmp.Or(plan.BaseMissing(in.baseMissing.word), rules.BaseMissing()),

			Files:   slices.Concat(in.files, rules.Folders()),
			Bounded: reading,
			Drafts: func(profile string) bool {
				read, err := sim.LoadProfile(profile, filepath.Dir(path))
				return err == nil && read.Speculation != nil
			},
		}
		var p *plan.Plan
		p, diags = decode.File(opts)
		if !diags.HasErrors() {
			diags = append(diags, advise(loading, p, nil)...)
		}
		var base func() (*plan.Plan, hcl.Diagnostics)
		if in.base != "" {
			base = func() (*plan.Plan, hcl.Diagnostics) { return decode.Base(opts) }
		}
		if !diags.HasErrors() && rules != nil {
			diags = append(diags, hold(rules, p, base)...)
		}
		if !diags.HasErrors() {
			diags = append(diags, a.accept(p, in, rules, base)...)
		}
		return loaded{p, decode.Gather(diags)}
	})
	return l.read, l.diags
}

func (a *app) loadAll(paths []string, in inputs, requireEnv bool) ([]*plan.Plan, error) {
	var plans []*plan.Plan
	var bad []string
	for _, path := range paths {
		p, diags := a.load(path, in, requireEnv)
		if err := a.showDiagnostics(p, diags); err != nil {
			return nil, err
		}
		if diags.HasErrors() {
			bad = append(bad, path)
		}
		plans = append(plans, p)
	}
	if len(bad) > 0 {
		return nil, notValid(slices.Compact(bad)...)
	}
	return plans, nil
}

func (a *app) showDiagnostics(p *plan.Plan, diags hcl.Diagnostics) error {
	t := a.terminal(a.Err)
	if err := decode.WriteDiagnostics(a.Err, p.Files, diags, uint(t.width), t.color); err != nil {
		return measureError(err)
	}
	a.actions.diagnose(diags)
	return nil
}

func notValid(paths ...string) error {
	return &exitError{code: verdict.ExitPlan, err: fmt.Errorf("%s: not a valid plan, nothing was started", strings.Join(paths, ", "))}
}
