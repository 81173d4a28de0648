package metric

import (
	"fmt"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

func TestDiffers(t *testing.T) {
	for _, tt := range []struct {
		key, a, b string
		want      bool
	}{
		{"version", "0.19.1", "0.19.2", true},
		{"version", "0.19.1", "0.19.1", false},
		{"load_time", "1m2s", "1m3s", false},
		{"gpu", "1 x H100", Unknown, false},
		{"of a later version", "a", "b", true},
	} {
		must.Same(t, fmt.Sprintf("Differs(%s, %s, %s)", tt.key, tt.a, tt.b), tt.want, Differs(tt.key, tt.a, tt.b))
	}
	seen := map[string]bool{}
	for _, f := range Facts {
		must.Hold(t, !seen[f.Key] && f.Doc != "", "%s is there twice, or says nothing", f.Key)
		seen[f.Key] = true
	}
}
