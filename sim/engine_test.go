package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

// plain returns a profile that is easy to compute by hand. It has no noise. A prompt token takes 1
// ms. A step takes 10 ms, and 1 ms more for each further sequence that decodes.
func plain() *Profile {
	return &Profile{
		Name: "plain", Model: "m", MaxModelLen: 100_000, Policy: Mixed, OverheadMS: 5,
		Prefill: PrefillCost{USPerToken: 1000},
		Decode:  DecodeCost{BaseMS: 10, PerSeqMS: 1},
		Limits:  Limits{MaxBatchedTokens: 1000},
	}
}

// drain runs the engine until it is idle, and returns all emissions.
func drain(e *Engine) (all []Emission) {
	var now time.Duration
	for {
		emitted, next, busy := e.Advance(now)
		for _, m := range emitted {
			times := *m.Times
			m.Times = &times
			all = append(all, m)
		}
		if !busy {
			return all
		}
		now = next
	}
}

// at returns the times in ms at which the job with the given id emitted tokens.
func at(all []Emission, id uint64) (got []float64) {
	for _, m := range all {
		if m.ID == id {
			got = append(got, float64(m.At)/1e6)
		}
	}
	return got
}

func submit(t *testing.T, e *Engine, at time.Duration, jobs ...Job) {
	t.Helper()
	for _, j := range jobs {
		must.Do(t, e.Submit(at, j))
	}
}

func TestArithmetic(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Profile)
		jobs   []Job
		want   [][]float64 // expected times in ms, by job
	}{
		{
			// The overhead before the first step is 5 ms. The first step prefills in 10 + 100·1 ms,
			// and each of the two decode steps takes 10 ms: 115, 125 and 135 ms.
			name: "one request",
			jobs: []Job{{Input: 100, Output: 3}},
			want: [][]float64{{115, 125, 135}},
		}, {
			// The first step takes 10 + 3 + 100·1 + 0.01·100² = 213 ms, after an overhead of 5 ms.
			// A decode step takes 10 ms, and 2 ms for each of the 101 tokens of context, or 102 in
			// the last step.
			name: "every term of the cost",
			change: func(p *Profile) {
				p.Prefill.NSPerToken2 = 10_000 // 0.01 ms per token squared
				p.Prefill.ChunkMS = 3
				p.Decode.PerKtokenMS = 1024
				p.Decode.PerKtokenLongestMS = 1024
			},
			jobs: []Job{{Input: 100, Output: 3}},
			want: [][]float64{{218, 218 + 10 + 202, 430 + 10 + 204}},
		}, {
			// All experts take 100 ms a step. One sequence uses half of them, and two use 1 − 0.5² =
			// 3/4. So a second sequence makes a step 26 ms longer: 25 ms for more experts, and 1 ms
			// for itself.
			name: "experts saturate",
			change: func(p *Profile) {
				p.Decode.MoEMS, p.Decode.MoEActiveShare = 100, 0.5
			},
			jobs: []Job{{Input: 10, Output: 3}, {Input: 10, Output: 2}},
			want: [][]float64{{35, 71, 81}, {35, 71}},
		}, {
			// The front end takes 20 + 10·0.1 = 21 ms per request, one request at a time. So the
			// engine gets A at 26 ms and B at 47 ms. B misses A's step that ends at 56 ms and joins
			// the next one.
			name: "serial front end",
			change: func(p *Profile) {
				p.FrontMSPerRequest, p.FrontUSPerToken = 20, 100
			},
			jobs: []Job{{Input: 10, Output: 3}, {Input: 10, Output: 1}},
			want: [][]float64{{46, 56, 76}, {76}},
		}, {
			// The budget of a step is 1000 tokens. The first step takes 10 + 1000 ms: it prefills
			// all 600 tokens of A and 400 tokens of B. The second step takes 10 + 200 ms: A
			// decodes, and the last 200 tokens of B are prefilled.
			name: "the budget splits a prompt",
			jobs: []Job{{Input: 600, Output: 3}, {Input: 600, Output: 2}},
			want: [][]float64{{1015, 1225, 1236}, {1225, 1236}},
		}, {
			// A's decode takes 1 token of the budget of 1000, so B's prompt is prefilled in chunks
			// of 999 tokens. Such a step takes 10 + 999 ms, so A waits that long for a token,
			// instead of about 10 ms.
			name: "a long prompt stretches decode",
			jobs: []Job{{Input: 10, Output: 5}, {Input: 2988, Output: 1}},
			// The first step prefills 10 tokens of A and 990 of B. The second and third steps
			// prefill 999 tokens of B each. That makes 2988 tokens, the whole prompt of B.
			want: [][]float64{{1015, 2024, 3033, 3043, 3053}, {3033}},
		}, {
			// This policy prefills all prompts before it decodes. The prompts have 3·400 tokens:
			// the first step prefills 1000 of them in 10 + 1000 ms, and the second step the other
			// 200 in 10 + 200 ms. Then all three requests decode, in 10 + 2 ms.
			name:   "prefill first",
			change: func(p *Profile) { p.Policy = PrefillFirst },
			jobs:   []Job{{Input: 400, Output: 2}, {Input: 400, Output: 2}, {Input: 400, Output: 2}},
			want:   [][]float64{{1015, 1237}, {1015, 1237}, {1225, 1237}},
		}, {
			// Only one request may run at a time. So B starts when A has ended.
			name:   "admission cap",
			change: func(p *Profile) { p.Limits.MaxSeqs = 1 },
			jobs:   []Job{{Input: 100, Output: 2}, {Input: 100, Output: 1}},
			want:   [][]float64{{115, 125}, {235}},
		}, {
			// The engine has memory for 300 tokens. A needs 152 of them: 100 + 2 for its tokens,
			// and 50 that every sequence takes. B needs as many, so B waits. C needs fewer, but
			// must not overtake B.
			name: "KV budget, first come first served",
			change: func(p *Profile) {
				p.MaxModelLen, p.Limits.KVTokens, p.Limits.KVPerSeqTokens = 250, 300, 50
			},
			jobs: []Job{{Input: 100, Output: 2}, {Input: 100, Output: 2}, {Input: 10, Output: 1}},
			// The KV memory holds only A at first. When A ends at 125 ms, the next step prefills B
			// and C in 10 + 110 ms. Then B decodes alone.
			want: [][]float64{{115, 125}, {245, 255}, {245}},
		}, {
			// Tokens 1 and 2 become visible together with token 3.
			name:   "held-back stream",
			change: func(p *Profile) { p.FirstVisibleToken = 3 },
			jobs:   []Job{{Input: 100, Output: 4}, {Input: 100, Output: 2}},
			// The client sees no token before the third, which A has at 236 ms. B ends with its
			// second token at 226 ms, so its tokens become visible then.
			want: [][]float64{{236, 246}, {226}},
		}, {
			// Each step drafts 2 tokens, and all of them are accepted. So the four steps emit 1, 3,
			// 3 and 1 of the 8 tokens.
			name:   "speculation",
			change: func(p *Profile) { p.Speculation = &Speculation{Accept: []float64{1, 1}} },
			jobs:   []Job{{Input: 100, Output: 8}},
			want:   [][]float64{{115, 125, 135, 145}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := plain()
			if test.change != nil {
				test.change(p)
			}
			must.Do(t, p.Validate())
			e := NewEngine(p, 1)
			for i, j := range test.jobs {
				j.ID = uint64(i)
				submit(t, e, 0, j)
			}
			all := drain(e)
			for i, want := range test.want {
				got := at(all, uint64(i))
				for k := range got {
					got[k] = math.Round(got[k]*1e6) / 1e6
				}
				must.Hold(t, slices.Equal(got, want), "job %d emitted at %v ms, want %v", i, got, want)
			}
		})
	}
}

func TestTimesOfAJob(t *testing.T) {
	p := plain()
	p.Limits.MaxSeqs = 1
	p.FirstVisibleToken = 2
	e := NewEngine(p, 1)
	submit(t, e, time.Second, Job{ID: 1, Input: 100, Output: 3}, Job{ID: 2, Input: 50, Output: 3})
	all := drain(e)
	last := all[len(all)-1]
	// Times in ms: job 1 ends at 1135, so job 2 is scheduled then. Its 50 prompt tokens are
	// prefilled after 10 + 50 ms. Each decode step takes 10 ms, and the client sees tokens from the
	// second on.
	want := Times{
		Submitted: 1000 * time.Millisecond, Queued: 1005 * time.Millisecond, Scheduled: 1135 * time.Millisecond,
		Prefilled: 1195 * time.Millisecond, First: 1205 * time.Millisecond, Finished: 1215 * time.Millisecond,
	}
	if last.ID != 2 || !last.Last || *last.Times != want {
		t.Errorf("last emission %+v, times %+v, want %+v", last, *last.Times, want)
	}
}

func TestPrefixCache(t *testing.T) {
	p := plain()
	p.PrefixCache = &PrefixCache{BlockTokens: 16, CapacityTokens: 64}
	e := NewEngine(p, 1)
	prompt := func(n, differs int) Job {
		ids := make([]int, n)
		ids[differs] = 7
		return Job{Input: n, Output: 1, Prefix: prefixHashes(ids, 16)}
	}
	for i, step := range []struct {
		job    Job
		cached int
	}{
		{prompt(40, 0), 0},
		{prompt(40, 0), 32},   // two blocks of 16 tokens are cached; the last 8 tokens are computed
		{prompt(32, 0), 31},   // all blocks are cached, but the last token is always computed
		{prompt(40, 20), 0},   // the prompt differs from its first token on, so no block is cached
		{prompt(100, 20), 32}, // 2 of its 6 blocks are cached; only 4 fit into the cache
		{prompt(40, 0), 0},    // the cache has evicted the prompt's blocks, the least recently used
	} {
		step.job.ID = uint64(i)
		submit(t, e, time.Duration(i)*time.Hour, step.job)
		all := drain(e)
		got := all[len(all)-1].Times.Cached
		must.Hold(t, got == step.cached, "request %d: %d tokens cached, want %d", i, got, step.cached)
	}
	e.resetPrefixCache()
	submit(t, e, 100*time.Hour, Job{ID: 99, Input: 40, Output: 1, Prefix: prompt(40, 0).Prefix})
	all := drain(e)
	must.Hold(t, all[len(all)-1].Times.Cached == 0, "a hit after the reset")
}

func TestCancel(t *testing.T) {
	p := plain()
	p.Limits.MaxSeqs = 2
	e := NewEngine(p, 1)
	submit(t, e, 0, Job{ID: 1, Input: 100, Output: 50}, Job{ID: 2, Input: 100, Output: 3}, Job{ID: 3, Input: 100, Output: 2}, Job{ID: 4, Input: 100, Output: 1})
	// Jobs 1 and 2 are prefilled in the first step, which takes 10 + 200 ms and ends at 215 ms. At
	// 220 ms a decode step is running, which ends at 226 ms.
	e.Advance(220 * time.Millisecond)
	must.Hold(t, e.Cancel(1) && e.Cancel(3) && !e.Cancel(1) && !e.Cancel(77), "Cancel must report whether the job was in flight")
	all := drain(e)
	got := at(all, 1)
	must.Hold(t, len(got) == 0, "the cancelled running job emitted at %v", got)
	if got := at(all, 3); len(got) != 0 {
		t.Errorf("the cancelled waiting job emitted at %v", got)
	}
	// At 226 ms job 2 has its second token, and job 4 is admitted. The next step prefills the 100
	// tokens of job 4 in 10 + 100 ms, and ends at 336 ms.
	if got := at(all, 2); !slices.Equal(got, []float64{226, 336}) {
		t.Errorf("job 2 emitted at %v after the cancellation", got)
	}
	if got := at(all, 4); !slices.Equal(got, []float64{336}) {
		t.Errorf("job 4 emitted at %v", got)
	}
	if s := e.State(time.Hour); s.Running != 0 || s.Waiting != 0 || e.kv != 0 || e.resident != 0 || len(e.jobs) != 0 {
		t.Errorf("something is left: %+v, kv %d, resident %d, jobs %d", s, e.kv, e.resident, len(e.jobs))
	}
	submit(t, e, time.Hour, Job{ID: 1, Input: 1, Output: 1}) // ids of finished jobs can be reused
}

func TestSubmitRefuses(t *testing.T) {
	e := NewEngine(plain(), 1)
	submit(t, e, 0, Job{ID: 1, Input: 1, Output: 1})
	for _, j := range []Job{
		{ID: 2, Input: 0, Output: 1},
		{ID: 2, Input: 1, Output: 0},
		{ID: 2, Input: 99_999, Output: 2},
		{ID: 1, Input: 1, Output: 1},
	} {
		must.Hold(t, e.Submit(0, j) != nil, "Submit(%+v): no error", j)
	}
}

// randomProfile returns a random valid profile, sometimes with extreme values.
func randomProfile(r *rand.Rand) *Profile {
	p := plain()
	p.MaxModelLen = 2 + r.IntN(3000)
	if r.IntN(2) == 0 {
		p.Policy = PrefillFirst
	}
	p.OverheadMS = r.Float64() * 30
	p.FrontMSPerRequest = float64(r.IntN(2)) * 3
	p.FrontUSPerToken = float64(r.IntN(2)) * 10
	p.Prefill = PrefillCost{r.Float64() * 100, r.Float64(), r.Float64()}
	p.Decode = DecodeCost{0.1 + r.Float64()*10, r.Float64(), r.Float64(), r.Float64(), float64(r.IntN(2)) * 10, 0.1}
	if r.IntN(2) == 0 {
		p.Speculation = &Speculation{Spread: r.Float64() * 0.5}
		a := 1.0
		for range 1 + r.IntN(4) {
			a *= r.Float64()
			p.Speculation.Accept = append(p.Speculation.Accept, a)
		}
	}
	p.Limits = Limits{MaxBatchedTokens: p.verify() + r.IntN(500), MaxSeqs: r.IntN(20), KVPerSeqTokens: r.IntN(50)}
	if r.IntN(2) == 0 {
		p.Limits.KVTokens = p.MaxModelLen + p.Limits.KVPerSeqTokens + r.IntN(5000)
	}
	p.FirstVisibleToken = r.IntN(20)
	if r.IntN(3) == 0 {
		p.PrefixCache = &PrefixCache{BlockTokens: 1 + r.IntN(32), CapacityTokens: 32 + r.IntN(2000)}
	}
	p.Noise = Noise{StepCV: r.Float64() * 0.3, StartCV: r.Float64() * 0.1}
	return p
}

type action struct {
	at     time.Duration
	cancel bool
	job    Job
}

func randomLoad(r *rand.Rand, p *Profile) (load []action) {
	var now time.Duration
	for id := range uint64(1 + r.IntN(60)) {
		if r.IntN(3) > 0 {
			now += time.Duration(r.IntN(200)) * time.Millisecond
		}
		if id > 0 && r.IntN(8) == 0 {
			load = append(load, action{at: now, cancel: true, job: Job{ID: uint64(r.IntN(int(id)))}})
		}
		in := 1 + r.IntN(p.MaxModelLen-1)
		j := Job{ID: id, Input: in, Output: 1 + r.IntN(min(400, p.MaxModelLen-in))}
		if p.PrefixCache != nil {
			ids := make([]int, in)
			ids[r.IntN(in)] = r.IntN(3)
			j.Prefix = prefixHashes(ids, p.PrefixCache.BlockTokens)
		}
		load = append(load, action{at: now, job: j})
	}
	return load
}

// play runs a load on an engine. If stops is not nil, play also calls Advance at random times
// between the events, which must not change the results.
func play(t *testing.T, e *Engine, load []action, stops *rand.Rand) (all []Emission, cancelled map[uint64]bool) {
	t.Helper()
	cancelled = make(map[uint64]bool)
	var now time.Duration
	advance := func(to time.Duration) (next time.Duration, busy bool) {
		now = to
		emitted, next, busy := e.Advance(to)
		for _, m := range emitted {
			times := *m.Times
			if m.Times = nil; m.Last { // all other Times depend on when Advance was called
				m.Times = &times
			}
			all = append(all, m)
			must.Hold(t, m.At <= to, "an emission at %v was told at %v", m.At, to)
		}
		must.Need(t, !busy || next > to, "Advance(%v) asks for %v", to, next)
		return next, busy
	}
	for _, a := range load {
		for stops != nil && now < a.at && stops.IntN(4) > 0 {
			advance(now + time.Duration(stops.Int64N(int64(a.at-now))+1))
		}
		if stops != nil || a.cancel {
			// A cancellation applies to jobs that are in flight when it happens. So first advance
			// the engine to that time.
			_, _ = advance(a.at)
		}
		if a.cancel {
			if e.Cancel(a.job.ID) {
				cancelled[a.job.ID] = true
			}
			continue
		}
		must.Do(t, e.Submit(a.at, a.job))
	}
	for next, busy := advance(now); busy; {
		next, busy = advance(next)
	}
	return all, cancelled
}

func TestLongEngineProperties(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := randomProfile(r)
		err := p.Validate()
		must.Need(t, err == nil, "seed %d: %v", seed, err)
		load := randomLoad(r, p)
		e := NewEngine(p, int64(seed))
		all, cancelled := play(t, e, load, rand.New(rand.NewPCG(seed, 2)))

		jobs := make(map[uint64]Job)
		order := []uint64{}
		for _, a := range load {
			if !a.cancel {
				jobs[a.job.ID] = a.job
				order = append(order, a.job.ID)
			}
		}
		made := make(map[uint64]int)
		done := make(map[uint64]Times)
		var last time.Duration
		for _, m := range all {
			made[m.ID] += m.Tokens
			_, over := done[m.ID]
			if m.Tokens < 1 || made[m.ID] != m.Total || over || m.At < last {
				t.Fatalf("seed %d: emission %+v after %d tokens at %v", seed, m, made[m.ID], last)
			}
			last = m.At
			if m.Last {
				done[m.ID] = *m.Times
			}
		}
		total := 0
		var scheduled time.Duration
		for _, id := range order {
			if cancelled[id] {
				continue
			}
			d, ok := done[id]
			if !ok || made[id] != jobs[id].Output {
				t.Fatalf("seed %d: job %d emitted %d of %d tokens, finished %v", seed, id, made[id], jobs[id].Output, ok)
			}
			total += made[id]
			times := []time.Duration{0, d.Submitted, d.Queued, d.Scheduled, d.Prefilled, d.First, d.Finished}
			must.Need(t, slices.IsSorted(times) && d.Scheduled != d.Prefilled, "seed %d: job %d: times %+v are out of order", seed, id, d)
			must.Need(t, d.Scheduled >= scheduled, "seed %d: job %d overtook another one", seed, id)
			scheduled = d.Scheduled
			must.Need(t, d.Cached < jobs[id].Input, "seed %d: job %d: all %d prompt tokens from the cache", seed, id, d.Cached)
		}
		s := e.State(last)
		must.Need(t, len(cancelled) != 0 || s.OutputTokens == total, "seed %d: %d tokens counted, %d emitted", seed, s.OutputTokens, total)
		limit := p.Limits.KVTokens
		must.Need(t, limit <= 0 || s.PeakKV <= limit, "seed %d: %d KV tokens reserved of %d", seed, s.PeakKV, limit)
		if p.Policy == Mixed && s.PeakBatchTokens > p.Limits.MaxBatchedTokens {
			t.Fatalf("seed %d: a step of %d tokens, budget %d", seed, s.PeakBatchTokens, p.Limits.MaxBatchedTokens)
		}
		if e.kv != 0 || e.resident != 0 || s.Running+s.Waiting+len(e.jobs) != 0 {
			t.Fatalf("seed %d: the idle engine holds %d KV, %d resident tokens, %d jobs", seed, e.kv, e.resident, len(e.jobs))
		}

		// The same seed gives the same results, at whatever times Advance is called.
		again, _ := play(t, NewEngine(p, int64(seed)), load, nil)
		same := slices.EqualFunc(all, again, func(a, b Emission) bool {
			if a.Last && b.Last && *a.Times != *b.Times {
				return false
			}
			a.Times, b.Times = nil, nil
			return a == b
		})
		must.Need(t, same, "seed %d: a second run differs", seed)
	}
}

func TestSeedsDiffer(t *testing.T) {
	p := plain()
	p.Noise.StepCV = 0.1
	run := func(seed int64) time.Duration {
		e := NewEngine(p, seed)
		submit(t, e, 0, Job{Input: 10, Output: 10})
		all := drain(e)
		return all[len(all)-1].At
	}
	must.Hold(t, run(1) != run(2), "two seeds gave the same noise")
}

// The noise factors have the mean 1 and the spread of the profile. Draft tokens are accepted with
// the shares of the profile.
func TestLongRandomnessIsCalibrated(t *testing.T) {
	const n = 100_000
	p := plain()
	p.Noise.StepCV = 0.2
	p.OverheadMS, p.MaxModelLen = 0, 2*n
	p.Speculation = &Speculation{Accept: []float64{0.8, 0.6, 0.3}, Spread: 0.2}
	e := NewEngine(p, 3)
	const jobs = 100
	submitted := 0
	var steps []float64
	var now time.Duration
	for submitted < jobs {
		submit(t, e, now, Job{ID: uint64(submitted), Input: 1, Output: n / jobs})
		submitted++
		before := now
		for busy := true; busy; {
			var next time.Duration
			_, next, busy = e.Advance(now)
			if busy {
				if before != now {
					steps = append(steps, float64(next-now)/1e7)
				}
				before, now = now, next
			}
		}
	}
	mean, square := 0.0, 0.0
	for _, s := range steps {
		mean += s
		square += s * s
	}
	mean /= float64(len(steps))
	cv := math.Sqrt(square/float64(len(steps))-mean*mean) / mean
	// With about 35,000 steps, the standard error of the mean is 0.2/√35000 = 0.001.
	must.Hold(t, math.Abs(mean-1) <= 0.005 && math.Abs(cv-0.2) <= 0.005, "step factor: mean %.4f, cv %.4f, want 1 and 0.2", mean, cv)
	s := e.State(now)
	for i, want := range p.Speculation.Accept {
		// A probability of acceptance cannot exceed 1. The rates of single requests vary by up to
		// 20 %, so the overall mean is a little lower than the profile's.
		got := float64(s.AcceptedAt[i]) / float64(s.Drafts)
		must.Hold(t, math.Abs(got-want) <= 0.06, "position %d: accepted in %.3f of the steps, want %.3f", i, got, want)
	}
	got := s.AcceptedAt[0] + s.AcceptedAt[1] + s.AcceptedAt[2]
	must.Hold(t, got == s.AcceptedTokens && s.DraftTokens == 3*s.Drafts, "counters disagree: %+v", s)
}

// closedLoop simulates a closed loop with n requests in flight. It returns the mean TTFT, and the
// throughput in output tokens per second.
func closedLoop(p *Profile, n, requests, input int, output func() int) (ttft time.Duration, throughput float64) {
	e := NewEngine(p, 1)
	var id uint64
	left, done, tokens := requests, 0, 0
	send := func(at time.Duration) {
		if left > 0 {
			left--
			id++
			if err := e.Submit(at, Job{ID: id, Input: input, Output: output()}); err != nil {
				panic(err)
			}
		}
	}
	for range n {
		send(0)
	}
	var now, sum time.Duration
	for done < requests {
		emitted, next, _ := e.Advance(now)
		for _, m := range emitted {
			tokens += m.Tokens
			if m.Last {
				done++
				sum += m.Times.First - m.Times.Submitted
				send(m.At)
			}
		}
		if len(emitted) > 0 { // the next event may be one of the requests just sent
			_, next, _ = e.Advance(now)
		}
		now = max(now, next)
	}
	return sum / time.Duration(done), float64(tokens) / now.Seconds()
}

// If all answers have the same length, the slots of a closed loop stay in phase: all prompts arrive
// together, and each must wait for the others. If the lengths differ by a few percent, the prompts
// arrive at different times and the TTFT falls. The throughput stays the same.
func TestLongLockStep(t *testing.T) {
	p := plain()
	p.Prefill.USPerToken, p.OverheadMS = 160, 100
	p.Decode = DecodeCost{BaseMS: 20, PerSeqMS: 2}
	p.Limits.MaxBatchedTokens = 16384
	const n, length = 16, 512
	fixed, fixedRate := closedLoop(p, n, 10*n, 2048, func() int { return length })
	r := rand.New(rand.NewPCG(1, 2))
	jittered, jitteredRate := closedLoop(p, n, 10*n, 2048, func() int { return length - length/20 + r.IntN(length/10+1) })
	t.Logf("TTFT %v fixed, %v jittered; %.1f and %.1f tok/s", fixed, jittered, fixedRate, jitteredRate)
	must.Hold(t, jittered <= fixed*7/10, "TTFT %v with ±5%% jitter, %v without: the slots are not in phase", jittered, fixed)
	must.Hold(t, math.Abs(jitteredRate/fixedRate-1) <= 0.05, "throughput %.1f tok/s with jitter, %.1f without", jitteredRate, fixedRate)
}

// BenchmarkEngineHour runs an engine with every feature for one simulated hour, with 64 streams of
// about 50 tok/s each.
func BenchmarkEngineHour(b *testing.B) {
	p := DefaultProfile()
	p.Limits.MaxSeqs = 64
	p.Decode = DecodeCost{BaseMS: 12, PerSeqMS: 0.1, PerKtokenMS: 0.02, PerKtokenLongestMS: 0.01, MoEMS: 3, MoEActiveShare: 0.05}
	b.ReportAllocs()
	for b.Loop() {
		e := NewEngine(p, 1)
		var id uint64
		send := func(at time.Duration) {
			id++
			must.Do(b, e.Submit(at, Job{ID: id, Input: 500, Output: 250 + int(id%17)}))
		}
		for range 64 {
			send(0)
		}
		tokens := 0
		for now := time.Duration(0); now < time.Hour; {
			emitted, next, _ := e.Advance(now)
			for i := range emitted {
				tokens += emitted[i].Tokens
				if emitted[i].Last {
					send(now)
				}
			}
			now = max(now+1, next)
		}
		b.ReportMetric(float64(tokens), "tokens/hour")
	}
}
