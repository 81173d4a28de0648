package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/sim"
	"github.com/tokgate/tokgate/strength"
)

var (
	embeddingGates = flag.Int("embedding-gates", 3, "simulated gates of each row of the table of embeddings")
	embeddingTable = flag.String("embedding-table", "", "file for the table of embeddings")
)

// embeddingPlan is a gate for embeddings with the default number of answers and the default limit.
const embeddingPlan = `
server "today" {
  simulator {}
}

server "next" {
  simulator {}
}

workload "index" {
  api          = "embeddings"
  inputs       = 4
  input_tokens = 64
  load { concurrency = 8 }
}

compare "upgrade" {
  control   = server.today
  candidate = server.next
  answers {}
  tolerate { e2e = "mean +10%" }
}
`

// plantedEmbeddings lists what is planted in the candidate, and in how many of 100 gates the
// comparison must fail by it: at most 5, or at least 95. Noise of a share s of each component makes
// 1 − the cosine s² / 2, of which 0.0005 is tolerated: s = 3.2 %.
var plantedEmbeddings = []struct {
	name    string
	plant   func(*plan.Plan, *sim.Profile)
	noticed bool
}{
	{"nothing", func(*plan.Plan, *sim.Profile) {}, false},
	{"25 % slower", func(p *plan.Plan, to *sim.Profile) {
		for _, kind := range []string{strength.Overhead, strength.Prefill} {
			strength.Regression{Kind: kind, Size: 1.25}.Plant(p, to)
		}
		to.Decode.BaseMS *= 1.25 // what a step takes, whatever is in it
	}, true},
	{"noise of 3 % of each component", noisyVectors(3), false},
	{"noise of 4 %", noisyVectors(4), true},
	{"noise of 5 %", noisyVectors(5), true},
}

func noisyVectors(percent int) func(*plan.Plan, *sim.Profile) {
	return func(_ *plan.Plan, to *sim.Profile) {
		to.Faults = append(to.Faults, sim.Rule{Fault: "noisy-vectors", Tokens: percent})
	}
}

// embeddingGate runs gates with a row of plantedEmbeddings, and returns how many fail and how many do
// not pass.
func embeddingGate(t *testing.T, row, gates int) (red, notPassed int) {
	t.Helper()
	p, diags := decode.File(decode.Options{Path: filepath.Join(t.TempDir(), "index.hcl"), Source: []byte(embeddingPlan)})
	must.Need(t, !diags.HasErrors(), "%v", diags)
	var mu sync.Mutex
	var wait sync.WaitGroup
	seeds := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for seed := range seeds {
				v, err := simulateChanged(t.Context(), p, nil, seed, func(s *plan.Server, to *sim.Profile) {
					if s.Name == "next" {
						plantedEmbeddings[row].plant(p, to)
					}
				})
				mu.Lock()
				switch {
				case err != nil:
					t.Error(err)
				case v.Outcome == verdict.Fail:
					red++
					notPassed++
				case v.Outcome != verdict.Pass:
					notPassed++
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
	return red, notPassed
}

// A recording of embeddings is judged again as it was judged, and its figures follow from it.
func TestEmbeddingsJudgedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.hcl")
	must.Do(t, os.WriteFile(path, []byte(strings.Replace(embeddingPlan, "load { concurrency = 8 }", "load { concurrency = 8 }\n  sla { e2e = \"p95 < 2s\" }", 1)), 0o600))
	out := filepath.Join(t.TempDir(), "results")
	tokgate(t, "run", "--simulate", "--out", out, path).check(t, verdict.ExitPass, "Distance of vectors")
	audited(t, out, out)
	again := filepath.Join(t.TempDir(), "again")
	tokgate(t, "judge", "--out", again, out, path).check(t, verdict.ExitPass, "Distance of vectors")
	first, second := documentIn(t, out), documentIn(t, again)
	must.Same(t, "verdicts", first.Verdicts, second.Verdicts)
}

// TestLongEmbeddingsCharacteristics counts how many gates of embeddings fail if the candidate is slower,
// or if its vectors are noisy.
func TestLongEmbeddingsCharacteristics(t *testing.T) {
	gates := *embeddingGates
	var b strings.Builder
	fmt.Fprintf(&b, "%d gates a row.\n\n| planted in the candidate | red | not passed | with 95 %% confidence red |\n|---|---|---|---|\n", gates)
	for row, f := range plantedEmbeddings {
		red, notPassed := embeddingGate(t, row, gates)
		low, high, _ := stat.ClopperPearson(float64(red), float64(gates), 0.05)
		bound, share := fmt.Sprintf("≤ %.1f %%", 100*high), float64(red)/float64(gates)
		if f.noticed {
			bound = fmt.Sprintf("≥ %.1f %%", 100*low)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", f.name, red, notPassed, bound)
		// Allow two standard errors, because the observed share varies by chance.
		about := 2 * math.Sqrt(0.05*0.95/float64(gates))
		must.Hold(t, f.noticed && share >= 0.95-about || !f.noticed && share <= 0.05+about, "%s: %d of %d red, %d not passed", f.name, red, gates, notPassed)
	}
	t.Log("\n" + b.String())
	if *embeddingTable != "" {
		must.Do(t, os.MkdirAll(filepath.Dir(*embeddingTable), 0o755))
		must.Do(t, os.WriteFile(*embeddingTable, []byte(b.String()), 0o644))
	}
}
