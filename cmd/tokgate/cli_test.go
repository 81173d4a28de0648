package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/sim"
)

// result is what one command line came to.
type result struct {
	code     int
	out, err string
}

// tokgate runs one command line in this process.
func tokgate(t *testing.T, args ...string) result {
	t.Helper()
	return measured(func() result { return tokgateWith(t, t.Context(), nil, "", args...) })
}

// busy says that the slots were: on a machine that runs other tests too they
// may have had to wait, and no test here is about that.
func busy(run *metric.Run) {
	for _, l := range run.Levels {
		for _, r := range l.Rounds {
			r.Busy = max(r.Busy, 1)
		}
	}
}

// measured runs it again, twice at most, while this machine was too busy with
// other work to keep the slots busy: that verdict is right, and no test's
// business. What the server counts of its requests goes on, so that a server
// with faults at certain ones is to be started anew by run.
func measured(run func() result) result {
	r := run()
	for range 2 {
		idle := strings.Contains(r.out, "of the window, less than") || strings.Contains(r.out, "had no stretch with all")
		if r.code != assert.ExitError || !idle {
			break
		}
		r = run()
	}
	return r
}

func tokgateWith(t *testing.T, ctx context.Context, environ []string, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	// What servers hold is noted where no other test looks.
	environ = append(slices.Clone(environ), "TOKGATE_STATE_DIR="+t.TempDir())
	// No meter: how busy the machine is with other tests is no business of
	// these.
	a := &app{Streams: Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs}, environ: environ, excuse: busy}
	code := a.main(ctx, args)
	return result{code, out.String(), errs.String()}
}

// check fails the test unless the command ended with code and said all of
// the words, on either stream.
func (r result) check(t *testing.T, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	all := r.out + r.err
	for _, w := range words {
		if !strings.Contains(all, w) {
			t.Errorf("nothing says %q", w)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.out, r.err)
	}
}

// writePlan puts a plan into a folder of its own and returns its path.
func writePlan(t *testing.T, src string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.hcl")
	if err := os.WriteFile(path, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// simServer starts the built-in server with faults, on a profile so fast that
// a level takes a moment, and yet so slow that the gaps between requests are
// short beside them on a busy machine.
func simServer(t *testing.T, rules ...string) *sim.Server {
	t.Helper()
	profile := sim.DefaultProfile()
	profile.OverheadMS = 10
	profile.Prefill = sim.PrefillCost{USPerToken: 20}
	profile.Decode = sim.DecodeCost{BaseMS: 2.5, PerSeqMS: 0.05}
	return simServerOf(t, profile, rules...)
}

func simServerOf(t *testing.T, profile *sim.Profile, rules ...string) *sim.Server {
	t.Helper()
	var script sim.Script
	for _, s := range rules {
		rule, err := sim.ParseRule(s)
		if err != nil {
			t.Fatal(err)
		}
		script = append(script, rule)
	}
	server, err := sim.New(sim.Options{Profile: profile, Seed: 1, Faults: script})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}
