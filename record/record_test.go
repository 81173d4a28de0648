package record_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// replay reports a run to w in the same way as exec.
func replay(t *testing.T, w *record.Writer, r *metric.Run) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Observe(metric.RunStarted{Run: r}))
	for _, s := range r.Servers {
		must(w.Observe(metric.ServerReady{Server: s}))
		for _, l := range r.Levels {
			if l.Server != s.Address {
				continue
			}
			if l.Skipped == "" {
				must(w.Observe(metric.LevelStarted{Level: l, Due: l.Due()}))
			}
			var legs []*metric.Round // rounds of an incomplete pair of a comparison
			for _, round := range rounds(l) {
				for _, x := range round.Samples {
					w.Observe(metric.RequestStarted{Level: l, Phase: x.Phase})
					must(w.Observe(metric.SampleDone{Sample: x}))
				}
				if round.Leg != nil {
					legs = append(legs, round)
					continue
				}
				must(w.Observe(metric.RoundDone{Level: l, Round: round}))
			}
			must(w.Observe(metric.LevelDone{Level: l}))
			for _, round := range legs {
				must(w.Observe(metric.RoundDone{Level: l, Round: round}))
			}
			if len(l.Looks) > 1 { // the level was judged and then ran longer
				must(w.Observe(metric.LevelStarted{Level: l, Due: l.Due()}))
				must(w.Observe(metric.LevelDone{Level: l}))
			}
		}
		for _, c := range r.Capacities {
			if c.Server == s.Address {
				must(w.Observe(metric.CapacityDone{Capacity: c}))
			}
		}
		must(w.Observe(metric.ServerDone{Server: s}))
	}
	for _, c := range r.Comparisons {
		must(w.Observe(metric.ComparisonDone{Comparison: c}))
	}
	must(w.Observe(metric.RunDone{Run: r}))
}

// rounds returns all rounds of a level in the order of time, including disturbed rounds that were
// measured again.
func rounds(l *metric.Level) []*metric.Round {
	return slices.SortedFunc(slices.Values(slices.Concat(l.Rounds, l.Voided)), func(a, b *metric.Round) int { return a.Index - b.Index })
}

// random makes a random run that has everything that a run can contain.
func random(seed uint64) *metric.Run {
	rng := rand.New(rand.NewPCG(seed, 5))
	dur := func() time.Duration { return time.Duration(1 + rng.Int64N(int64(time.Hour))) }
	words := []string{"", "plain", "a \"quoted\" one", "line\nfeed", "\x00\x1b[31m", "größer", "}{", "\u2028"}
	word := func() string { return words[rng.IntN(len(words))] }
	run := &metric.Run{
		ID: fmt.Sprint("run-", seed), Tool: "v1", Plan: "plans/x.hcl", PlanHash: "abc",
		Started: time.Date(2026, 11, 20, 12, 0, 0, int(rng.IntN(1e9)), time.UTC),
		Salt:    rng.Uint64(), Simulated: rng.IntN(2) == 0, End: dur(), Stopped: word(),
	}
	if rng.IntN(2) == 0 {
		run.Calibration = &metric.Calibration{Streams: 64, Rate: 3200, Delay50: dur(), Delay99: dur(), CPU: rng.Float64(), Took: dur()}
	}
	for range rng.IntN(2) {
		run.Comparisons = append(run.Comparisons, &metric.Comparison{Name: word(), Control: word(), Candidate: word(), Restart: "leg",
			Looks: []metric.ComparisonLook{{Rounds: rng.IntN(9), Planned: 2, Outcome: metric.Outcome(rng.IntN(8))}}, Skipped: word(), Notes: []string{word()}})
	}
	for i, c := range run.Comparisons {
		c.Name = fmt.Sprint(c.Name, i)
		answer := func() *metric.PairedAnswer { return &metric.PairedAnswer{Leg: rng.IntN(4), Text: word()} }
		c.Answers = &metric.PairedAnswers{Due: 2, Again: 1, Pairs: []metric.AnswerPair{{Workload: "chat", Level: "1", Control: answer(), Again: answer()},
			{Workload: "chat", Level: "1", Order: 1, Control: answer(), Candidate: answer()}}}
	}
	for i := range 1 + rng.IntN(3) {
		s := &metric.ServerRun{Address: fmt.Sprintf("vllm[%q]", fmt.Sprint(i)), Error: word(), Log: word()}
		if rng.IntN(2) == 0 {
			s.Declared = metric.Fingerprint{"flags.x": word()}
			s.Starts = []metric.Start{{At: dur(), Ready: dur(), Cold: dur(), ColdEnd: dur()}, {At: dur()}}
		}
		if rng.IntN(2) == 0 {
			s.Fingerprint = metric.Fingerprint{"engine": "vllm", "model": word()}
		}
		run.Servers = append(run.Servers, s)
		for range rng.IntN(3) {
			run.Capacities = append(run.Capacities, &metric.Capacity{
				Server: s.Address, Workload: "chat", Over: metric.Burst, From: 1, UpTo: 64, Require: rng.IntN(9),
				Bracket: metric.Bracket{Kind: metric.CapacityExact, Pass: rng.IntN(64), Fail: rng.IntN(64), Crossing: rng.Float64(), Binding: word(), AtPass: word(), NonMonotone: [][2]int{{3, rng.IntN(9)}}, Confirmed: rng.IntN(2) == 0}, Spent: dur(), Reason: word(), Notes: []string{word()}, Line: word(),
				Probes: []metric.CapacityProbe{{N: 8, Purpose: "ladder", Set: rng.IntN(3), Level: "probe 8", Requests: 200, Outcome: metric.Pass, Shown: word(), Spent: dur()}},
			})
		}
		for j := range 1 + rng.IntN(3) {
			l := &metric.Level{
				Server: s.Address, Workload: "chat", Name: fmt.Sprint(j + 1), Kind: metric.ClosedLoop, N: j + 1,
				Exact: rng.IntN(2) == 0, Natural: rng.IntN(2) == 0, Shed: rng.IntN(3),
			}
			run.Levels = append(run.Levels, l)
			if rng.IntN(3) == 0 {
				l.Probe = &metric.Probe{Purpose: word(), Set: rng.IntN(3)}
			}
			for k := range rng.IntN(3) {
				l.Looks = append(l.Looks, metric.Look{Requests: 100 * (k + 1), Planned: 2, Outcome: metric.Outcome(rng.IntN(8))})
			}
			if rng.IntN(4) == 0 {
				l.Skipped = "not selected"
				continue
			}
			legs := rng.IntN(3) == 0
			for k := range rng.IntN(4) {
				round := &metric.Round{
					Index: k, Seed: rng.Int64() - rng.Int64(), Busy: rng.Float64(), WindowStart: 1, WindowEnd: dur(),
					Health:  metric.Health{CPU: rng.Float64(), GCPause: dur(), Delay: dur(), Late: 7, Standstills: []metric.Standstill{{From: 0, To: 5}, {From: 6, To: 1000}}},
					Stopped: word(),
				}
				if rng.IntN(2) == 0 {
					round.Telemetry = &metric.Telemetry{
						From: dur(), To: dur(), Reads: rng.IntN(9), Failed: rng.IntN(3), Missing: map[string]string{"power": word()},
						Added:      map[string]float64{metric.Preempted: rng.Float64()},
						Histograms: map[string]metric.Histogram{"queue_wait": {Bounds: []float64{0.3, 1}, Counts: []float64{1, 2, 3}, Sum: rng.Float64()}},
						Gauges:     map[string]metric.Gauge{"kv_usage": {N: 3, Mean: rng.Float64(), Max: 1}},
						Series:     []metric.Series{{Metric: "waiting", At: []int64{1, 1001}, Values: []float64{0, rng.Float64()}}},
					}
				}
				if legs {
					round.Leg = &metric.Leg{Slot: rng.IntN(9), Start: rng.IntN(9)}
				}
				if rng.IntN(3) == 0 {
					round.Void = "void: " + word()
					l.Voided = append(l.Voided, round)
				} else {
					l.Rounds = append(l.Rounds, round)
				}
				for n := range rng.IntN(6) {
					at := dur()
					later := func() time.Duration { at += dur(); return at }
					x := &metric.Sample{
						Server: l.Server, Workload: l.Workload, Level: l.Name, Round: k, Slot: n, Order: n,
						Phase:     []metric.Phase{metric.Warmup, metric.Measured, metric.Filler}[rng.IntN(3)],
						Scheduled: at, Sent: later(), InputAsked: 100, OutputAsked: 10,
					}
					if rng.IntN(3) == 0 {
						x.Failure = &metric.Failure{Kind: metric.FailStream, Message: word()}
					} else {
						x.Headers, x.Status, x.First, x.FirstAnswer = later(), 200, later(), at
						gap := later() - x.First
						x.Last, x.Chunks, x.FirstTokens = at, 2, 2
						x.Gaps.Add(gap)
						x.Usage = &metric.Usage{Input: 100, Output: 10, Cached: -1}
						x.Finish, x.Reconnects = "length", rng.IntN(2)
					}
					x.End = later()
					if x.Phase == metric.Measured && rng.IntN(2) == 0 {
						said := metric.Said{Text: word(), Reasoning: word(), Cut: rng.IntN(2) == 0, AtLimit: x.Finish == "length"}
						if rng.IntN(2) == 0 {
							said.Calls = []metric.ToolCall{{Name: word(), Arguments: word()}}
						}
						if rng.IntN(3) == 0 {
							said = said.Hashed()
						}
						x.Said, x.Row = &said, rng.IntN(9)
					}
					round.Samples = append(round.Samples, x)
				}
				settle(round, rng.IntN(2) == 0)
			}
		}
	}
	return run
}

// settle makes the fields of a round's end agree with its requests.
func settle(r *metric.Round, complete bool) {
	for i, x := range r.MeasuredSamples() {
		if i == 0 {
			r.Start = x.Scheduled
		}
		r.Due++
		r.Start, r.End = min(r.Start, x.Scheduled), max(r.End, x.End)
	}
	r.Complete = complete
}

func recorded(t *testing.T, r *metric.Run) (dir string) {
	t.Helper()
	dir = t.TempDir()
	w := must.Get(record.Create(dir))(t)
	replay(t, w, r)
	must.Do(t, w.Close())
	return dir
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(50) {
		want := random(seed)
		got, problems, err := record.Read(recorded(t, want))
		if err != nil || len(problems) != 0 {
			t.Fatalf("run %d: %v, problems %q", seed, err, problems)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("run %d changed on its way (-want +got):\n%s", seed, diff)
		}
	}
}

// TestLongCutAnywhere cuts a recording after every byte, as a crash may. Reading returns the
// complete lines and reports what is missing.
func TestLongCutAnywhere(t *testing.T) {
	var raw []byte // the shortest of 20 recordings; those with fewer than two rounds are left out
	for seed := range uint64(20) {
		r := must.Get(os.ReadFile(filepath.Join(recorded(t, random(seed)), record.File)))(t)
		if bytes.Count(r, []byte("round_done")) >= 2 && (raw == nil || len(r) < len(raw)) {
			raw = r
		}
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	readable := len(lines[0]) + len(lines[1]) // header and run
	for cut := range len(raw) {
		got, problems, err := record.ReadFrom(bytes.NewReader(raw[:cut]))
		if cut < readable {
			if err == nil {
				t.Fatalf("cut at %d: no error although not even the run is there", cut)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if got.Stopped == "" || len(problems) == 0 {
			t.Fatalf("cut at %d: stopped %q, problems %q", cut, got.Stopped, problems)
		}
		whole := bytes.Count(raw[:cut], []byte(`{"type":"sample"`))
		if torn := raw[bytes.LastIndexByte(raw[:cut], '\n')+1 : cut]; bytes.Contains(torn, []byte(`{"type":"sample"`)) {
			whole--
		}
		ends := bytes.Count(raw[:bytes.LastIndexByte(raw[:cut], '\n')+1], []byte(`{"type":"round_done"`))
		samples, complete := 0, 0
		for _, l := range got.Levels {
			for _, r := range rounds(l) {
				samples += len(r.Samples)
				if r.Unended != (r.Stopped == record.StoppedUnknown) {
					t.Fatalf("cut at %d: unended %v, stopped %q", cut, r.Unended, r.Stopped)
				}
				if !r.Unended {
					complete++
				} else if r.Complete {
					t.Fatalf("cut at %d: a round without an end is complete", cut)
				}
			}
		}
		for _, l := range got.Levels {
			for _, r := range rounds(l) {
				for _, x := range r.Samples {
					if got.End < x.End {
						t.Fatalf("cut at %d: the run ends at %v, before a request did at %v", cut, got.End, x.End)
					}
				}
			}
		}
		if samples != whole || complete != ends {
			t.Fatalf("cut at %d: %d requests and %d ended rounds, want %d and %d", cut, samples, complete, whole, ends)
		}
	}
}

func TestReadRejects(t *testing.T) {
	const header = `{"type":"header","schema":"tokgate.samples/1.0"}` + "\n"
	const run = `{"type":"run","run":{"id":"x"}}` + "\n"
	const level = `{"type":"level","level":{"server":"s","workload":"w","name":"1"}}` + "\n"
	const sample = `{"type":"sample","sample":{"server":"s","workload":"w","level":"1","failure":{"kind":"connect","message":"x"}}}` + "\n"
	const round = `{"type":"round_done","of":{"server":"s","workload":"w","name":"1"},"round":{"index":0}}` + "\n"
	for _, tt := range []struct{ name, content, want string }{
		{"empty", "", "no header"},
		{"another file", "<html>\n", "not a header"},
		{"another schema", `{"type":"header","schema":"k6/1.0"}` + "\n" + run, `the schema is "k6/1.0"`},
		{"a later major", `{"type":"header","schema":"tokgate.samples/2.0"}` + "\n" + run, "reads \"tokgate.samples/1.3\""},
		{"header alone", header, "no run"},
		{"no run", header + level, "before the run"},
		{"two runs", header + run + run, "second run"},
		{"torn in the middle", header + run + `{"type":"sam` + "\n" + level, "line 3"},
		{"no level", header + run + sample, "did not begin"},
		{"round of no level", header + run + round, "did not begin"},
		{"request twice", header + run + level + sample + sample, "is there twice"},
		{"round twice", header + run + level + round + round, "ends twice"},
		{"late request", header + run + level + round + sample, "after the end"},
		// The reader knows the version of this file, so an unknown type means a damaged line.
		{"unknown type", header + run + level + `{"type":"server_d0ne","server":{"address":"s","error":"died"}}` + "\n", `line 4: the type "server_d0ne" is unknown`},
		{"after the end", header + run + `{"type":"run_done","run":{"id":"x"}}` + "\n" + level, "after the run's end"},
		{"no checks in a version that has them", strings.Replace(header, "1.0", "1.3", 1) + run, "no check"},
		{"hollow sample", header + run + `{"type":"sample"}` + "\n", "without what"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(dir, record.File), []byte(tt.content), 0o644))
			if _, _, err := record.Read(dir); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	if _, _, err := record.Read(t.TempDir()); err == nil {
		t.Error("an empty folder could be read")
	}
}

// If a recording lacks the final state of a server, the server may have died. Then it is not known
// whether the server was the same at the end.
func TestReadWithoutServerDone(t *testing.T) {
	const begin = `{"type":"header","schema":"tokgate.samples/1.2"}
{"type":"run","run":{"id":"x"}}
{"type":"server_ready","server":{"address":"s"}}
`
	const done = `{"type":"server_done","server":{"address":"s"}}` + "\n"
	const end = `{"type":"run_done","run":{"id":"x"}}` + "\n"
	for _, tt := range []struct {
		name, content string
		unended, said bool
	}{
		{"ready", begin + end, true, true},
		{"done", begin + done + end, false, false},
		{"ready again", begin + done + `{"type":"server_ready","server":{"address":"s"}}` + "\n" + end, true, true},
		// The recording ends before the end of the run, so an error may have stopped it.
		{"done, but not the run", begin + done, true, false},
	} {
		run, problems, err := record.ReadFrom(strings.NewReader(tt.content))
		if err != nil || len(run.Servers) != 1 || run.Servers[0].Unended != tt.unended {
			t.Errorf("%s: %+v, %v", tt.name, run.Servers, err)
		}
		if said := strings.Contains(strings.Join(problems, "\n"), "server s at the end"); said != tt.said {
			t.Errorf("%s: problems %q", tt.name, problems)
		}
	}
}

func TestReadTakesLaterMinors(t *testing.T) {
	dir := t.TempDir()
	content := `{"type":"header","schema":"tokgate.samples/1.7"}
{"type":"run","run":{"id":"x","moon":"full"}}
{"type":"weather","weather":"rain"}
{"type":"run_done","run":{"id":"x","end_ns":5}}
`
	must.Do(t, os.WriteFile(filepath.Join(dir, record.File), []byte(record.Seal(content)), 0o644))
	run, problems, err := record.Read(dir)
	if err != nil || run.ID != "x" || run.End != 5 || run.Stopped != "" {
		t.Errorf("got %+v, %v", run, err)
	}
	if len(problems) != 1 || !strings.Contains(problems[0], `"weather"`) {
		t.Errorf("problems %q, want the unknown type", problems)
	}
}

func TestCreateReplacesOurOwn(t *testing.T) {
	dir := recorded(t, random(1))
	for _, name := range []string{"junit.xml", "notes.txt"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	want := random(2)
	w, err := record.Create(dir, "junit.xml", "results.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.Create(dir); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("a second recording into the same folder gave %v", err)
	}
	replay(t, w, want)
	must.Do(t, w.Close())
	got, _, err := record.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	must.Same(t, "the runs were mixed (-want +got)", want, got)
	if _, err := os.Stat(filepath.Join(dir, "junit.xml")); err == nil {
		t.Error("a report of the earlier run is still there")
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error("a file that is not ours is gone")
	}
}

func TestCreateLeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, record.File)
	must.Do(t, os.WriteFile(path, []byte("{\"precious\":1}\n"), 0o644))
	if _, err := record.Create(dir); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("error %v, want a hint", err)
	}
	if raw, _ := os.ReadFile(path); string(raw) != "{\"precious\":1}\n" {
		t.Errorf("the file now holds %q", raw)
	}
}

func TestCreateFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o644))
	if _, err := record.Create(filepath.Join(file, "results")); err == nil {
		t.Error("a folder below a file was made")
	}
}

func TestWriteToAClosedFile(t *testing.T) {
	w := must.Get(record.Create(t.TempDir()))(t)
	must.Do(t, w.Close())
	if err := w.Observe(metric.SampleDone{Sample: new(metric.Sample)}); err == nil {
		t.Error("a line that could not be written is no error")
	}
}

func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	dir := t.TempDir()
	must.Do(t, os.Symlink("/dev/full", filepath.Join(dir, record.File)))
	if _, err := record.Create(dir); err == nil {
		t.Error("a device was taken for a recording")
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "results.json")
	for _, content := range []string{"first", "second, longer", ""} {
		must.Do(t, record.WriteFile(path, []byte(content)))
		if got, _ := os.ReadFile(path); string(got) != content {
			t.Errorf("the file holds %q, want %q", got, content)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := record.WriteFile(filepath.Join(path, "below"), nil); err == nil {
		t.Error("a file below a file was written")
	}
	if err := record.WriteFile(filepath.Dir(path), nil); err == nil {
		t.Error("a folder was written")
	}
}

// A report must not replace a file that is not regular. A run by root could otherwise replace
// /dev/null.
func TestWriteFileReplacesNoDevice(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct {
		name, target string
		fails        bool
	}{{"null", "/dev/null", false}, {"full", "/dev/full", true}} {
		if _, err := os.Stat(row.target); err != nil {
			t.Skip(err)
		}
		path := filepath.Join(dir, row.name)
		if err := os.Symlink(row.target, path); err != nil {
			t.Skip(err)
		}
		if err := record.WriteFile(path, []byte("a report")); (err != nil) != row.fails {
			t.Errorf("%s: %v", row.name, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
			t.Errorf("%s was replaced: %v, %v", row.name, info, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestRedactor(t *testing.T) {
	r := record.NewRedactor([]string{"sk-12345", "sk-12345/long+one", `say"<hi>"`, "abc", ""})
	for _, tt := range []struct{ in, want string }{
		{"Bearer sk-12345", "Bearer [redacted]"},
		{"key=sk-12345/long+one.", "key=[redacted]."},
		{"key=sk-12345%2Flong%2Bone&x", "key=[redacted]&x"},
		{`{"key":"say\"<hi>\"","again":"say\"\u003chi\u003e\""}`, `{"key":"[redacted]","again":"[redacted]"}`},
		{"abcdef", "abcdef"}, // secrets as short as this are not removed
		{"nothing here", "nothing here"},
	} {
		if got := r.Text(tt.in); got != tt.want {
			t.Errorf("Text(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	if got := (record.Redactor{}).Text("x"); got != "x" {
		t.Errorf("the zero Redactor made %q of x", got)
	}
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	w := must.Get(record.Create(dir))(f)
	replay(&testing.T{}, w, random(3))
	w.Close()
	raw := must.Get(os.ReadFile(filepath.Join(dir, record.File)))(f)
	f.Add(raw)
	f.Add(raw[:len(raw)/2])
	f.Add([]byte(`{"type":"header","schema":"tokgate.samples/1.0"}` + "\n" + `{"type":"run","run":{}}` + "\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		// Try the content as it is, although its checksums are nearly always wrong. Then try it
		// with correct checksums.
		for _, content := range []string{string(content), record.Reseal(string(content))} {
			run, _, err := record.ReadFrom(strings.NewReader(content))
			if err != nil {
				continue
			}
			// If a run can be read, it can also be judged. The calls below visit all parts of the
			// run.
			for _, l := range run.Levels {
				l.Due()
				for _, s := range l.MeasuredSamples() {
					s.Value("speed")
				}
			}
		}
	})
}

// The requests of a mix are recorded once. Reading divides them among the parts.
func TestPartsOfAMix(t *testing.T) {
	mix := &metric.Level{Server: "vllm", Workload: "production", Name: "4", Kind: metric.ClosedLoop, N: 4, Asked: &metric.Asked{Mix: "chat 50%, long 50%"}}
	for _, name := range []string{"chat", "long"} {
		mix.Parts = append(mix.Parts, &metric.Level{Server: "vllm", Workload: "production/" + name, Name: "4", Kind: metric.ClosedLoop, N: 4, Of: "production", Share: 0.5, Exact: name == "chat", Asked: &metric.Asked{Input: 100}})
	}
	for k := range 2 {
		r := &metric.Round{Index: k, Due: 4, Complete: true, Start: 1, End: 7}
		for i := range 4 {
			r.Samples = append(r.Samples, &metric.Sample{Server: "vllm", Workload: "production", Part: []string{"chat", "long"}[i%2], Level: "4", Round: k, Order: i, Phase: metric.Measured,
				Scheduled: 1, Sent: 1, Headers: 2, First: 3, Last: 3, End: time.Duration(4 + i), Status: 200, Chunks: 1, Finish: "length"})
		}
		mix.Rounds = append(mix.Rounds, r)
	}
	run := &metric.Run{ID: "run", Servers: []*metric.ServerRun{{Address: "vllm"}}, Levels: []*metric.Level{mix}, End: 9}
	dir := t.TempDir()
	w, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{w.Observe(metric.RunStarted{Run: run}), w.Observe(metric.ServerReady{Server: run.Servers[0]}), w.Observe(metric.LevelStarted{Level: mix, Due: 8})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range mix.Rounds {
		for _, s := range r.Samples {
			must.Do(t, w.Observe(metric.SampleDone{Sample: s}))
		}
		must.Do(t, w.Observe(metric.RoundDone{Level: mix, Round: r}))
	}
	for _, l := range run.Levels {
		must.Do(t, w.Observe(metric.LevelDone{Level: l}))
	}
	for _, err := range []error{w.Observe(metric.ServerDone{Server: run.Servers[0]}), w.Observe(metric.RunDone{Run: run}), w.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, problems, err := record.Read(dir)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	must.Same(t, "read otherwise (-written +read)", run.Levels, got.Levels, cmpopts.EquateEmpty())
	if n := len(got.All()[1].MeasuredSamples()); n != 4 {
		t.Errorf("the part has %d requests, want 4", n)
	}
}
