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

	"github.com/tokgate/tokgate/assert/stat"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// A p95 needs 59 independent moments. A lifetime (the duration of a request) counts as 1.87
// moments, so the window must last 31.6 lifetimes. The window here lasts 100 s. Requests of 1 s
// have 100 lifetimes in it, which is enough. Requests of 4 s have only 25 lifetimes, or 46.8
// moments.
func TestTogether(t *testing.T) {
	for _, tt := range []struct {
		takes, apart time.Duration // duration of a request; TTFT difference of neighbouring rounds
		e, want      float64
		capped       bool
	}{
		{time.Second, time.Millisecond, 0.05, 0, false},
		{3 * time.Second, time.Millisecond, 0.05, 0, false},
		{4 * time.Second, time.Millisecond, 0.05, 25 * 1.870, true},
		{4 * time.Second, 0, 0.05, 0, false}, // all rounds have equal TTFTs
		{40 * time.Second, time.Millisecond, 0.05, 2.5 * 1.870, true},
		{200 * time.Second, 0, 0.05, 0.5 * 1.870, true},          // a window of half a lifetime
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
		got, capped := s.fewMoments(s.observe(metric.MustLookup("ttft")), tt.e)
		must.Hold(t, capped == tt.capped && math.Abs(got-tt.want) <= 0.1, "%+v: %v, %v", tt, got, capped)
	}
	l := backlog(0)
	l.Kind, l.N = metric.ClosedLoop, 10
	_, capped := (&subject{evidence: gather(l), alpha: 0.05}).fewMoments(observations{}, 0.01)
	must.Hold(t, !capped, "the rounds of a closed loop begin anew")
}

var crowds = flag.Int("crowds", 4, "simulated windows of each row of the table of requests that move together")

// crowd returns a window of a server without a queue. Every request takes 100 s, and about inFlight
// requests are in flight. A TTFT is 10 s plus noise, and 1 s more for each standard deviation by
// which the number in flight at its start is above the mean.
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

// A threshold exactly at its limit passes at most 5 % of windows and fails at most 5 %. This holds
// for short windows and for any spread of single requests.
func TestLongMovingTogether(t *testing.T) {
	names := []string{"p95", "p50", "mean", "share"}
	var out strings.Builder
	fmt.Fprintf(&out, "%d windows a row, passed / failed\n\n| noise | lifetimes | p95 | p50 | mean | share |\n|---:|---:|---:|---:|---:|---:|\n", *crowds)
	share := threshold("goodput", "share >= 95%")
	columns, row := make([][verdict.Error + 1]int, len(names)), uint64(1)
	for _, noise := range []float64{0.01, 1, 4} {
		d := metric.Of(metric.MustLookup("ttft"), crowd(rand.New(rand.NewPCG(1, 1)), 300, 200, noise).MeasuredSamples())
		p95, p50 := *threshold("ttft", "p95 < 2s"), *threshold("ttft", "p50 < 2s")
		p95.Limit, _ = d.Percentile(95)
		p50.Limit, _ = d.Percentile(50)
		mean := *threshold("ttft", "mean < 2s")
		mean.Limit = 10
		for _, lifetimes := range []float64{0.3, 1, 2, 4, 10, 16} {
			fmt.Fprintf(&out, "| %v | %v |", noise, lifetimes)
			counts := make([][verdict.Error + 1]int, len(names))
			for i := range *crowds {
				// Use at least 300 requests, so that a lack of requests never explains an undecided
				// verdict.
				s, _ := judgedRate(crowd(rand.New(rand.NewPCG(row, uint64(i))), max(300, 300/lifetimes), lifetimes, noise), plan.Open{Arrivals: plan.Poisson})
				s.workload.Good = []*plan.Threshold{{Metric: metric.MustLookup("ttft"), Op: plan.Less, Limit: p95.Limit}}
				s.policy.Clusters = plan.ClustersNone
				for k, th := range []*plan.Threshold{&p95, &p50, &mean, share} {
					outcome := s.judge(th).Outcome
					counts[k][outcome]++
					columns[k][outcome]++
				}
			}
			for _, count := range counts {
				percent := func(o verdict.Outcome) float64 { return 100 * float64(count[o]) / float64(*crowds) }
				fmt.Fprintf(&out, " %.0f%% / %.0f%% |", percent(verdict.Pass), percent(verdict.Fail))
			}
			out.WriteString("\n")
			row++
		}
	}
	for k, count := range columns {
		c := characteristic{n: int(row-1) * *crowds, pass: count[verdict.Pass], fail: count[verdict.Fail]}
		if most := c.ceiling(0.05); c.share(c.pass) > most || c.share(c.fail) > most {
			t.Errorf("%s at its limit: of %d windows %d pass and %d fail", names[k], c.n, c.pass, c.fail)
		}
	}
	t.Log("\n" + out.String())
}

// If a window is too short, the verdict says how long it must be: here 31.6 times the 4 s of a
// request.
func TestTooShort(t *testing.T) {
	l := backlog(0)
	for _, r := range l.Rounds {
		for i, x := range r.Samples {
			x.First, x.End = x.Scheduled+time.Second+time.Duration(i+10*(r.Index%2))*5*time.Millisecond, x.Scheduled+4*time.Second
			// Add one slow request, so that the threshold cannot pass by its margin.
			if r.Index == 3 && i == 50 {
				x.First = x.Scheduled + 2500*time.Millisecond
			}
		}
	}
	s, _ := judgedRate(l, plan.Open{Arrivals: plan.Poisson})
	v := s.judge(threshold("ttft", "p95 < 2s"))
	// The window of 100 s has 1,000 requests, each 4 s long: 25 request lifetimes. It needs 31.54
	// lifetimes, which are 26 s and 262 requests more.
	if note := strings.Join(v.NotesOf(), "; "); v.Outcome != verdict.Inconclusive || !strings.Contains(note, "only 25 request lifetimes") || !strings.Contains(note, "needs a window of at least 2m10s") || v.More < 262 || v.More > 270 {
		t.Errorf("%v, %q, %q, %d", v.Outcome, v.Notes, v.Needs, v.More)
	}
}

// slowRate returns a level at a rate whose requests have the given duration. The TTFTs of
// neighbouring rounds differ by 1 ms.
func slowRate(takes time.Duration, saturation ...float64) *metric.Level {
	l := backlog(0, saturation...)
	for _, r := range l.Rounds {
		for _, x := range r.Samples {
			x.First, x.End = x.Scheduled+time.Second+time.Duration(r.Index%2)*time.Millisecond, x.Scheduled+takes
		}
	}
	return l
}

// The server's histogram has 1,000 requests, none over the limit. The load is 80 % of the largest
// rate, and Poisson arrivals have the divisor 1.5. So they count as 1000·(1−0.8)²/1.5 = 26.7
// independent requests, but a pass needs 59. Requests of 40 s in 100 s count as even fewer.
func TestCountedAtARate(t *testing.T) {
	for _, tt := range []struct {
		takes      time.Duration
		saturation []float64
		value      float64 // of every request
		want       verdict.Outcome
		effective  float64
		notes      string
	}{
		{time.Second, nil, 0.2, verdict.Pass, 1000, ""},
		{time.Second, []float64{12.5, 12.5, 12.5, 12.5}, 0.2, verdict.Inconclusive, 1000 * 0.04 / 1.5, ""},
		{40 * time.Second, nil, 0.2, verdict.Inconclusive, 2.5 * 1.870, "needs a window of at least 22m"},
		{40 * time.Second, nil, 1.8, verdict.Fail, 2.5 * 1.870, ""},
	} {
		l := slowRate(tt.takes, tt.saturation...)
		for _, r := range l.Rounds {
			r.Telemetry = &metric.Telemetry{Histograms: map[string]metric.Histogram{"server_ttft": histogram(times(map[float64]int{tt.value: 100})...)}}
		}
		s, _ := judgedRate(l, plan.Open{Arrivals: plan.Poisson})
		v := s.judge(bound("server_ttft", "p95", plan.Less, 1))
		if notes := strings.Join(v.NotesOf(), "; "); v.Outcome != tt.want || math.Abs(v.Effective-tt.effective) > 0.1 || !strings.Contains(notes, tt.notes) || strings.Contains(notes, "at least") != (tt.notes != "") {
			t.Errorf("%v, %v: %v of %v, %q", tt.takes, tt.saturation, v.Outcome, v.Effective, v.Notes)
		}
	}
}

// At a rate the rounds depend on each other, so the interval of every mean is widened. A request
// takes 40 s, so the window of 100 s has 2.5 request durations. For ten rounds of it,
// stat.Persistence returns 2.34.
func TestMeansOfARate(t *testing.T) {
	l := slowRate(40 * time.Second)
	for i, r := range l.Rounds {
		x := float64(i%2) / 10
		r.Telemetry = &metric.Telemetry{
			Gauges:     map[string]metric.Gauge{"kv_usage": {N: 60, Mean: 0.4 + x, Min: 0.2, Max: 0.98}},
			Histograms: map[string]metric.Histogram{"server_ttft": histogram(slices.Repeat([]float64{0.4 + x}, 100)...)},
		}
	}
	open, _ := judgedRate(l, plan.Open{Arrivals: plan.Poisson})
	closed := *open
	alike := *l
	alike.Kind = metric.Users
	closed.level = &alike
	for _, th := range []*plan.Threshold{bound("kv_usage", "mean", plan.Less, 0.5), bound("server_ttft", "mean", plan.Less, 0.5), threshold("ttft", "mean < 2s")} {
		a, b := open.judge(th), closed.judge(th)
		// Both lower bounds are above 0, so none is cut off at 0.
		got := (a.Value.V - a.Low.V) / (b.Value.V - b.Low.V)
		must.Hold(t, math.Abs(got-2.34) <= 0.01, "%s: %v times as wide", label(th), got)
	}
	k := closed.persistence(10)
	must.Hold(t, k == 1, "rounds of users are widened by %v", k)
}

// The bound on the mean rises with the widening factor k. It widens the logarithms, because some of
// the values themselves would become negative.
func TestWidenedBound(t *testing.T) {
	units := append(slices.Repeat([]float64{1}, 9), 20)
	last := 0.0
	for _, k := range []float64{1, 1.2, 1.6, 3} {
		got := stat.LogMeanBound(units, k, 0.05)
		must.Hold(t, got > last, "the bound falls from %v to %v at k = %v", last, got, k)
		last = got
	}
	// A factor of 2 doubles the distance from the mean logarithm, here that of 4. So 2 and 8, which
	// are 4/2 and 4·2, count as 4/4 and 4·4.
	a, b := stat.LogMeanBound([]float64{2, 8}, 2, 0.05), stat.LogMeanBound([]float64{1, 16}, 1, 0.05)
	must.Hold(t, math.Abs(a/b-1) <= 1e-9, "%v, want %v", a, b)
}

// The window has 1,000 requests of 40 s in 100 s, and none is bad. A share of 95 % needs a window
// of 31.55 request durations, which has 12,620 requests. A share of 50 % needs 10 durations, or
// 4,000 requests. With clusters by wave, 95 % needs 59 waves. A wave is the mean number in flight:
// 320, as it rises to 400 in the first 40 s.
func TestShareNeedsLifetimes(t *testing.T) {
	for _, tt := range []struct {
		clusters plan.Clusters
		limit    float64
		words    string
		more     int
	}{
		{plan.ClustersNone, 0.95, "needs about 12000 more requests, 20 min", 12_000},
		{plan.ClustersRound, 0.95, "needs about 117 more rounds, 20 min", 12_000},
		{plan.ClustersWave, 0.95, "needs about 18000 more requests, 30 min", 18_000},
		{plan.ClustersNone, 0.50, "needs about 3000 more requests, 5 min", 3_000},
		{plan.ClustersRound, 0.50, "needs about 30 more rounds, 5 min", 3_000},
	} {
		s, _ := judgedRate(slowRate(40*time.Second), plan.Open{Arrivals: plan.Poisson})
		s.workload.Good = []*plan.Threshold{threshold("ttft", "p95 < 2s")}
		s.policy.Clusters = tt.clusters
		share := *threshold("goodput", "share >= 95%")
		share.Limit = tt.limit
		v := s.judge(&share)
		must.Hold(t, v.Outcome == verdict.Inconclusive && v.Needs == tt.words && v.More == tt.more, "%s, %v: %v, %q, %d", tt.clusters, tt.limit, v.Outcome, v.Needs, v.More)
	}
}

// Above the largest rate, shares and percentiles stay undecided, and the verdict asks for a lower
// rate. At 96 % of the largest rate it does not: there 1,000 requests count as one independent
// request.
func TestAboveTheLargestRate(t *testing.T) {
	const above = "needs a rate below 9 req/s, the largest rate that the server is certified to sustain; at a higher rate no number of requests decides the verdict"
	for _, th := range []*plan.Threshold{threshold("success", "rate >= 95%"), threshold("goodput", "share >= 95%"), threshold("ttft", "p95 < 2s")} {
		for _, clusters := range []plan.Clusters{plan.ClustersWave, plan.ClustersNone, plan.ClustersRound} {
			judged := func(largest float64) verdict.Verdict {
				s, _ := judgedRate(slowRate(time.Second, largest, largest, largest, largest), plan.Open{Arrivals: plan.Poisson})
				s.workload.Good, s.policy.Clusters = []*plan.Threshold{threshold("ttft", "p95 < 2s")}, clusters
				return s.judge(th)
			}
			v := judged(9)
			must.Hold(t, v.Outcome == verdict.Inconclusive && v.Needs == above && v.More == -1, "%s: %v, %q, %d, %q", label(th), v.Outcome, v.Needs, v.More, v.Notes)
			if v := judged(10 / 0.96); v.Outcome != verdict.Inconclusive || v.More <= 0 || !strings.Contains(strings.Join(v.NotesOf(), "; "), "at 96% of the largest rate that the server can sustain, 1000 requests count as at most 1 independent requests") {
				t.Errorf("%s: %v, %q, %d, %q", label(th), v.Outcome, v.Needs, v.More, v.Notes)
			}
		}
	}
}

// A share of 50 % needs 5 independent moments, and a window of 10 request durations. A window of
// 3.8 durations has 5.2 moments, but is too short to pass. The window is 100 s, so requests take
// 26.3 s or 9.9 s.
func TestGoodputOfAShortWindow(t *testing.T) {
	for takes, want := range map[time.Duration]verdict.Outcome{26300 * time.Millisecond: verdict.Inconclusive, 9900 * time.Millisecond: verdict.Pass} {
		s, _ := judgedRate(slowRate(takes), plan.Open{Arrivals: plan.Poisson})
		s.workload.Good = []*plan.Threshold{threshold("ttft", "p95 < 2s")}
		s.policy.Clusters = plan.ClustersNone
		half := *threshold("goodput", "share >= 95%")
		half.Limit = 0.5
		v := s.judge(&half)
		if v.Outcome != want || (want == verdict.Inconclusive) != strings.Contains(strings.Join(v.NotesOf(), "; "), "needs a window of at least") {
			t.Errorf("%v each: %v, %q, %q", takes, v.Outcome, v.Needs, v.Notes)
		}
	}
}

// In a short window, a percentile fails only if chance cannot explain the slow requests. If all are
// too slow, a p95 always fails. A p50 needs a window of 3.1 times the duration of a request.
func TestFailInAShortWindow(t *testing.T) {
	for _, tt := range []struct {
		text  string
		takes time.Duration
		want  verdict.Outcome
	}{
		{"p95 < 1us", 300 * time.Second, verdict.Fail}, {"p95 < 1us", 30 * time.Second, verdict.Fail},
		{"p50 < 1us", 300 * time.Second, verdict.Inconclusive}, {"p50 < 1us", 33 * time.Second, verdict.Inconclusive}, {"p50 < 1us", 31 * time.Second, verdict.Fail},
	} {
		th := *threshold("ttft", tt.text[:4]+"< 2s")
		th.Limit = 1e-6
		s, _ := judgedRate(slowRate(tt.takes), plan.Open{Arrivals: plan.Poisson})
		v := s.judge(&th)
		must.Hold(t, v.Outcome == tt.want, "%s of requests of %v: %v, effective %v", tt.text, tt.takes, v.Outcome, v.Effective)
	}
}

// In a mix, one of ten requests takes 120 s and the others take 1 s. Most requests in flight at a
// moment are long ones, so the window of 100 s is shorter than a request lifetime. This also holds
// for the part with short requests, which alone would have 100 lifetimes.
func TestPartBesideLongRequests(t *testing.T) {
	l := slowRate(time.Second)
	l.Workload = "production"
	l.Parts = []*metric.Level{{Workload: "production/chat", Name: l.Name, Of: "production", Share: 0.9}, {Workload: "production/report", Name: l.Name, Of: "production", Share: 0.1}}
	for _, r := range l.Rounds {
		for i, x := range r.Samples {
			x.Workload, x.Part = "production", "chat"
			if i%10 == 9 {
				x.Part, x.End = "report", x.Scheduled+120*time.Second
			}
		}
	}
	mix := &plan.Workload{Name: "production", Policy: plan.Policy{Confidence: 0.95}}
	for name, share := range map[string]int{"chat": 900_000, "report": 100_000} {
		mix.Mix = append(mix.Mix, mix.Part(&plan.Workload{Name: name, Policy: mix.Policy}, share))
	}
	slices.SortFunc(mix.Mix, func(a, b *plan.Workload) int { return strings.Compare(a.Name, b.Name) })
	mix.Mix[0].SLAs = []*plan.SLA{{At: []string{l.Name}, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{threshold("ttft", "p95 < 2s")}}}
	mix.Loads = []*plan.Load{{Kind: metric.OpenLoop, Open: &plan.Open{Arrivals: plan.Poisson}, Levels: []plan.Level{{Name: l.Name, Rate: l.Rate, Requests: 1000, Rounds: 10}}}}
	got := lookAt(mix, l, metric.Price{}, boundAt(l.Name), plan.Policy.Alpha, func(*plan.Workload, *metric.Level) int { return 0 })
	for _, v := range got.verdicts[mix.Mix[0]] {
		if label := v.Threshold.Metric.Name; label == "ttft" && (v.Outcome != verdict.Inconclusive || !strings.Contains(strings.Join(v.NotesOf(), "; "), "only 0.9 request lifetimes")) {
			t.Errorf("%v, %q", v.Outcome, v.Notes)
		}
	}
	alone, _ := judgedRate(l.Divided()[1], plan.Open{Arrivals: plan.Poisson})
	v := alone.judge(threshold("ttft", "p95 < 2s"))
	must.Hold(t, v.Outcome == verdict.Pass, "alone: %v, %q", v.Outcome, v.Notes)
	must.Hold(t, len(got.verdicts[mix.Mix[0]]) != 0, "the part was not judged")
}

func TestLifetimes(t *testing.T) {
	fast, right := bound("ttft", "", plan.Less, 2), bound("accuracy", "", plan.GreaterEqual, 1)
	w := &plan.Workload{Policy: plan.Policy{Confidence: 0.95}, Good: []*plan.Threshold{fast, right}}
	for _, tt := range []struct {
		metric, text string
		want         float64
	}{
		{"ttft", "p95 < 2s", 59 / 1.870}, {"ttft", "p99 < 2s", 299 / 2.468}, {"ttft", "mean < 2s", 0}, {"ttft", "max < 2s", 0},
		{"goodput", "share >= 95%", 59 / 1.870}, {"goodput", "observed >= 95%", 0}, {"success", "rate >= 95%", 0},
	} {
		got := Lifetimes(threshold(tt.metric, tt.text), w, nil)
		must.Hold(t, math.Abs(got-tt.want) <= 0.1, "%s %s: %v, want %v", tt.metric, tt.text, got, tt.want)
	}
	w.Good = []*plan.Threshold{right}
	got := Lifetimes(threshold("goodput", "share >= 95%"), w, nil)
	must.Hold(t, got == 0, "answers that are right do not move together: %v", got)
	w.Policy.Decide = plan.Estimate
	if got := Lifetimes(threshold("ttft", "p95 < 2s"), w, nil); got != 0 {
		t.Errorf("a point estimate takes %v", got)
	}
	// In windows of fewer than 4 lifetimes (request durations) a percentile never passes, and in
	// windows of fewer than 10 a share never passes. A percentile of the server's histogram never
	// passes at all.
	for _, tt := range []struct {
		t    *plan.Threshold
		want [3]bool // whether the threshold never passes in windows of 3, 5 and 11 lifetimes
	}{
		{threshold("ttft", "p95 < 2s"), [3]bool{true, false, false}}, {threshold("goodput", "share >= 95%"), [3]bool{true, true, false}},
		{bound("server_ttft", "p95", plan.Less, 1), [3]bool{true, true, true}},
	} {
		var got [3]bool
		for i, lifetimes := range []int{3, 5, 11} {
			got[i] = NeverPasses(tt.t, time.Duration(lifetimes)*time.Minute, 60)
		}
		must.Hold(t, got == tt.want, "%s never passes: %v, want %v", label(tt.t), got, tt.want)
	}
	// One request takes 1 s and another takes 3 s. The longer request is in flight at three times
	// as many moments, so the mean is (1·1 + 3·3)/4 = 2.5 s.
	must.Same(t, "", 2.5, Lifetime(slices.Values([]float64{1, 3})))
	for seconds, want := range map[float64]time.Duration{25: 14 * time.Minute, 12.5: 400 * time.Second} { // 31.6 lifetimes of 25 s or 12.5 s are 790 s or 395 s, rounded up
		must.Same(t, fmt.Sprintf("%v s each", seconds), want, Window(31.6, seconds))
	}
}
