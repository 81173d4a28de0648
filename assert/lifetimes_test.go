package assert

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// For a p95, a hundred seconds of requests that take 1 s each hold 187 independent moments. The
// limit applies only below 59 moments, which 31.6 lifetimes hold. If requests take 4 s, the window
// has 25 lifetimes and 46.8 moments.
func TestTogether(t *testing.T) {
	for _, tt := range []struct {
		takes, apart time.Duration // duration of a request; difference between the TTFTs of two rounds
		e, want      float64
		capped       bool
	}{
		{time.Second, time.Millisecond, 0.05, 0, false},
		{3 * time.Second, time.Millisecond, 0.05, 0, false},
		{4 * time.Second, time.Millisecond, 0.05, 25 * 1.870, true},
		{4 * time.Second, 0, 0.05, 0, false}, // all rounds have the same times
		{40 * time.Second, time.Millisecond, 0.05, 2.5 * 1.870, true},
		{200 * time.Second, 0, 0.05, 0.5 * 1.870, true},          // half a lifetime shows nothing
		{time.Second, time.Millisecond, 0.01, 100 * 2.468, true}, // 299 moments are needed
		{time.Second, time.Millisecond, 0.5, 0, false},
		{40 * time.Second, time.Millisecond, 0.5, 2.5 * 1.376, true}, // 5 moments are needed
	} {
		l := backlog(0)
		for _, r := range l.Rounds {
			for _, x := range r.Samples {
				x.First, x.End = x.Scheduled+time.Second+time.Duration(r.Index)*tt.apart, x.Scheduled+tt.takes
			}
		}
		s, _ := judgedRate(l, plan.Open{Arrivals: plan.Poisson})
		if got, capped := s.together(s.observe(metric.MustLookup("ttft")), tt.e); capped != tt.capped || math.Abs(got-tt.want) > 0.1 {
			t.Errorf("%+v: %v, %v", tt, got, capped)
		}
	}
	l := backlog(0)
	l.Kind, l.N = metric.ClosedLoop, 10
	if _, capped := (&subject{evidence: gather(l), alpha: 0.05}).together(observations{}, 0.01); capped {
		t.Error("the rounds of a closed loop begin anew")
	}
}

var crowds = flag.Int("crowds", 4, "simulated windows of each row of the table of requests that move together")

// crowd returns a window of a server without a queue, on which every request takes 100 s and about
// inFlight requests are in flight. A TTFT is 10 s plus noise, and changes by a second for each
// standard deviation of the number of requests in flight when the request begins.
func crowd(random *rand.Rand, inFlight, lifetimes, noise float64) *metric.Level {
	const lifetime = 100.0
	var due []float64
	for t := -lifetime; t < lifetimes*lifetime; t += random.ExpFloat64() * lifetime / inFlight {
		due = append(due, t)
	}
	l := &metric.Level{Name: "10 req/s", Kind: metric.OpenLoop, Rate: inFlight / lifetime}
	seconds := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	for i := range 10 {
		from, to := lifetimes*lifetime*float64(i)/10, lifetimes*lifetime*float64(i+1)/10
		l.Rounds = append(l.Rounds, &metric.Round{Index: i, Complete: true, Busy: 1, WindowStart: seconds(from), WindowEnd: seconds(to)})
	}
	first := 0
	for i, at := range due {
		for due[first] < at-lifetime {
			first++
		}
		if at < 0 {
			continue
		}
		r := l.Rounds[int(at/(lifetimes*lifetime)*10)]
		ttft := 10 + (float64(i-first)-inFlight)/math.Sqrt(inFlight) + noise*random.NormFloat64()
		r.Due++
		r.Samples = append(r.Samples, &metric.Sample{Round: r.Index, Order: r.Due - 1, Phase: metric.Measured, FromDue: true, Chunks: 1, Usage: &metric.Usage{Input: 1, Output: 1},
			Scheduled: seconds(at), Sent: seconds(at), First: seconds(at + ttft), Last: seconds(at + lifetime), End: seconds(at + lifetime)})
	}
	return l
}

// A threshold at its limit passes 5 % of windows at most, however short they are and however much
// requests vary by themselves.
func TestLongMovingTogether(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "%d windows a row\n\n| noise | lifetimes | p95 | p50 | mean | share |\n|---:|---:|---:|---:|---:|---:|\n", *crowds)
	share := threshold("goodput", "share >= 95%")
	for _, noise := range []float64{0.01, 1, 4} {
		d := metric.Of(metric.MustLookup("ttft"), crowd(rand.New(rand.NewPCG(1, 1)), 300, 200, noise).MeasuredSamples())
		p95, p50 := *threshold("ttft", "p95 < 2s"), *threshold("ttft", "p50 < 2s")
		p95.Limit, _ = d.Percentile(95)
		p50.Limit, _ = d.Percentile(50)
		mean := *threshold("ttft", "mean < 2s")
		mean.Limit = 10
		for _, lifetimes := range []float64{0.3, 1, 2, 4, 10, 16} {
			passes := make([]int, 4)
			for i := range *crowds {
				// At least 300 requests, so that their number alone would do.
				s, _ := judgedRate(crowd(rand.New(rand.NewPCG(2, uint64(i))), max(300, 300/lifetimes), lifetimes, noise), plan.Open{Arrivals: plan.Poisson})
				s.workload.Good = []*plan.Threshold{{Metric: metric.MustLookup("ttft"), Op: plan.Less, Limit: p95.Limit}}
				s.policy.Clusters = plan.ClustersNone
				for k, th := range []*plan.Threshold{&p95, &p50, &mean, share} {
					if s.judge(th).Outcome == Pass {
						passes[k]++
					}
				}
			}
			fmt.Fprintf(&out, "| %v | %v |", noise, lifetimes)
			for k, n := range passes {
				fmt.Fprintf(&out, " %.0f%% |", 100*float64(n)/float64(*crowds))
				if most := (characteristic{n: *crowds}).most(0.05); float64(n)/float64(*crowds) > most {
					t.Errorf("noise %v, %v lifetimes: %d of %d pass the %s at its limit", noise, lifetimes, n, *crowds, []string{"p95", "p50", "mean", "share"}[k])
				}
			}
			out.WriteString("\n")
		}
	}
	t.Log("\n" + out.String())
}

// When a window is too short the verdict says how long one would have to be: 31.6 requests of 4 s.
func TestTooShort(t *testing.T) {
	l := backlog(0)
	for _, r := range l.Rounds {
		for i, x := range r.Samples {
			x.First, x.End = x.Scheduled+time.Second+time.Duration(i+10*(r.Index%2))*5*time.Millisecond, x.Scheduled+4*time.Second
			if r.Index == 3 && i == 50 { // so that it cannot pass by its margin
				x.First = x.Scheduled + 2500*time.Millisecond
			}
		}
	}
	s, _ := judgedRate(l, plan.Open{Arrivals: plan.Poisson})
	v := s.judge(threshold("ttft", "p95 < 2s"))
	// The window needs (31.54/25 − 1)·1,000 = 262 more requests, which take 26 s.
	if note := strings.Join(v.Notes, "; "); v.Outcome != Inconclusive || !strings.Contains(note, "only 25 request lifetimes") || !strings.Contains(note, "A window of 2m10s would be long enough") || v.More < 262 || v.More > 270 {
		t.Errorf("%v, %q, %q, %d", v.Outcome, v.Notes, v.Needs, v.More)
	}
}

func TestLifetimes(t *testing.T) {
	policy := plan.Policy{Confidence: 0.95}
	for text, want := range map[string]float64{"p95 < 2s": 59 / 1.870, "p99 < 2s": 299 / 2.468, "mean < 2s": 0, "max < 2s": 0} {
		if got := Lifetimes(threshold("ttft", text), policy, nil); math.Abs(got-want) > 0.1 {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if got := Lifetimes(threshold("ttft", "p95 < 2s"), plan.Policy{Confidence: 0.95, Decide: plan.Estimate}, nil); got != 0 {
		t.Errorf("a point estimate takes %v", got)
	}
	// One request takes 1 s and the other 3 s. At a random moment the long one is three times as
	// likely to be in flight.
	if got := Lifetime(slices.Values([]float64{1, 3})); got != 2.5 {
		t.Errorf("%v, want 2.5", got)
	}
	for seconds, want := range map[float64]time.Duration{25: 14 * time.Minute, 12.5: 400 * time.Second} { // 790 s and 395 s, rounded up
		if got := Window(31.6, seconds); got != want {
			t.Errorf("%v s each: %v, want %v", seconds, got, want)
		}
	}
}
