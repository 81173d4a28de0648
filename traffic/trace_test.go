package traffic_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/traffic"
)

func trace(t *testing.T, path, text, format string, columns *traffic.Columns) *traffic.Trace {
	t.Helper()
	out := must.Get(traffic.ParseTrace(strings.NewReader(text), path, format, columns))(t)
	return out
}

// ids returns n consecutive numbers, beginning with from.
func ids(from, n int) []uint64 {
	var out []uint64
	for i := range n {
		out = append(out, uint64(from+i))
	}
	return out
}

func list(ids []uint64) string { return strings.Join(strings.Fields(fmt.Sprint(ids)), ",") }

const ms = time.Millisecond

// The rows look like those of published traces, and include the special cases of each format.
func TestFormats(t *testing.T) {
	// The prompt of 6758 tokens has 13 full blocks of 512 tokens (6656 tokens) and a part of a
	// 14th.
	big := append([]uint64{0, math.MaxUint64, math.MaxInt64 + 1}, ids(7, 11)...)
	for _, tt := range []struct {
		name, path, format, text string
		columns                  *traffic.Columns
		want                     traffic.Trace
	}{
		{name: "mooncake: 64-bit ids, the last block partial, times in ms", path: "m.jsonl", text: "" +
			`{"timestamp": 27000, "input_length": 6758, "output_length": 500, "hash_ids": ` + list(big) + "}\n" +
			`{"timestamp": 29999, "input_length": 898, "output_length": 2, "hash_ids": [0, 99]}` + "\n\n" +
			`{"timestamp": 29999, "input_length": 2012, "output_length": 30, "hash_ids": [0, 1, 2]}` + "\n",
			want: traffic.Trace{Format: "mooncake", Block: 512, Rows: []traffic.Recorded{
				{Line: 1, Input: 6758, Output: 500, Blocks: big, Parent: -1, Wait: -1},
				{Line: 2, At: 2999 * ms, Input: 898, Output: 2, Blocks: []uint64{0, 99}, Parent: -1, Wait: -1},
				// A prompt of 2012 tokens has three full blocks of 512 tokens and a part of a
				// fourth. The trace has ids only for full blocks.
				{Line: 4, At: 2999 * ms, Input: 2012, Output: 30, Blocks: ids(0, 3), Parent: -1, Wait: -1},
			}}},
		{name: "azure: seven fractional digits, a byte order mark, CRLF", path: "a.csv", text: "\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\r\n" +
			"2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8\r\n2023-11-16 18:17:04.0319601,0,8\r\n",
			want: traffic.Trace{Format: "azure", Empty: 1, Rows: []traffic.Recorded{
				{Line: 2, Input: 4808, Output: 10, Parent: -1, Wait: -1},
				{Line: 3, At: 52 * ms, Input: 3180, Output: 8, Parent: -1, Wait: -1},
			}}},
		{name: "azure of 2024, with an offset", path: "b.csv", text: "TIMESTAMP,ContextTokens,GeneratedTokens\n" +
			"2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:00.017335+00:00,2399,6\n",
			want: traffic.Trace{Format: "azure", Rows: []traffic.Recorded{
				{Line: 2, Input: 2162, Output: 5, Parent: -1, Wait: -1},
				{Line: 3, At: 7405 * time.Microsecond, Input: 2399, Output: 6, Parent: -1, Wait: -1},
			}}},
		{name: "burstgpt with sessions: a failure is left out", path: "s.csv", text: "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
			"5,s1,2.1,ChatGPT,472,18,490,Conversation log\n6,,0,GPT-4,1087,0,1087,API log\n45.5,s1,3.0,ChatGPT,500,230,730,Conversation log\n",
			want: traffic.Trace{Format: "burstgpt", Empty: 1, Rows: []traffic.Recorded{
				{Line: 2, Input: 472, Output: 18, Session: 1, Parent: -1, Wait: -1, Type: "ChatGPT"},
				{Line: 4, At: 40500 * ms, Input: 500, Output: 230, Session: 1, Parent: 0, Wait: -1, Type: "ChatGPT"},
			}}},
		{name: "burstgpt of the first files", path: "s.csv", text: "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n",
			want: traffic.Trace{Format: "burstgpt", Rows: []traffic.Recorded{{Line: 2, Input: 472, Output: 18, Parent: -1, Wait: -1, Type: "ChatGPT"}}}},
		{name: "bailian: blocks of 16, trees", path: "q.jsonl", text: "" +
			`{"chat_id": 55, "parent_chat_id": -1, "timestamp": 60.5, "input_length": 40, "output_length": 9, "type": "text", "turn": 1, "hash_ids": [1089, 1090, 1091]}` + "\n" +
			`{"chat_id": 159, "parent_chat_id": 55, "timestamp": 61.114, "input_length": 65, "output_length": 132, "type": "search", "turn": 2, "hash_ids": [1089, 1090, 1091, 6326, 13148]}` + "\n" +
			`{"chat_id": 160, "parent_chat_id": 54, "timestamp": 61.114, "input_length": 16, "output_length": 1, "type": "text", "turn": 3, "hash_ids": [7]}` + "\n",
			want: traffic.Trace{Format: "bailian", Block: 16, Rows: []traffic.Recorded{
				{Line: 1, Input: 40, Output: 9, Blocks: ids(1089, 3), Session: 1, Parent: -1, Wait: -1, Type: "text"},
				{Line: 2, At: 614 * ms, Input: 65, Output: 132, Blocks: []uint64{1089, 1090, 1091, 6326, 13148}, Session: 1, Parent: 0, Wait: -1, Type: "search"},
				{Line: 3, At: 614 * ms, Input: 16, Output: 1, Blocks: []uint64{7}, Session: 2, Parent: -1, Wait: -1, Type: "text"}, // its parent is not in the trace
			}}},
		{name: "tracelab: the wait is from the last output to the last tool result", path: "t.jsonl", text: "" +
			`{"provider":"claude","session_id":"claude:a","round_index":0,"model":"m","input_tokens_total":300,"prefix_tokens":0,"newly_append_tokens":300,"output_tokens":50,"timing_events":[{"event_type":"user_message","timestamp":"2026-03-01T10:00:00.000Z"},{"event_type":"tool_call","timestamp":"2026-03-01T10:00:04.000Z"}],"tools":[{"tool_wall_latency_ms":1500}]}` + "\n" +
			`{"provider":"claude","session_id":"claude:a","round_index":1,"model":"m","input_tokens_total":420,"prefix_tokens":320,"newly_append_tokens":100,"output_tokens":10,"timing_events":[{"event_type":"tool_result","timestamp":"2026-03-01T10:00:05.500Z"},{"event_type":"text","timestamp":"2026-03-01T10:00:06Z"}],"tools":[]}` + "\n" +
			`{"provider":"claude","session_id":"claude:b","round_index":0,"model":"m","input_tokens_total":9,"prefix_tokens":2,"newly_append_tokens":7,"output_tokens":1,"timing_events":[],"tools":null}` + "\n",
			want: traffic.Trace{Format: "tracelab", Empty: 1, Rows: []traffic.Recorded{
				{Line: 1, Input: 300, Output: 50, Session: 1, Parent: -1, Wait: -1, Type: "m"},
				{Line: 2, At: 5500 * ms, Input: 420, Output: 10, Session: 1, Parent: 0, Prefix: 320, Wait: 1500 * ms, Type: "m"},
			}}},
		{name: "tracelab as CSV", path: "t.csv", text: "id,input_len,output_len,arrival_time,round_idx,tool_wait_after_ms,prefix_len\n" +
			"0,300,50,12.500000,0,1500.250000,0\n0,100,10,12.500000,1,0.000000,320\n",
			want: traffic.Trace{Format: "tracelab", Rows: []traffic.Recorded{
				{Line: 2, Input: 300, Output: 50, Session: 1, Parent: -1, Wait: -1},
				{Line: 3, Input: 420, Output: 10, Session: 1, Parent: 0, Prefix: 320, Wait: 1500*ms + 250*time.Microsecond},
			}}},
		{name: "aiperf: a session whose turns go on, and text", path: "x.jsonl", text: "" +
			`{"session_id": "abc-123", "timestamp": 1000, "input_length": 300, "output_length": 40}` + "\n" +
			`{"session_id": "abc-123", "delay": 2, "input_length": 150, "output_length": 20}` + "\n" +
			`{"timestamp": 1500, "text_input": "Hello", "output_length": 7}` + "\n",
			want: traffic.Trace{Format: "aiperf", Rows: []traffic.Recorded{
				{Line: 1, Input: 300, Output: 40, Session: 1, Parent: -1, Wait: -1},
				{Line: 2, At: 2 * ms, Input: 490, Output: 20, Session: 1, Parent: 0, Prefix: 340, Wait: 2 * ms},
				{Line: 3, At: 500 * ms, Output: 7, Parent: -1, Wait: -1, Text: &traffic.Row{Prompt: "Hello"}},
			}}},
		{name: "samples.jsonl: what was measured of the first server", path: "samples.jsonl", text: `{"type":"header","schema":"tokgate.samples/1.3"}` + "\n" +
			`{"type":"sample","sample":{"server":"a","workload":"w","phase":"warmup","scheduled_ns":5,"input_asked":9,"output_asked":9}}` + "\n" +
			`{"type":"sample","sample":{"server":"a","workload":"w","phase":"measured","scheduled_ns":2000000000,"input_asked":64,"output_asked":8}}` + "\n" +
			`{"type":"sample","sample":{"server":"b","workload":"w","phase":"measured","scheduled_ns":2000000000,"input_asked":64,"output_asked":8}}` + "\n" +
			`{"type":"sample","sample":{"server":"a","workload":"w","part":"rag","phase":"measured","scheduled_ns":1000000000,"input_asked":64,"output_asked":8,"usage":{"input":70,"output":5}}}` + "\n",
			want: traffic.Trace{Format: "tokgate", Rows: []traffic.Recorded{
				{Line: 5, Input: 70, Output: 5, Parent: -1, Wait: -1, Type: "rag"}, // the type is the request's part in the mix
				{Line: 3, At: time.Second, Input: 64, Output: 8, Parent: -1, Wait: -1, Type: "w"},
			}}},
		{name: "columns of JSON", path: "own.jsonl", columns: &traffic.Columns{Time: "at", Input: "in", Output: "out", Session: "user", Type: "route", Prefix: "cached"},
			text: `{"at":"2026-01-02T03:04:05.5Z","in":10,"out":"3","user":7,"route":"/a","cached":0}` + "\n" + `{"at":"2026-01-02T03:04:06Z","in":20.0,"out":3,"user":7,"route":"/b","cached":14}`,
			want: traffic.Trace{Format: "columns", Rows: []traffic.Recorded{
				{Line: 1, Input: 10, Output: 3, Session: 1, Parent: -1, Wait: -1, Type: "/a"},
				// The conversation so far has 13 tokens: 10 of the prompt before, and 3 of its
				// answer. So the prefix has at most 13 tokens.
				{Line: 2, At: 500 * ms, Input: 20, Output: 3, Session: 1, Parent: 0, Prefix: 13, Wait: -1, Type: "/b"},
			}}},
		{name: "columns of a table", path: "own.csv", columns: &traffic.Columns{Time: "t", Unit: time.Microsecond, Input: "in", Output: "out", Hashes: "h", Block: 4},
			text: "t,in,out,h\n10,5,1,\"[1,2]\"\n20,5,1,\n",
			want: traffic.Trace{Format: "columns", Block: 4, Rows: []traffic.Recorded{
				{Line: 2, Input: 5, Output: 1, Blocks: ids(1, 2), Parent: -1, Wait: -1},
				{Line: 3, At: 10 * time.Microsecond, Input: 5, Output: 1, Parent: -1, Wait: -1},
			}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := trace(t, tt.path, tt.text, tt.format, tt.columns)
			must.Hold(t, len(got.Hash) == 64 && got.Path == tt.path, "hash %q, path %q", got.Hash, got.Path)
			got.Hash, got.Path = "", ""
			must.Same(t, "", &tt.want, got)
		})
	}
}

func TestRefusesTraces(t *testing.T) {
	moon := `{"timestamp":0,"input_length":10,"output_length":1}` + "\n"
	for _, tt := range []struct{ name, path, format, text, want string }{
		{"nothing", "a.jsonl", "", " \n", "a.jsonl: it has no request"},
		{"failures alone", "a.csv", "azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,1,0\n", "a.csv: none of its rows has a prompt and an answer"},
		{"an unknown format", "a.jsonl", "moon", moon, `a.jsonl: there is no format "moon"`},
		{"unknown rows", "a.jsonl", "", `{"a":1,"b":2}`, `a.jsonl:1: its format is not known: no known format has its 2 columns. Name them, such as columns = { time = "ts", input = "prompt_tokens", output = "completion_tokens" }, or set format`},
		{"an unknown table", "a.csv", "", "a,b\n1,2\n", `a.csv:1: its format is not known: no known format has its 2 columns. Name them, such as columns = { time = "ts", input = "prompt_tokens", output = "completion_tokens" }, or set format`},
		{"compressed", "a.jsonl", "", "\x1f\x8b\x08", "a.jsonl: it is compressed: unpack it first, such as by gunzip"},
		{"half a line", "a.jsonl", "", moon + `{"timestamp":`, "a.jsonl:2: it is not valid JSON: it ends too early"},
		{"a number", "a.jsonl", "", moon + "7", "a.jsonl:2: it is a number, not an object"},
		{"no time", "a.jsonl", "mooncake", `{"input_length":1,"output_length":1}`, "a.jsonl:1: it has no timestamp"},
		{"a bad time", "a.jsonl", "", moon + `{"timestamp":"noon","input_length":1,"output_length":1}`, `a.jsonl:2: its timestamp is a text of 4 bytes, neither a number nor a date and time`},
		{"a time without end", "a.jsonl", "", moon + `{"timestamp":1e300,"input_length":1,"output_length":1}`, "a.jsonl:2: its timestamp is a number, but no time"},
		{"half a token", "a.jsonl", "", `{"timestamp":0,"input_length":1.5,"output_length":1}`, "a.jsonl:1: its input_length is a number, but not a whole number from 0 to 100000000"},
		{"no length", "a.jsonl", "mooncake", `{"timestamp":0,"output_length":1}`, "a.jsonl:1: it has no input_length"},
		{"too few blocks", "a.jsonl", "", `{"timestamp":0,"input_length":6758,"output_length":1,"hash_ids":[1,2]}`, "a.jsonl:1: it has 2 hash_ids, and a prompt of 6758 tokens has 14 blocks of 512"},
		{"too many blocks", "a.jsonl", "", `{"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1,2]}`, "a.jsonl:1: it has 2 hash_ids, and a prompt of 512 tokens has 1 blocks of 512"},
		{"65 bits", "a.jsonl", "", `{"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[18446744073709551616]}`, "a.jsonl:1: of its hash_ids number 1 is a number, but not a whole number of 64 bits"},
		{"no list", "a.jsonl", "", `{"timestamp":0,"input_length":512,"output_length":1,"hash_ids":"1"}`, `a.jsonl:1: its hash_ids are a text of 1 bytes, not a list`},
		{"a short line", "a.csv", "", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3\n1,2\n", "a.csv:3: it is no CSV: wrong number of fields"},
		{"a missing column", "a.csv", "azure", "TIMESTAMP,ContextTokens\n1,2\n", `a.csv:1: none of its 2 columns is "GeneratedTokens"`},
		{"an empty cell", "a.csv", "", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,,3\n", "a.csv:2: it has no ContextTokens"},
		{"a table of samples", "a.csv", "tokgate", "a,b\n1,2\n", "a.csv:1: the format tokgate is not a table"},
		{"a delay without a session", "a.jsonl", "aiperf", `{"delay":5,"input_length":1,"output_length":1}`, "a.jsonl:1: it has no time, and follows no row of its session by a delay"},
		{"a negative wait", "a.csv", "", "id,input_len,output_len,arrival_time,round_idx,tool_wait_after_ms,prefix_len\n0,1,1,0,0,-1,0\n", "a.csv:2: its tool_wait_after_ms is a number below 0"},
		{"no messages", "a.jsonl", "aiperf", `{"timestamp":0,"messages":[],"output_length":1}`, "a.jsonl:1: it has no message"},
		{"a round", "a.jsonl", "tracelab", `{"session_id":7}`, "a.jsonl:1: it is no round: its session_id is of the JSON type number, which is not expected"},
		{"a round's event", "a.jsonl", "tracelab", `{"session_id":"7","input_tokens_total":1,"prefix_tokens":0,"output_tokens":1,"timing_events":[{"timestamp":"then"}]}`, "a.jsonl:1: a timestamp of its timing_events is a text of 4 bytes, neither a number nor a date and time"},
		{"a sample", "a.jsonl", "tokgate", `{"type":"sample","sample":{"phase":"measured","scheduled_ns":-5}}`, "a.jsonl:1: its sample lacks lengths or a time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := traffic.ParseTrace(strings.NewReader(tt.text), tt.path, tt.format, nil)
			must.Need(t, err != nil, "no error, want %s", tt.want)
			got := err.Error()
			must.Hold(t, got == tt.want, "%s\nwant %s", got, tt.want)
		})
	}
}

// A session that is too long is refused. A row of a gigabyte is refused before all of it is read.
func TestHostileTraces(t *testing.T) {
	var b strings.Builder
	b.WriteString("Timestamp,Session ID,Model,Request tokens,Response tokens\n")
	for range traffic.MostInTrace + 1 {
		b.WriteString("1,s,m,1,1\n")
	}
	_, err := traffic.ParseTrace(strings.NewReader(b.String()), "a.csv", "", nil)
	want := fmt.Sprintf("a.csv:%d: its session has more than 4096 turns", traffic.MostInTrace+2)
	must.Hold(t, err != nil && err.Error() == want, "%v, want %s", err, want)
	for path, head := range map[string]string{
		"a.jsonl": `{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[`, "a.json": `[`, "a.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n\"",
	} {
		in := &endless{head, strings.Repeat("1234", 1<<12), 1 << 30}
		_, err := traffic.ParseTrace(in, path, "", nil)
		must.Hold(t, err != nil && strings.Contains(err.Error(), "a row is longer than 33554432 bytes"), "%s: %v", path, err)
		read := 1<<30 - in.left
		must.Hold(t, read <= 2*traffic.MaxRow, "%s: %d bytes were read", path, read)
	}
}

func FuzzTrace(f *testing.F) {
	for _, seed := range []string{
		`{"timestamp":27000,"input_length":698,"output_length":500,"hash_ids":[0,18446744073709551615]}`,
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n",
		"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,a,1,ChatGPT,472,18,490,API log\n6,a,1,ChatGPT,4,1,5,API log\n",
		`{"chat_id":159,"parent_chat_id":55,"timestamp":61.114,"input_length":21,"output_length":132,"type":"text","turn":2,"hash_ids":[1089,-1]}`,
		`{"session_id":"a","input_tokens_total":300,"prefix_tokens":10,"output_tokens":50,"timing_events":[{"event_type":"user_message","timestamp":"2026-03-01T10:00:00Z"}],"tools":[{"tool_wall_latency_ms":1}]}`,
		"id,input_len,output_len,arrival_time,round_idx,tool_wait_after_ms,prefix_len\n0,300,50,12.5,0,1500.25,0\n0,1,1,12.5,1,0,350\n",
		"{\"session_id\":\"a\",\"timestamp\":1,\"input_length\":3,\"output_length\":4}\n{\"session_id\":\"a\",\"delay\":2,\"input_length\":1,\"output_length\":2}",
		`{"timestamp":1,"messages":[{"role":"user","content":"a"}],"output_length":4}`,
		`{"type":"sample","sample":{"server":"a","phase":"measured","scheduled_ns":2,"input_asked":64,"output_asked":8}}`,
		"t,in,out,h,p\n1,5,1,\"[1,2]\",3\n", "[{}]", "\x1f\x8b",
	} {
		f.Add("", []byte(seed))
		f.Add("columns", []byte(seed))
	}
	for _, format := range traffic.Formats {
		f.Add(format.Name, []byte(`{"timestamp":1,"input_length":3,"output_length":4}`))
	}
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		var columns *traffic.Columns
		if format == "columns" {
			columns, format = &traffic.Columns{Time: "t", Input: "in", Output: "out", Hashes: "h", Block: 4, Prefix: "p", Session: "s"}, ""
		}
		tr, err := traffic.ParseTrace(bytes.NewReader(data), "x", format, columns)
		if err != nil {
			bad, ok := errors.AsType[*traffic.Error](err)
			must.Need(t, ok && bad.Line >= 0 && bad.Line <= bytes.Count(data, []byte("\n"))+1, "%#v", err)
			return
		}
		for i, r := range tr.Rows {
			switch {
			case r.At < 0 || i > 0 && r.At < tr.Rows[i-1].At:
				t.Fatalf("row %d is sent %v after the first", i, r.At)
			case r.Output < 1 || r.Input < 0 || r.Input == 0 && r.Text == nil || r.Prefix > r.Input || r.Parent >= i || r.Prefix > 0 && r.Parent < 0:
				t.Fatalf("row %d: %+v", i, r)
			case r.Session == 0 && r.Parent >= 0:
				t.Fatalf("row %d follows one and is of no session", i)
			}
		}
		if len(tr.Rows) > 1000 {
			return
		}
		replay, err := tr.Replay(traffic.Stretch{Spread: time.Second, Seed: 1})
		if err != nil {
			return
		}
		for i, n := range replay.Repeats(0, len(replay.Rows), 0, true) {
			sum := 0
			for _, p := range replay.Parts(i) {
				sum += p.Tokens
			}
			input := replay.Rows[i].Input
			must.Need(t, sum == input && n >= 0 && n <= input, "row %d of %d tokens has parts of %d, and shares %d", i, input, sum, n)
		}
	})
}
