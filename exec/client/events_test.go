package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
)

// told is what an event says. Its texts are decoded.
type told struct {
	Text, Reasoning string
	Calls           []CallPart
	Finish, Err     string
	Usage           *Usage
	Done            bool
	Vectors         int
}

func tell(t testing.TB, api engine.API, data string) told {
	var e Event
	var u Usage
	err := walkAs(api, []byte(data), &e, &u)
	must.Need(t, err == nil, "%s: %v", data, err)
	out := told{Text: string(e.Visible), Calls: append([]CallPart(nil), e.Calls...), Finish: e.Finish, Err: e.Err, Done: e.Done, Vectors: e.Vectors}
	if e.Reasoning {
		out.Reasoning = string(e.Raw)
	}
	if e.Usage != nil {
		u := *e.Usage
		out.Usage = &u
	}
	must.Hold(t, e.Content == (out.Text != "") && e.ToolCall == (len(e.Calls) > 0 && len(e.Calls[0].Name)+len(e.Calls[0].Arguments) > 0),
		"%s: %+v", data, e)
	return out
}

func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		api  engine.API
		json string
		want told
	}{
		{engine.Responses, `{"type":"response.created","response":{"status":"in_progress","usage":null,"error":null,"incomplete_details":null}}`, told{}},
		{engine.Responses, `{"type":"response.output_text.delta","output_index":1,"delta":"Hi"}`, told{Text: "Hi"}},
		{engine.Responses, `{"delta":"Hi","type":"response.output_text.delta"}`, told{Text: "Hi"}},
		{engine.Responses, `{"type":"response.output_text.delta","delta":""}`, told{}},
		{engine.Responses, `{"type":"response.output_text.done","text":"Hi"}`, told{}}, // what came before, again
		{engine.Responses, `{"type":"response.refusal.delta","delta":"No"}`, told{Text: "No"}},
		{engine.Responses, `{"type":"response.reasoning_text.delta","delta":"hm"}`, told{Reasoning: "hm"}},
		{engine.Responses, `{"type":"response.reasoning_summary_text.delta","delta":"hm"}`, told{Reasoning: "hm"}},
		{engine.Responses, `{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","name":"f","arguments":""}}`,
			told{Calls: []CallPart{{Index: 2, Name: []byte("f")}}}},
		{engine.Responses, `{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","name":"f","arguments":"{}"}}`, told{}},
		{engine.Responses, `{"delta":"{}","output_index":2,"type":"response.function_call_arguments.delta"}`,
			told{Calls: []CallPart{{Index: 2, Arguments: []byte("{}")}}}},
		{engine.Responses, `{"type":"response.completed","response":{"incomplete_details":null,"usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":32},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4}}}}`,
			told{Finish: "stop", Done: true, Usage: &Usage{40, 9, 32, 4}}},
		{engine.Responses, `{"type":"response.completed","response":{"output":[{"type":"message"},{"arguments":"{}","type":"function_call"}]}}`,
			told{Finish: "tool_calls", Done: true}},
		// vLLM says completed of an incomplete answer.
		{engine.Responses, `{"response":{"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":4,"output_tokens":9}},"type":"response.completed"}`,
			told{Finish: "length", Done: true, Usage: &Usage{4, 9, -1, 0}}},
		{engine.Responses, `{"type":"response.incomplete","response":{}}`, told{Finish: "length", Done: true}},
		{engine.Responses, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`, told{Finish: "content_filter", Done: true}},
		{engine.Responses, `{"type":"response.failed","response":{"error":{"code":"server_error","message":"lost"}}}`, told{Err: "lost"}},
		{engine.Responses, `{"type":"response.failed","response":{}}`, told{Err: "the response failed, without a message"}},
		{engine.Responses, `{"type":"error","message":"slow down","code":"x"}`, told{Err: "slow down"}},
		{engine.Responses, `{"error":{"message":"slow down"},"type":"error"}`, told{Err: "slow down"}},
		{engine.Messages, `{"type":"message_start","message":{"role":"assistant","content":[],"usage":{"input_tokens":25,"cache_read_input_tokens":10,"cache_creation_input_tokens":5,"output_tokens":1}}}`,
			told{Usage: &Usage{40, 1, 10, 0}}},
		{engine.Messages, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, told{}},
		{engine.Messages, `{"type":"ping"}`, told{}},
		{engine.Messages, `{"delta":{"text":"Hi","type":"text_delta"},"type":"content_block_delta","index":0}`, told{Text: "Hi"}},
		{engine.Messages, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`, told{Reasoning: "hm"}},
		{engine.Messages, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`, told{}},
		{engine.Messages, `{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"f","input":{}},"index":1}`,
			told{Calls: []CallPart{{Index: 1, Name: []byte("f")}}}},
		{engine.Messages, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
			told{Calls: []CallPart{{Index: 1, Arguments: []byte("{}")}}}},
		{engine.Messages, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":5}}`, told{Finish: "length", Usage: &Usage{0, 5, -1, 0}}},
		{engine.Messages, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, told{Finish: "stop"}},
		{engine.Messages, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, told{Finish: "tool_calls"}},
		{engine.Messages, `{"type":"message_delta","delta":{"stop_reason":"refusal"}}`, told{Finish: "refusal"}},
		{engine.Messages, `{"type":"message_stop"}`, told{Done: true}},
		{engine.Messages, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, told{Err: "Overloaded"}},
		{engine.Embeddings, `{"data":[{"embedding":[0.5],"index":0},{"embedding":"AAAAPw=="}],"usage":{"prompt_tokens":8}}`, told{Vectors: 2, Usage: &Usage{8, 0, -1, 0}}},
		{engine.Embeddings, `{"data":[{"embedding":[]},{"embedding":null},{"embedding":""},{}]}`, told{}},
		{engine.Embeddings, `{"error":{"message":"no"}}`, told{Err: "no"}},
	} {
		must.Same(t, string(tt.api)+" "+tt.json+" (-want +got)", tt.want, tell(t, tt.api, tt.json))
	}
}

// An event of any API is read without an allocation.
func TestEventsAllocateNothing(t *testing.T) {
	var e Event
	var u Usage
	e.Calls = make([]CallPart, 0, 4)
	for _, file := range recorded(t) {
		if api := apiOf(file); api == engine.Responses || api == engine.Messages {
			each(t, file, func(data []byte) {
				if walkAs(api, data, &e, &u) != nil || e.Err != "" || e.Content && e.Reasoning {
					return
				}
				n := testing.AllocsPerRun(10, func() { _ = walkAs(api, data, &e, &u) })
				must.Hold(t, n == 0, "%s: %s: %v allocations", file, data, n)
			})
		}
	}
}

// each calls do with the data of every event of a recorded answer.
func each(t testing.TB, file string, do func(data []byte)) {
	raw := must.Get(os.ReadFile(file))(t)
	split := splitter{buf: raw, w: len(raw)}
	for {
		kind, data, err := split.next()
		if err != nil || kind == frameNone {
			return
		}
		do(data)
	}
}

// Whatever the document, the reader accepts what encoding/json accepts, and the order of its members
// does not matter.
func FuzzEvents(f *testing.F) {
	for _, file := range recorded(f) {
		each(f, file, func(data []byte) { f.Add(data) })
	}
	f.Add([]byte(`{"type":"error","message":7,"error":null}`))
	f.Add([]byte(`{"data":[{"embedding":[1e999]},[],7],"type":["x"],"delta":{"text":7,"name":""},"item":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, api := range []engine.API{engine.Responses, engine.Messages, engine.Embeddings} {
			var e, again Event
			var u Usage
			err := walkAs(api, data, &e, &u)
			if errors.Is(err, errDeep) {
				continue
			}
			must.Need(t, json.Valid(data) == (err == nil), "%s: %q: %v", api, data, err)
			var members map[string]json.RawMessage
			d := json.NewDecoder(bytes.NewReader(data))
			if err != nil || d.Decode(&members) != nil || bytes.Count(data, []byte(`":`)) != bytes.Count(must.Get(json.Marshal(members))(t), []byte(`":`)) {
				continue // a member that stands twice counts by its order
			}
			text := append([]byte(nil), e.Raw...)
			before := e
			sorted := must.Get(json.Marshal(members))(t)
			must.Need(t, walkAs(api, sorted, &again, &u) == nil, "%s", sorted)
			if bytes.Contains(data, []byte(`\`)) || bytes.ContainsAny(data, "<>&\u2028\u2029") || !json.Valid(text) && bytes.ContainsFunc(text, func(r rune) bool { return r == '\ufffd' }) {
				continue // encoding/json writes such text in another way
			}
			must.Need(t, before.Content == again.Content && before.Reasoning == again.Reasoning && before.Finish == again.Finish && before.Done == again.Done &&
				before.Vectors == again.Vectors && len(before.Calls) == len(again.Calls), "%s: %s (-as written +sorted):\n%s", api, data, cmp.Diff(before, again))
		}
	})
}

// Both forms of embeddings give the same numbers, in the order of the inputs.
func TestVectorsOf(t *testing.T) {
	want := [][]float32{{0.5, -0.25}, {0.125, 2}}
	for _, body := range []string{
		`{"data":[{"index":0,"embedding":[0.5,-0.25]},{"index":1,"embedding":[0.125,2]}]}`,
		`{"data":[{"index":1,"embedding":[0.125,2]},{"index":0,"embedding":[0.5,-0.25]}]}`,
		`{"data":[{"index":0,"embedding":"AAAAPwAAgL4="},{"index":1,"embedding":"AAAAPgAAAEA="}]}`,
	} {
		must.Same(t, body, want, must.Get(vectorsOf([]byte(body)))(t))
	}
	for _, bad := range []string{`{"data":[{"embedding":"?"}]}`, `{"data":[{"embedding":[true]}]}`} {
		_, err := vectorsOf([]byte(bad))
		must.Hold(t, err != nil, "%s was read", bad)
	}
}

// What a request looks like in each API.
func TestBodies(t *testing.T) {
	zero := 0.0
	chat := json.RawMessage(`[{"role":"system","content":"Be brief."},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`)
	for _, tt := range []struct {
		engine string
		r      Request
		want   string
	}{
		{"vllm", Request{API: engine.Responses, Model: "m", Prompt: Prompt{Text: "hi"}, Output: 8, Temperature: &zero},
			`{"ignore_eos":true,"input":[{"role":"user","content":"hi"}],"max_output_tokens":8,"min_tokens":8,"model":"m","store":false,"stream":true,"temperature":0}`},
		{"sglang", Request{API: engine.Responses, Model: "m", Prompt: Prompt{Messages: chat}, Output: 8},
			`{"input":[{"content":"Be brief.","role":"system"},{"content":"a","role":"user"},{"content":[{"text":"b","type":"output_text"}],"role":"assistant","type":"message"},{"content":"c","role":"user"}],"max_output_tokens":8,"model":"m","store":false,"stream":true}`},
		{"vllm", Request{API: engine.Messages, Model: "m", Prompt: Prompt{Messages: chat}, Output: 8, Natural: true, Stop: []string{"x"}},
			`{"max_tokens":8,"messages":[{"content":"a","role":"user"},{"content":"b","role":"assistant"},{"content":"c","role":"user"}],"model":"m","stop_sequences":["x"],"stream":true,"system":"Be brief."}`},
		{"llama.cpp", Request{API: engine.Messages, Model: "m", Prompt: Prompt{Text: "hi"}}, `{"max_tokens":4096,"messages":[{"role":"user","content":"hi"}],"model":"m","stream":true}`},
		{"vllm", Request{API: engine.Embeddings, Model: "m", Prompt: Prompt{Text: "hi"}, Output: 8, Temperature: &zero}, `{"input":"hi","model":"m"}`},
		{"vllm", Request{API: engine.Embeddings, Model: "m", Prompt: Prompt{Text: "hi", More: []string{"ho"}}, Extra: map[string]any{"dimensions": 8}},
			`{"dimensions":8,"input":["hi","ho"],"model":"m"}`},
	} {
		got := must.Get(tt.r.Body(engine.Of(tt.engine).Dialect))(t)
		must.Same(t, "(-want +got)", tt.want, string(got))
	}
	_, err := (&Request{API: engine.Responses, Prompt: Prompt{IDs: []int{1}}}).Body(engine.Dialect{PromptIDs: true})
	must.Hold(t, err != nil, "token ids were sent")
}
