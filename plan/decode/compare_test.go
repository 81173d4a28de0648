package decode

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/tokgate/tokgate/internal/must"
)

const branchPlan = `
variable "flag" {
  default = "a"
}
server "s" {
  engine = "vllm"
  process { command = ["vllm", "serve", "m", "--port", "{port}"] }
  flags = { dtype = var.flag }
}
`

const comparing = `
workload "w" {
  input_tokens  = 128
  output_tokens = 16
  load { concurrency = 8 }
  sla { ttft = "p95 < 8s" }
}
compare "branch" {
  control   = base.server.s
  candidate = server.s
  changed   = ["flags"]
  tolerate { ttft = "p95 +10%" }
}
`

// The control server is the plan's server as the base branch declares it. The base branch lies in a
// folder of its own.
func TestBaseBranch(t *testing.T) {
	for _, row := range []struct {
		name, base string // base is the plan on the base branch; "" if there is no plan
		skip       string
		unchanged  bool
		fails      string
		inputs     []Input
	}{
		{"another flag", strings.Replace(branchPlan, `"a"`, `"b"`, 1), "", false, "", nil},
		{"the same", branchPlan, "nothing changed: server.s is the same on the base branch", true, "", nil},
		{"no plan", "", "the base branch has no plan plans/p.hcl", false, "", nil},
		{"no server", `server "other" {
  endpoint { url = "http://127.0.0.1:8000" }
}`, "the plan on the base branch has no server.s", false, "", nil},
		{"another engine", strings.Replace(branchPlan, "vllm", "sglang", 1), "", false, sumCompareSame, nil},
		{"no such variable", `server "s" {
  engine = "vllm"
  process { command = ["vllm", "serve", "m", "--port", "{port}"] }
}`, "", false, "", []Input{{Var: "flag=a"}}},
		{"a wrong plan", `server "s" { nonsense = 1 }`, "", false, sumBase, nil},
		{"a program of the repository", strings.ReplaceAll(branchPlan, `["vllm"`, `["./bin/vllm"`), "", false, sumCompareSame, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			root, base := t.TempDir(), t.TempDir()
			for _, dir := range []string{root, base} {
				must.Do(t, os.Mkdir(filepath.Join(dir, "plans"), 0o755))
			}
			path := filepath.Join(root, "plans", "p.hcl")
			must.Do(t, os.WriteFile(path, []byte(branchPlan+comparing), 0o644))
			if row.base != "" {
				must.Do(t, os.WriteFile(filepath.Join(base, "plans", "p.hcl"), []byte(row.base+comparing), 0o644))
			}
			p, diags := File(Options{Path: path, Root: root, Base: base, RequireEnv: true, Inputs: row.inputs})
			if row.fails != "" {
				if !slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool { return d.Summary == row.fails }) {
					t.Fatalf("diagnostics %v, want %q", diags, row.fails)
				}
				return
			}
			must.Need(t, len(diags) <= 0, "%v", diags)
			c := p.Compares[0]
			if c.Skip != row.skip || c.Unchanged != row.unchanged || c.Live() == (row.skip != "") {
				t.Errorf("skip %q, unchanged %v, live %v", c.Skip, c.Unchanged, c.Live())
			}
			if c.Live() && (c.Control.Server.Address() != "base.s" || len(p.Workloads[0].Servers) != 2 || p.Workloads[0].Loads[0].Levels[0].Rounds != 12) {
				t.Errorf("control %s, the workload on %d servers, %d rounds", c.Control.Server.Address(), len(p.Workloads[0].Servers), p.Workloads[0].Loads[0].Levels[0].Rounds)
			}
		})
	}
}

// A variable file in the repository is read from each side's own checkout. A file outside the
// repository is the same for both sides.
func TestBaseBranchVariables(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "v.hcl")
	for _, row := range []struct {
		name       string
		head, base string // vars.hcl on the candidate's and on the base branch; "": no file
		file       string // variable file named on the command line; "" means vars.hcl
		skip       bool   // nothing changed
		control    string // expected flag of the server on the base branch
	}{
		{"changed", `flag = "new"`, `flag = "old"`, "", false, "old"},
		{"the same", `flag = "new"`, `flag = "new"`, "", true, ""},
		{"new", `flag = "new"`, "", "", false, "a"},
		{"from elsewhere", "", "", elsewhere, true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			root, base := t.TempDir(), t.TempDir()
			write := func(path, text string) {
				t.Helper()
				if text == "" {
					return
				}
				must.Do(t, os.WriteFile(path, []byte(text), 0o644))
			}
			for dir, vars := range map[string]string{root: row.head, base: row.base} {
				write(filepath.Join(dir, "p.hcl"), branchPlan+comparing)
				write(filepath.Join(dir, "vars.hcl"), vars)
			}
			write(elsewhere, `flag = "theirs"`)
			file := row.file
			if file == "" {
				file = filepath.Join(root, "vars.hcl")
			}
			p, diags := File(Options{Path: filepath.Join(root, "p.hcl"), Root: root, Base: base, RequireEnv: true, Inputs: []Input{{File: file}}})
			must.Need(t, len(diags) <= 0, "%v", diags)
			c := p.Compares[0]
			must.Need(t, (c.Skip != "") == row.skip && c.Unchanged == row.skip, "skip %q", c.Skip)
			if row.skip {
				return
			}
			got := fmt.Sprint(c.Control.Server.Flags)
			must.Hold(t, strings.Contains(got, row.control), "the control has the flags %s, want dtype %s", got, row.control)
		})
	}
}

// Without a checkout of the base branch, only the comparison with it is skipped. The rest of the
// plan is still checked.
func TestBaseBranchUnknown(t *testing.T) {
	p, diags := File(Options{Path: "p.hcl", Source: []byte(branchPlan + comparing)})
	must.Hold(t, len(diags) <= 0 && p.Compares[0].Skip == "no --base was given", "%v, %+v", diags, p.Compares)
	p, diags = File(Options{Path: "p.hcl", Source: []byte(branchPlan + comparing), Self: true})
	c := p.Compares[0]
	must.Hold(t, len(diags) <= 0 && c.Live() && c.Control.Server.Base && len(p.Servers) == 2 && len(p.Workloads[0].Servers) == 2, "with itself: %v, %+v", diags, c)
}
