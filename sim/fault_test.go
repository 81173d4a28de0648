package sim

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	openai "github.com/sashabaranov/go-openai"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/internal/must"
)

// tenTokens is a request for a stream of ten tokens. Without faults, the stream has a chunk with
// the role, ten chunks of one token, a finish chunk, a usage chunk and [DONE].
var tenTokens = strings.Replace(chat5, `"max_tokens":5`, `"max_tokens":10`, 1)

func count(text, part string) int { return strings.Count(text, part) }

// faultTests has at least one test for every fault: a single request shows the effect that the
// fault's description promises.
var faultTests = []struct {
	rule  string
	check func(t *testing.T, w *world)
}{
	{"http-500", statusIs(500, "scripted fault: Internal Server Error")},
	{"http-503:text=out of luck", statusIs(503, "out of luck")},
	{"http-401", statusIs(401, "Unauthorized")},
	{"http-429", func(t *testing.T, w *world) {
		r, _, err := w.do(pathChat, tenTokens)
		must.Hold(t, err == nil && r.StatusCode == 429 && r.Header.Get("Retry-After") == "1", "%v, %v", r, err)
	}},
	{"hostile-error", statusIs(500, "\xff\xfe byte, \\u0000 NUL, \\u001b[31mred\\u001b]0;title\\u0007\\n::error file=x::injected")},
	{"loading:delay=3s", func(t *testing.T, w *world) {
		for _, path := range []string{"/health", pathChat} {
			body := map[string]string{pathChat: tenTokens}[path]
			if r, text, err := w.do(path, body); err != nil || r.StatusCode != 503 {
				t.Errorf("%s: %v, %v, %s", path, r, err, text)
			}
		}
		time.Sleep(3 * time.Second)
		w.must("/health", "")
		w.must(pathChat, tenTokens)
	}},
	{"redirect", func(t *testing.T, w *world) {
		r, text, err := w.do(pathChat, tenTokens) // the client follows
		must.Hold(t, err == nil && r.StatusCode == 200 && r.Request.URL.RawQuery == "redirected=1" && count(text, `"content":" `) == 9, "%v, %v, %s", r, err, text)
	}},
	{"hang", func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		_, err := w.client.Do(w.request(pathChat, tenTokens).WithContext(ctx))
		must.Hold(t, errors.Is(err, context.DeadlineExceeded), "%v, want a time-out after an hour", err)
	}},
	{"die:from=1", func(t *testing.T, w *world) {
		w.must(pathChat, tenTokens)
		if _, _, err := w.do(pathChat, tenTokens); err == nil {
			t.Error("the second request got an answer")
		}
		synctest.Wait()
		if _, _, err := w.do("/health", ""); err == nil {
			t.Error("the dead server answers")
		}
	}},
	{"reject-unknown", func(t *testing.T, w *world) {
		if r, text, err := w.do(pathChat, tenTokens); err != nil || r.StatusCode != 422 || !strings.Contains(text, `ignore_eos`) {
			t.Errorf("%v, %v, %s", r, err, text)
		}
		w.must(pathChat, strings.Replace(tenTokens, `"ignore_eos":true`, `"temperature":0`, 1))
	}},
	{"truncate-prompt:tokens=6", func(t *testing.T, w *world) {
		if text := w.must(pathChat, tenTokens); !strings.Contains(text, `"prompt_tokens":6,`) {
			t.Error(text)
		}
	}},

	{"conn-close", func(t *testing.T, w *world) {
		r, text, err := w.do(pathChat, tenTokens)
		must.Hold(t, err == nil && r.Close && count(text, "[DONE]") == 1, "%v, %v, %s", r, err, text)
	}},
	{"close-after", func(t *testing.T, w *world) {
		c, r := rawRequest(t, w)
		text, err := io.ReadAll(r)
		if err != nil || !strings.Contains(string(text), "Keep-Alive: timeout=5, max=100\r\n") ||
			strings.Contains(string(text), "Connection: close") || !strings.HasSuffix(string(text), "\r\n0\r\n\r\n") {
			t.Errorf("%v, %q", err, text)
		}
		c.Close()
	}},
	{"byte-by-byte", func(t *testing.T, w *world) {
		c, r := rawRequest(t, w)
		var text strings.Builder
		buf := make([]byte, 1<<16)
		for !strings.HasSuffix(text.String(), "\r\n0\r\n\r\n") {
			n, err := r.Read(buf)
			text.Write(buf[:n])
			must.Do(t, err)
		}
		one := count(text.String(), "\r\n1\r\n")
		must.Hold(t, one >= 2000, "%d chunks of one byte", one)
		c.Close()
	}},
	{"gzip", func(t *testing.T, w *world) {
		q := w.request(pathChat, tenTokens)
		q.Header.Set("Accept-Encoding", "gzip")
		r, err := w.client.Do(q)
		must.Do(t, err)
		defer r.Body.Close()
		z, err := gzip.NewReader(r.Body)
		must.Do(t, err)
		text, err := io.ReadAll(z)
		must.Hold(t, err == nil && r.Header.Get("Content-Encoding") == "gzip" && count(string(text), "[DONE]") == 1, "%v, %v, %s", err, r, text)
		// A client that does not accept gzip gets plain text.
		if text := w.must(pathChat, tenTokens); count(text, "[DONE]") != 1 {
			t.Errorf("%q", text)
		}
	}},

	{"not-sse", func(t *testing.T, w *world) {
		r, text, err := w.do(pathChat, tenTokens)
		must.Hold(t, err == nil && r.Header.Get("Content-Type") == "application/json", "%v, %v", r, err)
		if _, finish, n := answerOf(t, text); finish != "length" || n != 10 {
			t.Errorf("%q after %d tokens", finish, n)
		}
	}},
	{"empty-stream", func(t *testing.T, w *world) {
		r, text, err := w.do(pathChat, tenTokens)
		must.Hold(t, err == nil && r.StatusCode == 200 && text == "", "%v, %v, %q", r, err, text)
	}},
	{"late-headers", func(t *testing.T, w *world) {
		start := time.Now()
		r := must.Get(w.client.Do(w.request(pathChat, tenTokens)))(t)
		r.Body.Close()
		if got := time.Since(start); got != 30*time.Millisecond { // the first token
			t.Errorf("the head came after %v", got)
		}
	}},
	{"late:delay=2s", func(t *testing.T, w *world) {
		start := time.Now()
		r := must.Get(w.client.Do(w.request(pathChat, tenTokens)))(t)
		defer r.Body.Close()
		must.Get(r.Body.Read(make([]byte, 1<<16)))(t)
		must.Same(t, "the first token came after", 2030*time.Millisecond, time.Since(start))
	}},
	{"early-role:delay=2s", func(t *testing.T, w *world) {
		start := time.Now()
		r := must.Get(w.client.Do(w.request(pathChat, tenTokens)))(t)
		defer r.Body.Close()
		buf := make([]byte, 1<<16)
		n, _ := r.Body.Read(buf)
		if got := time.Since(start); got != 0 || !strings.Contains(string(buf[:n]), `"role":"assistant"`) {
			t.Errorf("after %v: %s", got, buf[:n])
		}
		n, _ = r.Body.Read(buf)
		if got := time.Since(start); got != 2030*time.Millisecond || !strings.Contains(string(buf[:n]), `"content":"The"`) {
			t.Errorf("after %v: %s", got, buf[:n])
		}
		rest, _ := io.ReadAll(r.Body)
		must.Hold(t, count(string(rest), `"role"`) == 0, "a second role chunk in %s", rest)
	}},
	{"crlf", streamHas("\r\n\r\n", 14)},
	{"bom", func(t *testing.T, w *world) {
		if text := w.must(pathChat, tenTokens); !strings.HasPrefix(text, "\ufeffdata: {") || count(text, "\ufeff") != 1 {
			t.Errorf("%q", text)
		}
	}},
	{"no-space", streamHas("data:{", 13)},
	{"comments", streamHas(": keep-alive\n\ndata: ", 14)},

	{"multi-token:tokens=4", func(t *testing.T, w *world) {
		text := w.must(pathChat, tenTokens)
		var sizes []int
		for _, c := range contents(text, "content") {
			sizes = append(sizes, len(Tokenize(nil, c)))
		}
		if diff := cmp.Diff([]int{4, 4, 2}, sizes); diff != "" || !strings.Contains(text, `"completion_tokens":10`) {
			t.Errorf("tokens in each chunk (-want +got):\n%s", diff)
		}
	}},
	{"reasoning:tokens=3", keyed("reasoning", 3, 7)},
	{"reasoning-content", keyed("reasoning_content", 8, 2)},
	{"tool-call", func(t *testing.T, w *world) {
		text := w.must(pathChat, tenTokens)
		if len(contents(text, "content")) != 0 || count(text, `"arguments":"`) != 10 || count(text, `"name":"lookup"`) != 1 || count(text, `"finish_reason":"tool_calls"`) != 1 {
			t.Error(text)
		}
	}},
	{"big-event", func(t *testing.T, w *world) {
		text := w.must(pathChat, tenTokens)
		longest := 0
		for line := range strings.Lines(text) {
			longest = max(longest, len(line))
		}
		if longest < 2<<20 || len(contents(text, "content")) != 10 {
			t.Errorf("longest line %d bytes, %d chunks", longest, len(contents(text, "content")))
		}
	}},
	{"hostile-text", streamHas(`\u001b]0;title\u0007\n::error file=x::injected`, 1)},
	{"hostile-model", streamHas("\"model\":\"bad \xff\xfe byte", 13)},
	{"hostile-model:path=/v1/models,text=a\nb", func(t *testing.T, w *world) {
		if text := w.must("/v1/models", ""); !strings.Contains(text, `"id":"a\nb"`) {
			t.Error(text)
		}
	}},
	{"empty-delta", streamHas(`"delta":{"content":""},"logprobs":null,"finish_reason":null,"stop_reason":null}]`, 1)},

	{"error-event:tokens=4,text=boom, really", breaksWith(4, `data: {"error":{"message":"boom, really","type":"InternalServerError","param":null,"code":500}}`+"\n\ndata: [DONE]\n\n", nil)},
	{"error-event-legacy", breaksWith(3, `data: {"object":"error","message":"the engine died","type":"InternalServerError","param":null,"code":500}`+"\n\ndata: [DONE]\n\n", nil)},
	{"cut", breaksWith(3, "", io.ErrUnexpectedEOF)},
	{"no-finish:tokens=99", breaksWith(10, "", nil)},
	{"never-ends", func(t *testing.T, w *world) { holds(t, w, "") }},
	{"trickle", func(t *testing.T, w *world) { holds(t, w, strings.Repeat(":", 59)) }},
	{"leak-slot", leaving(func(t *testing.T, w *world) {
		if s := w.server.State(); s.Running != 1 || s.KV != 0 {
			t.Errorf("%+v", s)
		}
	})},
	{"leak-blocks:tokens=2048", leaving(func(t *testing.T, w *world) {
		w.must(pathChat, tenTokens)
		if s := w.server.State(); s.Running != 0 || s.PeakKV < 2048 {
			t.Errorf("%+v", s)
		}
	})},
	{"ignore-abort", leaving(func(t *testing.T, w *world) {
		if s := w.server.State(); s.Running != 0 || s.KV != 0 || s.OutputTokens != 20 {
			t.Errorf("%+v", s)
		}
	})},
	{"die-on-abort", leaving(func(t *testing.T, w *world) {
		if _, _, err := w.do("/health", ""); err == nil {
			t.Error("the dead server answers")
		}
	})},
	{"early-stop", func(t *testing.T, w *world) {
		text := w.must(pathChat, tenTokens)
		if len(contents(text, "content")) != 3 || !strings.Contains(text, `"finish_reason":"stop"`) || !strings.Contains(text, `"completion_tokens":3,`) {
			t.Error(text)
		}
	}},
	{"no-done", streamHas("[DONE]", 0)},

	{"no-usage", streamHas("usage", 0)},
	{"usage-null", func(t *testing.T, w *world) {
		text := w.must(pathChat, tenTokens)
		must.Hold(t, count(text, `"usage":null`) == 12 && count(text, `"completion_tokens":10`) == 1, "%v", text)
	}},
	{"usage-zero", func(t *testing.T, w *world) {
		text := w.must(pathChat, tenTokens)
		if count(text, `"usage":{"prompt_tokens":0,"total_tokens":0,"completion_tokens":0`) != 12 || count(text, `"completion_tokens":10`) != 1 {
			t.Error(text)
		}
	}},
	{"usage-in-finish", func(t *testing.T, w *world) {
		text := w.must(pathChat, strings.Replace(tenTokens, `,"stream_options":{"include_usage":true}`, "", 1))
		must.Hold(t, count(text, `"finish_reason":"length","stop_reason":null}],"usage":{"prompt_tokens":15,`) == 1 && count(text, `"choices":[]`) == 0, "%v", text)
	}},
	{"overcount:tokens=3", func(t *testing.T, w *world) {
		text := w.must(pathChat, tenTokens)
		if len(contents(text, "content")) != 4 || !strings.Contains(text, `"completion_tokens":10,`) { // 10/3, rounded up
			t.Error(text)
		}
	}},
	{"canned", func(t *testing.T, w *world) {
		one, other := w.must(pathChat, tenTokens), w.must(pathChat, strings.Replace(tenTokens, `"content":"`, `"content":"Now `, 1))
		if !slices.Equal(contents(one, "content"), contents(other, "content")) || len(contents(one, "content")) != 10 {
			t.Error(one, other)
		}
	}},
	{"other-answer", func(t *testing.T, w *world) {
		if said := naturally(w); said.text == faultless(t).text {
			t.Error(said)
		}
	}},
	{"circle", func(t *testing.T, w *world) {
		said, plain := naturally(w), faultless(t)
		if first := strings.Join(plain.tokens[:4], ""); said.text != strings.Repeat(first, 64) || said.finish != "length" {
			t.Error(said)
		}
	}},
	{"garble", func(t *testing.T, w *world) {
		said, plain := naturally(w), faultless(t)
		half := (len(plain.tokens) + 1) / 2
		if len(said.tokens) != len(plain.tokens) || !slices.Equal(said.tokens[:half], plain.tokens[:half]) || said.tokens[half] == plain.tokens[half] || said.finish != "stop" {
			t.Error(said)
		}
	}},
	{"broken-character", func(t *testing.T, w *world) {
		if said := naturally(w); said.tokens[len(said.tokens)/2] != "\ufffd" || said.finish != "stop" {
			t.Error(said)
		}
	}},
	{"blank", func(t *testing.T, w *world) {
		if said := naturally(w); said.text != " " || said.finish != "stop" {
			t.Error(said)
		}
	}},
	{"endless", func(t *testing.T, _ *world) {
		p := plain()
		p.MaxModelLen = 2000
		w := newWorld(t, Options{Profile: p, Faults: Script{{Fault: "endless"}}})
		if said := naturally(w); len(said.tokens) < 1000 || said.finish != "length" {
			t.Error(len(said.tokens), said.finish)
		}
	}},
	{"half-context", func(t *testing.T, w *world) {
		recall, _ := answers.FindTask("recall")
		right := 0
		for n := range 20 {
			item := recall.Item(1, n)
			words := strings.Repeat(" water", 100)
			cut := 6 * int(item.Depth*100)
			prompt, _ := json.Marshal(item.Prompt(words[:cut], words[cut:]))
			said := strings.Join(contents(w.must(pathChat, `{"messages":[{"role":"user","content":`+string(prompt)+`}],"max_tokens":64,"stream":true}`), "content"), "")
			if early := item.Depth < 0.45; strings.Contains(said, item.Answer) != early && (early || item.Depth > 0.55) {
				t.Errorf("depth %v: %q, want %q", item.Depth, said, item.Answer)
			} else if early {
				right++
			}
		}
		must.Hold(t, right != 0, "none is right")
	}},
	{"swap-tokens:tokens=4", func(t *testing.T, w *world) {
		said, plain := naturally(w), faultless(t)
		other := 0
		for i := range said.tokens {
			if said.tokens[i] != plain.tokens[i] {
				other++
			}
		}
		if n := len(plain.tokens); len(said.tokens) != n || other < n/8 || other > n/2 {
			t.Errorf("%d of %d tokens are others", other, n)
		}
	}},
	{"noisy-vectors:tokens=10", func(t *testing.T, w *world) {
		const ask = `{"input":["Hello there"],"encoding_format":"base64"}`
		a, b := embeddings(t, w.must("/v1/embeddings", ask))[0], embeddings(t, newWorld(t, Options{}).must("/v1/embeddings", ask))[0]
		// Noise of a tenth of a component makes the angle's tangent a tenth: 1 − 1/√1.01 = 0.005.
		got := 1 - cosine(a, b)
		must.Hold(t, 0.003 < got && got < 0.007, "the vectors are %.4f apart", got)
	}},
	{"wrong-word", func(t *testing.T, w *world) {
		said, plain := naturally(w), faultless(t)
		other := 0
		for i := range said.tokens {
			if said.tokens[i] != plain.tokens[i] {
				other++
			}
		}
		must.Hold(t, len(said.tokens) == len(plain.tokens) && other == 1, "%d of %d tokens are others, want 1", other, len(plain.tokens))
	}},
	{"bad-sampler", func(t *testing.T, w *world) {
		said, plain := naturally(w), faultless(t)
		must.Hold(t, len(said.tokens) == len(plain.tokens) && said.text != plain.text, "sampled: %q, without the fault %q", said.text, plain.text)
		ask := strings.Replace(tenTokens, `"max_tokens":10,"ignore_eos":true`, `"max_tokens":256,"temperature":0`, 1)
		if got, want := contents(w.must(pathChat, ask), "content"), contents(newWorld(t, Options{}).must(pathChat, ask), "content"); !slices.Equal(got, want) {
			t.Errorf("at temperature 0: %q, without the fault %q", got, want)
		}
	}},
	{"replay", func(t *testing.T, w *world) {
		began := time.Now()
		first := w.must(pathChat, tenTokens)
		took := time.Since(began)
		second := w.must(pathChat, tenTokens)
		if !slices.Equal(contents(first, "content"), contents(second, "content")) || took == 0 || time.Since(began) != took {
			t.Errorf("%v of %v: %s%s", took, time.Since(began), first, second)
		}
	}},
	{"cached", streamHas(`"prompt_tokens":15,"total_tokens":25,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":15}`, 1)},
}

// natural is a streamed answer whose length the simulated model chose itself.
type natural struct {
	tokens       []string
	text, finish string
}

// The function naturally requests an answer of at most 256 tokens that ends by itself. It returns
// the streamed answer.
func naturally(w *world) natural {
	text := w.must(pathChat, strings.Replace(tenTokens, `"max_tokens":10,"ignore_eos":true`, `"max_tokens":256`, 1))
	tokens := contents(text, "content")
	_, rest, _ := strings.Cut(text, `"finish_reason":"`)
	finish, _, _ := strings.Cut(rest, `"`)
	return natural{tokens, strings.Join(tokens, ""), finish}
}

func faultless(t *testing.T) natural { return naturally(newWorld(t, Options{})) }

// embeddings reads embeddings in base64.
func embeddings(t *testing.T, text string) [][]float32 {
	var coded openai.EmbeddingResponseBase64
	must.Do(t, json.Unmarshal([]byte(text), &coded))
	var out [][]float32
	for _, d := range must.Get(coded.ToEmbeddingResponse())(t).Data {
		out = append(out, d.Embedding)
	}
	return out
}

func cosine(a, b []float32) float64 {
	var x, y, dot float64
	for i := range a {
		x, y, dot = x+float64(a[i])*float64(a[i]), y+float64(b[i])*float64(b[i]), dot+float64(a[i])*float64(b[i])
	}
	return dot / math.Sqrt(x*y)
}

// The same input has the same embedding but for what real engines differ by, in any company. Another
// input or another model has another.
func TestEmbeddings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(o Options, inputs string) [][]float32 {
			return embeddings(t, newWorld(t, o).must("/v1/embeddings", `{"input":`+inputs+`,"encoding_format":"base64"}`))
		}
		alone, two, other := ask(Options{}, `"a cat"`), ask(Options{Seed: 9}, `["a dog","a cat"]`), ask(Options{Model: "other"}, `"a cat"`)
		must.Hold(t, len(alone) == 1 && len(two) == 2 && len(alone[0]) == vectorSize, "%d and %d embeddings", len(alone), len(two))
		same, dog, model := 1-cosine(alone[0], two[1]), cosine(alone[0], two[0]), cosine(alone[0], other[0])
		must.Hold(t, 0 < same && same < 5e-6, "the same input is %v apart", same)
		// The cosine of two random vectors of n components is about normal, with σ = 1/√n.
		must.Hold(t, math.Abs(dog) < 5/math.Sqrt(vectorSize) && math.Abs(model) < 5/math.Sqrt(vectorSize), "%v, %v", dog, model)
	})
}

func TestFaults(t *testing.T) {
	tested := make(map[string]bool)
	for _, test := range faultTests {
		t.Run(test.rule, func(t *testing.T) {
			rule := must.Get(ParseRule(test.rule))(t)
			tested[rule.Fault] = true
			synctest.Test(t, func(t *testing.T) {
				test.check(t, newWorld(t, Options{Faults: Script{rule}}))
			})
		})
	}
	for _, f := range Faults() {
		must.Hold(t, tested[f.Name], "fault %q has no test", f.Name)
		must.Hold(t, f.Doc != "" && !strings.Contains(f.Doc, "\n"), "fault %q needs one line: %q", f.Name, f.Doc)
	}
}

// leaving sends a request whose client leaves after 40 ms, when about two of its ten tokens are made. It
// looks at the server a second later. A request whose client stays has none of these faults.
func leaving(look func(*testing.T, *world)) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		before := w.server.State()
		w.must(pathChat, tenTokens)
		if s := w.server.State(); s.Running != before.Running || s.KV != before.KV {
			t.Errorf("of a client that stays: %+v", s)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 40*time.Millisecond)
		defer cancel()
		r, err := w.client.Do(w.request(pathChat, tenTokens).WithContext(ctx))
		if err == nil {
			_, err = io.ReadAll(r.Body)
			r.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the client did not leave: %v", err)
		}
		time.Sleep(time.Second)
		look(t, w)
	}
}

func statusIs(status int, part string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		r, text, err := w.do(pathChat, tenTokens)
		must.Hold(t, err == nil && r.StatusCode == status && strings.Contains(text, part), "%v, %v, %q; want %d and %q", r, err, text, status, part)
		w.must("/health", "") // only completions have faults
	}
}

func streamHas(part string, times int) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		if text := w.must(pathChat, tenTokens); count(text, part) != times {
			t.Errorf("%q occurs %d times, want %d, in\n%s", part, count(text, part), times, text)
		}
	}
}

// contents lists the values of the field named key in the deltas of a stream, except empty values.
func contents(text, key string) (values []string) {
	for line := range strings.Lines(text) {
		_, rest, ok := strings.Cut(line, `"delta":{"`+key+`":"`)
		if value, _, _ := strings.Cut(rest, `"`); ok && value != "" {
			values = append(values, value)
		}
	}
	return values
}

func keyed(key string, reasoning, content int) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		text := w.must(pathChat, tenTokens)
		if a, b := len(contents(text, key)), len(contents(text, "content")); a != reasoning || b != content {
			t.Errorf("%d %s and %d content deltas, want %d and %d", a, key, b, reasoning, content)
		}
	}
}

func breaksWith(tokens int, end string, wantErr error) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		r, text, err := w.do(pathChat, tenTokens)
		if r == nil || r.StatusCode != 200 || !errors.Is(err, wantErr) || len(contents(text, "content")) != tokens ||
			!strings.HasSuffix(text, end) || strings.Contains(text, `"finish_reason":"`) || strings.Contains(text, "usage") {
			t.Errorf("%v, %v, %s", r, err, text)
		}
		time.Sleep(time.Second) // the current step of the engine ends within a second
		if s := w.server.State(); s.Running != 0 {
			t.Errorf("the engine goes on: %+v", s)
		}
	}
}

// holds sends a request with a timeout of one hour, and expects three tokens. The server must then
// hold the stream open. After the tokens it may send only the bytes in the parameter more.
func holds(t *testing.T, w *world, more string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	r, err := w.client.Do(w.request(pathChat, tenTokens).WithContext(ctx))
	must.Do(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if !errors.Is(err, context.DeadlineExceeded) || len(contents(string(text), "content")) != 3 || !strings.HasSuffix(string(text), "}\n\n"+more) {
		t.Errorf("%v, %s", err, text)
	}
}

// rawRequest sends a request on a new connection. It returns the connection, and a reader of the
// raw answer.
func rawRequest(t *testing.T, w *world) (io.Closer, io.Reader) {
	t.Helper()
	c := must.Get(w.client.Transport.(*http.Transport).DialContext(context.Background(), "", ""))(t)
	must.Do(t, w.request(pathChat, tenTokens).Write(c))
	return c, c
}

// The code asks for faults by their names: it knows those of the table, and no others.
func TestNamesOfFaults(t *testing.T) {
	var asked []string
	call := regexp.MustCompile(`\.(?:is|of)\(("[^)]*")\)`)
	for _, path := range must.Get(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, m := range call.FindAllStringSubmatch(string(must.Get(os.ReadFile(path))(t)), -1) {
			for name := range strings.SplitSeq(m[1], ", ") {
				asked = append(asked, strings.Trim(name, `"`))
			}
		}
	}
	asked = append(asked, "loading") // of the server, not of a request
	var known []string
	for _, f := range faults {
		if f.status == 0 {
			known = append(known, f.Name)
		}
	}
	slices.Sort(asked)
	slices.Sort(known)
	must.Same(t, "names of faults", known, slices.Compact(asked))
}

func TestWhichRequestsAreHit(t *testing.T) {
	hits := func(rule string, path string, n int) string {
		t.Helper()
		r := must.Get(ParseRule(rule))(t)
		d := newDirector(Script{r}, 1)
		var b strings.Builder
		for range n {
			b.WriteByte(".x"[min(1, len(d.next(path)))])
		}
		return b.String()
	}
	for _, test := range []struct{ rule, path, want string }{
		{"http-500", pathChat, "xxxxxxxxxx"},
		{"http-500", "/health", ".........."},
		{"http-500:path=/health", "/health", "xxxxxxxxxx"},
		{"http-500:path=/health", pathChat, ".........."},
		{"http-500:from=3,to=5", pathChat, "...xx....."},
		{"http-500:every=3", pathCompletions, "x..x..x..x"},
		{"http-500:from=1,every=4", pathChat, ".x...x...x"},
	} {
		must.Same(t, fmt.Sprintf("%s on %s hits", test.rule, test.path), test.want, hits(test.rule, test.path, 10))
	}
	// Each of 10,000 requests is hit with probability 0.3. The number of hits has a standard error
	// of √(10000·0.3·0.7) = 46. The test allows a difference of 200, more
	// than four standard errors.
	got := hits("http-500:share=0.3", pathChat, 10_000)
	if n := count(got, "x"); n < 2800 || n > 3200 {
		t.Errorf("a share of 0.3 hit %d of 10000", n)
	}
	if again := hits("http-500:share=0.3", pathChat, 10_000); again != got {
		t.Error("the same seed hit others")
	}
}

func TestFaultsCombine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Faults: Script{{Fault: "error-event"}, {Fault: "no-space"}, {Fault: "no-done"}}})
		_, text, err := w.do(pathChat, tenTokens)
		if err != nil || !strings.HasSuffix(text, "\n\n"+`data:{"error":{"message":"the engine died","type":"InternalServerError","param":null,"code":500}}`+"\n\n") {
			t.Errorf("%v, %s", err, text)
		}
	})
}

func TestRulesThatAreWrong(t *testing.T) {
	for _, test := range []struct{ rule, want string }{
		{"htp-500", `unknown fault "htp-500", did you mean "http-500"?`},
		{"http-500:evry=2", `unknown key "evry", did you mean "every"?`},
		{"http-500:every=two", "every: "},
		{"http-500:share=1.5", "share must be in [0, 1]"},
		{"http-500:share=NaN", "share must be in [0, 1]"},
		{"http-500:from=3,to=3", "to must be above from"},
		{"http-500:tokens=-1", "must not be negative"},
		{"http-500:delay=-1s", "delay must be"},
		{"http-500:path=health", "a path begins with /"},
		{"", `unknown fault ""`},
	} {
		if _, err := ParseRule(test.rule); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("ParseRule(%q): %v, want %q", test.rule, err, test.want)
		}
	}
	if _, err := New(Options{Faults: Script{{Fault: "x"}}}); err == nil {
		t.Error("New took an unknown fault")
	}
}

// The faults that break a stream also break an answer that is sent as a whole.
func TestFaultsWithoutAStream(t *testing.T) {
	body := strings.Replace(tenTokens, `"stream":true,"stream_options":{"include_usage":true}`, `"stream":false`, 1)
	for fault, want := range map[string]string{
		"error-event": `{"error":{"message":"the engine died"`,
		"cut":         "EOF",
		"no-finish":   `"finish_reason":null`,
		"no-usage":    `"finish_reason":"length","stop_reason":null}]}`,
		"never-ends":  "deadline",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Options{Faults: Script{{Fault: fault}}})
			w.client.Timeout = time.Hour
			_, text, err := w.do(pathChat, body)
			if err != nil {
				text = err.Error()
			}
			must.Hold(t, strings.Contains(text, want), "%s: %s, want %q", fault, text, want)
		})
	}
}
