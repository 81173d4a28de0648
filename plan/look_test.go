package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/traffic"
)

func TestLooks(t *testing.T) {
	bound := func(name, stat string, limit float64) *Threshold {
		def, _ := metric.Lookup(name)
		s := must.Get(metric.ParseStat(stat))(t)
		op := Less
		if s.IsShare() {
			op = GreaterEqual
		}
		return &Threshold{Metric: def, Stat: s, Op: op, Limit: limit}
	}
	p95, p99 := bound("ttft", "p95", 1), bound("ttft", "p99", 1)
	mean, rate, most := bound("e2e", "mean", 1), bound("success", "rate", 0.95), bound("ttft", "max", 1)
	byRound := func(_ *Plan, w *Workload) { w.Policy.Clusters = ClustersRound }
	alone := func(_ *Plan, w *Workload) { w.Policy.Clusters = ClustersNone }
	batches := func(_ *Plan, w *Workload) { w.Description = "batches" }
	timed := func(_ *Plan, w *Workload) { w.Description = "by time" }
	residue := func(_ *Plan, w *Workload) {
		w.Residue, w.Servers, w.Loads = &Residue{}, []*Server{{}}, []*Load{{Levels: []Level{{}}}}
	}
	extend := func(_ *Plan, w *Workload) { w.Policy.OnInconclusive = Extend }
	for _, c := range []struct {
		name     string
		requests int
		rounds   int
		change   func(*Plan, *Workload)
		bounds   []*Threshold
		want     string // each look as "requests/share of the error spent/rounds"
	}{
		// The first look spends a quarter of the error of 5 %: 0.0125. By chance 100 requests meet
		// a p95 with probability 0.95^100 = 0.0059, which is less, so 100 requests are enough for a
		// look.
		{"p95", 200, 10, nil, []*Threshold{p95}, "100/0.25/5 140/0.49/2 200/1.00/3"},
		// The probability that all of 75 requests meet a p95 by chance is 0.95^75 = 0.0213. Their
		// look may spend an error of only 0.0125, so it can only fail. For 105 requests the
		// probability is 0.0046. Their look may spend 0.0245, so it stays.
		{"few for p95", 150, 10, nil, []*Threshold{p95}, "75/fail/5 105/0.49/2 150/1.00/3"},
		{"too few for p95", 100, 10, nil, []*Threshold{p95}, "50/fail/5 70/fail/2 100/1.00/3"},
		// The same for a p99: 0.99^435 = 0.0126 is above 0.0125, and 0.99^609 = 0.0022 is below
		// 0.0245.
		{"p99", 870, 10, nil, []*Threshold{p95, p99}, "435/fail/5 609/0.49/2 870/1.00/3"},
		{"mean", 20, 10, nil, []*Threshold{mean}, "10/0.25/5 14/0.49/2 20/1.00/3"},
		// What a server keeps is known only after all clients.
		{"mean with a residue", 20, 10, residue, []*Threshold{mean}, "10/fail/5 20/1.00/5"},
		// An exact threshold ends the level after any round.
		{"max", 100, 5, nil, []*Threshold{mean, most}, "20/fail/1 40/fail/1 60/fail/1 80/fail/1 100/1.00/1"},
		// 0.95^90 = 0.0099.
		{"a share in 180 waves", 720, 10, nil, []*Threshold{rate}, "360/0.25/5 504/0.49/2 720/1.00/3"},
		{"a share in 50 waves", 200, 10, nil, []*Threshold{rate}, "100/fail/5 140/fail/2 200/1.00/3"},
		{"a share in 180 rounds", 1440, 180, byRound, []*Threshold{rate}, "720/0.25/90 1008/0.49/36 1440/1.00/54"},
		{"a share in 60 rounds", 480, 60, byRound, []*Threshold{rate}, "240/fail/30 336/fail/12 480/1.00/18"},
		{"a share of single requests", 200, 10, alone, []*Threshold{rate}, "100/0.25/5 140/0.49/2 200/1.00/3"},
		{"eight rounds", 200, 8, nil, []*Threshold{p95}, "150/0.56/6 200/1.00/2"},
		{"five rounds", 300, 5, nil, []*Threshold{p95}, "120/fail/2 300/1.00/3"},
		{"one round", 200, 1, nil, []*Threshold{p95}, "200/1.00/1"},
		{"unequal rounds", 203, 10, nil, []*Threshold{p95}, "103/0.26/5 143/0.50/2 203/1.00/3"},
		{"extended", 400, 10, extend, []*Threshold{p95}, "200/0.08/5 280/0.16/2 400/0.33/3 800/0.67/10 1600/1.00/20"},
		{"estimate", 200, 10, func(_ *Plan, w *Workload) { w.Policy.Decide = Estimate }, []*Threshold{p95}, "200/1.00/10"},
		{"measure only", 200, 10, func(p *Plan, _ *Workload) { p.Gate.MeasureOnly = true }, []*Threshold{p95}, "200/1.00/10"},
		{"history", 200, 10, func(p *Plan, _ *Workload) { p.History = &History{} }, []*Threshold{p95}, "100/fail/5 200/1.00/5"},
		{"nothing required", 200, 10, nil, nil, "200/1.00/10"},
		{"by time", 40, 10, timed, []*Threshold{p95}, "20/fail/5 40/1.00/5"},
		{"by time, extended", 40, 10, func(p *Plan, w *Workload) { timed(p, w); extend(p, w) }, []*Threshold{p95}, "20/fail/5 40/0.33/5 80/0.67/10 160/1.00/20"},
		{"a window of 20 batches", 200, 20, batches, []*Threshold{mean}, "50/0.06/5 70/0.12/2 100/0.25/3 140/0.49/4 200/1.00/6"},
		// ln(0.05·0.0625)/ln(0.95) = 112 requests without one over the limit, ln(0.05·0.1225)/ln(0.95) = 99,
		// ln(0.05·0.25)/ln(0.95) = 85: a p95 can pass from 100 requests on.
		{"batches of ten requests, p95", 200, 20, batches, []*Threshold{p95}, "50/fail/5 70/fail/2 100/0.25/3 140/0.49/4 200/1.00/6"},
		{"batches, p99", 200, 20, batches, []*Threshold{p99}, "50/fail/5 70/fail/2 100/fail/3 140/fail/4 200/1.00/6"},
		{"batches, a share", 800, 20, batches, []*Threshold{rate}, "200/fail/5 280/fail/2 400/0.25/3 560/0.49/4 800/1.00/6"},
		{"batches, an exact statistic", 60, 6, batches, []*Threshold{most}, "10/fail/1 20/fail/1 30/fail/1 40/fail/1 50/fail/1 60/1.00/1"},
		{"ten batches", 100, 10, batches, []*Threshold{mean}, "50/0.25/5 70/0.49/2 100/1.00/3"},
		{"nine batches", 90, 9, batches, []*Threshold{mean}, "90/1.00/9"},
		{"batches, history", 200, 20, func(p *Plan, w *Workload) { batches(p, w); p.History = &History{} }, []*Threshold{mean}, "100/fail/10 200/1.00/10"},
		{"batches, extended", 200, 20, func(p *Plan, w *Workload) { batches(p, w); extend(p, w) }, []*Threshold{mean}, "50/0.02/5 70/0.04/2 100/0.08/3 140/0.16/4 200/0.33/6 400/0.67/20 800/1.00/40"},
	} {
		w := &Workload{SLAs: []*SLA{{At: []string{"4"}, Severity: SeverityError, Thresholds: c.bounds}}}
		p := &Plan{}
		if c.change != nil {
			c.change(p, w)
		}
		var got []string
		level := Level{Name: "4", N: 4, Requests: c.requests, Rounds: c.rounds}
		level.Batches = w.Description == "batches"
		if w.Description == "by time" {
			level.Duration = time.Minute
		}
		for _, look := range p.Looks(w, &Load{Kind: metric.ClosedLoop}, level) {
			share := "fail"
			if look.Spent > 0 {
				share = fmt.Sprintf("%.2f", look.Spent)
			}
			got = append(got, fmt.Sprintf("%d/%s/%d", look.Requests, share, len(look.Due)))
		}
		must.Same(t, c.name, c.want, strings.Join(got, " "))
	}
}

// A rate may fail after a quarter and after half of its window, and after each tenth of it if a threshold
// is exact. The looks together spend a tenth of the error.
func TestLooksInWindow(t *testing.T) {
	p95 := &Threshold{Metric: metric.MustLookup("ttft"), Stat: metric.Stat{Kind: metric.Percentile, P: 95}, Op: Less, Limit: 1}
	most := &Threshold{Metric: metric.MustLookup("ttft"), Stat: metric.Stat{Kind: metric.Max}, Op: Less, Limit: 1}
	for _, tt := range []struct {
		name      string
		threshold *Threshold
		change    func(*Workload, *Load)
		want      string // requests of each look / 1 if it may pass / looks that share its error
	}{
		{"a percentile", p95, func(*Workload, *Load) {}, "300/0/20 600/0/20 1200/1/1"},
		{"an exact threshold", most, func(*Workload, *Load) {}, "120/0/100 240/0/100 300/0/100 360/0/100 480/0/100 600/0/100 720/0/100 840/0/100 960/0/100 1080/0/100 1200/1/1"},
		{"conversations", p95, func(w *Workload, _ *Load) { w.Prompt.Turns.Max, w.Prompt.Turns.Mean = 4, 3 }, "1200/1/1"},
		{"a trace", p95, func(_ *Workload, l *Load) { l.Open.Trace = &traffic.Replay{} }, "1200/1/1"},
	} {
		l := &Load{Kind: metric.OpenLoop, Open: &Open{}, Levels: []Level{{Name: "4 req/s", Rate: 4, Requests: 1200, Rounds: 10}}}
		w := &Workload{Name: "w", Loads: []*Load{l}, Policy: Policy{Confidence: 0.95, Decide: Certified, OnInconclusive: Stop},
			SLAs: []*SLA{{At: []string{"4 req/s"}, Severity: SeverityError, Thresholds: []*Threshold{tt.threshold}}}}
		tt.change(w, l)
		var got []string
		for _, look := range (&Plan{Workloads: []*Workload{w}}).Looks(w, l, l.Levels[0]) {
			got = append(got, fmt.Sprintf("%d/%.0f/%d", look.Requests, look.Spent, look.Planned))
		}
		must.Same(t, tt.name, tt.want, strings.Join(got, " "))
	}
}
