package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/record/disk"
)

// Packing and unpacking a request keeps every field.
func TestPackedRequest(t *testing.T) {
	whole := filled()
	bare := &metric.Sample{Server: "s", Phase: metric.Measured, End: 1}
	for name, s := range map[string]*metric.Sample{"whole": whole, "bare": bare, "cached unknown": {Usage: &metric.Usage{Cached: -1}}} {
		got, err := record.Packed([]*metric.Sample{bare, s, s})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]*metric.Sample{bare, s, s}, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A recording gives the same run whether the reader keeps its requests in memory or in a temporary
// file.
func TestStoredAlike(t *testing.T) {
	for seed := range uint64(30) {
		run := random(seed)
		run.Levels = append(run.Levels, mixed(run)...)
		raw, err := os.ReadFile(filepath.Join(recorded(t, run), record.File))
		if err != nil {
			t.Fatal(err)
		}
		if seed%3 == 0 {
			raw = raw[:len(raw)-len(raw)/4]
		}
		want, wantProblems, err1 := record.ReadFrom(bytes.NewReader(raw))
		got, problems, err2 := record.ReadStored(bytes.NewReader(raw))
		if fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Fatalf("in memory: %v; stored: %v", err1, err2)
		}
		if err1 != nil {
			continue
		}
		for _, l := range got.Levels {
			for _, rounds := range [][]*metric.Round{l.Rounds, l.Voided} {
				for i, r := range rounds {
					if len(r.Samples) > 0 {
						t.Fatal("requests stay in memory")
					}
					rounds[i] = r.With(r.All())
				}
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || !cmp.Equal(wantProblems, problems) {
			t.Fatalf("run %d, problems %q and %q (-in memory +stored):\n%s", seed, wantProblems, problems, diff)
		}
	}
}

// Several goroutines may read rounds of a stored recording at the same time.
func TestStoredAtOnce(t *testing.T) {
	raw := someRecording(t)
	want, _, err1 := record.ReadFrom(bytes.NewReader(raw))
	got, _, err2 := record.ReadStored(bytes.NewReader(raw))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i, l := range got.Levels {
				for k, r := range rounds(l) {
					if diff := cmp.Diff(rounds(want.Levels[i])[k].All(), r.All(), cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("round %d (-in memory +stored):\n%s", k, diff)
					}
				}
			}
		})
	}
	all.Wait()
}

// mixed returns the level of a mix on the first server, and the level of one of its parts.
func mixed(run *metric.Run) []*metric.Level {
	l := &metric.Level{Server: run.Servers[0].Address, Workload: "mix", Name: "2", Kind: metric.ClosedLoop, N: 2}
	r := &metric.Round{Busy: 1, Health: metric.Health{CPU: -1}}
	for i, part := range []string{"a", "b", "a"} {
		at := time.Duration(i+1) * time.Second
		r.Samples = append(r.Samples, &metric.Sample{Server: l.Server, Workload: l.Workload, Level: l.Name, Part: part, Order: i, Phase: metric.Measured,
			Scheduled: at, Sent: at, End: at + 1, Failure: &metric.Failure{Kind: metric.FailStream, Message: "no"}})
	}
	settle(r, true)
	l.Rounds = []*metric.Round{r}
	part := &metric.Level{Server: l.Server, Workload: "mix/a", Name: l.Name, Of: "mix", Share: 0.7, Kind: l.Kind, N: l.N}
	*part = *l.Part(part)
	l.Parts = []*metric.Level{part}
	return []*metric.Level{l, part}
}

// An unreadable line gives the same error, whichever of the batches of lines it is in.
func TestDamageBehindBatches(t *testing.T) {
	line := strings.Replace(string(lineOf(t, &metric.Sample{Server: "s", Workload: "w", Level: "1", Order: 77, Phase: metric.Filler, Sent: 1, End: 2,
		Failure: &metric.Failure{Kind: metric.FailStream, Message: strings.Repeat("x", 1000)}})), `"order":77`, `"order":%d`, 1)
	var lines strings.Builder
	fmt.Fprintf(&lines, "{\"type\":\"header\",\"schema\":%q}\n{\"type\":\"run\",\"run\":{}}\n{\"type\":\"level\",\"level\":{\"server\":\"s\",\"workload\":\"w\",\"name\":\"1\"}}\n", record.Schema)
	const n = 1000 // a megabyte
	for i := range n {
		fmt.Fprintf(&lines, line+"\n", i)
	}
	whole := record.Seal(lines.String())
	run, _, err := record.ReadFrom(strings.NewReader(whole))
	if err != nil || len(run.Levels[0].Rounds[0].Samples) != n {
		t.Fatalf("whole: %v", err)
	}
	for _, c := range []struct{ was, is, want string }{
		{`"order":700,`, `"order":701,`, "line 704: it was changed after it was written"},
		{`"order":999,`, `"order":998,`, "line 1003: it was changed after it was written"},
	} {
		if _, _, err := record.ReadFrom(strings.NewReader(strings.Replace(whole, c.was, c.is, 1))); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.is, err, c.want)
		}
	}
	twice := record.Seal(strings.Replace(lines.String(), `"order":700,`, `"order":699,`, 1))
	if _, _, err := record.ReadFrom(strings.NewReader(twice)); err == nil || !strings.HasPrefix(err.Error(), "line 704: s/w at 1, round 1, request 700 is there twice") {
		t.Errorf("twice: %v", err)
	}
	noJSON := record.Seal(strings.Replace(lines.String(), `"order":700,`, `"order":,`, 1))
	if _, _, err := record.ReadFrom(strings.NewReader(noJSON)); err == nil || !strings.HasPrefix(err.Error(), "line 704: invalid character") {
		t.Errorf("no JSON: %v", err)
	}
}

// Reading a stored request panics if the file has lost it. So nothing is judged without this
// request.
func TestLostRequests(t *testing.T) {
	raw := someRecording(t)
	run, _, err := record.ReadStored(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Inject(func(c disk.Call) (int, error) { return 0, syscall.EIO })()
	defer func() {
		got := recover()
		if lost, ok := got.(record.Lost); !ok || !errors.Is(lost, syscall.EIO) {
			t.Errorf("requests that cannot be read: %v", got)
		}
	}()
	for _, l := range run.Levels {
		for _, r := range rounds(l) {
			r.All()
		}
	}
}

// someRecording returns a recording that has requests.
func someRecording(t *testing.T) []byte {
	made := random(0)
	for seed := uint64(1); requestsOf(made) == 0; seed++ {
		made = random(seed)
	}
	raw, err := os.ReadFile(filepath.Join(recorded(t, made), record.File))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
