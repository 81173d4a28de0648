package prompt

import (
	"testing"

	"github.com/tokgate/tokgate/metric"
)

// Prompts of a group share what is asked, and at most what a server puts around a
// prompt beyond it; those of two groups share no more than any two do. Each counts as
// many tokens as asked.
func TestSharedPrefixes(t *testing.T) {
	for _, tt := range fakes {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.new()
			m := calibrated(t, f, 7)
			if m.perToken > 0 {
				t.Skip("lengths are estimates")
			}
			made := map[Key][]string{}
			for group := range 3 {
				for order := range 20 {
					k := Key{Seed: 1, Workload: "w", Level: "4", Phase: metric.Measured, Order: 3*order + group, Shared: Prefix{Group: group, Tokens: 256, More: 64 * (order % 2)}}
					p, err := m.Make(k, 512)
					if err != nil {
						t.Fatal(err)
					}
					if got := f.count(p); got != 512 {
						t.Fatalf("%d tokens", got)
					}
					if want := float64(256+k.Shared.More+m.behind()) / 512; p.Shared != want {
						t.Fatalf("%v shared, want %v", p.Shared, want)
					}
					made[k] = f.t(p.Text)
				}
			}
			for a, x := range made {
				for b, y := range made {
					same := 0
					for same < min(len(x), len(y)) && x[same] == y[same] {
						same++
					}
					low, high := 256, 256+mostBehind
					switch {
					case a == b:
						continue
					case a.Shared.Group != b.Shared.Group:
						low, high = 0, 12
					case a.Shared.More == 64 && b.Shared.More == 64:
						low, high = low+64, high+64
					}
					// A word of the two that number a prompt may be the same, and its
					// first tokens those of another.
					if same < low-f.around || same > high+8 {
						t.Fatalf("%+v and %+v share %d tokens, want %d to %d", a, b, same, low, high)
					}
				}
			}
		})
	}
}
