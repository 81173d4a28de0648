package record_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// fill sets fields of v with the function set. The function there decides for each field whether to
// set it. The field Said is never set, because it is recorded in another file.
func fill(v reflect.Value, there func() bool, set func(reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if there() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), there, set)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Said" {
				fill(v.Field(i), there, set)
			}
		}
	default:
		if there() {
			set(v)
		}
	}
}

// filled returns a request with every field set.
func filled() *metric.Sample {
	s, n := new(metric.Sample), int64(0)
	fill(reflect.ValueOf(s).Elem(), func() bool { return true }, func(v reflect.Value) {
		n++
		switch v.Kind() {
		case reflect.String:
			v.SetString(fmt.Sprintf("the %q\n%d. ü", "word", n))
		case reflect.Int, reflect.Int64:
			v.SetInt(n * 1_000_003)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Float64:
			v.SetFloat(1 / float64(n))
		case reflect.Slice:
			v.Set(reflect.ValueOf(metric.Gaps{0, 20_000, 19_999, 1<<32 - 1, 0}))
		default:
			panic(v.Kind().String() + " is not filled")
		}
	})
	return s
}

// drawn returns a request with random values. About half of its fields are not set.
func drawn(rng *rand.Rand) *metric.Sample {
	words := []string{"plain", `a "quoted" <b> & \ /`, "line\r\n\tfeed", "\x00\x1b[31m\x7f", "größer 日本 😀", "\u2028\u2029\ufffd", "cut \xc3", "\xff\xfe", strings.Repeat("long ", 100)}
	shares := []float64{1, 0.5, 1.0 / 3, 1e-6, 9.9e-7, 1e-21, 1.5, 1e21, -1, math.SmallestNonzeroFloat64, math.Copysign(0, -1)}
	s := new(metric.Sample)
	fill(reflect.ValueOf(s).Elem(), func() bool { return rng.IntN(2) == 0 }, func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString(words[rng.IntN(len(words))])
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(rng.Uint64()) >> rng.IntN(64))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Float64:
			v.SetFloat(shares[rng.IntN(len(shares))])
		case reflect.Slice:
			gaps := make(metric.Gaps, rng.IntN(5))
			for i := range gaps {
				gaps[i] = rng.Uint32() >> rng.IntN(32)
			}
			v.Set(reflect.ValueOf(gaps))
		default:
			panic(v.Kind().String() + " is not drawn")
		}
	})
	return s
}

// lineOf returns the line of a request, without the checksum.
func lineOf(t testing.TB, s *metric.Sample) []byte {
	t.Helper()
	raw := must.Get(json.Marshal(struct {
		Type   string         `json:"type"`
		Sample *metric.Sample `json:"sample"`
	}{"sample", s}))(t)
	return raw
}

// The line of a request has the same bytes as encoding/json writes. Reading the line gives the same
// request.
func TestRequestLine(t *testing.T) {
	encode, rng, fast := record.Encoder(), rand.New(rand.NewPCG(1, 1)), 0
	samples := []*metric.Sample{filled(), {Phase: metric.Measured}, {Usage: &metric.Usage{Cached: -1}, Failure: &metric.Failure{}}}
	for range 3000 {
		samples = append(samples, drawn(rng))
	}
	for _, s := range samples {
		want := lineOf(t, s)
		got, err := encode(s)
		must.Need(t, err == nil && bytes.Equal(got, want), "%v\n%s, encoding/json:\n%s", err, got, want)
		if back, ok := record.DecodeFast(got); ok {
			fast++
			plainly := struct{ Sample *metric.Sample }{}
			must.Do(t, json.Unmarshal(want, &plainly))
			diff := cmp.Diff(plainly.Sample, back)
			must.Need(t, diff == "", "%s (-encoding/json +fast):\n%s", want, diff)
		}
	}
	must.Hold(t, fast >= len(samples)/10, "%d of %d lines are read in the fast way", fast, len(samples))
	line, err := encode(&metric.Sample{Shared: math.NaN()})
	must.Hold(t, err != nil, "a share that is no number is written: %s", line)
}

// Recording a request allocates no memory.
func TestNoAllocationPerRequest(t *testing.T) {
	w := must.Get(record.Create(t.TempDir()))(t)
	defer w.Close()
	s := ofChunks(250)
	if n := testing.AllocsPerRun(20, func() {
		must.Do(t, w.Observe(metric.SampleDone{Sample: s}))
	}); n > 0 {
		t.Errorf("%v allocations for each", n)
	}
}

// ofChunks returns a request whose answer has the given number of chunks.
func ofChunks(chunks int) *metric.Sample {
	rng := rand.New(rand.NewPCG(1, 2))
	s := &metric.Sample{Server: `vllm["on"]`, Workload: "chat", Level: "64", Round: 2, Slot: 17, Order: 1234, Phase: metric.Measured,
		Scheduled: time.Hour, Sent: time.Hour + 20_123, Headers: time.Hour + 300_456, First: time.Hour + 234_567_890, Chunks: chunks, FirstTokens: 1,
		InputAsked: 1000, OutputAsked: chunks, Usage: &metric.Usage{Input: 1000, Output: chunks}, Finish: "length", Status: 200}
	s.FirstAnswer, s.Last = s.First, s.First
	for range chunks - 1 {
		gap := time.Duration(20e6 * (0.8 + 0.4*rng.Float64()))
		s.Gaps.Add(gap)
		s.Last += gap
	}
	s.End = s.Last + 100_000
	return s
}

// BenchmarkRequestLine reports how much faster this package writes a request than encoding/json.
// The request has 250 chunks. The two encoders take turns.
func BenchmarkRequestLine(b *testing.B) {
	s, encode := ofChunks(250), record.Encoder()
	took := func(do func() ([]byte, error)) time.Duration {
		begin := time.Now()
		for range 100 {
			must.Get(do())(b)
		}
		return time.Since(begin) / 100
	}
	theirs, ours := time.Hour, time.Hour
	for b.Loop() {
		theirs = min(theirs, took(func() ([]byte, error) { return json.Marshal(s) }))
		ours = min(ours, took(func() ([]byte, error) { return encode(s) }))
	}
	b.ReportMetric(float64(ours.Nanoseconds()), "ns/line")
	b.ReportMetric(float64(theirs)/float64(ours), "json/ours")
	b.ReportMetric(0, "ns/op")
}

// The fast decoder reads every line of a request that the writer writes. Only lines with findings
// on the answer are left to the slow decoder.
func TestFastLine(t *testing.T) {
	whole := filled()
	whole.Answer = nil
	bare := &metric.Sample{Phase: metric.Measured}
	for name, s := range map[string]*metric.Sample{"whole": whole, "bare": bare} {
		line := lineOf(t, s)
		for _, line := range [][]byte{line, record.SealLine(bytes.Clone(line))} {
			got, fast := record.DecodeFast(line)
			must.Need(t, fast, "%s: the fast way does not know %s", name, line)
			must.Same(t, name+" (-want +got)", s, got)
		}
	}
	_, fast := record.DecodeFast(lineOf(t, filled()))
	must.Hold(t, !fast, "the fast way reads what was found of an answer")
}

// FuzzFastLine compares the fast decoder with encoding/json. If both accept a line, they must read
// the same from it, and write it in the same way.
func FuzzFastLine(f *testing.F) {
	whole := filled()
	whole.Answer = nil
	line := lineOf(f, whole)
	f.Add(line)
	f.Add(record.SealLine(bytes.Clone(line)))
	f.Add(lineOf(f, filled()))
	f.Add(lineOf(f, &metric.Sample{Phase: metric.Measured, Shared: 1e-9}))
	for _, change := range [][2]string{{":20000", ":020000"}, {"20000,", "20000 ,"}, {"[0,", "["}, {"4294967295", "4294967296"}, {"true", "false"}, {`\"`, "\x01"}, {"ü", "\xff"}, {`"slot"`, `"Slot"`}, {"}}", "}}}"}, {":-", ":--"}, {"0.", "."}, {"0.", "1."}} {
		f.Add(bytes.ReplaceAll(line, []byte(change[0]), []byte(change[1])))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, fast := record.DecodeFast(raw)
		if !fast {
			return
		}
		var want struct {
			Type   string
			Sample *metric.Sample
		}
		err := json.Unmarshal(raw, &want)
		must.Need(t, err == nil && want.Type == "sample", "the fast way reads %q, of which encoding/json says: %v", raw, err)
		diff := cmp.Diff(want.Sample, got)
		must.Need(t, diff == "", "%q (-encoding/json +fast):\n%s", raw, diff)
		if line, err := record.Encoder()(got); err != nil || !bytes.Equal(line, lineOf(t, got)) {
			t.Fatalf("%v: %q is written as %q", err, raw, line)
		}
	})
}
