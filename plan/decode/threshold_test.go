package decode

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

func TestParseThreshold(t *testing.T) {
	p := func(x float64) metric.Stat { return metric.Stat{Kind: metric.Percentile, P: x} }
	mean, every, none := metric.Stat{Kind: metric.Mean}, metric.Stat{Kind: metric.Every}, metric.Stat{}
	for _, row := range []struct {
		metric, text string
		good         bool
		stat         metric.Stat
		op           plan.Op
		limit        float64
		problem      string // the summary of the diagnostic; "": no diagnostic
	}{
		{"ttft", "p95 < 8s", false, p(95), plan.Less, 8, ""},
		{"ttft", "p95<8s", false, p(95), plan.Less, 8, ""},
		{"ttft", "  p95  <=  8 s ", false, p(95), plan.LessEqual, 8, ""},
		{"ttft", "p99.9 < 250ms", false, p(99.9), plan.Less, 0.25, ""},
		{"ttft", "p0.1 < 250us", false, p(0.1), plan.Less, 0.00025, ""},
		{"ttft", "mean < 250µs", false, mean, plan.Less, 0.00025, ""},
		{"ttft", "min < 2m", false, metric.Stat{Kind: metric.Min}, plan.Less, 120, ""},
		{"ttft", "max < 1m30s", false, metric.Stat{Kind: metric.Max}, plan.Less, 90, ""},
		{"ttft", "every < 1.5s", false, every, plan.Less, 1.5, ""},
		{"itl", "p99 < 70ms", false, p(99), plan.Less, 0.07, ""},
		{"tpot", "p95 < 50ms", false, p(95), plan.Less, 0.05, ""},
		{"tpot", "p95 < 50ms/token", false, p(95), plan.Less, 0.05, ""},
		{"speed", "p5 > 10 tok/s", false, p(5), plan.Greater, 10, ""},
		{"speed", "mean >= 10.5tokens/s", false, mean, plan.GreaterEqual, 10.5, ""},
		{"tokens_per_chunk", "mean > 1.5 tokens", false, mean, plan.Greater, 1.5, ""},
		{"tokens_per_chunk", "mean < 1.5 tokens", false, mean, plan.Less, 1.5, ""}, // neither more nor less is better
		{"throughput", "> 200 tok/s", false, none, plan.Greater, 200, ""},
		{"request_rate", ">= 30 req/min", false, none, plan.GreaterEqual, 0.5, ""}, // 30/60
		{"success", "every", false, every, "", 0, ""},
		{"success", "rate >= 98%", false, metric.Stat{Kind: metric.Rate}, plan.GreaterEqual, 0.98, ""},
		{"success", "rate >= 99.9 %", false, metric.Stat{Kind: metric.Rate}, plan.GreaterEqual, 0.999, ""},
		{"goodput", "share >= 95%", false, metric.Stat{Kind: metric.Share}, plan.GreaterEqual, 0.95, ""},
		{"goodput", "> 3 req/s", false, none, plan.Greater, 3, ""},
		{"scaling_efficiency", "> 41%", false, none, plan.Greater, 0.41, ""},
		{"ttft", "< 1.5s", true, every, plan.Less, 1.5, ""},
		{"ttft", "every < 1.5s", true, every, plan.Less, 1.5, ""},
		{"speed", ">= 15 tok/s", true, every, plan.GreaterEqual, 15, ""},

		{"ttft", "< 8s", false, none, "", 0, sumMissingStat},
		{"ttft", "p95 < 8", false, none, "", 0, sumMissingUnit},
		{"ttft", "p95 < 8 GiB", false, none, "", 0, sumWrongUnit},
		{"ttft", "p95 < 8%", false, none, "", 0, sumWrongUnit},
		{"ttft", "p95 < -8s", false, none, "", 0, sumThreshold},
		{"ttft", "p95 < 8e3s", false, none, "", 0, sumWrongUnit},
		{"ttft", "p95 < 1.2.3s", false, none, "", 0, sumThreshold},
		{"ttft", "p95 < ", false, none, "", 0, sumThreshold},
		{"ttft", "p95 =< 8s", false, none, "", 0, sumThreshold},
		{"ttft", "p95 <> 8s", false, none, "", 0, sumThreshold},
		{"ttft", "p95 ≤ 8s", false, none, "", 0, sumThreshold},
		{"ttft", "", false, none, "", 0, sumThreshold},
		{"ttft", "every", false, none, "", 0, sumThreshold},
		{"ttft", "p100 < 8s", false, none, "", 0, sumUnknownStat},
		{"ttft", "p0.05 < 8s", false, none, "", 0, sumUnknownStat},
		{"ttft", "stddev < 8s", false, none, "", 0, sumUnknownStat},
		{"ttft", "rate < 8s", false, none, "", 0, sumStatNotAllowed},
		{"ttft", "p95 < 0ms", false, none, "", 0, sumOutOfRange},
		{"ttft", "p95 < 99999999h", false, none, "", 0, sumWrongUnit}, // more than time.Duration holds
		{"ttft", "p95 < 00000000000000000000000000000000000000000000000000000000000000000000001s", false, none, "", 0, sumThreshold},
		{"ttft", "p95 >= 8s", false, none, "", 0, sumWrongWay},
		{"speed", "p5 < 8 tok/s", false, none, "", 0, sumWrongWay},
		{"throughput", "mean > 8 tok/s", false, none, "", 0, sumStatNotAllowed},
		{"success", ">= 98%", false, none, "", 0, sumMissingStat},
		{"success", "every >= 98%", false, none, "", 0, sumStatNotAllowed},
		{"success", "share >= 98%", false, none, "", 0, sumStatNotAllowed},
		{"success", "rate >= 98", false, none, "", 0, sumMissingUnit},
		{"success", "rate >= 100.1%", false, none, "", 0, sumOutOfRange},
		{"goodput", "share >= 3 req/s", false, none, "", 0, sumWrongUnit},
		{"goodput", "> 95%", false, none, "", 0, sumWrongUnit},
		{"goodput", "rate > 95%", false, none, "", 0, sumStatNotAllowed},
		{"ttft", "p95 < 1.5s", true, none, "", 0, sumStatNotAllowed},
	} {
		def, ok := metric.Lookup(row.metric)
		must.Need(t, ok, "no metric %s", row.metric)
		got, problem := parseThreshold(def, row.text, row.good)
		if problem != nil || row.problem != "" {
			if problem == nil || problem.summary != row.problem {
				t.Errorf("parseThreshold(%s, %q, %v): problem %+v, want %q", row.metric, row.text, row.good, problem, row.problem)
			}
			continue
		}
		if got.Stat != row.stat || got.Op != row.op || got.Limit != row.limit || got.Text != row.text {
			t.Errorf("parseThreshold(%s, %q, %v) = %s %s %v, want %s %s %v", row.metric, row.text, row.good, got.Stat, got.Op, got.Limit, row.stat, row.op, row.limit)
		}
	}
}

// The thresholds in the examples of error messages are valid.
func TestExamplesParse(t *testing.T) {
	for _, def := range metric.Defs {
		for _, good := range []bool{false, true} {
			if good && !boundsRequest(def) {
				continue
			}
			text := example(def, good)
			for _, quoted := range quotedPattern.FindAllStringSubmatch(text, -1) {
				if _, p := parseThreshold(def, quoted[1], good); p != nil {
					t.Errorf("%s: the example %q: %s: %s", def.Name, quoted[1], p.summary, p.detail)
				}
			}
		}
	}
}

var quotedPattern = regexp.MustCompile(`"([^"]+)"`)

// A threshold may name a statistic as another tool does. The error then shows tokgate's name.
func TestStatisticsOfOtherTools(t *testing.T) {
	def, _ := metric.Lookup("ttft")
	for other, ours := range elsewhere {
		_, wrong := parseThreshold(def, other+" < 2s", false)
		must.Hold(t, wrong != nil && strings.Contains(wrong.detail, `Write "`+ours+`"`), "%s < 2s: %v, want a hint of %s", other, wrong, ours)
		if _, err := metric.ParseStat(ours); err != nil {
			t.Error(err)
		}
	}
}
