package decode

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/plan"
)

// The server's command line has the flags in plan order, and then the args. A mistake in one flag
// does not hide the mistakes in other flags.
func TestCommandLineOrder(t *testing.T) {
	src := `
server "s" {
  engine = "sglang"
  flags  = { z = 1, a = 2, off = false, m = null, "bad name" = 1, b = "x" }
  args   = ["--raw", "1"]
  endpoint { url = "http://127.0.0.1:8000" }
}
`
	p, _ := File(Options{Path: "test.hcl", Source: []byte(src)})
	got, diags := plan.CommandLine("sglang", p.Servers[0].Flags, p.Servers[0].Args)
	want := []string{"-z", "1", "-a", "2", "-b", "x", "--raw", "1"}
	if diff := gocmp.Diff(want, got); diff != "" || len(diags) != 2 {
		t.Errorf("%s\n%d problems, want 2: %v", diff, len(diags), diags)
	}
}
