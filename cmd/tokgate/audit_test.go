package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/audit"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// audited computes every figure of a run again by code that shares nothing with what measured and
// judged it. The folders may be the same.
func audited(t testing.TB, recording, reports string) {
	t.Helper()
	open := func(dir, name string) *os.File {
		f := must.Get(os.Open(filepath.Join(dir, name)))(t)
		t.Cleanup(func() { f.Close() })
		return f
	}
	r, err := audit.Run(open(recording, record.File), open(reports, "results.json"), open(reports, "junit.xml"))
	if err != nil {
		t.Fatalf("%s: %v", reports, err)
	}
	if r.Compared < 50 {
		t.Errorf("%s: only %d figures were compared", reports, r.Compared)
	}
	for _, d := range r.Differences {
		t.Errorf("%s: %s", reports, d)
	}
}

// FuzzAudit judges recordings whose requests took any course, and computes their figures again.
func FuzzAudit(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(seed)
	}
	const fixtures = "../../internal/studies/audit/testdata"
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 7))
		for name, plan := range map[string]string{"run": "plan.hcl", "mix": "mix.hcl"} {
			run, _, err := record.Read(filepath.Join(fixtures, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range run.Levels {
				for _, r := range l.Rounds {
					for _, s := range r.Samples {
						recourse(rng, s)
					}
				}
			}
			dir := t.TempDir()
			rerecord(t, dir, run)
			out := filepath.Join(dir, "reports")
			var said bytes.Buffer
			code := Main(t.Context(), []string{"judge", dir, filepath.Join(fixtures, plan), "--out", out}, nil, Streams{Out: &said, Err: &said})
			if code == verdict.ExitPlan {
				t.Fatalf("exit %d: %s", code, &said)
			}
			audited(t, dir, out)
		}
	})
}

// recourse changes what happened between the start and the end of a request.
func recourse(rng *rand.Rand, s *metric.Sample) {
	if rng.IntN(4) == 0 {
		return
	}
	s.Chunks, s.Gaps, s.First, s.FirstAnswer, s.Last, s.FirstTokens = 1+rng.IntN(9), nil, 0, 0, 0, rng.IntN(4)
	at := make([]time.Duration, s.Chunks) // of the chunks, in µs, because gaps are
	for i := range at {
		at[i] = s.Sent + time.Duration(1+rng.Int64N(int64(s.End-s.Sent)/1000))*time.Microsecond
	}
	slices.Sort(at)
	for i := range at[1:] {
		s.Gaps.Add(at[i+1] - at[i])
	}
	s.Headers, s.First, s.Last = s.Sent, at[0], at[len(at)-1]
	s.FirstAnswer = at[rng.IntN(len(at))]
	s.Usage = nil
	if rng.IntN(4) > 0 {
		s.Usage = &metric.Usage{Input: rng.IntN(99), Output: rng.IntN(40), Cached: rng.IntN(50) - 1}
		s.Usage.Hidden = rng.IntN(1 + s.Usage.Output)
	}
	if rng.IntN(5) == 0 {
		kinds := []metric.FailureKind{metric.FailStream, metric.FailTimeout, metric.FailTruncated, metric.FailUnfinished, metric.FailCanceled}
		s.Failure = &metric.Failure{Kind: kinds[rng.IntN(len(kinds))]}
	}
}

// rerecord writes a run into a folder, as if it had just happened.
func rerecord(t *testing.T, dir string, run *metric.Run) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := record.Create(dir)
	must(err)
	must(w.Observe(metric.RunStarted{Run: run}))
	for _, s := range run.Servers {
		must(w.Observe(metric.ServerReady{Server: s}))
	}
	for _, l := range run.Levels {
		must(w.Observe(metric.LevelStarted{Level: l, Due: l.Due()}))
		for _, r := range l.Rounds {
			if l.Of != "" {
				continue // the requests of a part are recorded with its mix
			}
			for _, s := range r.Samples {
				must(w.Observe(metric.SampleDone{Sample: s}))
			}
			must(w.Observe(metric.RoundDone{Level: l, Round: r}))
		}
		must(w.Observe(metric.LevelDone{Level: l}))
	}
	for _, s := range run.Servers {
		must(w.Observe(metric.ServerDone{Server: s}))
	}
	must(w.Observe(metric.RunDone{Run: run}))
	must(w.Close())
}

// The audit also handles rates, users and data sets. The latency of a request then starts when the
// request is due. An answer may begin in one round and end in the next.
func TestLongAuditOfWindows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "rate.hcl")
	must.Do(t, os.WriteFile(path, []byte(`
gate { decide = "estimate" }
server "s" {
  simulator {}
}
workload "w" {
  input_tokens  = 64
  output_tokens = 16
  load {
    rate     = ["2 req/s", "8 req/s"]
    arrivals = "poisson"
    duration = "10s"
  }
  sla {
    e2e = "mean < 5s"
  }
}
workload "people" {
  input_tokens  = 64
  output_tokens = 16
  prompt { turns = 3 }
  load {
    users      = 4
    think_time = { mean = "1s", cv = 1 }
    duration   = "30s"
  }
  capacity {
    over       = "users"
    up_to      = 8
    resolution = 4
  }
  sla {
    e2e = "mean < 5s"
  }
}
workload "rows" {
  input_tokens  = 64
  output_tokens = 16
  prompt { dataset = "rows.jsonl" }
  load {
    concurrency = 1
    requests    = 10
  }
  sla {
    e2e = "mean < 5s"
  }
}
`), 0o644))
	must.Do(t, os.WriteFile(filepath.Join(dir, "rows.jsonl"), []byte(`{"prompt":"one"}`+"\n"+`{"messages":[{"role":"user","content":"two"}]}`), 0o644))
	out := filepath.Join(dir, "out")
	tokgate(t, "run", "--simulate", "--out", out, path).check(t, verdict.ExitPass, "people: 8+ users", "of 10 prompts may be in a cache")
	audited(t, out, out)
}
