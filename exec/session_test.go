package exec_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// sessions plays the plan, and returns the sessions of each conversation and the number of requests.
// A conversation is known by the prompt of its first turn.
func sessions(t *testing.T, p *plan.Plan, header string) (of map[string]map[string]bool, requests int) {
	t.Helper()
	b := newBench(t, clock.NewVirtual(), p, steady(200*time.Millisecond, 10*time.Millisecond))
	b.target.SessionHeader = header
	b.target.Prompts = func(_ context.Context, w *plan.Workload, _ uint64) (exec.Prompts, error) {
		return talkers{prompts{w.Address()}}, nil
	}
	must.Get(exec.Run(t.Context(), b.Config))(t)
	of = map[string]map[string]bool{}
	for _, r := range b.requests {
		first, _, _ := strings.Cut(r.Prompt.Text, " and then ")
		if of[first] == nil {
			of[first] = map[string]bool{}
		}
		of[first][r.Headers["X-Session-Id"]] = true
	}
	return of, len(b.requests)
}

// All turns of a conversation carry one session, no two conversations carry the same, and another
// run has others.
func TestSessions(t *testing.T) {
	rows := []traffic.Recorded{}
	for i := range 60 {
		rows = append(rows, traffic.Recorded{Line: i + 1, At: time.Duration(i) * 100 * time.Millisecond, Input: 100 + i, Output: 2, Parent: -1, Wait: -1, Session: i % 3})
	}
	replay := must.Get((&traffic.Trace{Path: "a.jsonl", Format: "columns", Rows: rows}).Replay(traffic.Stretch{From: time.Second, To: 5 * time.Second}))(t)
	recorded := rateLoad(replay.Rate(), replay.Due, 10)
	recorded.Open.MaxInFlight, recorded.Open.Trace = 4096, replay
	recorded.Levels[0].Name, recorded.Levels[0].Speedup = plan.TraceName(1), 1

	for _, tt := range []struct {
		name     string
		plan     func() *plan.Plan
		requests int // at least
	}{
		{"users in conversations", func() *plan.Plan { return chat(people(400, 70*time.Second, 2)) }, 10_000},
		{"slots in conversations", func() *plan.Plan { return chat(closedLoad(4, 60)) }, 60},
		{"requests alone", func() *plan.Plan { return planOf(2, closedLoad(8, 200, 1, 2)) }, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			of, n := sessions(t, tt.plan(), "x-session-id")
			must.Need(t, n >= tt.requests, "%d requests, want %d", n, tt.requests)
			owner := map[string]string{}
			for conversation, sessions := range of {
				for s := range sessions {
					if len(sessions) != 1 || len(s) != 32 || owner[s] != "" {
						t.Fatalf("%q has the sessions %v; the first belongs to %q", conversation, sessions, owner[s])
					}
					owner[s] = conversation
				}
			}
			again, _ := sessions(t, tt.plan(), "x-session-id")
			for conversation, sessions := range again {
				for s := range sessions {
					must.Need(t, owner[s] == "", "%q has a session of the run before", conversation)
				}
			}
		})
	}
	t.Run("a trace", func(t *testing.T) {
		// Rows of session 0 have none, so each is alone; those of 1 and 2 share one.
		alone, shared := map[string]bool{}, map[int]map[string]bool{1: {}, 2: {}}
		b := newBench(t, clock.NewVirtual(), planOf(2, recorded), steady(20*time.Millisecond, time.Millisecond))
		b.target.SessionHeader = "X-Session-ID"
		must.Get(exec.Run(t.Context(), b.Config))(t)
		n := 0
		for _, r := range b.requests {
			switch s := r.Headers["X-Session-Id"]; (r.Input - 100) % 3 {
			case 0:
				n++
				alone[s] = true
			default:
				shared[(r.Input-100)%3][s] = true
			}
		}
		if len(alone) != n || n < 10 || len(shared[1]) != 1 || len(shared[2]) != 1 {
			t.Errorf("%d sessions of %d rows without one, %d and %d of two sessions", len(alone), n, len(shared[1]), len(shared[2]))
		}
	})
	t.Run("none asked", func(t *testing.T) {
		of, _ := sessions(t, chat(closedLoad(2, 6)), "")
		for _, sessions := range of {
			must.Hold(t, sessions[""] && len(sessions) == 1, "sent %v", sessions)
		}
	})
}
