package report

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// If all keys of a for_each are numbers, its instances are sorted by number, within the places that
// they have among the other entries. Otherwise they keep their order.
func TestByKey(t *testing.T) {
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
		byKey(got, places(nil, "workload"), func(s *string) (string, string) { return "", *s })
		must.Same(t, "", c.want, got)
	}
	// Two verdicts on the same workload stay in order.
	d := Document{Run: &metric.Run{}, Verdicts: []verdict.Verdict{
		{Kind: "load", Server: "s", Workload: `w["32K"]`, Name: "a"}, {Kind: "load", Server: "s", Workload: `w["32K"]`, Name: "b"},
		{Kind: "load", Server: "s", Workload: `w["4K"]`, Name: "c"}, {Kind: "server", Server: "s", Name: "d"},
	}}
	d.inOrder(nil)
	names := ""
	for _, v := range d.Verdicts {
		names += v.Name
	}
	must.Hold(t, names == "cabd", "verdicts in the order %s", names)
}

// A for_each with keys that are not numbers keeps its instances in the order of the plan's text.
func TestInTheOrderOfTheSource(t *testing.T) {
	source := func(text string) *hcl.File {
		f, diags := hclsyntax.ParseConfig([]byte(text), "plan.hcl", hcl.InitialPos)
		must.Need(t, !diags.HasErrors(), "%v", diags)
		return f
	}
	written := writtenKeys(map[string]*hcl.File{
		"a": source(`
locals {
  cases = { rag = 1, chat = 2, "agent" = 3 }
  same  = local.cases
  loop  = local.loop
}`),
		"b": source(`
server "s" { for_each = toset(["new", "old"]) }
workload "w" { for_each = { for name, n in local.same : name => n } }
workload "v" { for_each = toset(keys(local.cases)) }
workload "x" { for_each = merge(local.cases, {}) }
workload "y" { for_each = { (each.key) = 1 } }
workload "z" { for_each = local.loop }
workload "none" {}`),
		"c": {}, "d": nil,
	})
	want := map[string][]string{"server.s": {"new", "old"}, "workload.w": {"rag", "chat", "agent"}, "workload.v": {"rag", "chat", "agent"}}
	must.Same(t, "", want, written)
	list := []string{`w["agent"]`, `other`, `w["chat"]`, `w["rag"]`, `v["agent"]`, `v["computed"]`}
	byKey(list, places(written, "workload"), func(s *string) (string, string) { return "", *s })
	must.Same(t, "", []string{`w["rag"]`, `other`, `w["chat"]`, `w["agent"]`, `v["agent"]`, `v["computed"]`}, list)
}
