package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/sim"
)

var searchesAgain = flag.Int("searches-again", 5, "simulated searches of each kind of load that are judged again")

// hunting is a search of the built-in server: its plan, and how the server differs from the default.
type hunting struct {
	dir    string
	text   string // the plan, with %s for the limit of the TTFT in ms
	limit  float64
	change func(*plan.Server, *sim.Profile)
}

// hunts are the kinds of load that a search can vary: the rest of the workload, and the loads from
// and to which it may search.
var hunts = []struct {
	over, workload, load string
	from, upTo           func(*rand.Rand) string
}{
	{"concurrency", lengths, "concurrency = %d", whole(1), whole(40)},
	{"burst", lengths, "burst = %d", whole(1), whole(48)},
	{"users", lengths, "users = [%d]\n    duration = \"40s\"\n    think_time = { mean = \"1s\", cv = 1 }", whole(1), whole(100)},
	{"rate", lengths, "rate = \"%d req/s\"\n    requests = 100", perSecond(1), perSecond(30)},
	{"speedup", "", "trace = \"trace.csv\"\n    columns = { time = \"at\", input = \"in\", output = \"out\" }", whole(1), whole(30)},
}

const lengths = "input_tokens = 256\n  output_tokens = { mean = 16, jitter = \"25%%\" }\n"

func whole(about int) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return fmt.Sprint(1 + about/2 + r.IntN(about)) }
}

func perSecond(about int) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return fmt.Sprintf("\"%d req/s\"", 1+about/2+r.IntN(about)) }
}

// hunt draws a search over the kind k of load.
func hunt(t *testing.T, k int, r *rand.Rand, dir string) hunting {
	kind := hunts[k]
	capacity := fmt.Sprintf("over = %q\n    up_to = %s\n", kind.over, kind.upTo(r))
	for option, odds := range map[string]float64{"from = " + kind.from(r): 0.3, "budget = \"4m\"": 0.2, "resolution = \"20%\"": 0.3} {
		if r.Float64() < odds && !(kind.over == "speedup" && strings.HasPrefix(option, "from")) {
			capacity += "    " + option + "\n"
		}
	}
	load := ""
	if r.IntN(2) == 0 || kind.over == "users" || kind.over == "speedup" { // a level that is known before the search
		load = kind.load
		if strings.Contains(load, "%d") {
			load = fmt.Sprintf(load, 1+r.IntN(24))
		}
		load = "load {\n    " + load + "\n  }\n"
	}
	var h hunting
	h.dir, h.limit = dir, 80*math.Exp(2*r.Float64()) // from 80 to 591 ms
	h.text = fmt.Sprintf("gate { measure_only = true }\nserver \"sim\" {\n  simulator {}\n}\nworkload \"chat\" {\n  %s  %s  sla {\n    at = \"capacity\"\n    ttft = \"p95 < %%sms\"\n  }\n  capacity {\n    %s  }\n}\n",
		kind.workload, load, strings.ReplaceAll(capacity, "%", "%%"))
	noise, slow, faults := 0.3*r.Float64(), 0.2*r.Float64(), sim.Script{}
	switch r.IntN(6) {
	case 0:
		faults = sim.Script{{Fault: "http-429", Share: 0.1 * r.Float64()}}
	case 1:
		faults = sim.Script{{Fault: "http-500", Share: 0.04 * r.Float64()}}
	case 2:
		faults = sim.Script{{Fault: "http-500", From: 200 + r.IntN(3000)}}
	}
	h.change = func(_ *plan.Server, p *sim.Profile) {
		p.Noise.StepCV, p.Noise.SlowCV, p.Noise.SlowS, p.Faults = noise, slow, 5, faults
	}
	return h
}

// plan returns the search's plan with the limit times by.
func (h hunting) plan(t *testing.T, by float64) *plan.Plan {
	t.Helper()
	text := fmt.Sprintf(h.text, fmt.Sprintf("%.3f", h.limit*by))
	p, diags := decode.File(decode.Options{Path: filepath.Join(h.dir, "again.hcl"), Source: []byte(text)})
	if diags.HasErrors() {
		t.Fatal(diags, text)
	}
	return p
}

// A search that is judged again by its own thresholds has the limit that the run found. By other
// thresholds it claims what its probes show.
func TestLongSearchesJudgedAgain(t *testing.T) {
	searches := *searchesAgain
	dir := t.TempDir()
	rows := "at,in,out\n"
	for i := range 60 {
		rows += fmt.Sprintf("%.1f,%d,%d\n", float64(i)/2, 100+i*7%300, 8+i%9)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "trace.csv"), []byte(rows), 0o644))
	for k, kind := range hunts {
		t.Run(kind.over, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(36, uint64(k)))
			kinds, other := map[metric.CapacityKind]int{}, 0
			for i := range searches {
				h := hunt(t, k, rng, dir)
				p := h.plan(t, 1)
				run := must.Get(simulatedRun(t.Context(), p, i, h.change))(t)
				found := run.Capacities[0]
				kinds[found.Kind]++
				for _, by := range []float64{1, 0.5, 0.8, 0.95, 1.05, 1.25, 2} {
					p := h.plan(t, by)
					now := judgedCapacity(p, run)
					if now == nil {
						t.Fatalf("search %d: not judged again: %s", i, found.Line)
					}
					same := now.Kind == found.Kind && now.Pass == found.Pass && now.Fail == found.Fail && now.Confirmed == found.Confirmed
					if by == 1 && (!same || now.Line != found.Line) {
						t.Errorf("search %d: the run found %q, judged again %q\n%s", i, found.Line, now.Line, told(now))
					}
					if !same {
						other++
					}
					for _, wrong := range overclaimed(now) {
						t.Errorf("search %d, limit × %v: %s: %q\n%s", i, by, wrong, now.Line, told(now))
					}
					for _, wrong := range misjudged(p, run, now) {
						t.Errorf("search %d, limit × %v: %s", i, by, wrong)
					}
				}
			}
			t.Logf("%d searches: %v; %d judgements by other limits give another capacity", searches, kinds, other)
			if other < searches/2 || len(kinds) < 2 {
				t.Errorf("%v, and %d other capacities: the test tests too little", kinds, other)
			}
		})
	}
}

func judgedCapacity(p *plan.Plan, run *metric.Run) *metric.Capacity {
	for _, v := range assert.Judge(p, run, assert.Options{}).List {
		if v.Capacity != nil {
			return v.Capacity
		}
	}
	return nil
}

// told lists the probes of a search.
func told(c *metric.Capacity) string {
	var b strings.Builder
	for _, p := range c.Probes {
		fmt.Fprintf(&b, "%s %d set %d: %s, %d requests\n", p.Purpose, p.N, p.Set, p.Outcome, p.Requests)
	}
	return b.String()
}

// overclaimed lists what a capacity claims although its probes do not show it. It knows no search:
// only a retry takes a failure back, and whatever came after a pass must have passed too.
func overclaimed(c *metric.Capacity) (wrong []string) {
	type shown struct{ pass, fail, again bool }
	levels := map[int]shown{}
	for _, p := range c.Probes {
		l, certain := levels[p.N], p.Outcome == metric.Pass || p.Outcome == metric.Fail
		switch {
		case p.Purpose == "estimate" || p.N < c.From || p.N > c.UpTo || p.Outcome == metric.Saturated || p.Outcome == metric.Capped:
			continue
		case p.Purpose == "retry" && certain:
			l = shown{pass: p.Outcome == metric.Pass, fail: p.Outcome == metric.Fail}
		case p.Purpose == "retry" || l.fail:
		case p.Purpose == "confirm":
			l = shown{pass: l.pass && p.Outcome == metric.Pass, fail: p.Outcome == metric.Fail, again: l.pass && p.Outcome == metric.Pass}
		default:
			l = shown{pass: p.Outcome == metric.Pass, fail: p.Outcome == metric.Fail}
		}
		levels[p.N] = l
	}
	say := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	for n, l := range levels {
		say(l.fail && n <= c.Pass, "it carries %d, but %d fails", c.Pass, n)
		say(l.fail && (c.Fail == 0 || n < c.Fail), "%d fails", n)
		say(l.pass && n > c.Pass && (c.Fail == 0 || n < c.Fail), "%d passes", n)
	}
	say(c.Pass > 0 && !levels[c.Pass].pass, "%d did not pass", c.Pass)
	say(c.Fail > 0 && !levels[c.Fail].fail, "%d did not fail", c.Fail)
	say(c.Confirmed != (c.Pass > 0 && levels[c.Pass].again), "confirmed %v", c.Confirmed)
	say(c.Kind == metric.CapacityExact && (c.Pass == 0 || c.Fail <= c.Pass), "exact")
	say((c.Kind == metric.CapacityUnknown) != (c.Pass == 0 && c.Fail == 0), "kind %s", c.Kind)
	return wrong
}

// misjudged lists the probes that passed or failed, although their own samples say otherwise.
func misjudged(p *plan.Plan, run *metric.Run, c *metric.Capacity) (wrong []string) {
	for i, x := range c.Probes {
		if x.With != "" || x.Requests == 0 || x.Purpose == "known" || x.Outcome != metric.Pass && x.Outcome != metric.Fail {
			continue
		}
		for _, l := range run.Levels {
			if l.Name != x.Level || l.Probe == nil {
				continue
			}
			look, seen := metric.Look{Requests: x.Requests, Planned: x.Planned}, *l
			for i, at := range l.Looks {
				if at.Requests == x.Requests {
					look, seen.Looks = at, l.Looks[:i]
					break
				}
			}
			if v := assert.JudgeLook(p, p.Workloads[0], &seen, look); v.Outcome != x.Outcome {
				wrong = append(wrong, fmt.Sprintf("probe %d at %s: %s, but its samples say %v %s", i+1, l.Name, x.Outcome, v.Outcome, v.Invalid))
			}
		}
	}
	return wrong
}
