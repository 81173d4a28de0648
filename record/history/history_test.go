package history

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/metric"
)

var nights = flag.Int("nights", 200, "how many nights each of the two writers adds; some 2,000 take a minute")

var november = time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)

func night(run string, at time.Time, value float64) metric.Night {
	return metric.Night{
		Run: run, Tool: "1.0.0", Plan: "control", Started: at,
		Servers: map[string]metric.Fingerprint{"vllm": {"engine.version": "0.19.1"}},
		Figures: []metric.Figure{{
			Trend: metric.Trend{Server: "vllm", Workload: "chat", Level: "30", Metric: "ttft", Stat: "p95"},
			Value: value, N: 300,
		}},
	}
}

func TestAddAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "perf", "history")
	if _, _, err := Read(dir); err == nil {
		t.Error("a folder that is not there was read")
	}
	second, first := night("b", november, 1.5), night("a", november.AddDate(0, -1, 0), 1.25)
	for _, n := range []metric.Night{second, first} {
		if added, repaired, err := Add(dir, n); !added || repaired != "" || err != nil {
			t.Fatal(added, repaired, err)
		}
	}
	if added, _, err := Add(dir, second); added || err != nil {
		t.Errorf("a night was added twice: %t, %v", added, err)
	}
	pin := metric.Pin{Run: "b", At: november.Add(time.Hour), Why: "0.19.1 is slower and we take it"}
	if _, err := AddPin(dir, pin); err != nil {
		t.Fatal(err)
	}
	if _, err := AddPin(dir, metric.Pin{Run: "c", At: november}); err == nil {
		t.Error("a run that is not there was pinned")
	}
	h, problems, err := Read(dir)
	if err != nil || problems != nil {
		t.Fatal(problems, err)
	}
	if d := cmp.Diff(metric.History{Nights: []metric.Night{first, second}, Pins: []metric.Pin{pin}}, h); d != "" {
		t.Error(d)
	}
	var names []string
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	if d := cmp.Diff([]string{".gitattributes", "2026-10.jsonl", "2026-11.jsonl"}, names); d != "" {
		t.Error(d)
	}
}

// What git's union merge or a copy may leave: a night twice, out of order.
func TestReadMerged(t *testing.T) {
	dir := t.TempDir()
	for i, run := range []string{"b", "a"} {
		if _, _, err := Add(dir, night(run, november.Add(-time.Duration(i)*time.Hour), 1)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "2026-11.jsonl")
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(src, src...), 0o644); err != nil {
		t.Fatal(err)
	}
	// Even if a hand moved one of them in time.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, `{"schema":"tokgate.history/1","night":{"run":"b","started":"2026-11-21T03:00:00Z"}}`)
	f.Close()
	h, problems, err := Read(dir)
	if err != nil || problems != nil || len(h.Nights) != 2 || h.Nights[0].Run != "a" {
		t.Errorf("%v %v %v", h, problems, err)
	}
}

func TestTornLines(t *testing.T) {
	tests := []struct {
		name, tail         string
		nights             int // after one more
		read, add, problem string
	}{
		{"cut short", `{"schema":"tokgate.history/1","night":{"run":"x`, 2, "2026-11.jsonl:2 is no whole line", "were removed", ""},
		{"only its line break is missing", `{"schema":"tokgate.history/1","night":{"run":"x","started":"2026-11-20T02:00:00Z"}}`, 3, "", "", ""},
		{"of another schema", `{"schema":"tokgate.history/9"}` + "\n", 2, `:2 has schema "tokgate.history/9"`, "", ":2 has schema"},
		{"nothing we know", `{"schema":"tokgate.history/1"}` + "\n", 2, ":2 is neither a night nor a pin", "", ":2 is neither"},
		{"a blank line", "\n", 2, "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if _, _, err := Add(dir, night("a", november, 1)); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(filepath.Join(dir, "2026-11.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(tt.tail); err != nil {
				t.Fatal(err)
			}
			f.Close()
			said := func(got []string, want string) {
				t.Helper()
				all := strings.Join(got, "\n")
				if want == "" && all != "" || !strings.Contains(all, want) {
					t.Errorf("it says %q, want %q", all, want)
				}
			}
			_, problems, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			said(problems, tt.read)
			_, repaired, err := Add(dir, night("b", november, 1))
			if err != nil {
				t.Fatal(err)
			}
			if (repaired == "") != (tt.add == "") || !strings.Contains(repaired, tt.add) {
				t.Errorf("adding says %q, want %q", repaired, tt.add)
			}
			h, problems, err := Read(dir)
			if err != nil || len(h.Nights) != tt.nights {
				t.Errorf("%d nights, want %d (%v)", len(h.Nights), tt.nights, err)
			}
			said(problems, tt.problem)
		})
	}
}

func TestAddRefuses(t *testing.T) {
	if _, _, err := Add(t.TempDir(), metric.Night{}); err == nil {
		t.Error("a night without a name was added")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Add(file, night("a", november, 1)); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// Two processes add to one history at once: nothing is lost, nothing torn.
func TestTwoWriters(t *testing.T) {
	if writer, ok := os.LookupEnv("TOKGATE_TEST_WRITER"); ok {
		for i := range *nights {
			if _, _, err := Add(os.Getenv("TOKGATE_TEST_DIR"), night(fmt.Sprintf("%s-%d", writer, i), november, 1)); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	dir := t.TempDir()
	var writers []*exec.Cmd
	for _, name := range []string{"a", "b"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTwoWriters$", fmt.Sprintf("-nights=%d", *nights))
		cmd.Env = append(os.Environ(), "TOKGATE_TEST_WRITER="+name, "TOKGATE_TEST_DIR="+dir)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, cmd)
	}
	for _, cmd := range writers {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	h, problems, err := Read(dir)
	if err != nil || problems != nil {
		t.Error(problems, err)
	}
	if len(h.Nights) != 2**nights {
		t.Errorf("%d nights, want %d", len(h.Nights), 2**nights)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"schema":"tokgate.history/1","night":{"run":"x","started":"2026-11-20T02:00:00Z","figures":[{"value":1}]}}` + "\n"))
	f.Add([]byte(`{"schema":"tokgate.history/1","pin":{"run":"x"}}`))
	f.Add([]byte("{\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "2026-11.jsonl"), src, 0o644); err != nil {
			t.Fatal(err)
		}
		before, _, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Add(dir, night("one more", november, 1)); err != nil {
			t.Fatal(err)
		}
		after, _, err := Read(dir)
		if err != nil || len(after.Nights) < len(before.Nights) {
			t.Errorf("%d nights became %d: %v", len(before.Nights), len(after.Nights), err)
		}
	})
}
