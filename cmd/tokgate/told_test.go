package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/strength"
)

var (
	toldRuns  = flag.Int("told", 0, "`runs` by which strength told from a recording is held against strength simulated, where the first ten are not all alike; 0: one of one gate")
	toldLog   = flag.String("told-log", "", "`file` that keeps each pair: it is not made again")
	toldTable = flag.String("told-table", "", "`file` for the table of all pairs in the log")
)

// toldPair compares how often a gate fails under a regression in two ways: when a recorded run is
// stretched, and in simulated runs.
type toldPair struct {
	System, Gate, Kind, Regression string
	Told, Simulated                strength.Tally
}

// difference is the difference between the shares of failed gates in the recording and in the
// simulation, in percentage points.
func (p toldPair) difference() float64 { return 100 * math.Abs(p.Told.Fails()-p.Simulated.Fails()) }

// agrees reports whether the two shares of failed gates differ by at most 10 percentage points. A
// further 0.001 allows for rounding.
func (p toldPair) agrees() bool { return p.difference() < 10.001 }

// certain reports whether the recording and the simulation agree that all gates fail, or that none
// does. More runs would then hardly change the result.
func (p toldPair) certain() bool {
	return p.Told.Fails() == p.Simulated.Fails() && (p.Told.Fails() == 0 || p.Told.Fails() == 1)
}

// toldSystems lists the simulator profiles of five systems with published measurements. One system
// has two profiles: with and without speculative decoding.
var toldSystems = []string{
	"qwen3-coder-30b-a3b-instruct-fp8.1x-h200-sxm", "qwen3-coder-next-80b-fp8.2x-rtx-pro-6000", "qwen3.5-35b-a3b-fp8.1x-h100",
	"qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10.mtp", "qwen3.6-35b-a3b-fp8.1x-dgx-spark-gb10.vanilla", "qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000",
}

// A recording whose times are stretched shows the same strength of a gate as simulated runs do. The
// gates are what `init --measure` writes for the published systems, as closed loops of 1 and 4
// requests in flight.
func TestLongStrengthTold(t *testing.T) {
	sets, list := [][]string{{"code_completion"}}, []strength.Regression{{Kind: strength.Decode, Size: 2}, {Kind: strength.Prefill, Size: 10}, {Kind: strength.Failures, Size: 0.05}}
	profiles, runs := toldSystems[2:3], 1
	if *toldRuns > 0 {
		sets, list = [][]string{{"chatbot", "rag"}, {"code_completion"}, {"agentic"}, {"short_form_chatbot"}}, strength.Stretchable()
		profiles, runs = toldSystems, 10
	}
	known := toldPairs(t)
	for _, profile := range profiles {
		for _, set := range sets {
			gate := strings.Join(set, ",")
			rest := slices.DeleteFunc(slices.Clone(list), func(r strength.Regression) bool {
				return slices.ContainsFunc(known, func(p toldPair) bool { return p.System == profile && p.Gate == gate && p.Regression == r.String() })
			})
			t.Run(profile+" "+gate, func(t *testing.T) {
				if len(rest) == 0 {
					t.Skip("it is in the log")
				}
				for _, pair := range toldBySimulation(t, profile, set, rest, runs) {
					t.Logf("%+v", pair)
					pair.keep(t)
					must.Hold(t, *toldRuns != 0 || pair.agrees(), "%s: told %v, simulated %v", pair.Regression, pair.Told, pair.Simulated)
				}
			})
		}
	}
}

// toldBySimulation finds the strength of a gate in two ways: from a stretched recording, and from
// simulated runs. It does this for each regression, with the given number of runs. For uncertain
// results it repeats both with more runs (flag -told).
func toldBySimulation(t *testing.T, profile string, set []string, list []strength.Regression, runs int) (out []toldPair) {
	t.Helper()
	o := initOf(set...)
	var err error
	if o.answers.Measured, err = o.measureEach(measuredIn(t, profile)); err != nil {
		t.Fatal(err)
	}
	p := o.loaded(t, inputs{})
	p.Servers[0].Simulator.Profile = profile
	run, err := simulatedRun(t.Context(), p, 500, nil)
	must.Do(t, err)
	measure := func(list []strength.Regression, runs int, try strength.Try) *strength.Result {
		r := must.Get(strength.Measure(list, runs, try))(t)
		return r
	}
	told, simulate := stretched(p, run, assert.Options{}), simulated(t.Context(), p, nil)
	a, b := measure(list, runs, told), measure(list, runs, simulate)
	if a.Unchanged.Passed < runs || b.Unchanged.Passed < runs {
		t.Logf("the server as it is: told %v, simulated %v", a.Unchanged, b.Unchanged)
	}
	for i, r := range list {
		if a.Findings[i].Absent || b.Findings[i].Absent {
			continue // a recording cannot show this kind of regression
		}
		pair := toldPair{profile, strings.Join(set, ","), r.Kind, r.String(), a.Findings[i].Tally, b.Findings[i].Tally}
		if !pair.certain() && *toldRuns > runs {
			one := []strength.Regression{r}
			pair.Told, pair.Simulated = measure(one, *toldRuns, told).Findings[0].Tally, measure(one, *toldRuns, simulate).Findings[0].Tally
		}
		out = append(out, pair)
	}
	return out
}

func (p toldPair) keep(t *testing.T) {
	if *toldLog == "" {
		return
	}
	line, _ := json.Marshal(p) // text and numbers
	appendLine(t, *toldLog, line)
}

func toldPairs(t *testing.T) (out []toldPair) {
	t.Helper()
	for _, line := range linesOf(t, *toldLog) {
		var p toldPair
		must.Do(t, json.Unmarshal(line, &p))
		out = append(out, p)
	}
	return out
}

// At least 80 % of the pairs of a recording and a simulation must agree. The test writes a table of
// them.
func TestLongStrengthToldTable(t *testing.T) {
	if *toldTable == "" {
		t.Skip("writes a table: -told-table")
	}
	pairs := toldPairs(t)
	must.Do(t, os.WriteFile(*toldTable, []byte(tableOfTold(pairs)), 0o644))
	agree := 0
	for _, p := range pairs {
		if p.agrees() {
			agree++
		}
	}
	must.Hold(t, agree*100 >= 80*len(pairs), "%d of %d pairs are within 10 points", agree, len(pairs))
}

// tableOfTold counts pairs of a recording and a simulation, by system and by kind of regression. It
// lists the pairs that do not agree.
func tableOfTold(pairs []toldPair) string {
	var b strings.Builder
	for _, by := range []struct {
		head string
		of   func(toldPair) string
	}{{"system", func(p toldPair) string { return p.System }}, {"regression", func(p toldPair) string { return p.Kind }}} {
		agree, all := map[string]int{}, map[string]int{}
		var keys []string
		sum := 0
		for _, p := range pairs {
			key := by.of(p)
			if all[key]++; all[key] == 1 {
				keys = append(keys, key)
			}
			if p.agrees() {
				agree[key]++
				sum++
			}
		}
		fmt.Fprintf(&b, "| %s | pairs | within 10 points |\n|---|---|---|\n", by.head)
		for _, key := range keys {
			fmt.Fprintf(&b, "| %s | %d | %d |\n", key, all[key], agree[key])
		}
		fmt.Fprintf(&b, "| all | %d | %d (%.0f%%) |\n\n", len(pairs), sum, 100*float64(sum)/float64(max(len(pairs), 1)))
	}
	b.WriteString("| farther apart: system | gate | regression | told | simulated |\n|---|---|---|---|---|\n")
	for _, p := range pairs {
		if !p.agrees() {
			fmt.Fprintf(&b, "| %s | %s | %s | %d of %d | %d of %d |\n", p.System, p.Gate, p.Regression, p.Told.Failed, p.Told.Runs(), p.Simulated.Failed, p.Simulated.Runs())
		}
	}
	return b.String()
}

func TestTableOfTold(t *testing.T) {
	got := tableOfTold([]toldPair{
		{"h100", "rag", "decode", "decode × 2", strength.Tally{Failed: 9, Passed: 1}, strength.Tally{Failed: 10}},
		{"h100", "rag", "prefill", "prefill × 2", strength.Tally{Passed: 10}, strength.Tally{Failed: 2, Passed: 8}},
	})
	want := `| system | pairs | within 10 points |
|---|---|---|
| h100 | 2 | 1 |
| all | 2 | 1 (50%) |

| regression | pairs | within 10 points |
|---|---|---|
| decode | 1 | 1 |
| prefill | 1 | 0 |
| all | 2 | 1 (50%) |

| farther apart: system | gate | regression | told | simulated |
|---|---|---|---|---|
| h100 | rag | prefill × 2 | 0 of 10 | 2 of 10 |
`
	must.Hold(t, got == want, "%v", got)
}
