package exec_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// talkers makes prompts of conversations: Next adds a turn to a prompt.
type talkers struct{ prompts }

func (p talkers) Next(id exec.PromptID, sent client.Prompt, said exec.Reply) (client.Prompt, error) {
	return client.Prompt{Text: sent.Text + " and then " + fmt.Sprint(id.Order, id.Phase), Tokens: sent.Tokens + said.Output + 100}, nil
}

// chat is a plan of conversations with three turns. Users think for 2 s on average before each
// turn.
func chat(l *plan.Load) *plan.Plan {
	l.Think = traffic.Think{Mean: 2 * time.Second}
	l.Seeds, l.Timeout = []int64{1}, time.Minute
	p := planOf(3, l)
	p.Workloads[0].Prompt.Turns = traffic.Turns{Mean: 3, Max: 3}
	return p
}

func people(n int, length time.Duration, rounds int) *plan.Load {
	return &plan.Load{
		Kind: metric.Users, People: &plan.People{RampUp: 4 * time.Second, Warmup: plan.OpenWarmupAuto},
		Levels: []plan.Level{{Name: plan.LevelName(metric.Users, n), N: n, Duration: length, Rounds: rounds, Requests: rounds}},
	}
}

func playChat(t *testing.T, c clock.Clock, p *plan.Plan, script func(int, *client.Request) reply) *metric.Level {
	t.Helper()
	b := newBench(t, c, p, script)
	b.target.Prompts = func(_ context.Context, w *plan.Workload, _ uint64) (exec.Prompts, error) {
		return talkers{prompts{w.Address()}}, nil
	}
	run := must.Get(exec.Run(t.Context(), b.Config))(t)
	return run.Levels[0]
}

// samplesOf returns the samples of all phases, in order of time.
func samplesOf(l *metric.Level) []*metric.Sample {
	var out []*metric.Sample
	for _, r := range l.Rounds {
		out = append(out, r.Samples...)
	}
	slices.SortFunc(out, func(a, b *metric.Sample) int { return cmp.Compare(a.Scheduled, b.Scheduled) })
	return out
}

// A user sends a message, waits 0.6 s for the answer, thinks for 2 s, and sends the next one. The
// next message is due exactly when the thinking ends.
func TestUsers(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		l := playChat(t, c, chat(people(8, 40*time.Second, 4)), steady(200*time.Millisecond, 200*time.Millisecond))
		must.Need(t, len(l.Rounds) == 4 && l.Kind == metric.Users && l.N == 8, "%d rounds of %s %d", len(l.Rounds), l.Kind, l.N)
		for i, r := range l.Rounds {
			// 8 users who each send a message every 2.6 s send about 31 messages in 10 s.
			if !r.Complete || r.Due < 27 || r.Due > 35 || r.WindowEnd-r.WindowStart != 10*time.Second || r.Time != 10*time.Second {
				t.Errorf("round %d: complete %v, %d due, window %v, %s", i, r.Complete, r.Due, r.WindowEnd-r.WindowStart, r.Stopped)
			}
			for k, s := range r.MeasuredSamples() {
				if s.Order != k || s.Scheduled < r.WindowStart || s.Scheduled >= r.WindowEnd || !s.FromDue {
					t.Errorf("round %d, request %d: order %d, due at %v of %v to %v", i, k, s.Order, s.Scheduled, r.WindowStart, r.WindowEnd)
				}
			}
		}
		last := map[int]*metric.Sample{}
		begin := samplesOf(l)[0].Scheduled
		for _, s := range samplesOf(l) {
			before := last[s.Slot]
			last[s.Slot] = s
			if before == nil {
				want := begin + time.Duration(s.Slot)*500*time.Millisecond
				must.Hold(t, s.Scheduled == want && s.Turn == 1, "user %d came at %v with turn %d, want %v", s.Slot, s.Scheduled, s.Turn, want)
				continue
			}
			if s.Canceled() {
				continue
			}
			if s.Scheduled != before.End+2*time.Second || s.Turn != before.Turn%3+1 {
				t.Errorf("user %d: turn %d at %v after turn %d that ended at %v", s.Slot, s.Turn, s.Scheduled, before.Turn, before.End)
			}
		}
		must.Hold(t, len(last) == 8, "%d users", len(last))
	})
}

// The server fails every second turn. The conversation then ends, and its third turn,
// which was never sent, counts as failed too.
func TestFailedConversation(t *testing.T) {
	for _, l := range []*plan.Load{
		people(4, 40*time.Second, 4),
		{Kind: metric.OpenLoop, Open: &plan.Open{Arrivals: plan.Constant, MaxInFlight: 100},
			Levels: []plan.Level{{Name: "1 req/s", Rate: 1, Requests: 40, Rounds: 4}}},
	} {
		t.Run(string(l.Kind), func(t *testing.T) {
			level := playChat(t, clock.NewVirtual(), chat(l), func(_ int, r *client.Request) reply {
				if strings.Count(r.Prompt.Text, " and then ") == 1 {
					return reply{status: errBusy}
				}
				return reply{ttft: 100 * time.Millisecond, itl: 100 * time.Millisecond}
			})
			count := map[int]int{}
			for _, r := range level.Rounds {
				if !r.Complete || len(r.MeasuredSamples()) != r.Due {
					t.Errorf("round %d: complete %v, %d of %d: %s", r.Index, r.Complete, len(r.MeasuredSamples()), r.Due, r.Stopped)
				}
				for k, s := range r.MeasuredSamples() {
					must.Hold(t, s.Order == k, "round %d: request %d has order %d", r.Index, k, s.Order)
					count[s.Turn]++
					want := map[int]metric.FailureKind{1: "", 2: metric.FailStatus, 3: metric.FailMissing}[s.Turn]
					got := metric.FailureKind("")
					if s.Failure != nil {
						got = s.Failure.Kind
					}
					must.Hold(t, got == want && (s.Turn != 3 || s.Sent == 0), "turn %d: %q, want %q", s.Turn, got, want)
				}
			}
			must.Hold(t, count[3] >= 10 && count[2] == count[3], "turns %v", count)
		})
	}
}

// One conversation of three turns starts each second. All turns are judged, not only the first
// turn of each conversation.
func TestRateOfConversations(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock) {
		l := playChat(t, c, chat(&plan.Load{Kind: metric.OpenLoop, Open: &plan.Open{Arrivals: plan.Constant, MaxInFlight: 100, Warmup: plan.OpenWarmupAuto},
			Levels: []plan.Level{{Name: "1 req/s", Rate: 1, Requests: 40, Rounds: 4}}}), steady(200*time.Millisecond, 200*time.Millisecond))
		turns := map[int]int{}
		for _, r := range l.Rounds {
			if !r.Complete || r.Due != 30 || r.Time != 10*time.Second {
				t.Errorf("round %d: complete %v, %d due in %v: %s", r.Index, r.Complete, r.Due, r.Time, r.Stopped)
			}
			for _, s := range r.MeasuredSamples() {
				turns[s.Turn]++
				must.Hold(t, s.Turn <= 1 || s.InputAsked > 100, "turn %d asked for %d tokens", s.Turn, s.InputAsked)
			}
		}
		must.Hold(t, turns[1] == 40 && turns[2] == 40 && turns[3] == 40, "%v", turns)
		must.Hold(t, len(l.Saturation) == 0, "saturation %v: single requests say nothing of conversations", l.Saturation)
	})
}
