package metric

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever a list of numbers holds, gaps are read from it as a list of whole numbers is, or refused.
func FuzzGaps(f *testing.F) {
	for _, text := range []string{"[]", "[ ]", "null", "[0]", "[1, 22 ,4294967295]", "[4294967296]", "[-1]", "[1.0]", "[1e3]", "[01]", "[null]", `["1"]`, "[[1]]", "{}", "7", "[1,]", "[,1]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want []uint32
		var got Gaps
		wantErr, err := json.Unmarshal(raw, &want), json.Unmarshal(raw, &got)
		if err != nil {
			return // what is refused besides: null in the place of a number
		}
		if diff := cmp.Diff(Gaps(want), got); diff != "" || wantErr != nil {
			t.Errorf("%s: %v (-numbers +gaps):\n%s", raw, wantErr, diff)
		}
	})
}

func TestGapsRead(t *testing.T) {
	for raw, want := range map[string]Gaps{"[]": {}, "null": nil, "[0]": {0}, "[1, 22 ,4294967295]": {1, 22, 1<<32 - 1}} {
		var got Gaps
		if err := json.Unmarshal([]byte(raw), &got); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{"[4294967296]", "[-1]", "[1.0]", "[1e3]", "[null]", `["1"]`, "[[1]]", "{}", "7"} {
		var got Gaps
		if err := json.Unmarshal([]byte(raw), &got); err == nil {
			t.Errorf("%s was read as %v", raw, got)
		}
	}
}
