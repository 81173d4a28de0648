package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/sim"
)

var (
	answersGates = flag.Int("answers-gates", 0, "simulated gates of each row of the table of planted answers; below 20: those of 200 answers alone; 0: a few of some")
	answersTable = flag.String("answers-table", "", "file for the table of planted answers")
)

// answersPlan compares the answers of two servers by form, by the control's scores, and by a task.
// The format verbs set the number of answers for each of these.
const answersPlan = `
server "today" {
  simulator {}
}

server "next" {
  simulator {}
}

workload "chat" {
  input_tokens  = 128
  output_tokens = { natural = true, max = 64 }
  load {
    concurrency = 20
    requests    = %[1]d
  }
  sla { ttft = "p95 < 60s" }
}

workload "recall" {
  prompt { dataset = "builtin:recall" }
  input_tokens  = 256
  output_tokens = { natural = true, max = 64 }
  load {
    concurrency = 20
    requests    = %[1]d
  }
  sla { ttft = "p95 < 60s" }
}

compare "upgrade" {
  control   = server.today
  candidate = server.next
  rounds    = 5
  answers { prompts = %[1]d }
  tolerate {
    workloads     = workload.chat
    empty         = "rate +2pp"
    invalid_text  = "rate +2pp"
    repetition    = "rate +2pp"
    stop_rate     = "rate -5pp"
    answer_tokens = "mean +-10%%"
  }
  tolerate {
    workloads = workload.recall
    accuracy  = "rate -2pp"
  }
}
`

// plantedAnswers lists the planted faults, one for each row of the table. If the field some is set,
// only a share of the answers has the fault. The share depends on the number of answers in a gate.
var plantedAnswers = []struct {
	name    string
	rule    *sim.Rule
	some    bool
	control bool // whether the control has the fault too
	from    int  // smallest number of answers in a gate that finds the fault; 0 means any
}{
	{name: "none"},
	{name: "0.2 % garbled, in the control too", rule: &sim.Rule{Fault: "garble", Share: 0.002}, control: true},
	{name: "truncated after 4 tokens", rule: &sim.Rule{Fault: "early-stop", Tokens: 4}, some: true},
	{name: "repeating the first four tokens", rule: &sim.Rule{Fault: "circle"}, some: true},
	{name: "of another prompt", rule: &sim.Rule{Fault: "other-answer"}, some: true},
	{name: "garbled from the middle", rule: &sim.Rule{Fault: "garble"}, some: true},
	{name: "max_tokens ignored", rule: &sim.Rule{Fault: "endless"}, some: true},
	{name: "1 % of the tokens swapped", rule: &sim.Rule{Fault: "swap-tokens"}},
	{name: "garbage except at temperature 0", rule: &sim.Rule{Fault: "bad-sampler"}},
	{name: "one wrong word in 5 %", rule: &sim.Rule{Fault: "wrong-word", Share: 0.05}, from: 700},
	{name: "one wrong word in 2 %", rule: &sim.Rule{Fault: "wrong-word", Share: 0.02}, from: 700},
	{name: "wrong at depths above 50 %", rule: &sim.Rule{Fault: "half-context"}},
}

// layersOf counts the outcomes of gates. A gate judges answers in three layers, or kinds of checks,
// which are the first three elements. The last element is the whole verdict.
type layersOf [4]struct{ red, notPassed int }

// add counts one gate.
func (l *layersOf) add(v assert.Verdicts) {
	var worst [4]verdict.Outcome
	for i := range worst {
		worst[i] = verdict.Pass
	}
	note := func(layer int, o verdict.Outcome) {
		if o == verdict.Skipped {
			return // only shown, not required
		}
		for _, i := range []int{layer, 3} {
			if o == verdict.Fail || worst[i] == verdict.Pass {
				worst[i] = o
			}
		}
	}
	for _, c := range v.Comparisons {
		for i := range c.Changes {
			switch x := &c.Changes[i]; {
			case !x.Limit.OK:
			case x.OfAnswers:
				note(1, x.Outcome)
			case x.Metric.Name == "accuracy":
				note(2, x.Outcome)
			case x.Metric.OfAnswers || x.Metric.Name == "answer_tokens":
				note(0, x.Outcome)
			}
		}
	}
	for i, o := range worst {
		if o == verdict.Fail {
			l[i].red++
		}
		if o != verdict.Pass {
			l[i].notPassed++
		}
	}
}

// answersGate runs gates with one planted fault and counts their outcomes. size is the number of
// answers in a gate. The fault is plantedAnswers[row].
func answersGate(t *testing.T, size int, share float64, row int, gates int) (out layersOf) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "answers.hcl")
	p, diags := decode.File(decode.Options{Path: path, Source: []byte(fmt.Sprintf(answersPlan, size))})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	f := plantedAnswers[row]
	change := func(s *plan.Server, profile *sim.Profile) {
		profile.MaxModelLen, profile.NaturalOutput.Parts = 1024, 0.1
		if f.rule == nil || s.Name != "next" && !f.control {
			return
		}
		rule := *f.rule
		if f.some {
			rule.Share = share
		}
		profile.Faults = append(slices.Clone(profile.Faults), rule)
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	seeds := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for seed := range seeds {
				v, err := simulateChanged(t.Context(), p, nil, seed, change)
				mu.Lock()
				if err != nil {
					t.Error(err)
				} else {
					out.add(v)
				}
				mu.Unlock()
			}
		})
	}
	for seed := range gates {
		seeds <- 1000*row + seed + 1
	}
	close(seeds)
	wait.Wait()
	return out
}

// briefly reports whether a few gates with the fault are simulated even if no table is asked for.
func briefly(r *sim.Rule) bool {
	return r == nil || r.Fault == "swap-tokens" || r.Fault == "bad-sampler" || r.Fault == "wrong-word" && r.Share == 0.05
}

// TestLongAnswersCharacteristics plants faults in answers and counts the gates that each layer of
// judgement fails.
func TestLongAnswersCharacteristics(t *testing.T) {
	sizes := []struct {
		n     int
		share float64
	}{{200, 0.05}, {500, 0.02}, {700, 0.01}}
	gates := *answersGates
	var b strings.Builder
	fmt.Fprintf(&b, "%d gates a row; *red* and, behind it, *not passed* of 100. With 95 %% confidence so many are red.\n\n", max(gates, 2))
	b.WriteString("| planted in the candidate | answers | share | form | the control reads | tasks | the gate | red |\n|---|---|---|---|---|---|---|---|\n")
	for row, f := range plantedAnswers {
		for _, size := range sizes {
			if size.n < f.from || gates < 20 && size.n > max(f.from, 200) || gates == 0 && !briefly(f.rule) {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d", f.name, size.n), func(t *testing.T) {
				n := max(gates, 2)
				got := answersGate(t, size.n, size.share, row, n)
				share := "–"
				if f.some {
					share = fmt.Sprintf("%.0f %%", 100*size.share)
				}
				fmt.Fprintf(&b, "| %s | %d | %s |", f.name, size.n, share)
				for _, l := range got {
					fmt.Fprintf(&b, " %.0f, %.0f |", 100*float64(l.red)/float64(n), 100*float64(l.notPassed)/float64(n))
				}
				quiet := f.rule == nil || f.control
				low, high, _ := stat.ClopperPearson(float64(got[3].red), float64(n), 0.05)
				if quiet {
					fmt.Fprintf(&b, " ≤ %.1f %% |\n", 100*high)
				} else {
					fmt.Fprintf(&b, " ≥ %.1f %% |\n", 100*low)
				}
				// Allow two standard errors, because the observed share of red gates varies by
				// chance.
				red, about := float64(got[3].red)/float64(n), 2*math.Sqrt(0.05*0.95/float64(n))
				switch {
				case quiet && red > 0.05+about:
					t.Errorf("%d of %d unchanged candidates are red", got[3].red, n)
				case !quiet && red < 0.95-about:
					t.Errorf("red in %d of %d", got[3].red, n)
				}
			})
		}
	}
	t.Log("\n" + b.String())
	if *answersTable != "" {
		must.Do(t, os.MkdirAll(filepath.Dir(*answersTable), 0o755))
		must.Do(t, os.WriteFile(*answersTable, []byte(b.String()), 0o644))
	}
}
