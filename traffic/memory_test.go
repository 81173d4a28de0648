// With the race detector, the compiler copies strings that it otherwise does not.

//go:build !race

package traffic_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/traffic"
)

var longTraces = []string{"lengths", "blocks", "sessions", "sessions in a table"}

// long returns a trace of the given kind with n rows of about 80 bytes: 2,000,000 such rows, the
// most of a trace, have 160 MB.
func long(kind string, n int) string {
	var b strings.Builder
	if kind == "sessions in a table" {
		b.WriteString("Timestamp,Session ID,Model,Request tokens,Response tokens,Log Type\n")
	}
	for i := range n {
		switch kind {
		case "lengths":
			fmt.Fprintf(&b, `{"timestamp": %10d, "input_length": %8d, "output_length": %8d}`+"\n", 3*i, 100+i%9000, 1+i%700)
		case "blocks":
			fmt.Fprintf(&b, `{"timestamp":%d,"input_length":1600,"output_length":%d,"hash_ids":[1,2,%d,%d]}`+"\n", 3*i, 1+i%700, i, i+1)
		case "sessions in a table":
			fmt.Fprintf(&b, "%d,conversation-%010d,ChatGPT,%8d,%8d,Conversation log of an hour\n", i/3, i*7919%(n/4), 100+i%9000, 1+i%700)
		case "sessions":
			at := fmt.Sprintf(`"timestamp":%d`, 3*i)
			if i%5 > 0 {
				at = fmt.Sprintf(`"delay":%d`, i%5000)
			}
			fmt.Fprintf(&b, `{"session_id":"s%07d",%s,"input_length":%d,"output_length":%d}`+"\n", i/5, at, 10+i%900, 1+i%700)
		}
	}
	return b.String()
}

// allocated returns how many bytes of memory are allocated for each byte of a trace while it is
// read, garbage included. So the trace never takes more, whenever garbage is collected.
func allocated(t testing.TB, text string) float64 {
	path := "a.jsonl"
	if text[0] != '{' {
		path = "a.csv"
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := traffic.ParseTrace(strings.NewReader(text), path, "", nil)
	runtime.ReadMemStats(&after)
	must.Do(t, err)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(text))
}

// A trace of 160 MB takes less than four times its size in memory.
func TestMemoryOfTraces(t *testing.T) {
	for _, kind := range longTraces {
		times := allocated(t, long(kind, 100_000))
		must.Hold(t, times <= 4, "%s: %.2f bytes are allocated for each byte, want at most 4", kind, times)
	}
}

// BenchmarkTrace reads traces of 200,000 rows.
func BenchmarkTrace(b *testing.B) {
	for _, kind := range longTraces {
		b.Run(strings.ReplaceAll(kind, " ", "_"), func(b *testing.B) {
			text, times := long(kind, 200_000), 0.
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				times = allocated(b, text)
			}
			b.ReportMetric(times, "bytes/byte")
		})
	}
}
