package strength

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// Planting a regression changes one thing in the profile, and nothing else.
func TestPlant(t *testing.T) {
	chat := &plan.Workload{Output: plan.Output{Mean: 64}, Loads: []*plan.Load{{Levels: []plan.Level{{Requests: 150, Rounds: 5}}}}}
	p := &plan.Plan{Workloads: []*plan.Workload{chat}}
	for _, c := range []struct {
		r    Regression
		want func(*sim.Profile)
	}{
		{Regression{Overhead, 2}, func(x *sim.Profile) { x.OverheadMS = 24 }},
		{Regression{Prefill, 1.25}, func(x *sim.Profile) { x.Prefill = sim.PrefillCost{USPerToken: 62.5, NSPerToken2: 0.5, ChunkMS: 0.25} }},
		{Regression{Decode, 10}, func(x *sim.Profile) { x.Decode = sim.DecodeCost{BaseMS: 55, PerSeqMS: 6, PerKtokenMS: 0.5} }},
		{Regression{Kind: Throughput}, func(x *sim.Profile) { x.Decode.PerSeqMS, x.Decode.PerKtokenMS = 1.2, 0.1 }},
		{Regression{Kind: KV}, func(x *sim.Profile) { x.Limits.KVTokens = 131072 }},
		{Regression{Kind: Sequences}, func(x *sim.Profile) { x.Limits.MaxSeqs = 16 }},
		{Regression{Kind: Stalls}, func(x *sim.Profile) { x.Stalls = &sim.Stalls{EverySteps: 100, MS: 1000} }},
		{Regression{Failures, 0.05}, func(x *sim.Profile) { x.Faults = sim.Script{{Fault: "http-500", Share: 0.05}} }},
		{Regression{Kind: Cut}, func(x *sim.Profile) { x.Faults = sim.Script{{Fault: "early-stop", Tokens: 32}} }},
	} {
		t.Run(c.r.String(), func(t *testing.T) {
			got, want := sim.DefaultProfile(), sim.DefaultProfile()
			must.Need(t, c.r.Plant(p, got), "it says that nothing changed")
			c.want(want)
			must.Same(t, "", want, got)
			err := got.Validate()
			must.Hold(t, err == nil, "%v", err)
		})
	}
	// A server of embeddings writes no text that could come slower, or be cut.
	embeds := &plan.Plan{Workloads: []*plan.Workload{{API: plan.Embeddings}}}
	for _, kind := range []string{Decode, Throughput, Stalls, Cut} {
		must.Hold(t, !(Regression{kind, 2}).Plant(embeds, sim.DefaultProfile()), "%s was planted in a server of embeddings", kind)
	}
	must.Hold(t, (Regression{Prefill, 2}).Plant(embeds, sim.DefaultProfile()), "prefill was not planted in a server of embeddings")
	drafts := sim.DefaultProfile()
	must.Hold(t, !(Regression{Kind: Drafts}).Plant(p, drafts), "drafts were taken from a server that has none")
	drafts.Speculation = &sim.Speculation{Accept: []float64{0.8, 0.6}}
	must.Hold(t, (Regression{Kind: Drafts}).Plant(p, drafts) && cmp.Equal(drafts.Speculation.Accept, []float64{0.4, 0.3}), "drafts: %v", drafts.Speculation.Accept)
	// The regression Cache halves a prefix cache, and NoCache removes it.
	cached := &sim.PrefixCache{BlockTokens: 16, CapacityTokens: 1024}
	for r, want := range map[string]*sim.PrefixCache{Cache: {BlockTokens: 16, CapacityTokens: 512}, NoCache: nil} {
		to := sim.DefaultProfile()
		must.Hold(t, !(Regression{Kind: r}).Plant(p, to), "%s was planted in a server without a prefix cache", r)
		to.PrefixCache = cached
		if !(Regression{Kind: r}).Plant(p, to) || !cmp.Equal(to.PrefixCache, want) || cached.CapacityTokens != 1024 {
			t.Errorf("%s: %+v, want %+v", r, to.PrefixCache, want)
		}
	}
	// The regression hits the 6th round, and then every tenth. Its second round is the 16th, which
	// begins after 15 rounds of 30 requests.
	queue := sim.DefaultProfile()
	(Regression{Kind: Queue}).Plant(p, queue)
	r := queue.Faults[1]
	must.Hold(t, r.From == 450 && r.To == 480 && r.Fault == "late", "%+v", r)
	// A KV cache with room for just one full context cannot shrink. So the regression is not
	// planted.
	small := sim.DefaultProfile()
	small.Limits.KVTokens = small.MaxModelLen
	must.Hold(t, !(Regression{Kind: KV}).Plant(p, small), "the cache no longer holds one request")
}

func TestChanges(t *testing.T) {
	control, candidate, other := &plan.Server{Name: "today"}, &plan.Server{Name: "next"}, &plan.Server{Name: "other"}
	p := &plan.Plan{Compares: []*plan.Compare{{Control: plan.Control{Server: control}, Candidate: candidate}}}
	for s, want := range map[*plan.Server]bool{control: false, candidate: true, other: true} {
		must.Same(t, s.Name, want, Changes(p, s.Address()))
	}
}

func TestMeasure(t *testing.T) {
	slow, none := Regression{Decode, 2}, Regression{Kind: Drafts}
	r := must.Get(Measure([]Regression{slow, none}, 4, func(r *Regression, seed int) (verdict.Outcome, bool, error) {
		switch {
		case r == nil:
			return verdict.Pass, true, nil
		case *r == none:
			return verdict.Pass, false, nil
		}
		return []verdict.Outcome{verdict.Fail, verdict.Error, verdict.Inconclusive, verdict.Pass}[seed], true, nil
	}))(t)
	want := &Result{Unchanged: Tally{Passed: 4}, Findings: []Finding{
		{Regression: slow, Tally: Tally{Passed: 1, Undecided: 1, Failed: 2}},
		{Regression: none, Absent: true},
	}}
	must.Same(t, "", want, r)
	// Two regressions can pass unnoticed. The regression named slow made only 2 of 4 runs fail, and
	// 95 % are required. The regression named none could not be planted.
	got := r.Unnoticed([]Regression{slow, none})
	must.Hold(t, len(got) == 2, "unnoticed: %v", got)
	broken := errors.New("broken")
	_, err := Measure([]Regression{slow}, 3, func(*Regression, int) (verdict.Outcome, bool, error) { return 0, false, broken })
	must.Hold(t, errors.Is(err, broken), "error %v", err)
}

func TestHeadline(t *testing.T) {
	pass, fail := Tally{Passed: 9, Failed: 1}, Tally{Failed: 10}
	for _, c := range []struct {
		findings []Finding
		want     string
	}{
		{nil, ""},
		{[]Finding{{Regression: Regression{Kind: Drafts}, Absent: true}}, ""},
		{[]Finding{{Regression{Decode, 1.25}, pass, false}, {Regression{Decode, 2}, pass, false}, {Regression{Decode, 10}, fail, false}}, "A server that decodes 2 times slower would pass."},
		{[]Finding{{Regression{Decode, 2}, fail, false}, {Regression{Prefill, 10}, pass, false}}, "A server that prefills 10 times slower would pass."},
		{[]Finding{{Regression{Decode, 2}, fail, false}, {Regression{Failures, 0.01}, pass, false}}, "Every slowdown that was planted is noticed; a server that fails 1% of the requests would pass."},
		{[]Finding{{Regression{Decode, 2}, fail, false}}, "Every regression that was planted is noticed."},
		{[]Finding{{Regression{Decode, 2}, Tally{Undecided: 10}, false}}, "No regression that was planted passes, but not every one fails."},
	} {
		must.Same(t, fmt.Sprintf("%v", c.findings), c.want, (&Result{Findings: c.findings}).Headline())
	}
}

// recorded returns a run with two slots of two requests each. A request has a TTFT of 20 ms and
// then five gaps of 10 ms.
//
// Two requests are in flight, so decoding takes 15 ms of the TTFT: one and a half steps of 10 ms.
func recorded() *metric.Run {
	r := &metric.Round{Due: 4, Complete: true, WindowEnd: 140 * time.Millisecond, End: 140 * time.Millisecond}
	for slot := range 2 {
		for i := range 2 {
			at := time.Duration(70*i) * time.Millisecond
			s := &metric.Sample{
				Server: "s", Slot: slot, Order: 2*i + slot, Phase: metric.Measured, Scheduled: at, Sent: at, Headers: at + 1,
				First: at + 20*time.Millisecond, Last: at + 70*time.Millisecond, End: at + 70*time.Millisecond,
				Chunks: 6, Usage: &metric.Usage{Output: 6}, Finish: "length",
			}
			for range 5 {
				s.Gaps.Add(10 * time.Millisecond)
			}
			r.Samples = append(r.Samples, s)
		}
	}
	return &metric.Run{Levels: []*metric.Level{{Server: "s", Kind: metric.ClosedLoop, N: 2, Rounds: []*metric.Round{r}}}}
}

func TestStretch(t *testing.T) {
	type times struct{ Sent, First, Last time.Duration }
	for _, c := range []struct {
		name string
		r    *Regression
		want []times // times in ms of a slot's two requests: begin, first token, end
		end  time.Duration
	}{
		{"as it was", nil, []times{{0, 20, 70}, {70, 90, 140}}, 140},
		{"decode", &Regression{Decode, 2}, []times{{0, 35, 135}, {135, 170, 270}}, 270},
		// Waiting takes 15 ms of the TTFT of 20 ms: one and a half steps. So reading the prompt
		// takes 5 ms. Three times as much takes 10 ms more.
		{"prefill", &Regression{Prefill, 3}, []times{{0, 30, 80}, {80, 110, 160}}, 160},
		{"failures", &Regression{Failures, 1}, []times{{0, 0, 0}, {0, 0, 0}}, 0},
		{"cut", &Regression{Kind: Cut}, []times{{0, 20, 40}, {40, 60, 80}}, 80},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, planted := Record(&plan.Plan{}, recorded()).Stretch(c.r, 0)
			must.Need(t, planted, "nothing changed")
			round := run.Levels[0].Rounds[0]
			var got []times
			for _, s := range round.MeasuredSamples() {
				if s.Slot == 0 {
					got = append(got, times{s.Sent.Round(time.Millisecond) / time.Millisecond, s.First / time.Millisecond, s.Last / time.Millisecond})
				}
			}
			must.Same(t, "", c.want, got)
			end := round.WindowEnd.Round(time.Millisecond) / time.Millisecond
			must.Hold(t, end == c.end, "the window ends at %d ms, want %d", end, c.end)
		})
	}
	// Stretch fails each request with this small probability. The regression counts as planted even
	// if no request fails.
	_, planted := Record(&plan.Plan{}, recorded()).Stretch(&Regression{Failures, 1e-9}, 0)
	must.Hold(t, planted, "failures that befell no request are not counted")
	before := recorded()
	Record(&plan.Plan{}, before).Stretch(&Regression{Decode, 2}, 3)
	must.Same(t, "the recording was changed", recorded(), before)
	if _, planted := Record(&plan.Plan{}, before).Stretch(&Regression{Overhead, 2}, 0); planted {
		t.Error("an overhead that is not known was doubled")
	}
	before.Levels[0].Kind = metric.Burst
	rate := recorded() // a rate has a closed loop before it, to saturate the server
	rate.Levels = append(rate.Levels, &metric.Level{Kind: metric.OpenLoop, Rate: 4})
	must.Hold(t, Unstretchable(rate) != "", "a rate is stretched")
	must.Hold(t, Unstretchable(before) != "" && Unstretchable(recorded()) == "" && Unstretchable(&metric.Run{}) != "", "only closed loops can be stretched")
}

// The function Stretch also makes scored answers worse. It can cut two of the candidate's four
// answers where they agree with the control's. The third answer is too different, and the fourth
// has already failed.
func TestStretchAnswers(t *testing.T) {
	a := func(agrees float64) *metric.PairedAnswer {
		return &metric.PairedAnswer{Asked: 64, Tokens: 64, Scored: 64, Loss: 32, Agrees: agrees, Finish: "length"}
	}
	run := recorded()
	run.Comparisons = []*metric.Comparison{{Name: "c", Control: "t", Candidate: "s", Answers: &metric.PairedAnswers{Due: 4, Pairs: []metric.AnswerPair{
		{Control: a(0), Candidate: a(1)}, {Control: a(0), Candidate: a(0.5)}, {Control: a(0), Candidate: a(0.1)},
		{Control: a(0), Candidate: &metric.PairedAnswer{Failure: "HTTP 500"}},
	}}}}
	p := &plan.Plan{}
	for _, row := range []struct {
		r             Regression
		stops, failed int
	}{{Regression{Kind: Cut}, 2, 1}, {Regression{Failures, 1}, 0, 4}, {Regression{Decode, 2}, 0, 1}} {
		out, _ := Record(p, run).Stretch(&row.r, 0)
		stops, failed := 0, 0
		for _, x := range out.Comparisons[0].Answers.Pairs {
			if x.Candidate.Stops && x.Candidate.Tokens == 32 && x.Candidate.Loss == 16 {
				stops++
			}
			if x.Candidate.Failure != "" {
				failed++
			}
		}
		if stops != row.stops || failed != row.failed || run.Comparisons[0].Answers.Pairs[0].Candidate.Tokens != 64 {
			t.Errorf("%s: %d stop, %d failed", row.r, stops, failed)
		}
	}
}

// The function Stretch changes all parts of a mix together. In a closed loop, the requests of one
// part wait for those of the other parts.
func TestStretchAMix(t *testing.T) {
	run := recorded()
	mix := run.Levels[0]
	mix.Workload = "production"
	mix.Parts = []*metric.Level{{Server: mix.Server, Workload: mix.Workload + "/even", Name: mix.Name, Of: mix.Workload, Share: 0.5}}
	for _, r := range mix.Rounds {
		for _, s := range r.Samples {
			if s.Order%2 == 0 {
				s.Part = "even"
			}
		}
	}
	p := &plan.Plan{Servers: []*plan.Server{{Name: mix.Server}}}
	out, planted := Record(p, run).Stretch(&Regression{Decode, 2}, 0)
	must.Need(t, planted && len(out.Levels) == len(run.Levels), "planted %v, %d levels of %d", planted, len(out.Levels), len(run.Levels))
	ends := map[time.Duration]bool{}
	for _, s := range out.Levels[0].MeasuredSamples() {
		ends[s.End] = true
	}
	even := out.All()[1].MeasuredSamples()
	for _, s := range even {
		must.Hold(t, ends[s.End], "a request of the part ended at %v, and none of the mix did", s.End)
	}
	must.Hold(t, len(even) != 0 && len(even) == len(run.All()[1].MeasuredSamples()), "%d requests of the part", len(even))
}
