package record

import (
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

func strandSample(order int) *metric.Sample {
	return &metric.Sample{Server: "s", Workload: "w", Level: "8", Phase: metric.Measured, Order: order, Scheduled: time.Second,
		Sent: 2 * time.Second, Headers: 3 * time.Second, First: 3 * time.Second, Last: 3 * time.Second, End: 4 * time.Second,
		Chunks: 1, Status: 200, Finish: "stop"}
}

// A line of a strand is opened as it was sealed, once and in its place.
func TestStrand(t *testing.T) {
	sealed := NewStrand()
	var lines []string
	for i := range 3 {
		lines = append(lines, string(must.Get(sealed.Seal(strandSample(i)))(t)))
	}
	opened := NewStrand()
	for i, line := range lines {
		must.Same(t, "sample", strandSample(i), must.Get(opened.Open([]byte(line)))(t))
	}
	for words, wrong := range map[string][]string{
		"checksum":                  {lines[0], lines[2]},
		"line before it":            {lines[1]},
		"damaged":                   {"{}"},
		"it was changed":            {strings.Replace(lines[0], `"order":0`, `"order":1`, 1)},
		"not the line of a request": {string(new(chain).seal([]byte(`{"type":"run_done"}`)))},
		"it ended before":           {string(must.Get(NewStrand().Seal(&metric.Sample{Sent: 2, End: 1}))(t))},
	} {
		opened, err := NewStrand(), error(nil)
		for _, line := range wrong {
			_, err = opened.Open([]byte(line))
		}
		must.Hold(t, err != nil && strings.Contains(err.Error(), words), "%q gave %v, want %q", wrong, err, words)
	}
}

func FuzzStrand(f *testing.F) {
	line, _ := NewStrand().Seal(strandSample(0))
	f.Add(line)
	f.Fuzz(func(t *testing.T, line []byte) {
		if s, err := NewStrand().Open(line); err == nil {
			must.Do(t, possible(s))
		}
	})
}
