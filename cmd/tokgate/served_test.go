package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

var (
	servedRun       = flag.String("served", "", "hold the run over HTTP in this `folder`")
	servedSimulated = flag.String("served-simulated", "", "against the run of the same plan in virtual time in this `folder`")
	servedPage      = flag.String("served-page", "", "put what came of it into this `page`, docs/characteristics.md")
)

// TestServed compares the runs of `make served`: cache hits must agree within one point, and a mean
// TTFT above 100 ms within 3 %.
func TestServed(t *testing.T) {
	if *servedRun == "" {
		t.Skip("make served")
	}
	served, simulated := documentIn(t, *servedRun), documentIn(t, *servedSimulated)
	must.Need(t, len(served.Cases) == len(simulated.Cases), "%d levels over HTTP, %d in virtual time", len(served.Cases), len(simulated.Cases))
	var b strings.Builder
	b.WriteString("| | requests, HTTP and simulated | cached, HTTP | simulated | TTFT mean, HTTP | simulated | |\n|---|---|---|---|---|---|---|\n")
	for i := range served.Cases {
		x, y := &served.Cases[i], &simulated.Cases[i]
		hits, same := summaryOf(x, "cache_hit_rate").Value, summaryOf(y, "cache_hit_rate").Value
		ttft, its := summaryOf(x, "ttft").Mean, summaryOf(y, "ttft").Mean
		must.Need(t, hits.OK && same.OK && ttft.OK && its.OK, "%s: a value is missing", x.Workload)
		apart := ttft.V/its.V - 1
		fmt.Fprintf(&b, "| %s | %d, %d | %s | %s | %s | %s | %+.1f %% |\n", x.Workload, x.Completed, y.Completed,
			metric.Format(metric.Ratio, hits.V), metric.Format(metric.Ratio, same.V),
			metric.Format(metric.Seconds, ttft.V), metric.Format(metric.Seconds, its.V), 100*apart)
		must.Hold(t, x.Failed == 0 && y.Failed == 0, "%s: requests failed", x.Workload)
		must.Hold(t, math.Abs(hits.V-same.V) <= 0.01, "%s: hits %v over HTTP, %v simulated", x.Workload, hits.V, same.V)
		must.Hold(t, its.V >= 0.1 && math.Abs(apart) <= 0.03, "%s: TTFT %v over HTTP, %v simulated", x.Workload, ttft.V, its.V)
	}
	average, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(average), " ")
	fmt.Fprintf(&b, "\n%s; load average %s at the end.\n", served.Run.Started.Format("2 January 2006"), load)
	fmt.Print("\n" + b.String())
	if *servedPage != "" {
		place := regexp.MustCompile(`(?s)(<!-- served -->\n).*(<!-- end of served -->)`)
		page := read(t, *servedPage)
		must.Need(t, place.MatchString(page), "%s has no place for it", *servedPage)
		must.Do(t, os.WriteFile(*servedPage, []byte(place.ReplaceAllString(page, "${1}"+b.String()+"${2}")), 0o644))
	}
}

func documentIn(t *testing.T, folder string) *report.Document {
	t.Helper()
	return must.Get(report.ReadDocument(strings.NewReader(read(t, filepath.Join(folder, "results.json")))))(t)
}

func summaryOf(c *report.Case, name string) (s report.Summary) {
	if i := slices.IndexFunc(c.Metrics, func(s report.Summary) bool { return s.Metric == name }); i >= 0 {
		s = c.Metrics[i]
	}
	return s
}
