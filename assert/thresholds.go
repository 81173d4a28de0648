package assert

import (
	"fmt"
	"math"
	"slices"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// thresholds judges a list of thresholds, in the order of the list. If the threshold on success
// does not pass, a threshold that ignores failed requests cannot pass either.
func (s *subject) thresholds(list []required) []verdict.Verdict {
	var out []verdict.Verdict
	success := verdict.Skipped
	for _, t := range list {
		v := s.judge(t.Threshold)
		v.Severity, v.Threshold.Implied = t.severity, t.impliedBy != nil
		if t.Accept != nil {
			accepted(&v, t.Threshold, s.judge(t.Own).Outcome)
		}
		if why := t.why(); why != "" && (v.Outcome != verdict.Pass || t.Stat.Kind != metric.Implied) {
			v.Note(why)
		} else if v.Outcome == verdict.Fail && t.Metric.Source != metric.Starts {
			if then := doing(s.level); then != "" {
				v.Note(then)
			}
		}
		if plan.ByDrafts(t.Metric.Name) && s.drafted() {
			v.Caution("synthetic prompts: the server drafts tokens, and the text decides how many of them are accepted; with your own prompts (a dataset) this figure may differ")
		}
		if t.Metric.Name == "success" {
			success = max(success, v.Outcome)
		}
		out = append(out, v)
	}
	for i := range out {
		if v := &out[i]; list[i].IgnoresFailures() && v.Outcome == verdict.Pass && success != verdict.Pass {
			v.Outcome = success
			v.Message += ", but the threshold on success does not pass"
			v.Note(fmt.Sprintf("%s ignores failed requests, so it passes only if the threshold on success passes", label(list[i].Threshold)))
			if v.Outcome == verdict.Inconclusive {
				v.Needs = "needs the threshold on success to be decided first"
			}
		}
	}
	return out
}

// accepted notes that an accept block sets the threshold of a verdict. own is the outcome by the plan's
// own threshold.
func accepted(v *verdict.Verdict, t *plan.Threshold, own verdict.Outcome) {
	worse := 1.0
	if sample.Upward(t.Op) {
		worse = -1
	}
	v.Accept(&t.Accept.Accept, t.Own.Text, own, worse*(v.Value.V-t.Own.Limit), worse*(t.Limit-t.Own.Limit))
}

// drafted reports whether the server decodes speculatively and prompts are synthetic. It finds this
// in the server's metrics or in the plan.
func (s *subject) drafted() bool {
	if s.workload.Prompt.Dataset != nil {
		return false
	}
	if drafts := s.level.Added(metric.Drafts); drafts.OK && drafts.V > 0 {
		return true
	}
	return slices.ContainsFunc(s.workload.Servers,
		func(of *plan.Server) bool { return of.Address() == s.level.Server && of.Drafts() != "" })
}

// judge judges one threshold. The caller must set the names in the verdict.
func (s *subject) judge(t *plan.Threshold) verdict.Verdict {
	v := verdict.Verdict{
		Kind: verdict.KindSLA, Threshold: ThresholdOf(t), Place: verdict.Place{File: t.Range.Filename, Line: t.Range.Start.Line},
	}
	v.Decide, v.Confidence = string(s.policy.Decide), 1-s.alpha
	switch {
	case s.n == 0:
		v.Outcome, v.Value = verdict.Error, metric.None("no request was due")
		v.Message = label(t) + " has no value: no request was due"
		return v
	case t.Op != "" && (math.IsNaN(t.Limit) || math.IsInf(t.Limit, 0)) || t.Op == "" && t.Stat.Kind != metric.Every:
		v.Outcome, v.Value = verdict.Error, metric.None("the limit is not a number")
		v.Message = label(t) + ": the limit is not a number"
		return v
	}
	switch {
	case s.unstreamed(&v, t):
	case t.Metric.Name == "success" || t.Stat.IsShare() && (t.Metric.Name == "goodput" || t.Metric.OfAnswers):
		s.share(&v, t)
	case t.Metric.Scope == metric.Counted:
		s.counted(&v, t)
	case t.Metric.Scope == metric.PerReading:
		s.read(&v, t)
	case t.Metric.Scope == metric.PerLevel:
		if !s.judgeLevelValue(&v, t) {
			s.judgeByRounds(&v, t)
		}
	case t.Stat.Kind == metric.Percentile:
		s.percentile(&v, t)
	case t.Stat.Kind == metric.Mean:
		s.mean(&v, t)
	case t.Stat.Exact() && !t.Stat.IsShare():
		s.exact(&v, t)
	default:
		v.Outcome, v.Value = verdict.Error, metric.None("the statistic is not known")
		v.Message = fmt.Sprintf("%s: the statistic %q cannot be judged", t.Metric.Name, t.Stat)
	}
	s.early(&v, t)
	return v
}

// unstreamed reports whether a threshold on streaming lacks data, because the level does not show
// how answers streamed. It then sets the verdict to an error.
func (s *subject) unstreamed(v *verdict.Verdict, t *plan.Threshold) bool {
	if !sample.Streamed(t.Metric, s.workload) {
		return false
	}
	why := s.level.Unstreamed()
	if why != "" {
		noValue(v, t, why)
		v.Cause = verdict.CauseInvalid
	}
	return why != ""
}
