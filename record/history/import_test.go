package history

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// What was exported as JSON is read as it was, with pins and voids. CSV has no facts of the servers
// and no pins.
func TestExportAndParse(t *testing.T) {
	h := Demo()
	h.Voids = []metric.Void{{Run: "elsewhere", At: november, Why: "a load test ran"}}
	h.Nights[0].Job.Commit = "=1+1"
	var js, table bytes.Buffer
	must.Do(t, JSON(&js, h))
	must.Do(t, CSV(&table, h))
	got, err := Parse(js.Bytes(), metric.LowerIsBetter)
	must.Do(t, err)
	must.Same(t, "", h, got)
	if got, err = Parse(table.Bytes(), metric.LowerIsBetter); err != nil {
		t.Fatal(err)
	}
	for i := range h.Nights {
		n := &h.Nights[i]
		n.Tool, n.Plan, n.Servers, n.Simulated = "", "", nil, false
	}
	must.Same(t, "", metric.History{Nights: h.Nights}, got)
}

func TestParseForeign(t *testing.T) {
	got := must.Get(Parse([]byte("\ufeffDate, Series,value,commit\r\n2026-11-21,render,2.5,b\r\n2026-11-20T03:00:00+01:00,render,2,a\n2026-11-20T03:00:00+01:00,\"load, cold\",3e1,a\n"+
		// Two commits of one date are two nights, in the order of the file.
		"2026-11-21,render,2.25,c\n"), metric.HigherIsBetter))(t)
	figure := func(series string, v float64) metric.Figure {
		return metric.Figure{Trend: metric.Trend{Workload: series, Metric: "value", Stat: "higher is better"}, Value: v}
	}
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	want := metric.History{Nights: []metric.Night{
		{Run: "20261120T020000Z-import", Started: november.Add(-time.Hour), Job: &metric.Job{Commit: "a"}, Figures: []metric.Figure{figure("render", 2), figure("load, cold", 30)}},
		{Run: "20261121T000000Z-import", Started: day, Job: &metric.Job{Commit: "b"}, Figures: []metric.Figure{figure("render", 2.5)}},
		{Run: "20261121T000001Z-import", Started: day.Add(time.Second), Job: &metric.Job{Commit: "c"}, Figures: []metric.Figure{figure("render", 2.25)}},
	}}
	must.Same(t, "", want, got)
}

func TestParseRefuses(t *testing.T) {
	const head = "date,series,value\n"
	own := strings.Join(exported, ",") + "\n"
	for src, want := range map[string]string{
		"":                          "no CSV",
		"when,what\n":               "the first line must be",
		head:                        "no nights",
		own:                         "no nights",
		`{"nights":[]}`:             "no nights",
		`{"nights":[{"run":"r"}]}`:  "night 1 has no name or no time",
		`{"nights":7}`:              "not the JSON",
		head + "20.11.2026,a,1\n":   `line 2: "20.11.2026" is no date: write 2026-11-20`,
		head + "2026-11-20,a,\n":    "line 2: the value is \"\", which is no number; leave the line out",
		head + "2026-11-20,a,NaN\n": "no number",
		head + "2026-11-20,a,-1\n":  "values must be above 0",
		head + "2026-11-20,,1\n":    "the series has no name",
		head + "2026-11-20,a\n":     "line 2",
		head + "2026-11-20,a,1\n2026-11-20,b,1\n2026-11-20,a,2\n": `line 4: "a" has a value for this date already, in line 2`,
		own + "r,yesterday,,,,,s,w,1,ttft,p95,,1,1\n":             "which is no night",
		own + "r,2026-11-20T03:00:00Z,,,,,s,w,1,ttft,p95,,x,1\n":  "no number",
		own + "r,2026-11-20T03:00:00Z,,,,,s,w,1,ttft,p95,,1,\n":   "no whole number",
	} {
		_, err := Parse([]byte(src), metric.LowerIsBetter)
		must.Hold(t, err != nil && strings.Contains(err.Error(), want), "%q: %v, want %q", src, err, want)
	}
}

// An imported history is the one that was exported. Importing it again adds nothing.
func TestImport(t *testing.T) {
	h := Demo()
	dir := filepath.Join(t.TempDir(), "history")
	for i, want := range []int{120, 0} {
		if added, repaired, err := Import(dir, h); added != want || repaired != nil || err != nil {
			t.Errorf("time %d: %d nights added, want %d; %v, %v", i+1, added, want, repaired, err)
		}
	}
	got, problems, err := Read(dir)
	if err != nil || problems != nil {
		t.Fatal(problems, err)
	}
	must.Same(t, "", h, got)
}

func TestVoid(t *testing.T) {
	dir := t.TempDir()
	for i, run := range []string{"a", "b", "c"} {
		if _, _, err := Add(dir, night(run, november.Add(time.Duration(i)*time.Hour), 1)); err != nil {
			t.Fatal(err)
		}
	}
	must.Get(AddPin(dir, metric.Pin{Run: "a", At: november}))(t)
	void := metric.Void{Run: "b", At: november.Add(40 * 24 * time.Hour), Why: "a load test ran"} // another month's file
	must.Get(AddVoid(dir, void))(t)
	for run, want := range map[string]string{"a": "pinned", "b": "not in the history", "x": "not in the history"} {
		if _, err := AddVoid(dir, metric.Void{Run: run, At: november}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("void %s: %v, want %q", run, err, want)
		}
	}
	// A run that is void does not come back by adding it again.
	if added, _, err := Add(dir, night("b", november.Add(time.Hour), 1)); added || err != nil {
		t.Error(added, err)
	}
	h, problems, err := Read(dir)
	if err != nil || problems != nil {
		t.Fatal(problems, err)
	}
	var runs []string
	for _, n := range h.Nights {
		runs = append(runs, n.Run)
	}
	must.Same(t, "", []string{"a", "c"}, runs)
	must.Same(t, "", []metric.Void{void}, h.Voids)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("date,series,value,commit\n2026-11-20,a,1,b\n"))
	f.Add([]byte(strings.Join(exported, ",") + "\nr,2026-11-20T03:00:00Z,,,,,s,w,1,ttft,p95,,1,1\n"))
	f.Add([]byte(`{"nights":[{"run":"r","started":"2026-11-20T03:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		h, err := Parse(src, metric.LowerIsBetter)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, n := range h.Nights {
			must.Hold(t, n.Run != "" && !n.Started.IsZero() && !seen[n.Run], "night %+v", n)
			seen[n.Run] = true
		}
	})
}
