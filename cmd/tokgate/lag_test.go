package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
	"github.com/tokgate/tokgate/sim"
)

var (
	lagRun = flag.String("lag", "", "hold the requests of the run in this `folder`")
	lagLog = flag.String("lag-log", "", "against this log of the built-in server, a `file`")
)

// TestLag compares the TTFT that `make lag` measured with the TTFT in the server's own log. It
// prints the difference for a closed loop and for several rates. The requests of both logs are
// matched by the order of sending.
func TestLag(t *testing.T) {
	if *lagRun == "" {
		t.Skip("make lag")
	}
	run, _, err := record.Read(*lagRun)
	must.Do(t, err)
	served := readServed(t, *lagLog)
	for _, l := range run.Levels {
		var sent []*metric.Sample
		for _, r := range l.Rounds {
			sent = append(sent, r.Samples...)
		}
		slices.SortStableFunc(sent, func(a, b *metric.Sample) int { return cmp.Compare(a.Sent, b.Sent) })
		var lags, errs []time.Duration
		for _, s := range sent {
			i := slices.IndexFunc(served, func(x sim.Served) bool { return x.Arrived.Sub(run.Started) >= s.Sent })
			if s.Sent == 0 || i < 0 {
				continue
			}
			its := served[i]
			served = served[i+1:]
			if s.Phase != metric.Measured || !s.Completed() || its.First.IsZero() {
				continue
			}
			begin := s.Sent
			if s.FromDue {
				begin = s.Scheduled
			}
			lags = append(lags, s.Sent-s.Scheduled)
			errs = append(errs, s.First-begin-its.First.Sub(its.Arrived))
		}
		fmt.Printf("%-6s at %-10s %5d requests: lag %s, TTFT error %s\n", l.Workload, l.Name, len(errs), spread(lags), spread(errs))
	}
}

func readServed(t *testing.T, path string) []sim.Served {
	file := must.Get(os.Open(path))(t)
	defer file.Close()
	var out []sim.Served
	for lines := json.NewDecoder(file); ; {
		var s sim.Served
		if err := lines.Decode(&s); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b sim.Served) int { return a.Arrived.Compare(b.Arrived) })
	return out
}

func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "–"
	}
	slices.Sort(d)
	at := func(share float64) time.Duration { return d[int(share*float64(len(d)-1))].Round(time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v", at(0.5), at(0.99))
}
