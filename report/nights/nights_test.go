package nights

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	judged "github.com/tokgate/tokgate/assert/nights"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record/history"
	"github.com/tokgate/tokgate/report"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fixture returns the history of 40 nights. From night 31 on TTFT is 10 % higher, after an upgrade
// of the engine, and the speed is unchanged. One workload begins in night 36.
func fixture() judged.Result {
	var h metric.History
	for i := range 40 {
		wobble := 1 + 0.01*float64(i%3-1)
		n := metric.Night{
			Run: fmt.Sprintf("202610%02dT030000Z", i), Tool: "1.0.0", Plan: "control",
			Started: time.Date(2026, 10, 1+i, 3, 0, 0, 0, time.UTC),
			Servers: map[string]metric.Fingerprint{"vllm": {"engine.version": "0.19.1"}},
		}
		ttft := 2 * wobble
		if i >= 30 {
			ttft *= 1.1
			n.Servers["vllm"]["engine.version"] = "0.20.0 <b>|\x1b[31m\n::error::x"
		}
		add := func(workload, name, stat string, v float64) {
			n.Figures = append(n.Figures, metric.Figure{Trend: metric.Trend{Server: "vllm", Workload: workload, Level: "30", Metric: name, Stat: stat}, Value: v})
		}
		add("chat", "ttft", "p95", ttft)
		add("chat", "speed", "mean", 25*wobble)
		add("chat", "success", "rate", 1)
		if i >= 35 {
			add("code", "e2e", "mean", 1.5)
		}
		h.Nights = append(h.Nights, n)
	}
	return judged.Judge(h, judged.Options{Ignore: 0.01})
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.MkdirAll("testdata", 0o755))
		must.Do(t, os.WriteFile(path, got, 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	must.Same(t, "", string(want), string(got))
}

func TestOutputs(t *testing.T) {
	n := fixture()
	o := Options{Folder: "perf/history", Problems: []string{"perf/history/2026-10.jsonl:3 is not a whole line and does not count"}}
	for name, render := range map[string]func(*bytes.Buffer) error{
		"terminal.txt": func(b *bytes.Buffer) error { return Terminal(b, n, o) },
		"history.md":   func(b *bytes.Buffer) error { return Markdown(b, n, o) },
		"history.html": func(b *bytes.Buffer) error { return HTML(b, n, o) },
		"junit.xml": func(b *bytes.Buffer) error {
			return report.JUnit(b, Document(n, report.Document{Plan: report.Plan{Path: "control.hcl"}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			must.Do(t, render(&b))
			golden(t, name, b.Bytes())
			for line := range strings.Lines(b.String()) {
				must.Hold(t, !strings.Contains(line, "\x1b") && !strings.HasPrefix(strings.TrimSpace(line), "::"), "foreign text is not harmless: %q", line)
			}
			if filepath.Ext(name) == ".xml" {
				err := xml.Unmarshal(b.Bytes(), new(struct{}))
				must.Hold(t, err == nil, "%v", err)
			}
		})
	}
}

// The page of a series that improved has a green square and a green line, and nothing red.
func TestBetterIsNeverRed(t *testing.T) {
	var h metric.History
	for i := range 40 {
		figure := metric.Figure{Trend: metric.Trend{Server: "vllm", Workload: "chat", Level: "30", Metric: "ttft", Stat: "p95"}, Value: 2 + 0.02*float64(i%3-1)}
		if i >= 30 {
			figure.Value *= 0.9
		}
		h.Nights = append(h.Nights, metric.Night{Run: fmt.Sprintf("r%02d", i), Started: time.Date(2026, 10, 1+i, 3, 0, 0, 0, time.UTC), Figures: []metric.Figure{figure}})
	}
	var b bytes.Buffer
	must.Do(t, HTML(&b, judged.Judge(h, judged.Options{}), Options{}))
	page := b.String()[strings.Index(b.String(), "<main"):]
	green := strings.Count(page, `<circle class="mark pass"`)
	must.Hold(t, green == 10, "%d green dots, want 10 for the better:\n%s", green, page)
	for _, red := range []string{`class="cross"`, `limit fail`, `class="fail"`, "<td>worse"} {
		must.Hold(t, !strings.Contains(page, red), "the page holds %s", red)
	}
}

// The page links each night to its CI run, and to nothing that is no web page. A changed series comes
// first in the overview.
func TestPageLinks(t *testing.T) {
	h := history.Demo()
	last := &h.Nights[len(h.Nights)-1]
	job := *last.Job
	job.URL = "https://ci.example/7"
	last.Job = &job
	before := *h.Nights[len(h.Nights)-2].Job
	before.URL = "javascript:alert(1)"
	h.Nights[len(h.Nights)-2].Job = &before
	var b bytes.Buffer
	must.Do(t, HTML(&b, judged.Judge(h, judged.Options{Ignore: 0.01}), Options{}))
	got := b.String()
	if !strings.Contains(got, `<a href="https://ci.example/7">`+last.Run+`</a>`) || strings.Contains(got, "javascript") {
		t.Errorf("links: %s", got[strings.Index(got, `id="nights"`):])
	}
	fail, pass := strings.Index(got, `<a href="#figure-2">chat at 16, e2e mean</a>`), strings.Index(got, `<a href="#figure-1">chat at 16, ttft p95</a>`)
	must.Hold(t, fail >= 0 && pass >= fail && strings.Contains(got, `<figure id="figure-2"`), "the failed series is at %d, the other at %d", fail, pass)
}

func TestBadge(t *testing.T) {
	h := history.Demo()
	h.Pins = nil
	for nights, want := range map[int]string{5: "recorded lightgrey", 20: "pass brightgreen", 30: "1 suspect yellow", 60: "1 of 4 worse red"} {
		b := Badge(judged.Judge(metric.History{Nights: h.Nights[:nights]}, judged.Options{Ignore: 0.01}))
		got := fmt.Sprint(b["message"], " ", b["color"])
		must.Hold(t, got == want && b["schemaVersion"] == 1, "%d nights: %v, want %s", nights, b, want)
	}
	b := Badge(judged.Judge(metric.History{}, judged.Options{}))
	must.Hold(t, b["message"] == "error" && b["color"] == "orange", "no nights: %v", b)
}

// The last line begins with the outcome.
func TestLastLine(t *testing.T) {
	first := metric.History{Nights: []metric.Night{{Run: "r", Started: time.Unix(0, 0), Figures: []metric.Figure{{Trend: metric.Trend{Metric: "ttft", Stat: "p95"}, Value: 1}}}}}
	for want, n := range map[string]judged.Result{
		"RECORDED there are too few nights to judge anything":              judged.Judge(first, judged.Options{}),
		"ERROR the history has no nights":                                  judged.Judge(metric.History{}, judged.Options{}),
		"FAIL 4 series: 1 worse, 2 as expected or better, 1 only recorded": fixture(),
	} {
		var b bytes.Buffer
		must.Do(t, Terminal(&b, n, Options{}))
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		must.Same(t, "", want, lines[len(lines)-1])
	}
}
