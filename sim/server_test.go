package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/memnet"
)

const (
	pathChat        = "/v1/chat/completions"
	pathCompletions = "/v1/completions"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// world is a server on an in-memory network, with a client. It runs in a synctest bubble, where
// time is simulated and exact.
type world struct {
	t      *testing.T
	server *Server
	client *http.Client
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	if o.Profile == nil {
		o.Profile = plain()
	}
	s := must.Get(New(o))(t)
	l := memnet.Listen()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	w := &world{t: t, server: s}
	transport := &http.Transport{DisableCompression: true}
	transport.DialContext = l.DialContext
	w.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		s.Close()
		transport.CloseIdleConnections()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return w
}

// request builds a POST with the given body, or a GET if the body is "".
func (w *world) request(path, body string) *http.Request {
	w.t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequest(method, "http://memory.test"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("X-Request-Id", "test")
	return r
}

// do sends a request and reads the whole answer. The result err is the error with which the body
// ended.
func (w *world) do(path, body string) (r *http.Response, text string, err error) {
	w.t.Helper()
	r, err = w.client.Do(w.request(path, body))
	if err != nil {
		return nil, "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r, string(b), err
}

func (w *world) must(path, body string) string {
	w.t.Helper()
	r, text, err := w.do(path, body)
	if err != nil || r.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s: %v, %v: %s", path, body, r, err, text)
	}
	return text
}

const (
	chat5 = `{"messages":[{"role":"user","content":"Hello there"}],"max_tokens":5,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`
	text5 = `{"prompt":"Hello there","max_tokens":5,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	must.Same(t, path+" (-want +got; -update rewrites it)", string(want), got)
}

func TestStreamsAreGolden(t *testing.T) {
	speculating := plain()
	speculating.Speculation = &Speculation{Accept: []float64{1, 1}}
	for _, test := range []struct {
		name, path, body string
		profile          *Profile
	}{
		{"chat.sse", pathChat, chat5, nil},
		{"completions.sse", pathCompletions, text5, nil},
		{"speculation.sse", pathChat, strings.Replace(chat5, `"max_tokens":5`, `"max_completion_tokens":8`, 1), speculating},
		{"continuous-usage.sse", pathCompletions, strings.Replace(text5, `"include_usage":true`, `"include_usage":true,"continuous_usage_stats":true`, 1), nil},
		{"chat.json", pathChat, `{"messages":[{"role":"user","content":[{"type":"text","text":"Hello"},{"type":"text","text":" there"}]}],"max_tokens":5,"ignore_eos":true}`, nil},
		{"completions.json", pathCompletions, `{"prompt":[72,101],"ignore_eos":true}`, nil},
		{"responses.sse", "/v1/responses", `{"input":"Hello there","max_output_tokens":5,"ignore_eos":true,"stream":true}`, nil},
		{"messages.sse", "/v1/messages", `{"system":"Be brief.","messages":[{"role":"user","content":"Hello there"}],"max_tokens":5,"stream":true}`, nil},
		{"embeddings.json", "/v1/embeddings", `{"input":["Hello","there"],"encoding_format":"base64"}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{Profile: test.profile})
				golden(t, test.name, w.must(test.path, test.body))
			})
		})
	}
}

// A client reads each chunk at the time at which the engine made it. OnEmit and OnServed report the
// same times.
func TestStreamIsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type emission struct {
			chunk int
			at    time.Duration
		}
		start := time.Now()
		var emitted []emission
		var served Served
		w := newWorld(t, Options{OnServed: func(s Served) { served = s }, OnEmit: func(id string, chunk int, at time.Time) {
			if id != "chatcmpl-test" {
				t.Errorf("id %q", id)
			}
			emitted = append(emitted, emission{chunk, at.Sub(start)})
		}})
		time.Sleep(time.Second)
		r := must.Get(w.client.Do(w.request(pathChat, chat5)))(t)
		defer r.Body.Close()
		if got := time.Since(start); got != time.Second {
			t.Errorf("the head came after %v, want at once", got)
		}
		var read []emission
		buf := make([]byte, 1<<16)
		for {
			n, err := r.Body.Read(buf)
			if bytes.Contains(buf[:n], []byte(`"content":" `)) || bytes.Contains(buf[:n], []byte(`"content":"The"`)) {
				read = append(read, emission{len(read), time.Since(start)})
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		// The first token takes 30 ms: 5 ms of overhead, 10 ms for a step, and 15 ms for the 15
		// tokens of the prompt. Each later token takes 10 ms.
		var want []emission
		for i := range 5 {
			want = append(want, emission{i, time.Second + time.Duration(30+10*i)*time.Millisecond})
		}
		must.Same(t, "emitted (-want +got)", want, emitted, cmp.AllowUnexported(emission{}))
		must.Same(t, "read (-want +got)", want, read, cmp.AllowUnexported(emission{}))
		synctest.Wait()
		log := Served{"chatcmpl-test", start.Add(time.Second), start.Add(want[0].at), start.Add(want[4].at), 5}
		must.Same(t, "served (-want +got)", log, served)
	})
}

// An hour of closed loop takes as long over HTTP as it takes the engine alone. So sockets, handlers
// and mailboxes add no delay.
func TestHourInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plain()
		p.Decode = DecodeCost{BaseMS: 2998, PerSeqMS: 1}
		w := newWorld(t, Options{Profile: p})
		start := time.Now()
		const slots, each, tokens = 3, 4, 300
		body := strings.Replace(text5, `"max_tokens":5`, `"max_tokens":300`, 1)
		var group sync.WaitGroup
		for range slots {
			group.Go(func() {
				for range each {
					text := w.must(pathCompletions, body)
					if n := strings.Count(text, `"finish_reason":null`); n != tokens {
						t.Errorf("%d chunks with tokens, want %d", n, tokens)
					}
				}
			})
		}
		group.Wait()
		// A step of three requests takes 2998 + 3 ms, about 3 s. Each slot sends 4 requests of 300
		// steps, which take an hour. Waiting for steps of others adds less than a minute.
		took := time.Since(start)
		if took < time.Hour-10*time.Second || took > time.Hour+time.Minute {
			t.Errorf("%d requests took %v", slots*each, took)
		}
		if s := w.server.State(); s.OutputTokens != slots*each*tokens || s.Running != 0 {
			t.Errorf("state %+v", s)
		}
	})
}

func TestEndpoints(t *testing.T) {
	for _, test := range []struct {
		path, body, want string
	}{
		{"/v1/models", "", `{"object":"list","data":[{"id":"m","object":"model","created":946684800,"owned_by":"tokgate","root":"m","parent":null,"max_model_len":100000}]}`},
		{"/health", "", ""},
		{"/version", "", `{"version":"tokgate-sim-1"}`},
		// The ids are those of "The", " tok", "eni", "zer", ",", " " and "4". Ids count 256 bytes,
		// then lower-case pieces, then capitalised pieces, each by length and alphabet.
		{"/tokenize", `{"model":"m","prompt":"The tokenizer, 4"}`, `{"count":7,"max_model_len":100000,"tokens":[32266,50732,4008,17979,44,32,52]}`},
		{"/tokenize", `{"prompt":""}`, `{"count":0,"max_model_len":100000,"tokens":[]}`},
		// The tokens are start of message, "use", "r", a line break, "x", end of message, and a
		// line break.
		{"/tokenize", `{"messages":[{"role":"user","content":"x"}],"add_generation_prompt":false}`, `{"count":7,"max_model_len":100000,"tokens":[73368,14950,114,10,120,73369,10]}`},
		// By default the chat template ends with the start of the answer. These are the tokens
		// start, "ass", "ist", "ant" and a line break.
		{"/tokenize", `{"messages":[{"role":"user","content":"x"}]}`, `{"count":12,"max_model_len":100000,"tokens":[73368,14950,114,10,120,73369,10,73368,1444,6853,1315,10]}`},
		{"/detokenize", `{"tokens":[32266,50732,4008,17979,44,32,52]}`, `{"prompt":"The tokenizer, 4"}`},
		{"/reset_prefix_cache", "{}", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Options{})
			if got := w.must(test.path, test.body); got != test.want {
				t.Errorf("%s %s:\n got %s\nwant %s", test.path, test.body, got, test.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	message := `"messages":[{"role":"user","content":"x"}]`
	for _, test := range []struct {
		path, body string
		status     int
		message    string // part of it
	}{
		{pathChat, `{`, 400, "not valid"},
		{pathChat, `{}`, 400, "messages must not be empty"},
		{pathChat, `{"messages":[{"content":"x"}]}`, 400, "message 0 has no role"},
		{pathChat, `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, `type \"image_url\" is not supported`},
		{pathChat, `{"model":"other",` + message + `}`, 404, "The model `other` does not exist."},
		{pathChat, `{"n":2,` + message + `}`, 400, "n must be 1"},
		{pathChat, `{"temperature":-1,` + message + `}`, 400, "temperature"},
		{pathChat, `{"stream_options":{},` + message + `}`, 400, "Stream options"},
		{pathChat, `{"max_tokens":0,` + message + `}`, 400, "max_tokens must be at least 1"},
		// The prompt has 12 tokens, which leaves 99988 of the 100000 tokens of the context.
		{pathChat, `{"max_tokens":99989,` + message + `}`, 400, "99989 > 100000 - 12"},
		{pathChat, `{"max_tokens":5,"max_completion_tokens":99989,` + message + `}`, 400, "max_completion_tokens"},
		{pathChat, `{"max_tokens":5,"min_tokens":6,` + message + `}`, 400, "min_tokens"},
		{pathCompletions, `{}`, 400, "prompt is required"},
		{pathCompletions, `{"prompt":""}`, 400, "the prompt is empty"},
		{pathCompletions, `{"prompt":["a","b"]}`, 400, "one text or one list"},
		{pathCompletions, `{"prompt":[1,73371]}`, 400, "Token id 73371 at position 1"},
		{pathCompletions, `{"prompt":"` + strings.Repeat(".", 100_000) + `"}`, 400, "maximum context length is 100000 tokens. However, your request has 100000"},
		{"/tokenize", `{}`, 400, "messages must not be empty"},
		{"/detokenize", `{"tokens":[-1]}`, 400, "token id -1 at position 0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Options{})
			r, text, err := w.do(test.path, test.body)
			if err != nil {
				t.Fatal(err)
			}
			var e struct {
				Error struct {
					Message, Type string
					Code          int
				}
			}
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatalf("%.80s: %v in %s", test.body, err, text)
			}
			if r.StatusCode != test.status || e.Error.Code != test.status || e.Error.Type == "" || !strings.Contains(text, test.message) {
				t.Errorf("%s %.80s: %d %s, want %d and %q", test.path, test.body, r.StatusCode, text, test.status, test.message)
			}
			if r, _, err := w.do("/v1/nothing", ""); err != nil || r.StatusCode != 404 {
				t.Errorf("unknown path: %v, %v", r, err)
			}
		})
	}
}

func TestAPIKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{APIKey: "secret"})
		for _, test := range []struct {
			path, key string
			status    int
		}{
			{"/v1/models", "", 401}, {"/v1/models", "Bearer wrong", 401}, {"/v1/models", "Bearer secret", 200}, {"/health", "", 200}, {"/metrics", "", 200},
		} {
			q := w.request(test.path, "")
			if test.key != "" {
				q.Header.Set("Authorization", test.key)
			}
			r := must.Get(w.client.Do(q))(t)
			r.Body.Close()
			if r.StatusCode != test.status {
				t.Errorf("%s with %q: %d, want %d", test.path, test.key, r.StatusCode, test.status)
			}
		}
	})
}

// answerOf parses a chat answer that is not streamed. It returns the text, the finish_reason and
// the number of tokens.
func answerOf(t *testing.T, text string) (content, finish string, tokens int) {
	t.Helper()
	var a struct {
		Choices []struct {
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
		Usage struct {
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil || len(a.Choices) != 1 {
		t.Fatalf("%v in %s", err, text)
	}
	return a.Choices[0].Message.Content, a.Choices[0].Finish, a.Usage.Completion
}

func TestHowAnswersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plain()
		p.NaturalOutput = NaturalOutput{Mean: 50, CV: 0.5}
		w := newWorld(t, Options{Profile: p, Seed: 7})
		ask := func(content, more string) (string, string, int) {
			t.Helper()
			return answerOf(t, w.must(pathChat, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]%s}`, content, more)))
		}
		// The usage of a natural answer equals the number of tokens in its text. Different prompts
		// get different answers, and the same prompt always gets the same answer.
		lengths := map[int]bool{}
		sum := 0
		for i := range 200 {
			prompt := fmt.Sprint("prompt ", i)
			text, finish, n := ask(prompt, "")
			if finish != "stop" || len(Tokenize(nil, text)) != n {
				t.Fatalf("finish %q, %d tokens in %q, usage says %d", finish, len(Tokenize(nil, text)), text, n)
			}
			if again, _, _ := ask(prompt, ""); again != text {
				t.Fatalf("a second answer to %q differs", prompt)
			}
			lengths[n] = true
			sum += n
		}
		// 200 lengths with a standard deviation of 25 have a mean of 50 ± 1.8 tokens (standard
		// error).
		if mean := float64(sum) / 200; len(lengths) < 30 || mean < 43 || mean > 57 {
			t.Errorf("%d different lengths of mean %.1f, want about 50", len(lengths), mean)
		}
		if _, finish, n := ask("x", `,"max_tokens":2`); finish != "length" || n != 2 {
			t.Errorf("cut: %q at %d", finish, n)
		}
		if _, finish, n := ask("x", `,"max_tokens":400,"min_tokens":399`); finish != "stop" || n != 399 {
			t.Errorf("min_tokens: %q at %d", finish, n)
		}
		if _, finish, n := ask("x", `,"max_tokens":400,"ignore_eos":true`); finish != "length" || n != 400 {
			t.Errorf("ignore_eos: %q at %d", finish, n)
		}
		// The answer is "The" and words of three letters. A stop string in the fourth word ends the
		// answer before that word.
		full, _, _ := ask("x", `,"max_tokens":9,"ignore_eos":true`)
		fourth := strings.Fields(full)[3]
		text, finish, n := ask("x", fmt.Sprintf(`,"max_tokens":9,"ignore_eos":true,"stop":["zzz",%q]`, fourth))
		if want := full[:strings.Index(full, fourth)]; text != want || finish != "stop" || n > 4 {
			t.Errorf("stop: %q, %q at %d; want %q", text, finish, n, want)
		}
	})
}

func TestCancelledRequestsLeaveTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		ctx, cancel := context.WithCancel(context.Background())
		r := must.Get(w.client.Do(w.request(pathChat, strings.Replace(chat5, `"max_tokens":5`, `"max_tokens":5000`, 1)).WithContext(ctx)))(t)
		time.Sleep(time.Second)
		if s := w.server.State(); s.Running != 1 {
			t.Errorf("state %+v", s)
		}
		cancel()
		r.Body.Close()
		time.Sleep(time.Second)
		if s := w.server.State(); s.Running != 0 || s.Waiting != 0 {
			t.Errorf("a second after the client left: %+v", s)
		}
		if text := w.must("/metrics", ""); !strings.Contains(text, `finished_reason="abort"} 1`) {
			t.Errorf("no abort in\n%s", text)
		}
	})
}

func TestMetricsAreGolden(t *testing.T) {
	for like, file := range map[string]string{"": "metrics.txt", "sglang": "metrics-sglang.txt"} {
		metricsOf(t, like, file)
	}
}

func metricsOf(t *testing.T, like, file string) {
	synctest.Test(t, func(t *testing.T) {
		p := plain()
		p.MaxModelLen, p.Limits.KVTokens = 900, 1000
		p.Speculation = &Speculation{Accept: []float64{1, 0}}
		p.PrefixCache = &PrefixCache{BlockTokens: 8, CapacityTokens: 800}
		if like != "" {
			p.PrefixCache.CapacityTokens = 8 // one block, so that a later prompt evicts it
		}
		w := newWorld(t, Options{Profile: p, Engine: like})
		w.must(pathChat, chat5)
		w.must(pathChat, chat5) // the cache has the first block of this second prompt
		w.must(pathCompletions, `{"prompt":"x","max_tokens":1,"ignore_eos":true}`)
		// Each of the next two requests needs 15 + 600 KV tokens for prompt and answer. There are
		// only 1000, so one request runs and the other waits.
		ctx, cancel := context.WithCancel(context.Background())
		for range 2 {
			r := must.Get(w.client.Do(w.request(pathChat, strings.Replace(chat5, `"max_tokens":5`, `"max_tokens":600`, 1)).WithContext(ctx)))(t)
			defer r.Body.Close()
			time.Sleep(5 * time.Millisecond)
		}
		golden(t, file, w.must("/metrics", ""))
		cancel()
	})
}

// A client that does not read its answer does not block the other clients.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		lazy := must.Get(w.client.Do(w.request(pathChat, strings.Replace(chat5, `"max_tokens":5`, `"max_tokens":50000`, 1)).WithContext(ctx)))(t)
		defer lazy.Body.Close()
		time.Sleep(10 * time.Minute) // until unread chunks fill the connection's buffers
		start := time.Now()
		w.must(pathChat, chat5)
		// The request takes at most 85 ms: 5 ms of overhead, 10 ms until the current step ends, 15
		// ms for its prefill step, and 5 steps of 11 ms.
		if got := time.Since(start); got > 90*time.Millisecond {
			t.Errorf("another request took %v", got)
		}
	})
}

func TestRealSocket(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, s.Start("127.0.0.1:0"))
	if err := s.Start("127.0.0.1:0"); err == nil {
		t.Error("a second Start: no error")
	}
	r, err := http.Post(s.URL()+pathChat, "application/json", strings.NewReader(chat5))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || !strings.HasSuffix(string(b), "data: [DONE]\n\n") || strings.Count(string(b), "data: ") != 9 {
		t.Errorf("%v, %s", err, b)
	}
	s.Close()
	s.Close()
	if _, err := http.Get(s.URL() + "/health"); err == nil {
		t.Error("the closed server answers")
	}
	if err := s.Start("127.0.0.1:0"); err == nil {
		t.Error("Start after Close: no error")
	}
}

// The simulator is an http.Handler, so it works in any http.Server. The server of this test has TLS
// and HTTP/2.
func TestBehindAForeignServer(t *testing.T) {
	s, err := New(Options{Faults: Script{{Fault: "close-after"}}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(s)
	h.EnableHTTP2 = true
	h.StartTLS()
	defer h.Close()
	r, err := h.Client().Post(h.URL+pathChat, "application/json", strings.NewReader(chat5))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.ProtoMajor != 2 || strings.Count(string(b), "data: ") != 9 {
		t.Errorf("%s, %v, %s", r.Proto, err, b)
	}
}
