package assert

import (
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// What a server kept of a level with 300 cancelled requests, as it is judged.
func TestResidue(t *testing.T) {
	sound := func() *metric.Residue {
		idle := metric.Occupied{Running: metric.Some(0), Waiting: metric.Some(0), KV: metric.Some(0), Alone: 30 * time.Millisecond}
		return &metric.Residue{Before: idle, After: idle, Settled: time.Second, Made: metric.Some(10_000), Taken: 10_000, Owed: 10_000, Left: 300}
	}
	for _, tt := range []struct {
		name   string
		change func(*metric.Residue)
		want   verdict.Outcome
		said   []string
	}{
		{"nothing", func(*metric.Residue) {}, verdict.Pass, []string{"1 s after the load, in which tokgate cancelled 300 requests, the server is as before", "a leak in fewer than 1% of"}}, // 3/300
		{"six slots", func(r *metric.Residue) { r.After.Running = metric.Some(6) }, verdict.Fail, []string{"requests running: 6, 0 before (0.02 for each cancelled request)"}},
		{"one in the queue", func(r *metric.Residue) { r.After.Waiting = metric.Some(1) }, verdict.Fail, []string{"requests waiting: 1, 0 before"}},
		{"KV cache", func(r *metric.Residue) { r.After.KV = metric.Some(0.03) }, verdict.Fail, []string{"KV cache in use: 3%, 0% before (0.01% for each cancelled request)"}},
		{"a cache that counts", func(r *metric.Residue) {
			r.Before.KV, r.After.KV = metric.None("the engine counts cached blocks too"), metric.None("the engine counts cached blocks too")
		}, verdict.Pass, []string{"not checked: KV cache in use"}},
		// 300 clients may cost 8 tokens each: 10,000 + 2,400 + a quarter of 10,000.
		{"tokens of a few steps", func(r *metric.Residue) { r.Made = metric.Some(14_900) }, verdict.Pass, nil},
		{"work that went on", func(r *metric.Residue) { r.Made = metric.Some(14_901) }, verdict.Fail, []string{"it made 25% of the tokens that clients who left did not wait for"}},
		{"tokens unknown", func(r *metric.Residue) { r.Made = metric.None("not counted") }, verdict.Pass, []string{"not checked: tokens made for nobody"}},
		{"slow", func(r *metric.Residue) { r.After.Alone = 66 * time.Millisecond }, verdict.Fail, []string{"a request alone waits 66 ms for its first token, at most 30 ms before"}},
		{"gone", func(r *metric.Residue) { r.After = metric.Occupied{Running: metric.None("could not be read")} }, verdict.Fail, []string{"a request alone gets no answer"}},
		{"nothing reported", func(r *metric.Residue) { r.Before.Running = metric.None("the server does not report it") }, verdict.Error, []string{"not known: the server does not report it"}},
		{"unread at the end", func(r *metric.Residue) { r.After.Running = metric.None("the page could not be read") }, verdict.Error, []string{"not known: the page could not be read"}},
		{"unknown", func(r *metric.Residue) { r.Why = "others use the server" }, verdict.Error, []string{"not known: others use the server"}},
		{"a burst as before", func(r *metric.Residue) { r.Burst, r.Before.AtOnce, r.After.AtOnce = 256, 32, 29 }, verdict.Pass, []string{"of 256 requests at once the server answered 29 together, 32 before"}},
		{"a burst of which it takes less", func(r *metric.Residue) { r.Burst, r.Before.AtOnce, r.After.AtOnce = 256, 32, 28 }, verdict.Fail, []string{"of 256 requests at once it answers 28 together, 32 before"}},
		{"a soak, in which nobody left", func(r *metric.Residue) { r.Left, r.Owed = 0, 0 }, verdict.Pass, []string{"cancelled 0 requests"}},
	} {
		l := shape{rounds: 3, perRound: 20}.level()
		p, run := gate(l)
		p.Workloads[0].Residue = &plan.Residue{Settle: plan.UsualSettle, Severity: plan.SeverityError}
		l.Residue = sound()
		tt.change(l.Residue)
		v := verdictOf(t, Judge(p, run, Options{}), "residue at 4")
		text := v.Message + "\n" + strings.Join(v.NotesOf(), "\n")
		if v.Outcome != tt.want {
			t.Errorf("%s: %v, want %v: %s", tt.name, v.Outcome, tt.want, text)
		}
		for _, said := range tt.said {
			if !strings.Contains(text, said) {
				t.Errorf("%s: %s\nwant %q", tt.name, text, said)
			}
		}
	}
}

// Where nothing can be checked, nothing passes: no observation, no client that left.
func TestResidueOfNothing(t *testing.T) {
	leaves := &plan.Cancel{Share: 0.2, After: time.Second}
	for name, tt := range map[string]struct {
		change   func(*plan.Plan, *metric.Run)
		want     verdict.Outcome
		severity plan.Severity
	}{
		"not observed":   {func(_ *plan.Plan, run *metric.Run) { run.Levels[0].Residue = nil }, verdict.Error, plan.SeverityError},
		"no level":       {func(_ *plan.Plan, run *metric.Run) { run.Levels = nil }, verdict.Error, plan.SeverityError},
		"nobody left":    {func(*plan.Plan, *metric.Run) {}, verdict.Error, plan.SeverityError},
		"not selected":   {func(_ *plan.Plan, run *metric.Run) { run.Levels[0].Skipped = metric.SkippedOnly }, verdict.Skipped, plan.SeverityError},
		"of an endpoint": {func(p *plan.Plan, _ *metric.Run) { p.Servers[0].Endpoint = &plan.Endpoint{} }, verdict.Error, plan.SeverityWarn},
	} {
		l := shape{rounds: 3, perRound: 20}.level()
		p, run := gate(l)
		p.Workloads[0].Cancel = leaves
		idle := metric.Occupied{Running: metric.Some(0), Alone: time.Millisecond}
		l.Residue = &metric.Residue{Before: idle, After: idle}
		tt.change(p, run)
		if v := verdictOf(t, Judge(p, run, Options{}), "residue at 4"); v.Outcome != tt.want || string(v.Severity) != string(tt.severity) {
			t.Errorf("%s: %v %v, want %v %v: %s", name, v.Outcome, v.Severity, tt.want, tt.severity, v.Message)
		}
	}
}

// A residue is asked where clients leave, or where the plan says so; not of stages, traces, parts of a
// mix, nor of servers that take turns.
func TestResidueIsAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*plan.Plan, *plan.Level)
		want   bool
	}{
		"nobody leaves": {func(p *plan.Plan, _ *plan.Level) { p.Workloads[0].Cancel = nil }, false},
		"clients leave": {func(*plan.Plan, *plan.Level) {}, true},
		"a soak": {func(p *plan.Plan, _ *plan.Level) {
			p.Workloads[0].Leave = plan.Leave{Residue: &plan.Residue{Settle: time.Second}}
		}, true},
		"a stage":       {func(_ *plan.Plan, l *plan.Level) { l.Stage = &metric.Stage{} }, false},
		"a trace":       {func(_ *plan.Plan, l *plan.Level) { l.Speedup = 1 }, false},
		"part of a mix": {func(p *plan.Plan, _ *plan.Level) { p.Workloads[0].Of = &plan.Workload{} }, false},
		"in turns": {func(p *plan.Plan, _ *plan.Level) {
			p.Compares = []*plan.Compare{{Candidate: p.Servers[0], Control: plan.Control{Server: p.Servers[0]}}}
		}, false},
	} {
		p, _ := gate(shape{rounds: 3, perRound: 20}.level())
		w := p.Workloads[0]
		w.Cancel = &plan.Cancel{Share: 0.2, After: time.Second}
		tt.change(p, &w.Loads[0].Levels[0])
		if got := p.Residual(p.Servers[0], w, w.Loads[0].Levels[0]) != nil; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if got := len(p.Residuals(w)) > 0; got != tt.want {
			t.Errorf("%s: of the workload %v, want %v", name, got, tt.want)
		}
	}
}
