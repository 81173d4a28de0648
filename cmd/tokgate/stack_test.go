//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/internal/must"
)

const stackPlan = `
variable "model" {}
gate {
  decide = "estimate"
}
server "s" {
  stack {
    up       = ["./up", var.model]
    down     = ["./down"]
    url      = "http://127.0.0.1:%d"
    declares = { model = var.model }
  }
}
workload "w" {
  input_tokens  = 64
  output_tokens = 8
  load {
    concurrency = 2
    requests    = 20
    seeds       = [1, 2]
  }
  sla { success = "rate >= 95%%" }
}
`

// cluster stands for where a stack runs: it starts and ends processes that no process of tokgate is a
// parent of. The commands up and down say in the file "want" which model it has to serve, wait until
// it does, and keep a journal.
type cluster struct {
	*life
	port int
	stop chan struct{}
	done sync.WaitGroup
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	c := &cluster{life: newLife(t), port: free.Addr().(*net.TCPAddr).Port, stop: make(chan struct{})}
	free.Close()
	for name, script := range map[string]string{
		"up":   "#!/bin/sh\necho up $1 >> journal; echo $1 > want; until [ \"$(cat have)\" = $1 ]; do sleep 0.02; done\n",
		"down": "#!/bin/sh\necho down >> journal; : > want; while [ -s have ]; do sleep 0.02; done\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(c.dir, name), []byte(script), 0o755))
	}
	must.Do(t, os.WriteFile(filepath.Join(c.dir, "have"), nil, 0o644))
	must.Do(t, os.WriteFile(filepath.Join(c.dir, "test.hcl"), fmt.Appendf(nil, stackPlan, c.port), 0o644))
	c.done.Go(c.serve)
	t.Cleanup(func() { close(c.stop); c.done.Wait() })
	return c
}

func (c *cluster) file(name string) string {
	raw, _ := os.ReadFile(filepath.Join(c.dir, name))
	return strings.TrimSpace(string(raw))
}

func (c *cluster) serve() {
	var members []*osexec.Cmd
	end := func() {
		for _, m := range members {
			_ = m.Process.Kill()
			_ = m.Wait()
		}
		members = nil
	}
	defer end()
	for have := ""; ; {
		select {
		case <-c.stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		want := c.file("want")
		if want == have {
			continue
		}
		end()
		if want != "" {
			for _, port := range []int{c.port, 0} { // the server, and one beside it
				m := osexec.Command(c.program, "sim", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--model", want)
				m.Env = append(os.Environ(), asProgram+"=real")
				must.Hold(c.t, m.Start() == nil, "no server")
				members = append(members, m)
			}
		}
		have = want
		must.Do(c.t, os.WriteFile(filepath.Join(c.dir, "have"), []byte(have), 0o644))
	}
}

// begin starts a run of the plan for a model.
func (c *cluster) begin(model string) {
	c.t.Helper()
	must.Do(c.t, os.RemoveAll(c.out))
	c.start("--var", "model="+model)
}

// measured checks that nothing was measured but the given model.
func (c *cluster) measured(model string) {
	c.t.Helper()
	doc, err := c.document()
	if err == nil && len(doc.Run.Servers) > 0 && doc.Run.Servers[0].Fingerprint != nil {
		must.Same(c.t, "model", model, doc.Run.Servers[0].Fingerprint["served_as"])
	}
}

// whole runs the plan for a model to its end. A machine that stands still may leave it without a
// verdict.
func (c *cluster) whole(model string) {
	c.t.Helper()
	c.begin(model)
	code, said := c.wait()
	must.Hold(c.t, slices.Contains([]int{verdict.ExitPass, verdict.ExitError, verdict.ExitInconclusive}, code), "exit %d\n%s", code, said)
	must.Need(c.t, c.file("journal") != "" && strings.Contains(c.file("journal"), "up "+model), "it was not started\n%s", said)
	c.measured(model)
}

// A run that was killed leaves a server where no process of its own is. Its supervisor ends that by
// the plan's down, else the next run does, and never measures it.
func TestStackIsKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.begin("a")
	c.waitFor("w at 2 on s")
	must.Do(t, syscall.Kill(c.run(), syscall.SIGKILL))
	c.check(verdict.ExitError, "removing what a killed run left behind: the stack at http://127.0.0.1:")
	must.Same(t, "journal", "up a\ndown", c.file("journal"))

	c.begin("b")
	c.waitFor("w at 2 on s")
	c.killBoth()
	c.wait()
	must.Same(t, "what is left", "b", c.file("have"))
	other := filepath.Join(c.dir, "other.hcl")
	must.Do(t, os.WriteFile(other, fmt.Appendf(nil, crashPlan, c.program), 0o644))
	cmd := osexec.Command(c.program, "run", "--out", c.out, other)
	cmd.Env = c.environ
	c.child = begin(t, cmd)
	c.says("may still run")
	must.Hold(t, strings.Contains(read(t, filepath.Join(c.out, "results.json")), "no server of this plan has the same `down`, so it was not run"), "it is not in the report")
	must.Same(t, "what is left", "b", c.file("have"))

	c.whole("c")
	must.Same(t, "journal", "up a\ndown\nup b\ndown\nup c\ndown", c.file("journal"))
	notes, err := c.notes()
	must.Hold(t, err == nil && len(notes) == 0, "notes %v, %v", notes, err)
}

// TestStackCrashes kills runs at random times. `make crashes` runs it.
func TestStackCrashes(t *testing.T) {
	if *crashes == 0 {
		t.Skip("make crashes")
	}
	c := newCluster(t)
	began := time.Now()
	c.whole("first")
	took := time.Since(began)
	ways := []string{killRun, killParent, killBoth, killBoth}
	for i := range int(50**crashes + 0.5) {
		r, way := rand.New(rand.NewPCG(*crashSeed, uint64(i))), ways[i%len(ways)]
		model := fmt.Sprint("model-", i)
		c.begin(model)
		after := time.Duration(r.Float64() * 1.1 * float64(took))
		select {
		case <-time.After(after):
			c.disturb(way, r)
		case <-c.ended:
		}
		code, said := c.wait()
		c.measured(model)
		c.whole(fmt.Sprint("after-", i))
		must.Same(t, fmt.Sprintf("what is left after %s at %v, exit %d\n%s", way, after, code, said), "", c.file("have"))
		ups, last := 0, ""
		for line := range strings.Lines(c.file("journal")) {
			kind, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			must.Hold(t, kind == "down" || last != "up", "%s at %v: a second up without a down\n%s", way, after, c.file("journal"))
			if last = kind; kind == "up" {
				ups++
			}
		}
		notes, err := c.notes()
		must.Hold(t, err == nil && len(notes) == 0 && len(c.mine()) == 0, "%s at %v: notes %v, processes %v, %v", way, after, notes, c.mine(), err)
		t.Logf("%d: %s at %v: exit %d; %d ups", i, way, after.Round(time.Millisecond), code, ups)
	}
}
