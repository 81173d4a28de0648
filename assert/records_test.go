package assert

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/compare"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// Two servers of one run that took turns are compared in pairs of rounds. Two separate runs are
// compared without pairs.
func TestCompareRecords(t *testing.T) {
	slower := func(factor float64) duel {
		return duel{rounds: 8, perRound: 100, control: noisy(1, 1, 0.01), candidate: noisy(2, factor, 0.01)}
	}
	_, turns := slower(1).make()
	_, bad := slower(1.5).make()
	alone := func(run *metric.Run, i int) *metric.Run {
		return &metric.Run{ID: "run of " + run.Servers[i].Address, Servers: run.Servers[i : i+1], Levels: run.Levels[i : i+1]}
	}
	mean := func() []*plan.Claim { return []*plan.Claim{tolerate("ttft mean +10%")} }
	for _, row := range []struct {
		name   string
		r      compare.Records
		want   verdict.Outcome
		paired bool
		fails  string
	}{
		{"in turns", compare.Records{Control: turns, Candidate: turns, Claims: mean()}, verdict.Pass, true, ""},
		{"in turns, too slow", compare.Records{Control: bad, Candidate: bad, Claims: mean()}, verdict.Fail, true, ""},
		{"the usual", compare.Records{Control: bad, Candidate: bad, Claims: compare.Usual()}, verdict.Fail, true, ""},
		{"two runs", compare.Records{Control: alone(turns, 0), Candidate: alone(turns, 1), ControlName: "old", Claims: mean()}, verdict.Pass, false, ""},
		{"two runs, too slow", compare.Records{Control: alone(bad, 0), Candidate: alone(bad, 1), ControlName: "old", Claims: mean()}, verdict.Fail, false, ""},
		{"which one", compare.Records{Control: turns, Candidate: alone(turns, 1), ControlName: "old", ControlServer: "a", Claims: mean()}, verdict.Pass, false, ""},
		{"no such server", compare.Records{Control: turns, Candidate: turns, CandidateServer: "c", Claims: mean()}, verdict.Pass, true, "has no server c; its servers: a, b"},
		{"with itself", compare.Records{Control: turns, Candidate: turns, ControlServer: "b", CandidateServer: "b", Claims: mean()}, verdict.Pass, true, "itself"},
		{"with itself elsewhere", compare.Records{Control: alone(turns, 1), Candidate: alone(turns, 1), ControlName: "a copy", Claims: mean()}, verdict.Pass, true, "say which server"},
		{"which of two", compare.Records{Control: alone(turns, 0), Candidate: turns, ControlName: "old", Claims: mean()}, verdict.Pass, false, "say which server is the candidate"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, v, err := CompareRecords(row.r)
			if row.fails != "" {
				must.Hold(t, err != nil && strings.Contains(err.Error(), row.fails), "error %v, want %q", err, row.fails)
				return
			}
			must.Do(t, err)
			must.Hold(t, v.Outcome == row.want && len(v.Comparisons) == 1 && v.Comparisons[0].Paired == row.paired, "%v (%s), %q", v.Outcome, v.Why, names(v))
		})
	}
	// A run that was simulated, or that did not end, cannot be compared with a complete real run.
	other := func(change func(*metric.Run)) *metric.Run {
		r := alone(turns, 1)
		change(r)
		return r
	}
	for _, s := range turns.Servers {
		s.Path = metric.PathOwn
	}
	for name, r := range map[string]*metric.Run{
		"the control was measured, but the candidate was simulated": other(func(r *metric.Run) { r.Simulated = true }),
		"record both with the same --transport": other(func(r *metric.Run) {
			s := *r.Servers[0]
			s.Path, r.Servers = metric.PathChosen, []*metric.ServerRun{&s}
		}),
		"the candidate's run did not end: the recording ends here": other(func(r *metric.Run) { r.Stopped = "the recording ends here" }),
	} {
		_, v, err := CompareRecords(compare.Records{Control: alone(turns, 0), Candidate: r, ControlName: "old", Claims: mean()})
		text := strings.Join(names(v), "\n")
		must.Hold(t, err == nil && v.Outcome == verdict.Error && strings.Contains(text, name), "%v, %v, want an error that says %q:\n%s", v.Outcome, err, name, text)
	}
	// A note names a level that was measured only on the control. If the candidate's run left the
	// level out by --only, the verdict is partial.
	both := &metric.Run{ID: "old", Servers: turns.Servers[:1], Levels: []*metric.Level{turns.Levels[0]}}
	more := *turns.Levels[0]
	more.Name = "8"
	both.Levels = append(both.Levels, &more)
	_, v, err := CompareRecords(compare.Records{Control: both, Candidate: alone(turns, 1), ControlName: "old", Claims: mean()})
	if err != nil || v.Outcome != verdict.Pass || v.Partial || !strings.Contains(strings.Join(v.List[0].NotesOf(), "\n"), "chat at 8 is not compared") {
		t.Errorf("%v, %v, %q", v, err, v.List[0].Notes)
	}
	_, v, err = CompareRecords(compare.Records{Control: both, Candidate: other(func(r *metric.Run) {
		r.Levels = append(slices.Clone(r.Levels), &metric.Level{Server: r.Servers[0].Address, Workload: "chat", Name: "8", Skipped: metric.SkippedOnly})
	}), ControlName: "old", Claims: mean()})
	must.Hold(t, err == nil && v.Outcome == verdict.Pass && v.Partial, "%v, %v: it is partial", v, err)
	_, v, err = CompareRecords(compare.Records{Control: both, Candidate: other(func(r *metric.Run) {
		r.Levels = append(slices.Clone(r.Levels), &metric.Level{Server: r.Servers[0].Address, Workload: "chat", Name: "8", Skipped: "the budget was spent"})
	}), ControlName: "old", Claims: mean()})
	must.Hold(t, err == nil && v.Outcome == verdict.Error, "%v, %v: a level was not run", v, err)
	// In one run with both servers, the control also scored the candidate's answers, and these
	// scores are judged. Two separate runs have no such scores.
	answered := func(nats float64) *metric.Run {
		r := *turns
		read := &metric.PairedAnswers{Due: 200}
		for i := range read.Due {
			p := metric.AnswerPair{Workload: "chat", Level: "4", Order: i}
			p.Control = &metric.PairedAnswer{Finish: "stop", Asked: 64, Tokens: 64, Loss: 19.2, Scored: 64}
			again := *p.Control
			p.Candidate = &again
			if i < 3 {
				p.Candidate.Loss += 64 * nats
			}
			read.Pairs = append(read.Pairs, p)
		}
		r.Comparisons = []*metric.Comparison{{Name: "c", Control: turns.Servers[0].Address, Candidate: turns.Servers[1].Address, Restart: "leg", Answers: read}}
		return &r
	}
	odd := func() []*plan.Claim {
		return []*plan.Claim{{Changes: []*plan.ChangeBound{{Metric: metric.MustLookup("odd_answers"), Limit: 3, Points: true, Text: "count +3"}}}}
	}
	for _, row := range []struct {
		name, says         string
		control, candidate *metric.Run
		claims             []*plan.Claim
		want               verdict.Outcome
	}{
		{"none odd", "odd_answers: 0 of the candidate's 200", answered(0), nil, mean(), verdict.Pass},
		{"three odd", "odd_answers: 3 of the candidate's 200 answers are odd (3 improbable to the control)", answered(6), nil, mean(), verdict.Fail},
		{"three odd, tolerated", "odd_answers: 3 of the candidate's 200", answered(6), nil, odd(), verdict.Pass},
		{"nothing was read", "the record holds no answers that the control has scored", turns, nil, odd(), verdict.Error},
		{"two runs", "the control of this comparison did not score the candidate's answers", alone(turns, 0), answered(6), mean(), verdict.Pass},
	} {
		r := compare.Records{Control: row.control, Candidate: cmp.Or(row.candidate, row.control), ControlName: "old", CandidateServer: turns.Servers[1].Address, Claims: row.claims}
		_, v, err := CompareRecords(r)
		if text := strings.Join(append(names(v), v.List[0].NotesOf()...), "\n"); err != nil || v.Outcome != row.want || !strings.Contains(text, row.says) {
			t.Errorf("%s: %v, %v, want %v and %q:\n%s", row.name, v.Outcome, err, row.want, row.says, text)
		}
	}
	// A round that was cut short makes the record invalid.
	turns.Levels[1].Rounds[3].Complete = false
	if _, v, err := CompareRecords(compare.Records{Control: turns, Candidate: turns, Claims: mean()}); err != nil || v.Outcome != verdict.Error {
		t.Errorf("%v, %v", v.Outcome, err)
	}
}
