package server

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/record"
)

func TestTailIsBounded(t *testing.T) {
	var file bytes.Buffer
	log := &tail{file: &file}
	line := strings.Repeat("x", 999) + "\n"
	for range 40_000 { // 40 MB
		log.Write([]byte(line))
	}
	log.Write([]byte("the end"))
	log.finish()
	n := file.Len()
	must.Hold(t, n >= fileSize-1000 && n <= fileSize+tailSize+200, "%d bytes on disk, want %d and the tail", n, fileSize)
	if got := log.String(); len(got) != tailSize || !strings.HasSuffix(got, "the end") {
		t.Errorf("the tail holds %d bytes and ends in %q", len(got), got[len(got)-10:])
	}
	if !strings.HasSuffix(file.String(), "the end") || !strings.Contains(file.String(), "[the middle of the log was left out") {
		t.Error("the file does not end as the log did")
	}
	c := cap(log.end) + cap(log.partial)
	must.Hold(t, c <= 8*tailSize, "%d bytes in memory", c)
}

func TestTailRedactsAcrossWrites(t *testing.T) {
	var file bytes.Buffer
	log := &tail{file: &file, redactor: record.NewRedactor([]string{"sk-verysecret"})}
	for _, piece := range []string{"key sk-very", "secret\nand sk-", "verysecret"} {
		log.Write([]byte(piece))
	}
	const want = "key [redacted]\nand [redacted]"
	got := log.String()
	must.Hold(t, got == want, "tail %q, want %q", got, want)
	log.finish()
	if got := file.String(); got != want {
		t.Errorf("file %q, want %q", got, want)
	}
}

// A secret is found also where a long line is cut into pieces.
func TestTailRedactsInLongLines(t *testing.T) {
	for off := range 20 {
		var file bytes.Buffer
		log := &tail{file: &file, redactor: record.NewRedactor([]string{"sk-verysecret"})}
		log.Write([]byte(strings.Repeat("x", lineSize-off) + "sk-verysecret" + strings.Repeat("y", 2*lineSize)))
		log.finish()
		got := file.String()
		if strings.Contains(got, "sk-v") || strings.Contains(got, "secrety") || !strings.Contains(got, "x[redacted]y") || len(got) != 3*lineSize-off+len("[redacted]") {
			t.Errorf("%d bytes before the seam: %d bytes, around it %q", off, len(got), got[lineSize-30:lineSize+30])
		}
	}
}

// TestTailKeepsEverything checks that a short log is kept unchanged, however it is cut into writes.
func TestTailKeepsEverything(t *testing.T) {
	check := func(pieces [][]byte) bool {
		var file bytes.Buffer
		log := &tail{file: &file}
		for _, p := range pieces {
			if n, err := log.Write(p); n != len(p) || err != nil {
				return false
			}
		}
		log.finish()
		all := string(bytes.Join(pieces, nil))
		return file.String() == all && log.String() == all[max(len(all)-tailSize, 0):]
	}
	err := quick.Check(check, nil)
	must.Hold(t, err == nil, "%v", err)
}

func TestTailOutlivesItsFile(t *testing.T) {
	log := &tail{file: broken{}}
	log.Write([]byte("one\ntwo\n"))
	log.finish()
	must.Same(t, "tail", "one\ntwo\n", log.String())
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestQuantile(t *testing.T) {
	buckets := []float64{0, 0.001, 0.002, 0.01, math.Inf(1)}
	h := func(counts ...uint64) *metrics.Float64Histogram {
		return &metrics.Float64Histogram{Counts: counts, Buckets: buckets}
	}
	const ms = time.Millisecond
	for _, tt := range []struct {
		before, after *metrics.Float64Histogram
		q             float64
		want          time.Duration
	}{
		{h(0, 0, 0, 0), h(99, 1, 0, 0), 0.99, 1 * ms}, // rank 99 of 100 is in the first bucket
		{h(0, 0, 0, 0), h(98, 2, 0, 0), 0.99, 2 * ms}, // rank 99 of 100 is in the second bucket
		{h(0, 0, 0, 0), h(99, 0, 1, 0), 1, 10 * ms},   // the longest
		{h(0, 0, 7, 0), h(10, 0, 7, 0), 1, 1 * ms},    // only the 10 new counts matter
		{h(0, 0, 0, 0), h(0, 0, 0, 1), 1, 10 * ms},    // the last bucket has no upper bound, so its lower bound counts
		{h(5, 0, 0, 0), h(5, 0, 0, 0), 0.99, 0},       // nothing new
		{nil, h(1, 0, 0, 0), 0.99, 0},
	} {
		must.Same(t, fmt.Sprintf("quantile(%v, %v, %g)", tt.before, tt.after, tt.q), tt.want, quantile(tt.before, tt.after, tt.q))
	}
}

func TestMeter(t *testing.T) {
	done := Meter()()
	n := 0
	for i := range 20_000_000 { // something to do
		n += i % 7
	}
	h := done()
	must.Hold(t, h.CPU > 0 && h.CPU <= 1 && n != 0, "health %+v, want a share of the CPU", h)
}

func TestLate(t *testing.T) {
	// The second chunk was read before it was written, because the clock was set back, so its delay
	// counts as 0. The third chunk was never read.
	got := readDelays([]time.Duration{10, 20, 30}, []time.Duration{12, 19})
	must.Hold(t, slices.Equal(got, []time.Duration{2, 0}), "got %v, want 2, 0", got)
	// Nearest rank rounds up: the p99 of four values is value ⌈0.99·4⌉ = 4, and the p50 is value
	// ⌈0.5·4⌉ = 2.
	d := []time.Duration{1, 2, 3, 4}
	if nearest(d, 50) != 2 || nearest(d, 99) != 4 {
		t.Errorf("percentiles %v, %v, want 2, 4", nearest(d, 50), nearest(d, 99))
	}
}

func TestLogName(t *testing.T) {
	for address, want := range map[string]string{
		"vllm": "server-vllm.log", `vllm["on"]`: "server-vllm-on.log", `a["../x y"]`: "server-a-..-x-y.log",
	} {
		must.Same(t, fmt.Sprintf("logName(%q)", address), want, logName(address))
	}
}

// If a server ends, the report quotes only what it logged after it was ready. Errors that it logged
// during its start are not the reason.
func TestLogSince(t *testing.T) {
	log := &tail{}
	fmt.Fprint(log, "ERROR: no GPU, going on without\n")
	ready := log.length()
	fmt.Fprint(log, "Traceback\nhalf a li")
	must.Same(t, "", "Traceback\nhalf a li", log.since(ready))
	fmt.Fprint(log, strings.Repeat("ne\n", tailSize))
	got := log.since(ready)
	must.Hold(t, len(got) == tailSize, "%d bytes of a long one", len(got))
}
