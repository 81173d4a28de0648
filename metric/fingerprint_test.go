package metric

import "testing"

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
		if got := Differs(tt.key, tt.a, tt.b); got != tt.want {
			t.Errorf("Differs(%s, %s, %s) = %v", tt.key, tt.a, tt.b, got)
		}
	}
	seen := map[string]bool{}
	for _, f := range Facts {
		if seen[f.Key] || f.Doc == "" {
			t.Errorf("%s is there twice, or says nothing", f.Key)
		}
		seen[f.Key] = true
	}
}
