package load_test

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/load"
)

// The servers in the table differ in how many requests they run at once, in their speed, and in how
// many prompts they read per second. The column most is the largest number of requests that the
// saturation may have in flight.
func TestSaturation(t *testing.T) {
	type server struct {
		in      int
		speed   func(in int) float64
		prompts int // a second
	}
	flat := func(int) float64 { return 1000 }
	// The server makes 719 tok/s with 256 requests in flight, 837 with 512, 911 with 1,024, and 953
	// with 2,048. The last doubling adds only 4.6 %.
	shared := func(in int) float64 { return 1000 * float64(in) / float64(100+in) }
	for _, tt := range []struct {
		name   string
		s      server
		most   int
		n      int
		after  int // time of the decision in seconds; the warm-up is the first 10 s
		enough float64
	}{
		// 224 of 256 wait.
		{"a queue", server{32, flat, 1e6}, 4096, 256, 10, 0},
		// With 256 requests in flight, 56 requests wait, which is less than a quarter. With 512 in
		// flight, 312 wait.
		{"hardly a queue", server{200, flat, 1e6}, 4096, 512, 10 + 11, 0},
		// 1 s after the increase no request waits any more. But with twice as many requests in
		// flight the server is no faster.
		{"all at once, no faster", server{1e6, flat, 1e6}, 4096, 512, 10 + 11, 0},
		{"all at once, faster", server{1e6, shared, 1e6}, 4096, 2048, 10 + 11 + 11 + 11, 0},
		// At 512 requests in flight the speed is 837 tok/s. That is enough, because the search
		// stops at 800 tok/s.
		{"fast enough", server{1e6, shared, 1e6}, 4096, 512, 10 + 11, 800},
		{"no more may be", server{1e6, shared, 1e6}, 300, 300, 10 + 11, 0},
		{"no more may be at all", server{1e6, shared, 1e6}, 256, 256, 10, 0},
		// The requests in flight increase by 256, 512 and 1,024. Reading the new prompts takes
		// about 3, 5 and 10 s. 10 s later each increase has settled.
		{"long prompts", server{1e6, shared, 100}, 4096, 2048, 10 + 13 + 15 + 20, 0},
		// The requests in flight increase by 256 and 512. The server takes 13 and 24 s to read the
		// new prompts. For another increase it would take more than half a minute.
		{"very long prompts", server{1e6, shared, 20}, 4096, 1024, 12 + 23 + 34, 0},
		{"too long prompts", server{1e6, shared, 12}, 4096, 256, 20, 0},
	} {
		s := load.Saturation{N: 256, Most: tt.most, Enough: tt.enough}
		began, tokens, at := 0.0, 0.0, 0
		for measure := false; !measure; {
			if at++; at > 300 {
				t.Fatalf("%s: it never ends", tt.name)
			}
			began = min(began+float64(tt.s.prompts), float64(min(s.N, tt.s.in)))
			tokens += tt.s.speed(int(began))
			measure = s.Look(time.Duration(at)*time.Second, s.N-int(began), int64(tokens), at >= 10 && began > 0.9*float64(min(256, tt.s.in)))
		}
		if s.N != tt.n || at != tt.after {
			t.Errorf("%s: %d in flight after %d s, want %d after %d s", tt.name, s.N, at, tt.n, tt.after)
		}
	}
}
