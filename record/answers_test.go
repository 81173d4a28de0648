package record_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// answered records a run with answers. n is the number of answers.
func answered(t testing.TB) (dir string, n int) {
	t.Helper()
	dir = t.TempDir()
	w := must.Get(record.Create(dir))(t)
	run := small(3)
	replay(&testing.T{}, w, run)
	must.Do(t, w.Close())
	if n = answersOf(run); n < 3 || run.Answers == "" {
		t.Fatalf("%d answers in %s", n, dir)
	}
	return dir, n
}

// small makes several random runs. It returns the run with the fewest requests that has at least
// the given number of answers.
func small(answers int) (run *metric.Run) {
	for seed := range uint64(40) {
		if r := random(seed); answersOf(r) >= answers && (run == nil || requestsOf(r) < requestsOf(run)) {
			run = r
		}
	}
	return run
}

func requestsOf(run *metric.Run) (n int) {
	for _, l := range run.Levels {
		for _, r := range rounds(l) {
			n += len(r.Samples)
		}
	}
	return n
}

// answersOf counts the answers of a run.
func answersOf(run *metric.Run) (n int) {
	for _, l := range run.Levels {
		for _, r := range rounds(l) {
			for _, s := range r.Samples {
				if s.Said != nil {
					n++
				}
			}
		}
	}
	for _, c := range run.Comparisons {
		for _, p := range c.Answers.Pairs {
			for _, a := range []*metric.PairedAnswer{p.Control, p.Candidate, p.Again} {
				if a != nil && a.Text != "" {
					n++
				}
			}
		}
	}
	return n
}

// Reading a run returns an error if its answers are missing, cut off, changed, moved or from
// another run.
func TestDamagedAnswers(t *testing.T) {
	dir, _ := answered(t)
	other := recorded(t, small(answersOf(small(3))+1))
	path := filepath.Join(dir, record.AnswersFile)
	whole := must.Get(os.ReadFile(path))(t)
	lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	foreign := must.Get(os.ReadFile(filepath.Join(other, record.AnswersFile)))(t)
	join := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	for name, content := range map[string][]byte{
		"missing":         nil,
		"empty":           {},
		"header alone":    lines[0],
		"torn":            whole[:len(whole)-5],
		"last one gone":   join(lines[:len(lines)-1]...),
		"first one gone":  join(slices.Delete(slices.Clone(lines), 1, 2)...),
		"doubled":         append(bytes.Clone(whole), lines[1]...),
		"of another run":  foreign,
		"of another kind": []byte("{\"precious\":1}\n"),
		"resealed":        []byte(record.Reseal(strings.ReplaceAll(string(whole), `"text":"`, `"text":"x`))),
	} {
		must.Do(t, os.Remove(path))
		if content != nil {
			must.Do(t, os.WriteFile(path, content, 0o644))
		}
		_, _, err := record.Read(dir)
		must.Hold(t, err != nil, "%s: no error", name)
		must.Do(t, os.WriteFile(path, whole, 0o644))
	}
	rng := rand.New(rand.NewPCG(21, 1))
	for range 100 {
		bit := rng.IntN(8 * len(whole))
		flipped := bytes.Clone(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		must.Do(t, os.WriteFile(path, flipped, 0o644))
		if _, _, err := record.Read(dir); err == nil {
			t.Fatalf("bit %d of byte %d was flipped, and nothing noticed", bit%8, bit/8)
		}
	}
}

// A killed run keeps the answers of its recorded requests. The last line may be incomplete. One
// answer may be recorded without its request.
func TestAnswersOfAKilledRun(t *testing.T) {
	dir, n := answered(t)
	samples := must.Get(os.ReadFile(filepath.Join(dir, record.File)))(t)
	whole := must.Get(os.ReadFile(filepath.Join(dir, record.AnswersFile)))(t)
	write := func(name string, content []byte) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	at := bytes.Index(samples, []byte(`{"type":"run_done"`))
	for _, tt := range []struct {
		name             string
		samples, answers []byte
		kept             int
		said             string
	}{
		{"without its end", samples[:at], whole, n, "the run has no end"},
		{"torn", samples[:at], whole[:len(whole)-5], n - 1, "of the answers is torn"},
		{"no requests yet", samples[:bytes.Index(samples, []byte(`{"type":"server_ready"`))], whole, 0, "the run has no end"},
	} {
		write(record.File, tt.samples)
		write(record.AnswersFile, tt.answers)
		run, problems, err := record.Read(dir)
		if err != nil || run.Stopped == "" || answersOf(run) != tt.kept || !strings.Contains(strings.Join(problems, "\n"), tt.said) {
			t.Errorf("%s: %v, %q", tt.name, err, problems)
		}
	}
	write(record.AnswersFile, bytes.Replace(whole, []byte(`"text":"`), []byte(`"text":"x`), 1))
	_, _, err := record.Read(dir)
	must.Hold(t, err != nil, "an answer was changed, and nothing noticed")
}

// A new run removes the answers of an earlier run. It does not remove a file with the same name
// that tokgate did not write.
func TestAnswersOfAnEarlierRun(t *testing.T) {
	dir, _ := answered(t)
	path := filepath.Join(dir, record.AnswersFile)
	w := must.Get(record.Create(dir))(t)
	_, err := os.Stat(path)
	must.Hold(t, err != nil, "the answers of the earlier run are still there")
	w.Close()
	dir = t.TempDir()
	path = filepath.Join(dir, record.AnswersFile)
	must.Do(t, os.WriteFile(path, []byte("{\"prompt\":\"mine\"}\n"), 0o644))
	if _, err := record.Create(dir); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("error %v, want a hint", err)
	}
	raw, _ := os.ReadFile(path)
	must.Hold(t, string(raw) == "{\"prompt\":\"mine\"}\n", "the file now holds %q", raw)
}

// Equal answers have equal hashes, even if their texts were cut off at different places. Different
// answers have different hashes.
func TestHashed(t *testing.T) {
	a := metric.Said{Text: "Paris", AtLimit: true}.Hashed()
	must.Hold(t, a.Text == "" && len(a.Hash) == 64 && a.AtLimit && a.Hashed().Hash == a.Hash, "%+v", a)
	for name, s := range map[string]metric.Said{"text": {Text: "paris"}, "reasoning": {Reasoning: "Paris"}, "call": {Calls: []metric.ToolCall{{Name: "Paris"}}}} {
		must.Hold(t, s.Hashed().Hash != a.Hash, "another %s has the same sum", name)
	}
	must.Hold(t, (metric.Said{Text: "Paris", Cut: true}).Hashed().Hash == a.Hash, "the same text has another sum")
}

func FuzzReadAnswers(f *testing.F) {
	dir, _ := answered(f)
	seed := must.Get(strconv.ParseUint(strings.TrimPrefix(small(3).ID, "run-"), 10, 64))(f)
	raw := must.Get(os.ReadFile(filepath.Join(dir, record.AnswersFile)))(f)
	f.Add(string(raw))
	f.Add(string(raw[:len(raw)/2]))
	empty := func() *metric.Run { // a run with requests but without answers
		run := random(seed)
		for _, l := range run.Levels {
			for _, r := range rounds(l) {
				for _, s := range r.Samples {
					s.Said = nil
				}
			}
		}
		return run
	}
	f.Fuzz(func(t *testing.T, content string) {
		for _, content := range []string{content, record.Reseal(content)} {
			for _, stopped := range []string{"", record.StoppedUnknown} {
				run := empty()
				run.Stopped = stopped
				_, _ = record.ReadAnswers(strings.NewReader(content), run)
			}
		}
	})
}
