package record_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// Reading a recording with one changed bit returns an error, or ends before the damaged line.
func TestLongBitFlips(t *testing.T) {
	raw := must.Get(os.ReadFile(filepath.Join(recorded(t, random(3)), record.File)))(t)
	rng := rand.New(rand.NewPCG(17, 1))
	for range 10_000 {
		bit := rng.IntN(8 * len(raw))
		damaged := bytes.Clone(raw)
		damaged[bit/8] ^= 1 << (bit % 8)
		run, _, err := record.ReadFrom(bytes.NewReader(damaged))
		if err == nil && run.Stopped == "" {
			t.Fatalf("bit %d of byte %d was flipped (%q), and nothing noticed", bit%8, bit/8, raw[max(bit/8-20, 0):min(bit/8+20, len(raw))])
		}
	}
}

// A recording in which lines were removed, doubled or moved cannot be read.
func TestMovedLines(t *testing.T) {
	raw := must.Get(os.ReadFile(filepath.Join(recorded(t, random(3)), record.File)))(t)
	lines := strings.SplitAfter(strings.TrimSuffix(string(raw), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	for i := range len(lines) - 1 {
		for what, edited := range map[string][]string{
			"left out": append(append([]string{}, lines[:i]...), lines[i+1:]...),
			"doubled":  append(append(append([]string{}, lines[:i+1]...), lines[i]), lines[i+1:]...),
			"moved":    append(append(append([]string{}, lines[:i]...), lines[i+1], lines[i]), lines[i+2:]...),
		} {
			if _, _, err := record.ReadFrom(strings.NewReader(strings.Join(edited, ""))); err == nil {
				t.Errorf("line %d was %s, and nothing noticed: %s", i+1, what, lines[i])
			}
		}
	}
}

// An impossible record is an error even without checks, because older versions wrote no checks.
func TestImpossible(t *testing.T) {
	sample := func() *metric.Sample {
		return &metric.Sample{
			Server: "s", Workload: "w", Level: "1", Phase: metric.Measured,
			Scheduled: 1000, Sent: 2000, Headers: 3000, First: 4000, FirstAnswer: 4000, Last: 7500, End: 8000,
			Gaps: metric.Gaps{4}, Chunks: 2, Usage: &metric.Usage{Input: 1, Output: 2, Cached: -1}, Finish: "stop", Status: 200,
		}
	}
	round := func() *metric.Round {
		return &metric.Round{Due: 1, Start: 1000, End: 8000, WindowStart: 1000, WindowEnd: 8000, Busy: 1, Complete: true}
	}
	for _, tt := range []struct {
		name   string
		sample func(*metric.Sample)
		round  func(*metric.Round)
		want   string // problem of the record; "" if there is none
	}{
		{"as it was", nil, nil, ""},
		{"sent after its headers came", func(s *metric.Sample) { s.Sent = 3500 }, nil, "its headers came before it was sent"},
		{"sent before it was due", func(s *metric.Sample) { s.Sent = 500 }, nil, "it was sent before it was due"},
		{"its last token before its first", func(s *metric.Sample) { s.Last = 3999 }, nil, "its last token came before"},
		{"an answer after the last token", func(s *metric.Sample) { s.FirstAnswer = 7600 }, nil, "its last token came before its answer began"},
		{"an early end", func(s *metric.Sample) { s.End = 1 }, nil, "it ended before"},
		{"no end", func(s *metric.Sample) { s.End = 0 }, nil, "no end"},
		{"status 500", func(s *metric.Sample) { s.Status = 500 }, nil, "completed with status 500"},
		{"no status", func(s *metric.Sample) { s.Status = 0 }, nil, "completed with status 0"},
		{"no finish reason", func(s *metric.Sample) { s.Finish = "" }, nil, "finish reason"},
		{"failed by a status of 200", func(s *metric.Sample) { s.Failure = &metric.Failure{Kind: metric.FailStatus} }, nil, "failed by its status"},
		{"embeddings", func(s *metric.Sample) {
			s.Vectors, s.Chunks, s.Gaps, s.FirstAnswer, s.Last, s.Finish = 4, 0, nil, s.First, s.First, ""
		}, nil, ""},
		{"embeddings beside text", func(s *metric.Sample) { s.Vectors = 4 }, nil, "embeddings"},
		{"embeddings that came one by one", func(s *metric.Sample) { s.Vectors, s.Chunks, s.Gaps = 4, 0, nil }, nil, "embeddings"},
		{"many chunks", func(s *metric.Sample) { s.Chunks = 1e15 }, nil, "gaps between them"},
		// The gap between the tokens was 3.5 µs. Gaps are rounded up, so it is recorded as 4 µs,
		// and neither 5 nor 3 µs fits.
		{"a longer gap", func(s *metric.Sample) { s.Gaps[0] = 5 }, nil, "its gaps add up to 5µs"},
		{"a shorter gap", func(s *metric.Sample) { s.Gaps[0] = 3 }, nil, "its gaps add up to 3µs"},
		{"no first token", func(s *metric.Sample) { s.First = 0 }, nil, "chunks"},
		{"a negative place", func(s *metric.Sample) { s.Order = -1 }, nil, "negative"},
		{"a round that ends never", nil, func(r *metric.Round) { r.End = 1<<63 - 1 }, "is not that of its requests"},
		{"a round of more requests", nil, func(r *metric.Round) { r.Due = 2 }, "complete with 1 of 2"},
		{"overlapping standstills", nil, func(r *metric.Round) {
			r.Health.Standstills = []metric.Standstill{{From: 1000, To: 3000}, {From: 2000, To: 4000}}
		}, "standstills are not in order"},
		{"busy for three times the time", nil, func(r *metric.Round) { r.Busy = 3 }, "out of range"},
		{"a window that ends before it begins", nil, func(r *metric.Round) { r.WindowEnd = 999 }, "window"},
	} {
		s, r := sample(), round()
		if tt.sample != nil {
			tt.sample(s)
		}
		if tt.round != nil {
			tt.round(r)
		}
		r.Samples = []*metric.Sample{s}
		run := &metric.Run{ID: "x", Started: time.Unix(0, 0).UTC(), Servers: []*metric.ServerRun{{Address: "s"}},
			Levels: []*metric.Level{{Server: "s", Workload: "w", Name: "1", N: 1, Kind: metric.ClosedLoop, Rounds: []*metric.Round{r}}}}
		_, _, err := record.Read(recorded(t, run))
		must.Hold(t, (err == nil) == (tt.want == "") && (err == nil || strings.Contains(err.Error(), tt.want)), "%s: %v, want %q", tt.name, err, tt.want)
	}
}

// The run fails if somebody removes, moves or fills its folder meanwhile, because the recording
// would be lost.
func TestRecordingIsLost(t *testing.T) {
	for name, lose := range map[string]func(dir string) error{
		"removed":  os.RemoveAll,
		"moved":    func(dir string) error { return os.Rename(dir, dir+"-elsewhere") },
		"replaced": func(dir string) error { return record.WriteFile(filepath.Join(dir, record.File), []byte("{}")) },
		"cut":      func(dir string) error { return os.Truncate(filepath.Join(dir, record.File), 10) },
		"added to": func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, record.File), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("{}\n")
			return err
		},
	} {
		dir := filepath.Join(t.TempDir(), "results")
		w := must.Get(record.Create(dir))(t)
		run := &metric.Run{ID: "x"}
		must.Do(t, w.Observe(metric.RunStarted{Run: run}))
		if err := lose(dir); err != nil {
			t.Skip(err)
		}
		if err := w.Observe(metric.RunDone{Run: run}); err == nil || run.Recording != "" {
			t.Errorf("%s: the run ended with a recording of %q", name, run.Recording)
		}
		w.Close()
	}
}

// The recording is not read or written through a link in its place.
func TestLinksAreNotFollowed(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	must.Do(t, os.WriteFile(victim, nil, 0o644))
	inside := filepath.Join(dir, "inside")
	must.Do(t, os.WriteFile(inside, nil, 0o644))
	for _, target := range []string{victim, "inside"} {
		link := filepath.Join(dir, record.File)
		if err := os.Symlink(target, link); err != nil {
			t.Skip(err)
		}
		_, err := record.Create(dir)
		must.Hold(t, err != nil && strings.Contains(err.Error(), "not a regular file"), "recording over a link to %s: %v", target, err)
		if _, _, err := record.Read(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("reading through a link to %s: %v", target, err)
		}
		os.Remove(link)
	}
	for _, path := range []string{victim, inside} {
		info, err := os.Stat(path)
		must.Hold(t, err == nil && info.Size() == 0, "%s was written to: %v", path, err)
	}
}
