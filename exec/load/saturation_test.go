package load_test

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/internal/must"
)

// The servers in the table differ in how many requests they run at once, in their speed, and in how
// many prompts they read per second. The field "most" limits the requests in flight.
func TestSaturation(t *testing.T) {
	type server struct {
		in      int
		speed   func(in int) float64
		prompts int // a second
	}
	flat := func(int) float64 { return 1000 }
	// The speed of the server grows with the requests in flight, but less and less. From 1,024 to
	// 2,048 requests it grows by only 4.7 %.
	shared := func(in int) float64 { return 1000 * float64(in) / float64(100+in) }
	for _, tt := range []struct {
		name   string
		s      server
		most   int
		n      int
		after  int // time of the decision in seconds, including 10 s of warm-up
		enough float64
	}{
		// 224 of 256 wait.
		{"a queue", server{32, flat, 1e6}, 4096, 256, 10, 0},
		// 56 of 256 requests in flight wait, which is less than a quarter. Of 512 requests, 312
		// wait, which is more.
		{"hardly a queue", server{200, flat, 1e6}, 4096, 512, 10 + 11, 0},
		// With twice as many requests in flight no request waits, but the server is no faster.
		{"all at once, no faster", server{1e6, flat, 1e6}, 4096, 512, 10 + 11, 0},
		{"all at once, faster", server{1e6, shared, 1e6}, 4096, 2048, 10 + 11 + 11 + 11, 0},
		// 512 requests in flight reach 837 tok/s. The search stops there, because 800 tok/s are
		// enough.
		{"fast enough", server{1e6, shared, 1e6}, 4096, 512, 10 + 11, 800},
		{"no more may be", server{1e6, shared, 1e6}, 300, 300, 10 + 11, 0},
		{"no more may be at all", server{1e6, shared, 1e6}, 256, 256, 10, 0},
		// Three increases, by 256, 512 and 1,024 requests in flight, settle 10 s after their new
		// prompts are read. Reading them takes about 3, 5 and 10 s.
		{"long prompts", server{1e6, shared, 100}, 4096, 2048, 10 + 13 + 15 + 20, 0},
		// At 20 prompts a second, the server reads nearly all of 256 new prompts in 13 s, and of
		// 512 in 24 s. Then it settles for 10 s. Reading 1,024 would take more than half a minute.
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
		must.Hold(t, s.N == tt.n && at == tt.after, "%s: %d in flight after %d s, want %d after %d s", tt.name, s.N, at, tt.n, tt.after)
	}
}

// The looks come after 20, 30 … 60 s. Each divides the time so far into ten blocks.
func TestExcludes(t *testing.T) {
	// marks returns the tokens after each second. Blocks of two seconds have 200 tokens, and
	// alternately by `by` more and fewer.
	marks := func(seconds, by int) []int64 {
		out := []int64{0}
		for i := range seconds {
			out = append(out, out[i]+100+int64([]int{by, by, -by, -by}[i%4]))
		}
		return out
	}
	for _, tt := range []struct {
		name    string
		seconds int
		by      int
		speed   float64
		want    bool
	}{
		{"before the first look", 19, 0, 50, false},
		{"at the first look", 20, 0, 50, true},
		{"exactly this speed", 20, 0, 100, false},
		{"between two looks", 25, 0, 50, false},
		{"at the second look", 30, 0, 50, true},
		// The blocks are 110 and 90 tok/s. Their standard deviation is 10·√(10/9) = 10.54, so the
		// bounds are 100 ± 1.833·10.54/√10 = 100 ± 6.1.
		{"within the bounds", 20, 10, 106, false},
		{"above the bounds", 20, 10, 106.2, true},
		{"below the bounds", 20, 10, 93.8, true},
		{"nothing", 0, 0, 1, false},
	} {
		must.Same(t, tt.name, tt.want, load.Excludes(marks(tt.seconds, tt.by), tt.speed))
	}
	must.Hold(t, !load.Excludes(nil, 1), "no marks exclude a speed")
}
