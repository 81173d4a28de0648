package assert

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/search"
)

var (
	capacities      = flag.Int("capacities", 2, "simulated capacity searches of each row")
	capacitySeed    = flag.Int("capacity-seed", 0, "the first seed of these searches")
	capacitiesTable = flag.String("capacities-table", "", "write the characteristics of capacity searches to this file, as Markdown")
	capacitiesOnly  = flag.String("capacities-only", "", "measure only the rows whose name has this in it")
	capacityTrace   = flag.Bool("capacity-trace", false, "print every probe of these searches")
)

// The true capacities of the searches: the curves are shallow there, so one level more costs about a
// hundredth of the limit.
const leastTruth, mostTruth = 12, 60

// capacityRow is a search on one server for one kind of threshold.
type capacityRow struct {
	server    string
	metric    string
	stat      string
	confirm   bool
	least     float64 // certified share of the truth, on average, that is promised; 0: none
	overClaim float64 // share of the searches that may claim too much
	curve     []float64
}

func capacityRows() []capacityRow {
	var out []capacityRow
	for _, confirm := range []bool{false, true} {
		most := 0.03
		if confirm {
			most = 0.01
		}
		for _, server := range []string{"batch steps", "noise of 1 lifetime"} {
			for _, x := range []string{"ttft p95", "e2e mean"} {
				m, stat, _ := strings.Cut(x, " ")
				least := map[string]float64{"batch steps ttft p95": 0.84, "noise of 1 lifetime ttft p95": 0.6, "batch steps e2e mean": 0.98,
					"noise of 1 lifetime e2e mean": 0.8}[server+" "+x]
				if confirm { // a pass that is not confirmed steps down
					least -= 0.05
				}
				out = append(out, capacityRow{server, m, stat, confirm, least, most, nil})
			}
		}
	}
	return out
}

func (r capacityRow) name() string {
	name := fmt.Sprintf("%s, %s %s", r.server, r.metric, r.stat)
	if r.confirm {
		name += ", confirmed"
	}
	return name
}

// steady is the named server with the same constants at every load.
func steady(name string) engine {
	for _, e := range engines(32) {
		if e.name == name {
			return e
		}
	}
	panic("no server " + name)
}

// curves returns the true values of the thresholds at each number in flight, from 0 to a little above
// the largest truth, in seconds. Between the levels that are simulated, the logarithm of a value is a
// polynomial of the second degree.
func (e engine) curves(requests int) (p95, mean []float64) {
	var xs, p95s, means []float64
	for n := leastTruth - 4; n <= mostTruth+8; n += 4 {
		x := e.truths(n, requests)
		xs, p95s, means = append(xs, float64(n)), append(p95s, math.Log(x.p95)), append(means, math.Log(x.mean))
	}
	one, other := parabola(xs, p95s), parabola(xs, means)
	for n := range mostTruth + 9 {
		p95, mean = append(p95, math.Exp(one(float64(n)))), append(mean, math.Exp(other(float64(n))))
	}
	return p95, mean
}

// parabola fits a polynomial of the second degree by least squares.
func parabola(xs, ys []float64) func(float64) float64 {
	var m [3][4]float64
	for i, x := range xs {
		at := [3]float64{1, x, x * x}
		for a := range 3 {
			for b := range 3 {
				m[a][b] += at[a] * at[b]
			}
			m[a][3] += at[a] * ys[i]
		}
	}
	for a := range 3 {
		for b := range 3 {
			if f := m[b][a] / m[a][a]; b != a {
				for k := range 4 {
					m[b][k] -= f * m[a][k]
				}
			}
		}
	}
	return func(x float64) float64 { return m[0][3]/m[0][0] + m[1][3]/m[1][1]*x + m[2][3]/m[2][2]*x*x }
}

// simulatedSearch is one search through the product's search and judge.
type simulatedSearch struct {
	row            capacityRow
	plan           *plan.Plan
	workload       *plan.Workload
	seed           uint64
	sets           map[[2]int]*probeSet
	sent, measured int
}

// probeSet has the samples of one set of a level.
type probeSet struct {
	loop  *closedLoop
	level *metric.Level
}

const capacityPlan = `
gate { measure_only = true }
server "sim" {
  endpoint { url = "http://127.0.0.1:1" }
}
workload "chat" {
  input_tokens  = 64
  output_tokens = { mean = 24, jitter = "50%%" }
  sla {
    at   = "capacity"
    %s = "%s < 2s"
  }
  capacity {
    up_to   = 96
    confirm = %v
  }
}
`

func (r capacityRow) search(t *testing.T, truth int, seed uint64) (*simulatedSearch, search.Limit) {
	s := &simulatedSearch{row: r, seed: seed, sets: map[[2]int]*probeSet{}}
	s.plan = load(t, fmt.Sprintf(capacityPlan, r.metric, r.stat, r.confirm))
	s.workload = s.plan.Workloads[0]
	for _, sla := range s.workload.SLAs {
		for _, th := range sla.Thresholds {
			if th.Metric.Name == r.metric {
				th.Limit = math.Sqrt(r.curve[truth] * r.curve[truth+1])
			}
		}
	}
	looks := func(certify bool) func(int) []int {
		return func(n int) (out []int) {
			for _, at := range s.workload.ProbeLooks(n, certify) {
				out = append(out, at.Requests)
			}
			return out
		}
	}
	c := s.workload.Capacity
	x := search.New(search.Options{Over: c.Over, Step: c.Step(), From: c.From, UpTo: c.UpTo, Resolution: c.Resolution, Relative: c.Relative,
		Begin: 8, Confirm: c.Confirm, Looks: looks(false), Certify: looks(true)})
	for p, ok := x.Next(); ok; p, ok = x.Next() {
		x.Report(p, s.probe(p))
	}
	return s, x.Limit()
}

// probe measures and judges as a run does. An extension is a window of its own, with a warm-up.
func (s *simulatedSearch) probe(p search.Probe) search.Result {
	key := [2]int{p.N, p.Set}
	set := s.sets[key]
	if set == nil {
		set = &probeSet{loop: steady(s.row.server).loop(p.N, s.seed<<20+uint64(p.N)<<8+uint64(p.Set))}
		set.loop.strata = max(p.N, leastBatchSize)
		s.sets[key] = set
	}
	from := 0
	if set.level != nil {
		from = set.level.Due()
	}
	looks := slices.DeleteFunc(slices.Clone(p.Looks), func(k int) bool { return k <= from })
	due := looks[len(looks)-1] - from
	all := set.loop.run(due)
	more := window(p.N, due/max(p.N, leastBatchSize), all)
	more.Probe, more.Name = &metric.Probe{}, fmt.Sprintf("probe %d", p.N)
	if set.level == nil {
		set.level = more
	} else {
		for _, r := range more.Rounds {
			r.Index += len(set.level.Rounds)
			for _, x := range r.Samples {
				x.Round += len(set.level.Rounds)
			}
		}
		set.level.Rounds = append(set.level.Rounds, more.Rounds...)
	}
	var r search.Result
	first := s.workload.Capacity.Level(p.N).Requests
	for _, k := range looks {
		look := metric.Look{Requests: k, Planned: p.Planned, Spent: s.workload.SpentAtProbe(p.N, p.Planned, k)}
		v := JudgeLook(s.plan, s.workload, set.level, look)
		if v.Invalid != "" {
			panic(fmt.Sprintf("%s at %d: %s", s.row.name(), p.N, v.Invalid))
		}
		set.level.Looks = append(set.level.Looks, look)
		if r = v.Result(p.N, k, set.level); r.Outcome != metric.Inconclusive || r.Needs < 0 && k >= first {
			break
		}
	}
	s.sent += sentBy(all, r.Requests-from)
	s.measured += r.Requests - from
	return r
}

// capacityTally counts what the searches of a row found.
type capacityTally struct {
	over, far      int // searches that claim more than the truth, and more than 1.05 × the truth
	share          float64
	sent, measured int
}

// TestLongCapacities counts how often capacity searches claim too much, and how much they claim, on
// servers that are not the built-in one.
func TestLongCapacities(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "**Capacity, true limits from %d to %d in flight, %d searches a row**\n\n", leastTruth, mostTruth, *capacities)
	out.WriteString("| server, threshold | more of it, a level at 32 in flight | claims too much | by more than 5 % | certified, of the truth | requests sent | of each one measured |\n|---|---|---|---|---|---|---|\n")
	curves := map[string][2][]float64{}
	for _, r := range capacityRows() {
		if !strings.Contains(r.name(), *capacitiesOnly) {
			continue
		}
		if curves[r.server][0] == nil {
			p95, mean := steady(r.server).curves(max(10_000, min(250_000, 5_000**capacities)))
			curves[r.server] = [2][]float64{p95, mean}
		}
		r.curve = curves[r.server][slices.Index([]string{"p95", "mean"}, r.stat)]
		got := make([]capacityTally, *capacities)
		var jobs []func()
		for i := range got {
			jobs = append(jobs, func() { got[i] = r.once(t, uint64(*capacitySeed+i)) })
		}
		twoAtATime(jobs)
		row := r.told(t, got)
		t.Log(row)
		fmt.Fprintln(&out, row)
	}
	if *capacitiesTable != "" {
		must.Do(t, os.WriteFile(*capacitiesTable, []byte(out.String()), 0o644))
	}
}

func (r capacityRow) once(t *testing.T, seed uint64) capacityTally {
	truth := leastTruth + rand.New(rand.NewPCG(seed, 99)).IntN(mostTruth-leastTruth+1)
	s, l := r.search(t, truth, seed)
	if *capacityTrace {
		var b strings.Builder
		fmt.Fprintf(&b, "%s, seed %d, truth %d: %d (%s)\n", r.name(), seed, truth, l.Pass, l.Reason)
		for _, v := range l.Probes {
			fmt.Fprintf(&b, "  %-8s %3d %5d %-12s", v.Probe.Purpose, v.Probe.N, v.Result.Requests, v.Result.Outcome)
			for _, m := range v.Result.Margins {
				fmt.Fprintf(&b, " %s %+.3f", m.Threshold, m.Log)
			}
			b.WriteString("\n")
		}
		fmt.Print(b.String())
	}
	x := capacityTally{share: min(1, float64(l.Pass)/float64(truth)), sent: s.sent, measured: s.measured}
	if l.Pass > truth {
		x.over = 1
	}
	if float64(l.Pass) > 1.05*float64(truth) {
		x.far = 1
	}
	return x
}

// told returns a row of the table, and checks what is promised.
func (r capacityRow) told(t *testing.T, got []capacityTally) string {
	var sum capacityTally
	for _, x := range got {
		sum.over, sum.far, sum.share = sum.over+x.over, sum.far+x.far, sum.share+x.share
		sum.sent, sum.measured = sum.sent+x.sent, sum.measured+x.measured
	}
	n := float64(len(got))
	if most := r.overClaim*n + 3*math.Sqrt(r.overClaim*n); float64(sum.over) > most {
		t.Errorf("%s: %d of %d searches claim too much", r.name(), sum.over, len(got))
	}
	if share := sum.share / n; n >= 20 && share < r.least-0.03 {
		t.Errorf("%s: %.2f of the truth is certified, want %.2f", r.name(), share, r.least)
	}
	return fmt.Sprintf("| %s | %+.1f %% | %d | %d | %.2f | %d | %.2f |", r.name(), 100*math.Log(r.curve[33]/r.curve[32]), sum.over, sum.far,
		sum.share/n, sum.sent/len(got), float64(sum.sent)/float64(sum.measured))
}
