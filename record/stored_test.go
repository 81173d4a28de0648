package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// A recording gives the same run whether the reader keeps its requests in memory or reads them
// again.
func TestStoredAlike(t *testing.T) {
	for seed := range uint64(30) {
		run := random(seed)
		run.Levels = append(run.Levels, mixed(run)...)
		raw := must.Get(os.ReadFile(filepath.Join(recorded(t, run), record.File)))(t)
		if seed%3 == 0 {
			raw = raw[:len(raw)-len(raw)/4]
		}
		want, wantProblems, err1 := record.ReadFrom(bytes.NewReader(raw))
		got, problems, err2 := record.ReadStored(raw, bytes.NewReader(raw))
		must.Need(t, fmt.Sprint(err1) == fmt.Sprint(err2), "in memory: %v; stored: %v", err1, err2)
		if err1 != nil {
			continue
		}
		for _, l := range got.Levels {
			for _, rounds := range [][]*metric.Round{l.Rounds, l.Voided} {
				for i, r := range rounds {
					must.Need(t, len(r.Samples) <= 0, "requests stay in memory")
					rounds[i] = r.With(r.All())
				}
			}
		}
		diff := cmp.Diff(want, got, cmpopts.EquateEmpty())
		must.Need(t, diff == "" && cmp.Equal(wantProblems, problems), "run %d, problems %q and %q (-in memory +stored):\n%s", seed, wantProblems, problems, diff)
	}
}

// Several goroutines may read rounds of a stored recording at the same time.
func TestStoredAtOnce(t *testing.T) {
	raw := someRecording(t)
	want, _, err1 := record.ReadFrom(bytes.NewReader(raw))
	got, _, err2 := record.ReadStored(raw, bytes.NewReader(raw))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i, l := range got.Levels {
				for k, r := range rounds(l) {
					must.Same(t, fmt.Sprintf("round %d (-in memory +stored)", k), rounds(want.Levels[i])[k].All(), r.All(), cmpopts.EquateEmpty())
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
	l.Parts = []*metric.Level{{Server: l.Server, Workload: "mix/a", Name: l.Name, Of: "mix", Share: 0.7, Kind: l.Kind, N: l.N}}
	return []*metric.Level{l}
}

// Reading a request again panics if the file can no longer be read, is shorter, or was changed. So
// nothing is judged without this request, or with another one.
func TestLostRequests(t *testing.T) {
	raw := someRecording(t)
	changed := bytes.Clone(raw)
	for at := 0; at < len(changed); at++ { // a digit of every request
		if i := bytes.Index(changed[at:], []byte(`"end_ns":`)); i >= 0 {
			at += i + len(`"end_ns":`)
			changed[at] ^= 1
		}
	}
	for name, again := range map[string]io.ReaderAt{
		"unreadable": unreadable{},
		"shorter":    bytes.NewReader(raw[:1]),
		"changed":    bytes.NewReader(changed),
	} {
		run, _, err := record.ReadStored(raw, again)
		must.Do(t, err)
		func() {
			defer func() {
				got := recover()
				lost, ok := got.(record.Lost)
				must.Hold(t, ok && (name != "unreadable" || errors.Is(lost, syscall.EIO)), "%s: %v", name, got)
			}()
			for _, l := range run.Levels {
				for _, r := range rounds(l) {
					r.All()
				}
			}
		}()
	}
}

type unreadable struct{}

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, syscall.EIO }

// someRecording returns a recording that has requests.
func someRecording(t *testing.T) []byte {
	made := random(0)
	for seed := uint64(1); requestsOf(made) == 0; seed++ {
		made = random(seed)
	}
	raw := must.Get(os.ReadFile(filepath.Join(recorded(t, made), record.File)))(t)
	return raw
}
