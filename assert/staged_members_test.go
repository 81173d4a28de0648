package assert

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

var (
	members      = flag.Int("members", 4, "simulated comparisons of each member at its limit")
	membersTable = flag.String("members-table", "", "write how often members at their limit are decided to this file, as Markdown")
)

// memberAtLimit is a member of a comparison whose truth lies exactly at its limit, beside a change of a mean
// that passes easily.
type memberAtLimit struct {
	name  string
	claim string  // beside the mean
	sla   float64 // limit of the candidate's p95, in seconds; 0: none
	warm  float64 // how much longer the candidate's warm starts take, as a logarithm; 0: starts are not recorded
	// draw changes the requests of both sides; pairs with the same round and order are one prompt.
	draw func(r *rand.Rand) [2]func(*metric.Sample)
}

// requestsVary is the standard deviation of the logarithms of the times of requests.
const requestsVary = 0.3

var atLimits = []memberAtLimit{
	// 1 % of the requests fail on the control and 2 % on the candidate.
	{name: "success rate -1pp", claim: "success rate -1pp", draw: func(r *rand.Rand) [2]func(*metric.Sample) {
		fails := func(share float64) func(*metric.Sample) {
			return func(x *metric.Sample) {
				if r.Float64() < share {
					fail(x)
				}
			}
		}
		return [2]func(*metric.Sample){fails(0.01), fails(0.02)}
	}},
	// Of 100 items, only the control solves 3, and only the candidate 1.
	{name: "accuracy rate -2pp", claim: "accuracy rate -2pp", draw: func(r *rand.Rand) [2]func(*metric.Sample) {
		type item struct{ round, order int }
		luck := map[item]float64{}
		solves := func(candidate bool) func(*metric.Sample) {
			return func(x *metric.Sample) {
				at := item{x.Round, x.Order}
				if _, ok := luck[at]; !ok {
					luck[at] = r.Float64()
				}
				u := luck[at]
				right := u >= 0.04 || u < 0.03 && !candidate || u >= 0.03 && candidate
				x.Answer = &metric.Answer{Item: fmt.Sprint(at), Right: metric.FoundIf(right)}
			}
		}
		return [2]func(*metric.Sample){solves(false), solves(true)}
	}},
	// Requests vary by 30 % and starts by 1 %: ln p95 is 1.645 times √(0.3² + 0.01²).
	{name: "sla ttft p95", sla: math.Exp(1.6448536 * math.Hypot(requestsVary, 0.01)), draw: func(*rand.Rand) [2]func(*metric.Sample) {
		return [2]func(*metric.Sample){}
	}},
	// Warm starts of one server vary by 3 %.
	{name: "start_warm mean +10%", claim: "start_warm mean +10%", warm: math.Log(1.1), draw: func(*rand.Rand) [2]func(*metric.Sample) {
		return [2]func(*metric.Sample){}
	}},
}

// run simulates one comparison of perRound requests in a round.
func (m memberAtLimit) run(r *rand.Rand, perRound int) (Verdicts, int) {
	side := func() func(round, i int) float64 {
		start := map[int]float64{}
		return func(round, _ int) float64 {
			if _, ok := start[round]; !ok {
				start[round] = 0.01 * r.NormFloat64()
			}
			return math.Exp(start[round] + requestsVary*r.NormFloat64())
		}
	}
	claim := tolerate("ttft mean +50%")
	if m.claim != "" {
		claim = tolerate("ttft mean +50%", m.claim)
	}
	d := duel{rounds: 12, perRound: perRound, claims: []*plan.Claim{claim}, control: side(), candidate: side(), change: m.draw(r)}
	p, run := d.make()
	w := p.Workloads[0]
	if m.sla > 0 {
		limit := threshold("ttft", "p95 < 2s")
		limit.Limit = m.sla
		w.SLAs = []*plan.SLA{{At: []string{"4"}, Severity: plan.SeverityError, Thresholds: []*plan.Threshold{limit}}}
	}
	if strings.HasPrefix(m.claim, "accuracy") {
		w.Score = &answers.Rule{}
	}
	for side, s := range run.Servers {
		for i := range 12 * min(1, int(math.Ceil(m.warm))) {
			took := 60 * math.Exp(float64(side)*m.warm+0.03*r.NormFloat64())
			s.Starts = append(s.Starts, startsOf(2, 0, time.Duration(took*1e9))[min(i, 1)])
		}
	}
	return untilStop(p, run)
}

// Members other than changes, each exactly at its limit: how often a comparison in stages decides it,
// which is wrong either way.
func TestLongStagedMembersAtTheirLimits(t *testing.T) {
	n := *members
	outcomes := make([]stagedOutcomes, len(atLimits))
	var todo []func()
	for i, m := range atLimits {
		todo = append(todo, func() {
			r := rand.New(rand.NewPCG(uint64(i), 390))
			for range n {
				v, k := m.run(r, 60)
				o := &outcomes[i]
				o.n, o.starts = o.n+1, o.starts+2*k
				o.green += map[bool]int{true: 1}[v.Outcome == verdict.Pass]
				o.red += map[bool]int{true: 1}[v.Outcome == verdict.Fail]
			}
		})
	}
	twoAtATime(todo)
	var out strings.Builder
	fmt.Fprintf(&out, "**Comparison in stages: a member exactly at its limit beside an unchanged mean, 60 requests in a round, %d comparisons each**\n\n| member | green | red | starts |\n|---|---|---|---|\n", n)
	most := 0.057 + 3*math.Sqrt(0.05*0.95/float64(n))
	for i, m := range atLimits {
		o := outcomes[i]
		fmt.Fprintf(&out, "| %s | %.1f%% | %.1f%% | %.1f |\n", m.name, 100*o.share(o.green), 100*o.share(o.red), o.meanStarts())
		if o.n >= 50 && (o.share(o.green) > most || o.share(o.red) > most) {
			t.Errorf("%s: green in %.3f and red in %.3f, at most %.3f", m.name, o.share(o.green), o.share(o.red), most)
		}
	}
	out.WriteString("\n")
	t.Log("\n" + out.String())
	if *membersTable != "" {
		must.Do(t, os.WriteFile(*membersTable, []byte(out.String()), 0o644))
	}
}
