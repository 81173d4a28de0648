package assert

import (
	"cmp"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// judge is one judgement under way.
type judge struct {
	promised *plan.Plan
	run      *metric.Run
	levels   map[levelKey]*metric.Level // as judged: up to its last look
	// recorded holds them whole.
	recorded map[levelKey]*metric.Level
	valid    map[levelKey]bool // the level was measured as it should be
	partial  bool
	list     []Verdict
	// baselines are recorded runs by the comparison that they are the control of.
	baselines   map[string]*metric.Run
	comparisons []*compare.Comparison
}

func newJudge(p *plan.Plan, run *metric.Run) *judge {
	j := &judge{promised: p, run: run, levels: map[levelKey]*metric.Level{}, valid: map[levelKey]bool{}, recorded: map[levelKey]*metric.Level{}}
	for _, l := range run.Levels {
		if l != nil {
			j.take(l)
			j.partial = j.partial || l.Skipped == metric.SkippedOnly
		}
	}
	return j
}

// take adds a level. One that appears twice keeps its first measurement; exec
// never writes one twice.
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

// cause is that of an error where the server was the matter, whatever else there
// was: it had an error, or the level was measured and nothing completed.
func (j *judge) cause(v *Verdict) verdict.Cause {
	if s := j.run.Server(v.Server); v.Kind == KindServer || s != nil && s.Error != "" || sample.Silent(j.recorded[levelKey{v.Server, v.Workload, v.Level}]) {
		return verdict.CauseServer
	}
	return ""
}

// implied is how much what the plan does not write counts: nothing, where it only
// measures.
func (j *judge) implied() verdict.Severity {
	if j.promised.Gate.MeasureOnly {
		return verdict.SeverityWarn
	}
	return verdict.SeverityError
}

// serverError is why a server could not be measured; "" when it could.
func (j *judge) serverError(address string) string {
	if s := j.run.Server(address); s != nil {
		return s.Error
	}
	return "there is no record of it"
}
