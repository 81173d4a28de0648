package assert

import (
	"cmp"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// judge holds the state while one run is judged.
type judge struct {
	promised *plan.Plan
	run      *metric.Run
	levels   map[levelKey]*metric.Level // levels with their requests up to the last look
	// recorded holds all requests of each level.
	recorded map[levelKey]*metric.Level
	valid    map[levelKey]bool // whether each level was measured properly
	partial  bool
	list     []Verdict
	// baselines holds the recorded runs of stored controls, by the name of the comparison.
	baselines   map[string]*metric.Run
	comparisons []*compare.Comparison
	limits      map[*metric.Capacity]limit // results of the searches that were judged so far
}

func newJudge(p *plan.Plan, run *metric.Run) *judge {
	j := &judge{promised: p, run: run, levels: map[levelKey]*metric.Level{}, valid: map[levelKey]bool{}, recorded: map[levelKey]*metric.Level{}, limits: map[*metric.Capacity]limit{}}
	for _, l := range run.Levels {
		if l != nil {
			j.take(l)
			j.partial = j.partial || l.Skipped == metric.SkippedOnly
		}
	}
	return j
}

// take adds a recorded level. If the record has the level twice, which exec never writes, the first
// one counts.
func (j *judge) take(l *metric.Level) {
	if k := (levelKey{l.Server, l.Workload, l.Name}); j.recorded[k] == nil {
		j.recorded[k] = sample.Sound(l)
		j.levels[k] = j.recorded[k]
	}
}

type levelKey struct{ server, workload, level string }

func (j *judge) add(v Verdict, on plan.OnInconclusive) {
	v.Warn = on == plan.Warn
	j.keep(v)
}

func (j *judge) keep(v Verdict) {
	v.Severity = cmp.Or(v.Severity, verdict.SeverityError)
	if v.Outcome == Error {
		v.Cause = cmp.Or(j.cause(&v), v.Cause, verdict.CauseInvalid)
	}
	j.list = append(j.list, v)
}

// cause returns the cause of an error. It is the server if the server had an error, or if the level
// was measured and no request completed, whatever else was wrong.
func (j *judge) cause(v *Verdict) verdict.Cause {
	if s := j.run.Server(v.Server); v.Kind == KindServer || s != nil && s.Error != "" || sample.Silent(j.recorded[levelKey{v.Server, v.Workload, v.Level}]) {
		return verdict.CauseServer
	}
	return ""
}

// implied returns the severity of thresholds that other thresholds imply. In a plan that only
// measures it is a warning, so that the plan never fails by an implied threshold.
func (j *judge) implied() verdict.Severity {
	if j.promised.Gate.MeasureOnly {
		return verdict.SeverityWarn
	}
	return verdict.SeverityError
}

// serverError explains why a server could not be measured; "" if it could.
func (j *judge) serverError(address string) string {
	if s := j.run.Server(address); s != nil {
		return s.Error
	}
	return "there is no record of it"
}
