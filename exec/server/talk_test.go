package server

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
	"github.com/tokgate/tokgate/traffic"
)

// fourUsers is a load of four people for as long as the test needs.
func fourUsers(window time.Duration) *plan.Load {
	l := &plan.Load{
		Kind: metric.Users, Seeds: []int64{1}, Timeout: time.Minute, Think: traffic.Think{Mean: 2 * time.Second, CV: 1},
		People: &plan.People{Warmup: plan.OpenWarmupAuto, Window: window}, Levels: []plan.Level{{Name: "4 users", N: 4}},
	}
	l.People.Part(&l.Levels[0])
	return l
}

// onBothSims measures the workload on the built-in server with a prefix cache in blocks of 16, in virtual
// time and over HTTP, and passes the completed samples to the function check. They are in the order of time.
func onBothSims(t *testing.T, w func() *plan.Workload, check func(t *testing.T, samples []*metric.Sample)) {
	t.Helper()
	severalOnBothSims(t, func() []*plan.Workload { return []*plan.Workload{w()} }, func(t *testing.T, of [][]*metric.Sample) { check(t, of[0]) })
}

// severalOnBothSims is onBothSims for workloads that are sent one after the other. The function check gets
// the samples of each.
func severalOnBothSims(t *testing.T, workloads func() []*plan.Workload, check func(t *testing.T, of [][]*metric.Sample)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cache.json")
	must.Do(t, os.WriteFile(path, []byte(`{"base": "default", "prefix_cache": {"block_tokens": 16, "capacity_tokens": 4194304}}`), 0o644))
	run := func(t *testing.T, c exec.Config) {
		t.Helper()
		s := vllm()
		s.Simulator = &plan.Simulator{Profile: path, Seed: 1}
		c.Plan = &plan.Plan{Servers: []*plan.Server{s}, Workloads: workloads()}
		for i, w := range c.Plan.Workloads {
			w.Name, w.Servers, w.API = fmt.Sprint("w", i), []*plan.Server{s}, plan.Chat
		}
		c.Observer, c.Run = silent, metric.Run{Salt: 7}
		out := must.Get(exec.Run(t.Context(), c))(t)
		var all [][]*metric.Sample
		for _, l := range out.Levels {
			must.Need(t, l.Skipped == "", "%v", l.Skipped)
			var samples []*metric.Sample
			for _, r := range l.Rounds {
				must.Need(t, r.Stopped == "", "%s", r.Stopped)
				samples = append(samples, slices.DeleteFunc(slices.Clone(r.Samples), func(s *metric.Sample) bool { return !s.Completed() })...)
			}
			slices.SortStableFunc(samples, func(a, b *metric.Sample) int { return int(a.Sent - b.Sent) })
			all = append(all, samples)
		}
		check(t, all)
	}
	t.Run("over HTTP", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			profile := must.Get(sim.LoadProfile(path, ""))(t)
			world := newWorld(t, sim.Options{Profile: profile, Seed: 1, Engine: "vllm"})
			run(t, exec.Config{Clock: world.clock, Launch: world.Launch})
		})
	})
	t.Run("in virtual time", func(t *testing.T) {
		c := clock.NewVirtual()
		run(t, exec.Config{Clock: c, Launch: (&Virtual{Clock: c}).Launch})
	})
}

// talk is one conversation: its turns, in order.
type talk []*metric.Sample

// talks returns the conversations of the samples that were observed from the first turn on.
func talks(samples []*metric.Sample) []talk {
	var out []talk
	open := map[int]int{}
	for _, s := range samples {
		i, ok := open[s.Slot]
		switch {
		case s.Turn == 1:
			open[s.Slot] = len(out)
			out = append(out, talk{s})
		case ok && len(out[i]) == s.Turn-1:
			out[i] = append(out[i], s)
		}
	}
	return out
}

// A conversation begins with its system prompt of 300 tokens, which input_tokens do not count: turns have
// 300 + 40, then 40 more than the turn before and its answer of 16. Sent once before the load, the
// system prompt is in the cache at once, to within a block and what the server puts behind a prompt;
// and no more than that, as each conversation says something else.
func TestSystemPrompt(t *testing.T) {
	const system, input, output = 300, 40, 16
	onBothSims(t, func() *plan.Workload {
		return &plan.Workload{
			Input: input, Output: plan.Output{Mean: output}, Loads: []*plan.Load{fourUsers(2 * time.Minute)},
			Prompt: plan.Prompt{Turns: traffic.Turns{Mean: 3, Max: 3}, System: plan.System{Tokens: system, Groups: 2}, Warm: true},
		}
	}, func(t *testing.T, samples []*metric.Sample) {
		list := talks(samples)
		must.Need(t, len(list) >= 40, "%d conversations", len(list))
		for _, turns := range list {
			for i, s := range turns {
				want := system + (i+1)*input + i*output
				grew := 0 // tokens of the template around an answer
				if i > 0 {
					grew = s.Usage.Input - turns[i-1].Usage.Input - turns[i-1].Usage.Output - input
				}
				must.Need(t, s.InputAsked == want && s.Usage.Input >= want && grew >= 0 && grew <= 8 && s.Usage.Output == output, "turn %d has %+v, want %d tokens, asked for %d", i+1, s.Usage, want, s.InputAsked)
				before := system
				if i > 0 {
					before = turns[i-1].Usage.Input + turns[i-1].Usage.Output
				}
				low, high := before-16, before
				if i == 0 {
					low, high = before-16, before+32
				}
				must.Need(t, s.Usage.Cached >= low && s.Usage.Cached <= high && float64(s.Usage.Cached) <= s.Shared*float64(s.Usage.Input)+1,
					"turn %d found %d of %d tokens in the cache, want %d to %d; %.3f implied", i+1, s.Usage.Cached, s.Usage.Input, low, high, s.Shared)
			}
			must.Need(t, math.Abs(turns[0].Shared-system/float64(system+input)) <= 32/float64(system+input), "%.3f of a first turn is implied", turns[0].Shared)
		}
	})
}

// A system prompt of a given text is as long as the server counts.
func TestSystemText(t *testing.T) {
	text := "You answer questions about the rivers of Europe, in one sentence, and name your source."
	tokens := systemTokens(plan.System{Text: text})
	onBothSims(t, func() *plan.Workload {
		return &plan.Workload{
			Input: 40, Output: plan.Output{Mean: 4}, Prompt: plan.Prompt{System: plan.System{Text: text, Groups: 1}}, Loads: closedLoop(20),
		}
	}, func(t *testing.T, samples []*metric.Sample) {
		must.Need(t, len(samples) >= 20, "%d", len(samples))
		for _, s := range samples {
			must.Need(t, s.Usage.Input == tokens+40, "%d tokens, want %d + 40", s.Usage.Input, tokens)
		}
	})
}

// closedLoop is a load of two slots with the given number of requests.
func closedLoop(requests int) []*plan.Load {
	return []*plan.Load{{
		Kind: metric.ClosedLoop, Seeds: []int64{1}, Timeout: time.Minute, Levels: []plan.Level{{Name: "2", N: 2, Requests: requests, Rounds: 5}},
	}}
}

// A file with few conversations is sent again and again, and prompts are made ahead of the requests that
// they are for. Whichever request of a row is sent first, nothing more is in the cache than may be there.
func TestRowsSentAgain(t *testing.T) {
	const rows, block = 8, 16
	set := rowsOfTalk(t, rows, false)
	onBothSims(t, func() *plan.Workload {
		return &plan.Workload{
			Output: plan.Output{Mean: 4}, Loads: []*plan.Load{fourUsers(10 * time.Minute)},
			Prompt: plan.Prompt{Dataset: set, Order: plan.InOrder, Replies: plan.RecordedReplies, Turns: set.Turns()},
		}
	}, func(t *testing.T, samples []*metric.Sample) {
		first := 0
		for _, s := range samples {
			if s.Turn == 1 {
				first++
			}
			most := s.MostCached() * float64(s.Usage.Input)
			must.Need(t, float64(s.Usage.Cached) <= most+block, "turn %d of row %d found %d of %d tokens in the cache, at most %.0f", s.Turn, s.Row, s.Usage.Cached, s.Usage.Input, most)
		}
		must.Need(t, first >= 3*rows, "%d conversations", first)
	})
}

// Two workloads send the same file. All that the second one sends was sent by the first, and is in the
// cache to within a block; the first one's rows have nothing in common.
func TestWorkloadsOverOneFile(t *testing.T) {
	const requests, block = 35, 16
	var b strings.Builder
	for i := range 3 * requests { // warm-up takes rows from the end
		fmt.Fprintf(&b, "{\"prompt\": \"%d %s\"}\n", 7*i+100, strings.Repeat(fmt.Sprintf("river %d lake ", i), 30))
	}
	severalOnBothSims(t, func() []*plan.Workload {
		var out []*plan.Workload
		for range 2 {
			set := must.Get(traffic.Parse(strings.NewReader(b.String()), "rows.jsonl", traffic.Options{}))(t)
			out = append(out, &plan.Workload{Output: plan.Output{Mean: 4}, Prompt: plan.Prompt{Dataset: set, Order: plan.InOrder}, Loads: closedLoop(requests)})
		}
		return out
	}, func(t *testing.T, of [][]*metric.Sample) {
		for i, samples := range of {
			must.Need(t, len(samples) >= requests, "%d requests", len(samples))
			for _, s := range samples {
				if s.Phase != metric.Measured {
					continue
				}
				want := 0
				if i == 1 {
					want = s.Usage.Input
				}
				must.Need(t, s.Shared == float64(i) || i == 0 && s.Shared < 0.1, "row %d of workload %d: %.3f is implied", s.Row, i, s.Shared)
				must.Need(t, s.Usage.Cached > want-2*block && s.Usage.Cached <= want+block, "row %d of workload %d: %d of %d tokens from the cache", s.Row, i, s.Usage.Cached, s.Usage.Input)
			}
		}
	})
}

// rowsOfTalk returns conversations of three turns. Question k of a row has 30 + 10·k words, a recorded
// answer has 25.
func rowsOfTalk(t *testing.T, n int, own bool) *traffic.Dataset {
	t.Helper()
	words := strings.Fields("river lake hill town road field stone bridge water garden")
	text := func(row, count int) string {
		out := []string{fmt.Sprint(row)}
		for i := range count {
			out = append(out, words[(row>>uint(i%10)+i*i+i)%len(words)])
		}
		return strings.Join(out, " ")
	}
	var b strings.Builder
	for row := range n {
		var parts []map[string]string
		for k := range 3 {
			parts = append(parts, map[string]string{"from": "human", "value": text(row, 30+10*k)}, map[string]string{"from": "gpt", "value": text(row, 25)})
		}
		line, _ := json.Marshal(map[string]any{"conversations": parts})
		fmt.Fprintln(&b, string(line))
	}
	d := must.Get(traffic.Parse(strings.NewReader(b.String()), "talk.jsonl", traffic.Options{Talks: true}))(t)
	return must.Get(d.Talks(own))(t)
}

// A thousand conversations of a data set, begun at a rate, are sent turn by turn. A later prompt holds the
// one before it and its answer. What a turn finds in the cache is what was sent before, to within a block:
// the prompt before, and the answer if it is the server's own.
func TestRowsTurnByTurn(t *testing.T) {
	const conversations, output, block = 1000, 16, 16
	for _, replies := range []plan.Replies{plan.RecordedReplies, plan.Own} {
		t.Run(string(replies), func(t *testing.T) {
			set := rowsOfTalk(t, conversations+400, replies == plan.Own)
			onBothSims(t, func() *plan.Workload {
				return &plan.Workload{
					Output: plan.Output{Mean: output}, Prompt: plan.Prompt{Dataset: set, Order: plan.InOrder, Replies: replies, Turns: set.Turns()},
					Loads: []*plan.Load{{
						Kind: metric.OpenLoop, Seeds: []int64{1}, Timeout: time.Minute, Think: traffic.Think{Mean: time.Second},
						Open:   &plan.Open{Arrivals: plan.Constant, MaxInFlight: 1000, Warmup: 10 * time.Second, Unsaturated: true},
						Levels: []plan.Level{{Name: "5 req/s", Rate: 5, Requests: conversations, Rounds: 10}},
					}},
				}
			}, func(t *testing.T, samples []*metric.Sample) {
				before, turns := map[int]*metric.Sample{}, [4]int{}
				for _, s := range samples {
					last := before[s.Row]
					before[s.Row] = s
					if s.Phase != metric.Measured || s.Turn > 1 && last == nil {
						continue
					}
					turns[s.Turn]++
					must.Need(t, s.Usage.Output == output, "turn %d has an answer of %d tokens", s.Turn, s.Usage.Output)
					if s.Turn == 1 {
						must.Need(t, s.Usage.Cached <= int(s.Bound*float64(s.Usage.Input))+block, "%d of %d tokens were cached, at most %.3f", s.Usage.Cached, s.Usage.Input, s.Bound)
						continue
					}
					sent := last.Usage.Input
					if replies == plan.Own {
						sent += last.Usage.Output
					}
					implied := int(math.Round(s.Shared * float64(s.Usage.Input)))
					must.Need(t, last.Turn == s.Turn-1 && s.Usage.Input > sent && implied == sent, "turn %d after %d: %d tokens, %d implied, %d sent", s.Turn, last.Turn, s.Usage.Input, implied, sent)
					must.Need(t, s.Usage.Cached > implied-block && s.Usage.Cached <= implied+block, "turn %d found %d of %d tokens, %d implied", s.Turn, s.Usage.Cached, s.Usage.Input, implied)
				}
				must.Same(t, "turns", [4]int{0, conversations, conversations, conversations}, turns)
			})
		})
	}
}
