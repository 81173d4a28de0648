package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
)

type compareOptions struct {
	out                outputs
	control, candidate string
	tolerate, improve  []string
	changed            []string
	unprotected        bool
	confidence         float64
}

func (a *app) compareCommand() *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare CONTROL CANDIDATE",
		Short: "Compare two recorded runs, or two servers of one; no server is needed",
		Long: `Compares two results folders as a compare block does: every workload at every level
that both have. First it reports how the servers differ; a difference that --changed
does not name is an error. Then it reports for which workloads the candidate is
better, and the numbers.

Two runs were measured at two times, so the comparison is unpaired and the report
says that drift is not excluded. Servers that took turns in one run (a compare
block) are compared in pairs: name that folder twice.

Without --tolerate and --improve: throughput -5%, e2e mean +5% and ttft p95 +10%
are tolerated. The exit code is that of run.`,
		Example: `  tokgate compare results/v0.19 results/v0.20 --changed image
  tokgate compare results/old results/new --tolerate 'ttft=p95 +20%' --improve 'throughput=+10%'
  tokgate compare results/mtp results/mtp --control 'vllm["off"]' --candidate 'vllm["on"]' --changed flags`,
		Args:              takes(2, 2, "tokgate compare results/old results/new", "compare takes two results folders: the control's and the candidate's"),
		ValidArgsFunction: completeFolders,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.compare(args[0], args[1], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.control, "control", "", "`address` of the control, if its run has several servers")
	f.StringVar(&o.candidate, "candidate", "", "`address` of the candidate, if its run has several servers")
	f.StringArrayVar(&o.tolerate, "tolerate", nil, "how much worse the candidate may be: `metric=change` such as 'ttft=p95 +10%'; may be repeated")
	f.StringArrayVar(&o.improve, "improve", nil, "how much better the candidate must be: `metric=change`; may be repeated")
	f.StringSliceVar(&o.changed, "changed", nil, "what may differ between the servers, such as `image,flags`")
	f.Float64Var(&o.confidence, "confidence", 0.95, "confidence level of each verdict, between 0.5 and 1")
	f.BoolVar(&o.unprotected, "unprotected", false, "also compare recordings of an older version, which have no checksums")
	f.StringVarP(&o.out.dir, "out", "o", "", "`folder` for the reports (default: none are written)")
	o.out.flags(cmd)
	return cmd
}

func (a *app) compare(control, candidate string, o compareOptions) error {
	if !(o.confidence > 0.5 && o.confidence < 1) {
		return usageError("for example: --confidence 0.95", "--confidence must be above 0.5 and below 1")
	}
	r := compare.Records{ControlServer: o.control, CandidateServer: o.candidate, ControlName: control,
		Changed: o.changed, Confidence: o.confidence}
	for _, kind := range []struct {
		flag    string
		changes []string
	}{{"--tolerate", o.tolerate}, {"--improve", o.improve}} {
		claim := &plan.Claim{Improve: kind.flag == "--improve"}
		for _, text := range kind.changes {
			name, change, ok := strings.Cut(text, "=")
			if !ok {
				return usageError("for example: "+kind.flag+" 'ttft=p95 +10%'", "%s %q is not metric=change", kind.flag, text)
			}
			ch, err := decode.ParseChange(strings.TrimSpace(name), strings.TrimSpace(change), claim.Improve)
			if err != nil {
				return usageError("", "%s %q: %v", kind.flag, text, err)
			}
			claim.Changes = append(claim.Changes, ch)
		}
		if len(claim.Changes) > 0 {
			r.Claims = append(r.Claims, claim)
		}
	}
	if len(r.Claims) == 0 {
		r.Claims = compare.Usual()
	}
	var err error
	if r.Candidate, err = a.readRun(candidate); err != nil {
		return err
	}
	if filepath.Clean(control) == filepath.Clean(candidate) {
		r.Control = r.Candidate
	} else if r.Control, err = a.readRun(control); err != nil {
		return err
	}
	for dir, run := range map[string]*metric.Run{control: r.Control, candidate: r.Candidate} {
		if err := a.needProtected(run, dir, o.unprotected); err != nil {
			return err
		}
		if len(run.Servers) == 0 {
			return measureError(fmt.Errorf("the run recorded in %s started no server", dir))
		}
	}
	if compare.SameRun(r.Control, r.Candidate) && len(r.Candidate.Servers) < 2 {
		return usageError("name two runs, or one run of two servers twice; to judge a run by a plan: tokgate judge", "%s: there is nothing to compare it with", itself(control, candidate))
	}
	p, verdicts, err := assert.CompareRecords(r)
	if err != nil {
		return usageError("name it with --control or --candidate", "%v", err)
	}
	_, code, err := a.publish(p, r.Candidate, o.out, verdicts, nil)
	if err != nil {
		return err
	}
	return exitWith(code)
}

func itself(control, candidate string) string {
	if filepath.Clean(control) == filepath.Clean(candidate) {
		return control + " holds one run of one server"
	}
	return fmt.Sprintf("%s and %s hold the same run, of one server", control, candidate)
}
