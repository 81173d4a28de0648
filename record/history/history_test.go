package history

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

var nights = flag.Int("nights", 60, "how many nights each of the two writers adds; some 2,000 take a minute")

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
	must.Get(AddPin(dir, pin))(t)
	if _, err := AddPin(dir, metric.Pin{Run: "c", At: november}); err == nil {
		t.Error("a run that is not there was pinned")
	}
	h, problems, err := Read(dir)
	if err != nil || problems != nil {
		t.Fatal(problems, err)
	}
	must.Same(t, "", metric.History{Nights: []metric.Night{first, second}, Pins: []metric.Pin{pin}}, h)
	var names []string
	files, err := os.ReadDir(dir)
	must.Do(t, err)
	for _, f := range files {
		names = append(names, f.Name())
	}
	must.Same(t, "", []string{".gitattributes", "2026-10.jsonl", "2026-11.jsonl"}, names)
}

// After a git union merge, a night may occur twice or out of order.
func TestReadMerged(t *testing.T) {
	dir := t.TempDir()
	for i, run := range []string{"b", "a"} {
		if _, _, err := Add(dir, night(run, november.Add(-time.Duration(i)*time.Hour), 1)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "2026-11.jsonl")
	src, err := os.ReadFile(path)
	must.Do(t, err)
	must.Do(t, os.WriteFile(path, append(src, src...), 0o644))
	// A night with two lines counts once, even if one line has a changed time.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must.Do(t, err)
	fmt.Fprintln(f, `{"schema":"tokgate.history/1","night":{"run":"b","started":"2026-11-21T03:00:00Z"}}`)
	f.Close()
	h, problems, err := Read(dir)
	must.Hold(t, err == nil && problems == nil && len(h.Nights) == 2 && h.Nights[0].Run == "a", "%v %v %v", h, problems, err)
}

func TestTornLines(t *testing.T) {
	tests := []struct {
		name, tail         string
		nights             int // number of nights that can be read after one more was added
		read, add, problem string
	}{
		{"cut short", `{"schema":"tokgate.history/1","night":{"run":"x`, 2, "2026-11.jsonl:2 is not a whole line", "were removed", ""},
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
			must.Do(t, err)
			must.Get(f.WriteString(tt.tail))(t)
			f.Close()
			said := func(got []string, want string) {
				t.Helper()
				all := strings.Join(got, "\n")
				must.Hold(t, (want != "" || all == "") && strings.Contains(all, want), "it says %q, want %q", all, want)
			}
			_, problems, err := Read(dir)
			must.Do(t, err)
			said(problems, tt.read)
			_, repaired, err := Add(dir, night("b", november, 1))
			must.Do(t, err)
			must.Hold(t, (repaired == "") == (tt.add == "") && strings.Contains(repaired, tt.add), "adding says %q, want %q", repaired, tt.add)
			h, problems, err := Read(dir)
			must.Hold(t, err == nil && len(h.Nights) == tt.nights, "%d nights, want %d (%v)", len(h.Nights), tt.nights, err)
			said(problems, tt.problem)
		})
	}
}

func TestAddRefuses(t *testing.T) {
	_, _, err := Add(t.TempDir(), metric.Night{})
	must.Hold(t, err != nil, "a night without a name was added")
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o644))
	if _, _, err := Add(file, night("a", november, 1)); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// Reading a history fails if one of its files cannot be read. Adding a night fails if the file
// cannot be written. Both errors name the file.
func TestFilesThatCannotBeUsed(t *testing.T) {
	const month = "2026-11.jsonl"
	for _, tt := range []struct {
		name           string
		make           func(t *testing.T, dir string)
		read, add, pin string // expected errors; "" means none
	}{
		{"a month is a folder", func(t *testing.T, dir string) {
			must.Do(t, os.MkdirAll(filepath.Join(dir, month), 0o755))
		}, "", "could not open the history", "is not in the history"},
		{"a month leads nowhere", func(t *testing.T, dir string) {
			if err := os.Symlink(filepath.Join("none", "at", "all"), filepath.Join(dir, month)); err != nil {
				t.Skip(err)
			}
		}, "could not read the history", "could not open the history", "could not read the history"},
		{"a month must not be read", func(t *testing.T, dir string) {
			must.Do(t, os.WriteFile(filepath.Join(dir, month), nil, 0o200))
			if _, err := os.ReadFile(filepath.Join(dir, month)); err == nil {
				t.Skip("whoever runs this reads everything")
			}
		}, "could not read the history", "could not open the history", "could not read the history"},
		{"the folder must not be written", func(t *testing.T, dir string) {
			must.Do(t, os.Chmod(dir, 0o555))
			t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
			if f, err := os.Create(filepath.Join(dir, "x")); err == nil {
				f.Close()
				t.Skip("whoever runs this writes everything")
			}
		}, "", "could not make the history folder", "is not in the history"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.make(t, dir)
			_, _, readErr := Read(dir)
			added, _, addErr := Add(dir, night("a", november, 1))
			_, pinErr := AddPin(dir, metric.Pin{Run: "b", At: november})
			must.Hold(t, !added, "it was added")
			for _, x := range []struct {
				what string
				err  error
				want string
			}{{"read", readErr, tt.read}, {"add", addErr, tt.add}, {"pin", pinErr, tt.pin}} {
				must.Hold(t, (x.err == nil) == (x.want == "") && (x.err == nil || strings.Contains(x.err.Error(), x.want)), "%s: %v, want %q", x.what, x.err, x.want)
			}
		})
	}
}

// A history still counts its whole lines after an editor or git has changed the file. It reports
// every other line.
func TestForeignHands(t *testing.T) {
	dir := t.TempDir()
	for i, run := range []string{"a", "b"} {
		_, _, err := Add(dir, night(run, november.Add(time.Duration(i)*time.Hour), 1))
		must.Need(t, err == nil, "%v", err)
	}
	path := filepath.Join(dir, "2026-11.jsonl")
	whole := must.Get(os.ReadFile(path))(t)
	first, rest, _ := strings.Cut(string(whole), "\n")
	for name, tt := range map[string]struct {
		src      string
		nights   int
		problems []string
	}{
		"line breaks of Windows":      {strings.ReplaceAll(string(whole), "\n", "\r\n"), 2, nil},
		"a byte order mark":           {"\ufeff" + string(whole), 1, []string{":1 is not a whole line"}},
		"a conflict":                  {"<<<<<<< ours\n" + first + "\n=======\n" + rest + ">>>>>>> theirs\n", 2, []string{":1 is not a whole", ":3 is not a whole", ":5 is not a whole"}},
		"a value that is none":        {strings.Replace(string(whole), `"value":1`, `"value":1e999`, 1), 1, []string{":1 is not a whole line"}},
		"a torn line in the middle":   {first[:len(first)/2] + "\n" + rest, 1, []string{":1 is not a whole line"}},
		"two lines that ran together": {first + rest, 0, []string{":1 is not a whole line"}},
		"a line of a later version":   {string(whole) + `{"schema":"tokgate.history/2","night":{"run":"c"}}` + "\n", 2, []string{`:3 has schema "tokgate.history/2"`}},
		"a night without a time":      {string(whole) + `{"schema":"tokgate.history/1","night":{"run":"c"}}` + "\n", 2, []string{":3 is neither a night nor a pin"}},
	} {
		t.Run(name, func(t *testing.T) {
			must.Do(t, os.WriteFile(path, []byte(tt.src), 0o644))
			h, problems, err := Read(dir)
			if err != nil || len(h.Nights) != tt.nights || len(problems) != len(tt.problems) {
				t.Fatalf("%d nights, want %d; %q, %v", len(h.Nights), tt.nights, problems, err)
			}
			for i, want := range tt.problems {
				must.Hold(t, strings.Contains(problems[i], want), "%q, want %q", problems[i], want)
			}
		})
	}
}

// Two processes add to one history at the same time. No line is lost, and every line is complete.
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
	var said [2]bytes.Buffer // output of the two writers, shown only if one fails
	for i, name := range []string{"a", "b"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTwoWriters$", fmt.Sprintf("-nights=%d", *nights))
		cmd.Env = append(os.Environ(), "TOKGATE_TEST_WRITER="+name, "TOKGATE_TEST_DIR="+dir)
		cmd.Stdout, cmd.Stderr = &said[i], &said[i]
		must.Do(t, cmd.Start())
		writers = append(writers, cmd)
	}
	for i, cmd := range writers {
		if err := cmd.Wait(); err != nil {
			t.Error(err, said[i].String())
		}
	}
	h, problems, err := Read(dir)
	if err != nil || problems != nil {
		t.Error(problems, err)
	}
	must.Hold(t, len(h.Nights) == 2**nights, "%d nights, want %d", len(h.Nights), 2**nights)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"schema":"tokgate.history/1","night":{"run":"x","started":"2026-11-20T02:00:00Z","figures":[{"value":1}]}}` + "\n"))
	f.Add([]byte(`{"schema":"tokgate.history/1","pin":{"run":"x"}}`))
	f.Add([]byte("{\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, "2026-11.jsonl"), src, 0o644))
		before, _, err := Read(dir)
		must.Do(t, err)
		if _, _, err := Add(dir, night("one more", november, 1)); err != nil {
			if !ours(src) {
				return // the file belongs to another program, so Add must refuse it
			}
			t.Fatal(err)
		}
		after, _, err := Read(dir)
		must.Hold(t, err == nil && len(after.Nights) >= len(before.Nights), "%d nights became %d: %v", len(before.Nights), len(after.Nights), err)
	})
}

// If a link replaces a month's file in the repository, tokgate must not use its target. It must
// never change a file that is not a history.
func TestForeignFilesAreLeftAlone(t *testing.T) {
	const precious = "precious 1\nprecious 2 without a line break"
	for name, make := range map[string]func(month, victim string) error{
		"a link":         func(month, victim string) error { return os.Symlink(victim, month) },
		"a foreign file": func(month, victim string) error { return os.Link(victim, month) },
	} {
		dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
		must.Do(t, os.WriteFile(victim, []byte(precious), 0o644))
		if err := make(filepath.Join(dir, "2026-11.jsonl"), victim); err != nil {
			t.Skip(err)
		}
		added, _, err := Add(dir, night("a", november, 1))
		must.Hold(t, !added && err != nil, "%s: a night was added", name)
		if got, err := os.ReadFile(victim); err != nil || string(got) != precious {
			t.Errorf("%s: the file it leads to is now %q", name, got)
		}
	}
}

// A line that was changed after it was written has a wrong checksum and does not count. A line of
// an older version has no checksum, and counts.
func TestChangedLines(t *testing.T) {
	dir := t.TempDir()
	_, _, err := Add(dir, night("a", november, 1))
	must.Need(t, err == nil, "%v", err)
	want, _, _ := Read(dir)
	path := filepath.Join(dir, "2026-11.jsonl")
	whole := must.Get(os.ReadFile(path))(t)
	for i := range 8 * len(whole) {
		flipped := bytes.Clone(whole)
		flipped[i/8] ^= 1 << (i % 8)
		var h metric.History
		if problems := parse(path, flipped, &h); len(problems) == 0 && !cmp.Equal(want, h) {
			t.Fatalf("bit %d of byte %d was flipped (%q), and nothing noticed", i%8, i/8, whole[max(i/8-20, 0):min(i/8+20, len(whole))])
		}
	}
	old := `{"schema":"tokgate.history/1","night":{"run":"x","started":"2026-11-20T02:00:00Z","figures":[]}}` + "\n"
	must.Do(t, os.WriteFile(path, []byte(old), 0o644))
	if h, problems, err := Read(dir); err != nil || len(problems) > 0 || len(h.Nights) != 1 {
		t.Errorf("%d nights, %v, %v", len(h.Nights), problems, err)
	}
}
