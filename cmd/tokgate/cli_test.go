package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tokgate/tokgate/exec/server"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/memnet"
	"github.com/tokgate/tokgate/sim"
)

type result struct {
	code     int
	out, err string
}

// memory is the in-memory network of the tests. It uses no sockets, so a run in a synctest bubble
// takes exactly its virtual time on any machine.
var memory memnet.Network

var inMemory = server.Network{Dial: memory.DialContext, Listen: memory.Listen}

// inBubble runs f in virtual time, in parallel with other tests.
func inBubble(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	}
}

// inVirtualTime runs f in virtual time and in its own folder. No other test may run at the same
// time.
func inVirtualTime(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

// tokgate runs one command line in this process.
func tokgate(t *testing.T, args ...string) result {
	t.Helper()
	return tokgateWith(t, t.Context(), nil, "", args...)
}

// saltsOf returns the salts of a command line. Go numbers the folders of a test, so each command line
// of a test has its own salt, but the same one each time the test runs: no verdict depends on chance.
func saltsOf(t *testing.T, dir string) func() uint64 {
	n := must.Get(strconv.ParseUint(filepath.Base(dir), 10, 64))(t)
	return func() uint64 { return n }
}

func tokgateWith(t *testing.T, ctx context.Context, environ []string, stdin string, args ...string) result {
	t.Helper()
	return tokgateOver(t, ctx, inMemory, environ, stdin, args...)
}

func tokgateOver(t *testing.T, ctx context.Context, network server.Network, environ []string, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	// Notes about running servers go to a new folder.
	dir := t.TempDir()
	environ = append(slices.Clone(environ), "TOKGATE_STATE_DIR="+dir)
	// Without a meter the load of the test machine does not change the results.
	a := &app{Streams: Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs}, environ: environ, network: network, salts: saltsOf(t, dir)}
	code := a.main(ctx, args)
	return result{code, out.String(), errs.String()}
}

// check fails the test unless the command ended with the code and printed all words.
func (r result) check(t *testing.T, code int, words ...string) {
	t.Helper()
	must.Hold(t, r.code == code, "exit code %d, want %d", r.code, code)
	all := r.out + r.err
	for _, w := range words {
		must.Hold(t, strings.Contains(all, w), "nothing says %q", w)
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.out, r.err)
	}
}

// writePlan writes a plan into a new folder and returns the plan's path.
func writePlan(t testing.TB, src string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.hcl")
	must.Do(t, os.WriteFile(path, []byte(src), 0o644))
	return path
}

// simServer starts the built-in server in memory with faults and a fast profile.
func simServer(t *testing.T, rules ...string) *sim.Server {
	t.Helper()
	return startSim(t, sim.Options{Listen: memory.Listen}, rules...)
}

func startSim(t *testing.T, o sim.Options, rules ...string) *sim.Server {
	t.Helper()
	o.Profile, o.Seed = sim.DefaultProfile(), 1
	o.Profile.OverheadMS = 10
	o.Profile.Prefill = sim.PrefillCost{USPerToken: 20}
	o.Profile.Decode = sim.DecodeCost{BaseMS: 2.5, PerSeqMS: 0.05}
	for _, s := range rules {
		rule := must.Get(sim.ParseRule(s))(t)
		o.Faults = append(o.Faults, rule)
	}
	s := must.Get(sim.New(o))(t)
	must.Do(t, s.Start("127.0.0.1:0"))
	t.Cleanup(func() { s.Close() })
	return s
}

// front returns a server in memory with the handler h, in place of a real server.
func front(t *testing.T, h http.HandlerFunc) *httptest.Server { return frontAt(t, "127.0.0.1:0", h) }

func frontAt(t *testing.T, address string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	l := must.Get(memory.Listen("tcp", address))(t)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	t.Cleanup(s.Close)
	return s
}
