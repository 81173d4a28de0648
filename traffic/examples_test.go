package traffic_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/traffic"
)

var update = flag.Bool("update", false, "write the examples of plans/traces")

// tenMinutes is the duration of each example, in seconds.
const tenMinutes = 600.0

// synthetic is a note in the first row of each example whose format has room for it.
const synthetic = "made by tokgate's tests, not recorded: see README.md"

// arrivals calls the function visit with the time of each request, at the given mean rate. The gaps
// between requests are gamma distributed with the given shape; shape 1 is Poisson.
func arrivals(r *rand.Rand, rate, shape float64, visit func(t float64)) {
	for t := 0.0; ; {
		// A gap has a gamma distribution, whose shape is a multiple of 1/2. So half a sum of
		// squared normal numbers gives the gap.
		gap := 0.0
		for range int(2 * shape) {
			z := r.NormFloat64()
			gap += z * z / 2
		}
		if t += gap / shape / rate; t >= tenMinutes {
			return
		}
		visit(t)
	}
}

// logNormal returns a random length in tokens, from 1 to most. The distribution is log-normal with
// the given median; sigma is the standard deviation of the logarithm.
func logNormal(r *rand.Rand, median, sigma float64, most int) int {
	return min(max(int(median*math.Exp(sigma*r.NormFloat64())), 1), most)
}

func line(b *bytes.Buffer, row any) {
	raw, _ := json.Marshal(row) // never fails: rows have only text and numbers
	b.Write(append(raw, '\n'))
}

// chains makes prompts that continue earlier prompts. A prompt is a list of block ids, for text
// blocks of equal length.
type chains struct {
	block int
	next  uint64
	made  []chain
}

type chain struct {
	ids    []uint64
	tokens int
}

// add returns a prompt that continues an earlier one, the parameter from. The parameter more is the
// number of its new tokens.
func (c *chains) add(from chain, more int) chain {
	out := chain{slices.Clone(from.ids[:from.tokens/c.block]), from.tokens + more}
	for len(out.ids) < (out.tokens+c.block-1)/c.block {
		out.ids = append(out.ids, c.next)
		c.next++
	}
	return out
}

// mooncake makes a trace like Mooncake's. Some prompts continue a conversation, and some begin with
// a common system prompt. Times are rounded down to multiples of 3 s.
func mooncake(r *rand.Rand) []byte {
	type row struct {
		Synthetic string   `json:"synthetic,omitempty"`
		At        int      `json:"timestamp"`
		Input     int      `json:"input_length"`
		Output    int      `json:"output_length"`
		Hashes    []uint64 `json:"hash_ids"`
	}
	var b bytes.Buffer
	say := synthetic
	c := &chains{block: 512, next: 1}
	system := chain{[]uint64{0}, 512}
	arrivals(r, 1.5, 1, func(t float64) {
		from := system
		if len(c.made) > 0 && r.Float64() < 0.45 {
			from = c.made[max(len(c.made)-1-int(r.ExpFloat64()*60), 0)]
		}
		now := c.add(from, logNormal(r, 3900, 1.1, 40_000))
		if now.tokens > 120_000 {
			now = c.add(system, logNormal(r, 3900, 1.1, 40_000))
		}
		output := logNormal(r, 240, 0.85, 2000)
		line(&b, row{say, int(t/3) * 3000, now.tokens, output, now.ids})
		c.made = append(c.made, c.add(now, output))
		say = ""
	})
	return b.Bytes()
}

// bailian makes a trace of chats, in which one turn may have several continuations.
func bailian(r *rand.Rand) []byte {
	type row struct {
		Synthetic string   `json:"synthetic,omitempty"`
		Chat      int      `json:"chat_id"`
		Parent    int      `json:"parent_chat_id"`
		At        float64  `json:"timestamp"`
		Input     int      `json:"input_length"`
		Output    int      `json:"output_length"`
		Type      string   `json:"type"`
		Turn      int      `json:"turn"`
		Hashes    []uint64 `json:"hash_ids"`
	}
	type chat struct {
		chain
		id, turn int
		after    float64
	}
	var b bytes.Buffer
	say, id := synthetic, 0
	c := &chains{block: 16, next: 4}
	system := chain{[]uint64{0, 1, 2, 3}, 64}
	var open []chat
	arrivals(r, 1.2, 1, func(t float64) {
		before := chat{chain: system, id: -1}
		if i := slices.IndexFunc(open, func(c chat) bool { return c.after < t }); i >= 0 && r.Float64() < 0.5 {
			before = open[i]
			open = slices.Delete(open, i, i+1)
		}
		now, output := c.add(before.chain, logNormal(r, 160, 1, 3000)), logNormal(r, 180, 0.9, 1500)
		id++
		kind := []string{"text", "text", "text", "search", "file"}[r.IntN(5)]
		line(&b, row{say, id, before.id, math.Round(t*1000) / 1000, now.tokens, output, kind, before.turn + 1, now.ids})
		say = ""
		if r.Float64() < 0.6 && now.tokens < 2500 {
			open = append(open, chat{c.add(now, output), id, before.turn + 1, t + 5 + r.ExpFloat64()*20})
		}
	})
	return b.Bytes()
}

// azure makes a trace like Azure's, which has only the lengths of requests. The median lengths are
// typical of conversations.
func azure(r *rand.Rand) []byte {
	b := bytes.NewBufferString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	begin := time.Date(2023, 11, 16, 18, 15, 0, 0, time.UTC)
	arrivals(r, 4, 1, func(t float64) {
		at := begin.Add(time.Duration(t*1e7) * 100) // seven digits
		fmt.Fprintf(b, "%s,%d,%d\n", at.Format("2006-01-02 15:04:05.0000000"), logNormal(r, 1020, 0.9, 14_000), logNormal(r, 129, 0.9, 1000))
	})
	return b.Bytes()
}

// burstGPT makes a trace like BurstGPT's, with bursts and sessions. One in 56 requests has no
// answer.
func burstGPT(r *rand.Rand) []byte {
	b := bytes.NewBufferString("Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n")
	session := 0
	arrivals(r, 2, 0.5, func(t float64) {
		if session == 0 || r.Float64() < 0.5 {
			session++
		}
		model, input, output := "ChatGPT", logNormal(r, 300, 1, 4000), logNormal(r, 120, 1, 1500)
		if r.Float64() < 0.1 {
			model = "GPT-4"
		}
		if r.Float64() < 0.018 {
			output = 0
		}
		fmt.Fprintf(b, "%.1f,%d,%.1f,%s,%d,%d,%d,Conversation log\n", 5+t, session-r.IntN(min(session, 20)), 0.5+float64(output)/30, model, input, output, input+output)
	})
	return b.Bytes()
}

// tracelab makes a trace of coding agents that read, call tools, and continue.
func tracelab(r *rand.Rand) []byte {
	type event struct {
		Type string `json:"event_type"`
		At   string `json:"timestamp"`
	}
	type tool struct {
		Name string `json:"tool_name"`
		Wall int    `json:"tool_wall_latency_ms"`
	}
	type row struct {
		Synthetic string  `json:"synthetic,omitempty"`
		Provider  string  `json:"provider"`
		Session   string  `json:"session_id"`
		Round     int     `json:"round_index"`
		Model     string  `json:"model"`
		Input     int     `json:"input_tokens_total"`
		Prefix    int     `json:"prefix_tokens"`
		Append    int     `json:"newly_append_tokens"`
		Output    int     `json:"output_tokens"`
		Events    []event `json:"timing_events"`
		Tools     []tool  `json:"tools"`
		at        float64
	}
	begin := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	stamp := func(t float64) string { return begin.Add(time.Duration(t * 1e9)).Format("2006-01-02T15:04:05.000Z") }
	var rows []row
	for s := range 14 {
		t, context := r.Float64()*300, 0
		for round := 0; t < tenMinutes && round < 60; round++ {
			more, output := logNormal(r, 700, 1.1, 8000), logNormal(r, 160, 0.9, 2000)
			if round == 0 {
				more += 9000 // the agent's system prompt and tools, in tokens
			}
			kind, spoke := "tool_result", t+0.5+float64(output)/60
			if round == 0 {
				kind = "user_message"
			}
			x := row{Provider: "claude", Session: fmt.Sprintf("claude:%d", s), Round: round, Model: "agent", Input: context + more, Prefix: context, Append: more, Output: output, at: t}
			x.Events = []event{{kind, stamp(t)}, {"tool_call", stamp(spoke)}}
			wait := 0.3 + r.ExpFloat64()*4
			x.Tools = []tool{{"Bash", int(wait * 1000)}}
			rows = append(rows, x)
			t, context = spoke+wait, context+more+output
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return int(math.Copysign(1, a.at-b.at)) })
	var b bytes.Buffer
	rows[0].Synthetic = synthetic
	for _, x := range rows {
		line(&b, x)
	}
	return b.Bytes()
}

// aiperf makes a trace of sessions that wait before their turns, and of single requests.
func aiperf(r *rand.Rand) []byte {
	type row struct {
		Synthetic string `json:"synthetic,omitempty"`
		Session   string `json:"session_id,omitempty"`
		At        *int   `json:"timestamp,omitempty"`
		Delay     int    `json:"delay,omitempty"`
		Input     int    `json:"input_length"`
		Output    int    `json:"output_length"`
	}
	var b bytes.Buffer
	say, n := synthetic, 0
	arrivals(r, 0.6, 1, func(t float64) {
		n++
		at := int(t * 1000)
		x := row{say, fmt.Sprintf("session-%d", n), &at, 0, logNormal(r, 400, 0.9, 6000), logNormal(r, 180, 0.8, 1200)}
		say = ""
		for line(&b, x); r.Float64() < 0.65; line(&b, x) {
			x = row{Session: x.Session, Delay: 2000 + int(r.ExpFloat64()*12_000), Input: logNormal(r, 120, 0.9, 3000), Output: logNormal(r, 180, 0.8, 1200)}
		}
	})
	return b.Bytes()
}

// samples makes the recording of an open-loop run by tokgate. It has only the fields that a replay
// reads.
func samples(r *rand.Rand) []byte {
	b := bytes.NewBufferString(`{"type":"header","schema":"tokgate.samples/1.3","synthetic":"` + synthetic + "\"}\n")
	arrivals(r, 2, 1, func(t float64) {
		input, output := logNormal(r, 800, 0.5, 6000), logNormal(r, 160, 0.5, 1000)
		fmt.Fprintf(b, `{"type":"sample","sample":{"server":"vllm","workload":"chat","level":"2 req/s","phase":"measured","scheduled_ns":%d,"input_asked":%d,"output_asked":%d,"usage":{"input":%d,"output":%d}}}`+"\n",
			int64(t*1e9), input, output, input, output)
	})
	return b.Bytes()
}

// gateway makes a log in a private format, whose columns tokgate is told to read.
func gateway(r *rand.Rand) []byte {
	b := bytes.NewBufferString("ts,route,user,prompt_tokens,completion_tokens\n")
	begin := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	arrivals(r, 2, 1, func(t float64) {
		fmt.Fprintf(b, "%s,/v1/%s,u%d,%d,%d\n", begin.Add(time.Duration(t*1e9)).Format("2006-01-02T15:04:05.000Z"), []string{"chat", "rag"}[r.IntN(2)], r.IntN(400), logNormal(r, 900, 0.8, 8000), logNormal(r, 150, 0.8, 1000))
	})
	return b.Bytes()
}

// The test generates the example traces in plans/traces; -update writes them. Each covers about ten
// minutes and has less than 300 KB. tokgate detects each format but that of gateway, whose columns
// it is told.
func TestExamples(t *testing.T) {
	for i, tt := range []struct {
		file, format string
		make         func(*rand.Rand) []byte
		sessions     bool
		block        int
		hits         [2]float64 // smallest and largest allowed hit rate of a prefix cache
	}{
		{"mooncake-synthetic.jsonl", "mooncake", mooncake, false, 512, [2]float64{0.35, 0.45}},
		{"bailian-synthetic.jsonl", "bailian", bailian, true, 16, [2]float64{0.4, 0.7}},
		{"azure-synthetic.csv", "azure", azure, false, 0, [2]float64{}},
		{"burstgpt-synthetic.csv", "burstgpt", burstGPT, true, 0, [2]float64{}},
		{"tracelab-synthetic.jsonl", "tracelab", tracelab, true, 0, [2]float64{0.9, 0.99}},
		{"aiperf-synthetic.jsonl", "aiperf", aiperf, true, 0, [2]float64{0.2, 0.7}},
		{"samples-synthetic.jsonl", "tokgate", samples, false, 0, [2]float64{}},
		{"gateway-synthetic.csv", "columns", gateway, true, 0, [2]float64{}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			path := filepath.Join("..", "plans", "traces", tt.file)
			made := tt.make(rand.New(rand.NewPCG(22, uint64(i))))
			if *update {
				must.Do(t, os.WriteFile(path, made, 0o644))
			}
			kept := must.Get(os.ReadFile(path))(t)
			must.Hold(t, bytes.Equal(made, kept), "it is not what is made here: write it by -update")
			must.Hold(t, len(kept) <= 300_000, "%d bytes", len(kept))
			var columns *traffic.Columns
			if tt.format == "columns" {
				columns = &traffic.Columns{Time: "ts", Input: "prompt_tokens", Output: "completion_tokens", Session: "user", Type: "route"}
			}
			tr := must.Get(traffic.ReadTrace(path, "", columns))(t)
			r := must.Get(tr.Replay(traffic.Stretch{}))(t)
			must.Same(t, "", [2]any{tt.format, tt.block}, [2]any{tr.Format, tr.Block})
			last := r.Length()
			must.Hold(t, last >= 9*time.Minute && last <= 15*time.Minute, "it lasts %v", last)
			must.Same(t, "sessions", tt.sessions, slices.ContainsFunc(tr.Rows, func(r traffic.Recorded) bool { return r.Parent >= 0 }))
			input, output := r.Means()
			hits := r.HitRate(0, 0)
			t.Logf("%d requests, %.0f + %.0f tokens, %.1f %% repeated, %d bytes", r.Due, input, output, 100*hits, len(kept))
			must.Hold(t, hits >= tt.hits[0] && hits <= tt.hits[1], "%.3f of its prompts is repeated, want %v", hits, tt.hits)
		})
	}
}
