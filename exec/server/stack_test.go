//go:build unix

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// cluster is where a stack runs: a gateway whose server is the one that the file "up" in its folder
// names. Commands of the stack write the file, and a journal of what they did.
type cluster struct {
	*world
	dir string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{newWorld(t, sim.Options{}), t.TempDir()}
	c.instead = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		model, err := os.ReadFile(filepath.Join(c.dir, "up"))
		if err != nil {
			http.Error(w, "no server is up", http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == "/v1/models" {
			fmt.Fprintf(w, `{"object":"list","data":[{"id":%q}]}`, strings.TrimSpace(string(model)))
			return
		}
		c.handler.Load().ServeHTTP(w, r)
	})
	c.State, c.Holder, c.LogDir = lease.Folder(t.TempDir()), testHolder(), t.TempDir()
	c.Grace = constant(Grace)
	return c
}

// stack returns a server whose up and down run after the given shell scripts.
func (c *cluster) stack(up, down string) *plan.Server {
	s := &plan.Stack{
		Up:   []string{"sh", "-c", "echo up >> journal; " + up},
		Down: []string{"sh", "-c", "echo down >> journal; " + down},
		URL:  "http://server.test", Dir: c.dir, Timeout: time.Minute,
	}
	c.Stacks = []*plan.Stack{s}
	return &plan.Server{Name: "s", Engine: "vllm", Stack: s, Ready: plan.Ready{Timeout: time.Minute}}
}

const (
	begins = "echo tokgate-sim > up"
	ends   = "rm -f up"
)

func (c *cluster) journal(t *testing.T) string {
	raw, err := os.ReadFile(filepath.Join(c.dir, "journal"))
	must.Need(t, err == nil || errors.Is(err, os.ErrNotExist), "%v", err)
	return strings.Join(strings.Fields(string(raw)), " ")
}

func (c *cluster) is(t *testing.T, model string) {
	must.Do(t, os.WriteFile(filepath.Join(c.dir, "up"), []byte(model), 0o644))
}

// The key is sent to what may answer before up, and to the server.
func TestKeyOfStack(t *testing.T) {
	c := newCluster(t)
	behind, unknown := c.instead, atomic.Int32{}
	c.instead = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-stack" {
			unknown.Add(1)
		}
		behind.ServeHTTP(w, r)
	})
	s := c.stack(begins, ends)
	s.Stack.APIKey = "sk-stack"
	target := must.Get(c.Launch(t.Context(), s, c.state))(t)
	must.Do(t, target.Close())
	must.Same(t, "requests without the key", int32(0), unknown.Load())
}

// Whatever happens, down runs after up, and nothing that answered before up becomes the target.
func TestStack(t *testing.T) {
	for _, tt := range []struct {
		name, before string // model of the server that is up before
		up, down     string
		timeout      time.Duration
		journal      string
		err, end     string // what the errors of the start and the end say; "": none
		held         bool   // a later run has to look for what is left
	}{
		{name: "plain", up: begins, down: ends, journal: "up down"},
		{name: "another server was there", before: "old", up: begins, down: ends, journal: "down up down"},
		{name: "it does not go", before: "old", up: begins, down: ":", timeout: 3 * time.Second, journal: "down", err: "still answers 3s after down (it lists the models old)"},
		{name: "it cannot be ended", before: "old", up: begins, down: "exit 3", journal: "down", err: "down failed: exit status 3"},
		{name: "up fails", up: begins + "; echo no such chart; exit 7", down: ends, journal: "up down", err: "up failed: exit status 7"},
		{name: "up never ends", up: begins + "; sleep 1000", down: ends, timeout: 3 * time.Second, journal: "up down", err: "up did not end within 3s"},
		{name: "both fail", up: "exit 7", down: "exit 3", journal: "up down", held: true, err: "exit 3), so what up started for http://server.test may still run"},
		{name: "down fails", up: begins, down: "exit 3", journal: "up down", held: true, end: "may still run: look for it, and end it by hand"},
		{name: "down never ends", up: begins, down: ends + "; sleep 1000", timeout: 3 * time.Second, journal: "up down", held: true, end: "down did not end within 3s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			if tt.before != "" {
				c.is(t, tt.before)
			}
			s := c.stack(tt.up, tt.down)
			s.Stack.Timeout = cmp.Or(tt.timeout, time.Minute)
			target, err := c.Launch(t.Context(), s, c.state)
			holds(t, err, tt.err)
			if err == nil {
				must.Same(t, "model", "tokgate-sim", target.Model)
				must.Hold(t, errors.Is(target.Check(t.Context()), exec.ErrIdentityUnknown), "who answered at the end is known")
				holds(t, target.Close(), tt.end)
			} else if strings.Contains(tt.up, "no such chart") {
				e, _ := errors.AsType[*exec.ServerError](err)
				must.Hold(t, e != nil && strings.Contains(e.Log, "no such chart"), "no log in %v", err)
			}
			must.Same(t, "journal", tt.journal, c.journal(t))
			if !tt.held {
				nothingHeld(t, c.Launcher)
				return
			}
			// The next run of this plan ends what is left; the run of another plan says it.
			other := *c.Launcher
			other.Stacks, c.states = nil, nil
			must.Do(t, other.EndLeftovers(t.Context(), c.state))
			must.Hold(t, strings.Contains(strings.Join(c.states, "\n"), "no server of this plan has the same `down`"), "said %q", c.states)
			must.Same(t, "journal", tt.journal, c.journal(t))
			_ = c.EndLeftovers(t.Context(), c.state)
			must.Same(t, "journal", tt.journal+" down", c.journal(t))
			other.Reap = true
			must.Do(t, other.EndLeftovers(t.Context(), c.state))
			nothingHeld(t, c.Launcher)
		})
	}
}

func holds(t *testing.T, err error, words string) {
	t.Helper()
	must.Need(t, (err != nil) == (words != "") && (err == nil || strings.Contains(err.Error(), words)), "error %v, want %q", err, words)
}

// An interrupt during up ends it, and runs down.
func TestStackIsInterrupted(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := c.Launch(ctx, c.stack(begins+"; sleep 1000", ends), func(s string) {
		if strings.HasPrefix(s, "running up") {
			cancel(errors.New("interrupted"))
		}
	})
	holds(t, err, "interrupted")
	must.Hold(t, strings.HasSuffix(c.journal(t), "down"), "journal %q", c.journal(t))
	nothingHeld(t, c.Launcher)
}

// A down that has no time to end goes on, and the next run looks for it.
func TestStackIsHurried(t *testing.T) {
	c := newCluster(t)
	target := must.Get(c.Launch(t.Context(), c.stack(begins, "while [ -e up ]; do sleep 0.05; done; echo gone >> journal"), c.state))(t)
	c.Grace = constant(100 * time.Millisecond)
	holds(t, target.Close(), "down did not end within")
	must.Do(t, os.Remove(filepath.Join(c.dir, "up")))
	eventually(t, c.Launcher, func() bool { return strings.HasSuffix(c.journal(t), "gone") })
	c.Grace = constant(Grace)
	must.Do(t, c.EndLeftovers(t.Context(), c.state))
	must.Hold(t, strings.HasSuffix(c.journal(t), "gone down gone"), "journal %q", c.journal(t))
	nothingHeld(t, c.Launcher)
}

// What up leaves running here ends, and two runs never have one URL.
func TestStackOnThisMachine(t *testing.T) {
	c := newCluster(t)
	s := c.stack(begins+"; sleep 1000 & echo child $!", ends)
	target := must.Get(c.Launch(t.Context(), s, c.state))(t)
	pid := logged(t, c.Launcher, target, "child ")
	other := *c.Launcher
	other.Holder = testHolder()
	_, err := other.Launch(t.Context(), s, c.state)
	holds(t, err, "the URL http://server.test is held by run "+c.Holder.Run)
	must.Same(t, "journal", "up", c.journal(t))
	must.Do(t, target.Close())
	var n int
	_, _ = fmt.Sscan(pid, &n)
	must.Hold(t, n > 1 && startOf(n) == "", "process %d is left", n)
}

// A note holds no command, so that none is ever run from it.
func TestNoteOfStack(t *testing.T) {
	c := newCluster(t)
	target := must.Get(c.Launch(t.Context(), c.stack(begins, ends+"; : secret-word"), c.state))(t)
	notes, _ := filepath.Glob(filepath.Join(string(c.State), "*.server.json"))
	must.Need(t, len(notes) == 1, "notes %v", notes)
	raw := must.Get(os.ReadFile(notes[0]))(t)
	must.Hold(t, strings.Contains(string(raw), lease.Digest(c.Stacks[0].Down)) && !strings.Contains(string(raw), "secret-word"), "note %s", raw)
	must.Do(t, target.Close())
}
