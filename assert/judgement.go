package assert

import (
	"cmp"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// judge is the state of the judgement of one run.
type judge struct {
	promised *plan.Plan
	run      *metric.Run
	levels   map[levelKey]*metric.Level // levels by key, each with the requests up to its last look
	// recorded holds the same levels with all their requests.
	recorded map[levelKey]*metric.Level
	valid    map[levelKey]bool // whether the measurement of a level is valid
	partial  bool
	list     []verdict.Verdict
	// baselines maps the name of a comparison to the recorded run of its control.
	baselines   map[string]*metric.Run
	ramblings   []metric.Figure // see Options
	comparisons []*compare.Comparison
	limits      map[*metric.Capacity]limit // results of the capacity searches judged so far
}

func newJudge(p *plan.Plan, run *metric.Run) *judge {
	j := &judge{promised: p, run: run, levels: map[levelKey]*metric.Level{}, valid: map[levelKey]bool{},
		recorded: map[levelKey]*metric.Level{}, limits: map[*metric.Capacity]limit{}}
	for _, l := range run.All() {
		if l != nil {
			j.take(l)
			j.partial = j.partial || l.Skipped == metric.SkippedOnly
		}
	}
	return j
}

// take adds a recorded level. If a broken record has a level twice, the first one counts.
func (j *judge) take(l *metric.Level) {
	if k := (levelKey{l.Server, l.Workload, l.Name}); j.recorded[k] == nil {
		j.recorded[k] = sample.Sound(j.run.WithStarts(l))
		j.levels[k] = j.recorded[k]
	}
}

type levelKey struct{ server, workload, level string }

func (j *judge) add(v verdict.Verdict, on plan.OnInconclusive) {
	v.Warn = on == plan.Warn
	j.keep(v)
}

func (j *judge) keep(v verdict.Verdict) {
	v.Severity = cmp.Or(v.Severity, verdict.SeverityError)
	if v.Outcome == verdict.Error {
		v.Cause = cmp.Or(j.cause(&v), v.Cause, verdict.CauseInvalid)
	} else {
		soften(j.promised, &v)
	}
	j.list = append(j.list, v)
}

// soften makes the verdict on a requirement a warning if the plan says measure_only: such a plan
// never fails because of what it measured, only because it could not measure.
func soften(p *plan.Plan, v *verdict.Verdict) {
	if p.Gate.MeasureOnly && v.Required() {
		v.Severity = verdict.SeverityWarn
	}
}

// cause returns CauseServer if the server had an error, or completed no request of a level.
// Otherwise it returns "".
func (j *judge) cause(v *verdict.Verdict) verdict.Cause {
	if s := j.run.Server(v.Server); v.Kind == verdict.KindServer || s != nil && s.Error != "" ||
		sample.Silent(j.recorded[levelKey{v.Server, v.Workload, v.Level}]) {
		return verdict.CauseServer
	}
	return ""
}

// implied returns the severity of thresholds that tokgate adds itself. In a plan that only
// measures, they give warnings and never fail the plan.
func (j *judge) implied() verdict.Severity {
	if j.promised.Gate.MeasureOnly {
		return verdict.SeverityWarn
	}
	return verdict.SeverityError
}

// serverError returns the reason why a server could not be measured; "" if it could.
func (j *judge) serverError(address string) string {
	if s := j.run.Server(address); s != nil {
		return s.Error
	}
	return "the run has no record of this server"
}
