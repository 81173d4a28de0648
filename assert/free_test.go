package assert

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
)

// load parses a plan.
func load(t *testing.T, source string) *plan.Plan {
	t.Helper()
	p, diags := decode.File(decode.Options{Path: "chat.hcl", Source: []byte(source)})
	must.Need(t, !diags.HasErrors(), "%v", diags.Error())
	return p
}

func TestAsserts(t *testing.T) {
	const head = `
server "sim" {
  simulator {}
}
variable "word" {
  type    = string
  default = "slow"
}
workload "chat" {
  input_tokens  = 1000
  output_tokens = 11
  load {
    concurrency = 4
    requests    = 60
    seeds       = [1, 2, 3, 4, 5]
  }
  good { ttft = "< 2s" }
}
`
	for _, c := range []struct {
		name, condition, message string
		shape                    shape
		want                     verdict.Outcome
		says                     string
	}{
		{"holds", `result.sim.chat.level[4].ttft.p95 < 2`, `"never"`, shape{}, verdict.Pass, "holds"},
		{"function", `result.sim.chat.level[4].ttft.p95 <= seconds("1s")`, `"never"`, shape{}, verdict.Pass, "holds"},
		{"counts", `result.sim.chat.level[4].requests == 60 && result.sim.chat.level[4].completed == 60 && result.sim.chat.level[4].failed == 0 && result.sim.chat.level[4].goodput_share == 1`, `"never"`, shape{}, verdict.Pass, "holds"},
		{"level-wide", `result.sim.chat.level[4].throughput > 10 && result.sim.chat.level[4].success == 1`, `"never"`, shape{}, verdict.Pass, "holds"},
		{"does not hold", `result.sim.chat.level[4].ttft.p95 < 0.5`, `"too ${var.word}: ${result.sim.chat.level[4].ttft.p95} s"`, shape{}, verdict.Fail, "too slow: 1 s"},
		{"odd percentile", `result.sim.chat.level[4].ttft["p99.9"] < 2`, `"never"`, shape{}, verdict.Pass, "holds"},
		{"infinite", `result.sim.chat.level[4].ttft.max < 2`, `"no"`, shape{failed: func(_, i int) bool { return i == 0 }}, verdict.Fail, "no"},
		{"infinite arithmetic", `result.sim.chat.level[4].ttft.max - result.sim.chat.level[4].ttft.p99 < 2`, `"no"`, shape{failed: func(_, i int) bool { return i == 0 }}, verdict.Error, "could not be evaluated"},
		{"null", `result.sim.chat.level[4].scaling_efficiency > 0.5`, `"no"`, shape{}, verdict.Error, "could not be evaluated"},
		{"null compared", `result.sim.chat.level[4].scaling_efficiency == 0.5`, `"no"`, shape{}, verdict.Error, "result.sim.chat.level[4].scaling_efficiency was not measured"},
		{"message fails", `result.sim.chat.level[4].ttft.p95 < 0.5`, `"x ${result.sim.chat.level[4].scaling_efficiency}"`, shape{}, verdict.Fail, "does not hold"},
		{"nothing completed", `result.sim.chat.level[4].ttft.p95 < 2`, `"no"`, shape{failed: func(int, int) bool { return true }}, verdict.Error, "could not be evaluated"},
	} {
		p := load(t, head+"assert \"a\" {\n  condition     = "+c.condition+"\n  error_message = "+c.message+"\n}\n")
		c.shape.rounds, c.shape.perRound = 5, 12
		l := c.shape.level()
		run := &metric.Run{Servers: []*metric.ServerRun{{Address: "sim"}}, Levels: []*metric.Level{l}}
		v := Judge(p, run, Options{})
		got := verdictOf(t, v, "a")
		must.Hold(t, got.Outcome == c.want && strings.Contains(got.Message, c.says), "%s: %v %q, want %v %q", c.name, got.Outcome, got.Message, c.want, c.says)
		if !strings.Contains(strings.Join(got.NotesOf(), "\n"), "point estimate") || got.File != "chat.hcl" || got.Line == 0 {
			t.Errorf("%s: not labelled or not placed: %+v", c.name, got)
		}
		must.Hold(t, (c.want != verdict.Error || v.Outcome == verdict.Error) && (c.want != verdict.Fail || v.Outcome == verdict.Fail), "%s: the run is %v", c.name, v.Outcome)
	}
}

// The variable result always has its declared type, also with for_each. It has no undeclared field.
func TestResultHasItsType(t *testing.T) {
	p := load(t, `
server "sim" {
  for_each = { on = 1, off = 2 }
  simulator {}
}
workload "test" {
  for_each      = { short = 100, long = 1000 }
  server        = server.sim
  input_tokens  = each.value
  output_tokens = 11
  load {
    concurrency = [1, 4]
    requests    = 60
  }
  load {
    burst  = 8
    bursts = 5
  }
}
assert "a" {
  condition     = result.sim["on"].test["short"].level["burst 8"].e2e.p90 < 1 || result.sim["off"].test["long"].level[4].ttft.mean < 1
  error_message = "no"
}
`)
	j := judge{promised: p, run: &metric.Run{}, levels: map[levelKey]*metric.Level{}, valid: map[levelKey]bool{}}
	l := shape{rounds: 5, perRound: 12}.level()
	key := levelKey{`sim["off"]`, `test["long"]`, "4"}
	l.Server, l.Workload = key.server, key.workload
	j.levels[key], j.valid[key] = l, true
	v := must.Get(j.result())(t)
	want := plan.ResultType(p)
	must.Hold(t, v.Type().Equals(want), "result is %#v,\nwant %#v", v.Type(), want)
}

func TestAssertOfWhatWasLeftOut(t *testing.T) {
	p := load(t, `
server "sim" {
  simulator {}
}
workload "chat" {
  input_tokens  = 1000
  output_tokens = 11
  load {
    concurrency = [4, 8]
    requests    = 60
    seeds       = [1, 2, 3, 4, 5]
  }
}
assert "measured" {
  condition     = result.sim.chat.level[4].ttft.p95 < 2
  error_message = "no"
}
assert "left out" {
  condition     = result.sim.chat.level[8].ttft.p95 < 2
  error_message = "no"
}
`)
	run := &metric.Run{Servers: []*metric.ServerRun{{Address: "sim"}}, Levels: []*metric.Level{
		shape{rounds: 5, perRound: 12}.level(), {Server: "sim", Workload: "chat", Name: "8", Skipped: metric.SkippedOnly}}}
	v := Judge(p, run, Options{Partial: true})
	if verdictOf(t, v, "measured").Outcome != verdict.Pass || verdictOf(t, v, "left out").Outcome != verdict.Skipped || v.Outcome != verdict.Pass || !v.Partial {
		t.Errorf("%v: %v", v.Outcome, names(v))
	}
}

// A condition on a missing measurement never passes, however the condition is written.
func TestAssertsOfWhatWasNotMeasured(t *testing.T) {
	// Level 4 is in the record, and level 8 is not.
	const head = `
server "sim" {
  simulator {}
}
variable "strict" {
  type    = bool
  default = false
}
variable "at" {
  type    = string
  default = "8"
}
workload "chat" {
  input_tokens  = 1000
  output_tokens = 11
  load {
    concurrency = [4, 8]
    requests    = 60
    seeds       = [1, 2, 3, 4, 5]
  }
}
assert "a" {
  error_message = "no"
  condition     = `
	const null = "result.sim.chat.level[8].ttft.p95"
	const value = "result.sim.chat.level[4].ttft.p95"
	for _, c := range []struct {
		condition string
		want      verdict.Outcome
	}{
		{value + " != 5", verdict.Pass},
		{"try(" + value + " < 5, false)", verdict.Pass},
		{"can(" + value + " < 5)", verdict.Pass},
		{"alltrue([for x in [" + value + "] : x != 5])", verdict.Pass},
		{null + " != 5", verdict.Error},
		{"!(" + null + " == 5)", verdict.Error},
		{null + " == null", verdict.Error},
		{null + " != null || true", verdict.Error},
		{"true || " + null + " < 5", verdict.Error},
		{"var.strict ? " + null + " < 5 : true", verdict.Error},
		{null + " == null ? true : " + null + " < 5", verdict.Error},
		{"coalesce(" + null + ", 1) < 5", verdict.Error},
		{"try(" + null + " < 5, true)", verdict.Error},
		{"!can(" + null + " < 5)", verdict.Error},
		{"try(" + null + " + 1, 0) < 5", verdict.Error},
		{"jsonencode(" + null + ") == \"null\"", verdict.Error},
		{"\"${jsonencode(" + null + ")}\" != \"5\"", verdict.Error},
		{"contains([" + null + "], null)", verdict.Error},
		{"!contains([" + null + "], 5)", verdict.Error},
		{"length([for l in [" + null + "] : l if l != 5]) == 1", verdict.Error},
		{"length([for l in [result.sim.chat.level[8]] : l if l.ttft.p95 != 5]) == 1", verdict.Error},
		{"alltrue([for n, l in result.sim.chat.level : l.ttft.p95 != 5])", verdict.Error},
		{"alltrue([for n, l in result.sim.chat.level : try(l.ttft.p95 < 5, true)])", verdict.Error},
		{"alltrue([for n, l in result.sim.chat.level : !can(l.ttft.p95 + 1) || l.ttft.p95 < 5])", verdict.Error},
		{"try(alltrue([for n, l in result.sim.chat.level : l.ttft.p95 < 5]), true)", verdict.Error},
		{"result.sim.chat.level[var.at].ttft.p95 != 5", verdict.Error},
		{"result.sim.chat.level[tostring(4 + 4)].ttft.p95 != 5", verdict.Error},
		{"[result.sim.chat.level[8]][*].ttft.p95 != [5]", verdict.Error},
		{"result.sim.chat.level[8].ttft != { p95 = 5 }", verdict.Error},
		// A loop over levels may pass if the levels that it uses were measured.
		{"alltrue([for n, l in result.sim.chat.level : l.ttft.p95 < 5 if n == \"4\"])", verdict.Pass},
	} {
		p := load(t, head+c.condition+"\n}\n")
		run := &metric.Run{Servers: []*metric.ServerRun{{Address: "sim"}}, Levels: []*metric.Level{
			shape{rounds: 5, perRound: 12}.level(), {Server: "sim", Workload: "chat", Name: "8", Kind: metric.ClosedLoop, N: 8, Skipped: "budget"}}}
		v := verdictOf(t, Judge(p, run, Options{}), "a")
		must.Hold(t, v.Outcome == c.want, "%s: %v, want %v: %s", c.condition, v.Outcome, c.want, v.Message)
	}
}

// A condition over all elements of an empty list is true, but nothing was judged. So it must not
// pass.
func TestConditionsOverNothing(t *testing.T) {
	const head = `
variable "limits" {
  type    = list(number)
  default = []
}
server "sim" {
  simulator {}
}
workload "chat" {
  input_tokens  = 1000
  output_tokens = 11
  load {
    concurrency = 4
    requests    = 60
    seeds       = [1, 2, 3, 4, 5]
  }
}
assert "a" {
  error_message = "no"
  condition     = `
	const chat = "result.sim.chat.level"
	for _, c := range []struct {
		condition string
		want      verdict.Outcome
		says      string
	}{
		{"alltrue([for l in " + chat + " : l.ttft.p95 < 5])", verdict.Pass, ""},
		{"length([for l in " + chat + " : l if l.ttft.p95 > 5]) == 0", verdict.Pass, ""}, // length allows an empty list
		{"alltrue([for n, l in " + chat + " : l.ttft.p95 < 5 if n == \"5\"])", verdict.Error, "the list given to alltrue or anytrue is empty"},
		{"!anytrue([for n, l in " + chat + " : l.ttft.p95 > 5 if n == \"5\"])", verdict.Error, "the list given to alltrue or anytrue is empty"},
		{"!anytrue([for l in " + chat + " : l.ttft.p95 > 5])", verdict.Pass, ""},
		{"!alltrue([for x in var.limits : " + chat + "[4].ttft.p95 < x])", verdict.Error, "the list given to alltrue or anytrue is empty"},
		{"length(var.limits) == 0 || " + chat + "[4].ttft.p95 < 1e-6", verdict.Pass, ""}, // it says so
		{"alltrue(flatten([for w in result.sim : [for l in w.level : l.ttft.p95 < 5]]))", verdict.Pass, ""},
	} {
		p := load(t, head+c.condition+"\n}\n")
		run := &metric.Run{Servers: []*metric.ServerRun{{Address: "sim"}}, Levels: []*metric.Level{shape{rounds: 5, perRound: 12}.level()}}
		v := verdictOf(t, Judge(p, run, Options{}), "a")
		must.Hold(t, v.Outcome == c.want && strings.Contains(v.Message, c.says), "%s: %v, want %v: %s", c.condition, v.Outcome, c.want, v.Message)
	}
}
