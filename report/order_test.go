package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Keys that are all numbers are in their order, each in a place of its kind; others
// stay as the run had them.
func TestByNumber(t *testing.T) {
	for _, c := range []struct{ have, want []string }{
		{[]string{`w["1K"]`, `w["256K"]`, `w["32K"]`, `w["8K"]`}, []string{`w["1K"]`, `w["8K"]`, `w["32K"]`, `w["256K"]`}},
		{[]string{`w["10"]`, `chat`, `w["9"]`, `w["1M"]`, `w["0.5"]`}, []string{`w["0.5"]`, `chat`, `w["9"]`, `w["10"]`, `w["1M"]`}},
		{[]string{`w["10"]`, `v["2"]`, `v["1"]`, `w["9"]`}, []string{`w["9"]`, `v["1"]`, `v["2"]`, `w["10"]`}},
		{[]string{`w["10"]`, `w["9"]`, `w["rag"]`}, []string{`w["10"]`, `w["9"]`, `w["rag"]`}},
		{[]string{`w["b"]`, `w["a"]`}, []string{`w["b"]`, `w["a"]`}},
		{[]string{`w[""]`, `w["K"]`, `w["1KK"]`, `w["NaN"]`, `w["1"]`, `w["0"]`}, []string{`w[""]`, `w["K"]`, `w["1KK"]`, `w["NaN"]`, `w["1"]`, `w["0"]`}},
		{nil, nil},
	} {
		got := append([]string(nil), c.have...)
		byNumber(got, func(s *string) (string, string) { return "", *s })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
	// Verdicts of one context stay as they were among each other.
	d := Document{Verdicts: []Verdict{
		{Kind: "load", Server: "s", Workload: `w["32K"]`, Name: "a"}, {Kind: "load", Server: "s", Workload: `w["32K"]`, Name: "b"},
		{Kind: "load", Server: "s", Workload: `w["4K"]`, Name: "c"}, {Kind: "server", Server: "s", Name: "d"},
	}}
	d.inOrder()
	names := ""
	for _, v := range d.Verdicts {
		names += v.Name
	}
	if names != "cabd" {
		t.Errorf("verdicts in the order %s", names)
	}
}
