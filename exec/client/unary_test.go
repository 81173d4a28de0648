package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	openai "github.com/sashabaranov/go-openai"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// page is a fixed answer of the test server. Its key is "METHOD path", or "METHOD path body" for
// one request body.
type page struct {
	status int
	body   string
}

func servePages(t *testing.T, c Config, pages map[string]page) (*HTTP, *tally) {
	asked := new(tally)
	h := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		name := r.Method + " " + r.URL.Path
		asked.add(name)
		p, ok := pages[name+" "+string(raw)]
		if !ok {
			p, ok = pages[name]
		}
		if !ok {
			p = page{404, `{"detail":"Not Found"}`}
		}
		w.WriteHeader(p.status)
		_, _ = io.WriteString(w, p.body)
	})
	return h, asked
}

func TestModels(t *testing.T) {
	h, _ := servePages(t, Config{APIKey: "k"}, map[string]page{
		"GET /v1/models": {200, `{"object":"list","data":[{"id":"acme","root":"Qwen/Qwen3","max_model_len":4096},{"id":"lora"}]}`},
	})
	got, err := h.Models(t.Context())
	want := []Model{{openai.Model{ID: "acme", Root: "Qwen/Qwen3"}, 4096}, {Model: openai.Model{ID: "lora"}}}
	d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(openai.Model{}))
	must.Hold(t, d == "" && err == nil, "%v (-want +got):\n%s", err, d)
	h, _ = servePages(t, Config{}, map[string]page{"GET /v1/models": {200, `{"data":[{"id":"acme","created":"today","owned_by":7,"max_model_len":4096}]}`}})
	if got, err := h.Models(t.Context()); err != nil || got[0].ID != "acme" || got[0].Context != 4096 {
		t.Errorf("members that nobody asks for: %+v, %v", got, err)
	}
	for body, want := range map[string]*Error{
		`{"error":{"message":"no key"}}`: {Kind: metric.FailStatus, Status: 401, Message: "no key"},
		``:                               {Kind: metric.FailStatus, Status: 401, Message: "401 Unauthorized"},
	} {
		h, _ := servePages(t, Config{}, map[string]page{"GET /v1/models": {401, body}})
		_, err := h.Models(t.Context())
		must.Same(t, "", error(want), err)
	}
	h, _ = servePages(t, Config{}, map[string]page{"GET /v1/models": {200, "<html>"}})
	if _, err := h.Models(t.Context()); err == nil || err.(*Error).Kind != metric.FailProtocol {
		t.Errorf("a page: %v", err)
	}
}

func TestHealthAndVersion(t *testing.T) {
	for _, tt := range []struct {
		engine string
		pages  map[string]page
		want   string
		status int
	}{
		{"vllm", map[string]page{"GET /version": {200, `{"version":"0.19.1"}`}}, "0.19.1", 0},
		{"sglang", map[string]page{"GET /get_server_info": {200, `{"version":"0.5.4"}`}}, "0.5.4", 0},
		{"sglang", map[string]page{"GET /server_info": {200, `{"version":"0.6.0"}`}}, "0.6.0", 0},
		{"llama.cpp", map[string]page{"GET /props": {200, `{"build_info":"b6123-abc"}`}}, "b6123-abc", 0},
		{"openai", nil, "", 404},
		{"vllm", map[string]page{"GET /version": {200, `{}`}}, "", 0},
	} {
		h, _ := servePages(t, Config{Engine: engine.Of(tt.engine)}, tt.pages)
		got, err := h.Version(t.Context())
		must.Hold(t, got == tt.want && (err == nil) == (tt.want != ""), "%s: %q, %v", tt.engine, got, err)
		must.Hold(t, tt.status == 0 || err.(*Error).Status == tt.status, "%s: %v", tt.engine, err)
	}
	h, _ := servePages(t, Config{Engine: engine.Of("vllm")}, map[string]page{"GET /health": {200, ""}})
	err := h.Health(t.Context())
	must.Hold(t, err == nil, "%v", err)
	h, _ = servePages(t, Config{Engine: engine.Of("vllm")}, map[string]page{"GET /health": {503, `{"error":{"message":"Loading model"}}`}})
	must.Same(t, "", error(&Error{Kind: metric.FailStatus, Status: 503, Message: "Loading model"}), h.Health(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Health(ctx); err == nil || err.(*Error).Kind != metric.FailCanceled {
		t.Errorf("canceled: %v", err)
	}
	if err := dial(t, Config{}, "http://127.0.0.1:1").Health(t.Context()); err == nil || err.(*Error).Kind != metric.FailConnect {
		t.Errorf("nobody there: %v", err)
	}
}

// Each case is one kind of tokenizer request.
func TestTokenize(t *testing.T) {
	vllm := map[string]page{
		`POST /tokenize {"add_generation_prompt":true,"chat_template_kwargs":{"enable_thinking":false},"messages":[{"role":"user","content":"hi"}],"model":"m"}`: {200, `{"count":4,"max_model_len":99,"tokens":[1,2,3,4]}`},
		`POST /tokenize {"add_special_tokens":true,"model":"m","prompt":"hi"}`:                                                                                   {200, `{"count":2,"tokens":[1,2]}`},
		`POST /tokenize {"add_special_tokens":false,"model":"m","prompt":"hi"}`:                                                                                  {200, `{"count":1,"tokens":[2]}`},
	}
	llama := map[string]page{
		`POST /apply-template {"chat_template_kwargs":{"enable_thinking":false},"messages":[{"role":"user","content":"hi"}]}`: {200, `{"prompt":"<u>hi<a>"}`},
		`POST /tokenize {"add_special":true,"content":"\u003cu\u003ehi\u003ca\u003e","parse_special":true}`:                   {200, `{"tokens":[1,2,3]}`},
		`POST /tokenize {"add_special":true,"content":"hi","parse_special":true}`:                                             {200, `{"tokens":[1,2]}`},
		`POST /tokenize {"add_special":false,"content":"hi","parse_special":false}`:                                           {200, `{"tokens":[2]}`},
		`POST /tokenize`: {200, `{"tokens":[]}`}, // the response to a request without content
	}
	for _, tt := range []struct {
		name, engine string
		pages        map[string]page
		want         map[engine.API]int // token counts by API; an API without a tokenizer is missing
	}{
		{"vllm", "vllm", vllm, map[engine.API]int{"chat": 4, "completions": 2, "": 1}},
		{"sglang", "sglang", vllm, map[engine.API]int{"completions": 2, "": 1}},
		{"llama.cpp", "llama.cpp", llama, map[engine.API]int{"chat": 3, "completions": 2, "": 1}},
		{"a plain server that is vLLM", "openai", vllm, map[engine.API]int{"chat": 4, "completions": 2, "": 1}},
		{"a plain server that is llama.cpp", "openai", llama, map[engine.API]int{"chat": 3, "completions": 2, "": 1}},
		{"a plain server", "openai", nil, nil},
		{"vllm without", "vllm", nil, nil},
		{"a plain server that refuses", "openai", map[string]page{"POST /tokenize": {422, `{"detail":"?"}`}}, nil},
	} {
		h, asked := servePages(t, Config{Engine: engine.Of(tt.engine)}, tt.pages)
		for range 2 {
			for _, api := range []engine.API{"chat", "completions", ""} {
				tokens, err := h.Tokenize(t.Context(), TokenizeRequest{Model: "m", API: api, Text: "hi", Extra: map[string]any{
					"chat_template_kwargs": map[string]any{"enable_thinking": false}, "top_k": 3,
				}})
				want, ok := tt.want[api]
				must.Hold(t, (!ok || err == nil && tokens.Count() == want) && (ok || errors.Is(err, ErrNoTokenizer)), "%s, %q: %v, %v", tt.name, api, tokens, err)
			}
		}
		if tt.name == "a plain server" && asked.get("POST /tokenize") > 5 {
			t.Errorf("%s: asked %d times", tt.name, asked.get("POST /tokenize"))
		}
	}
	_, err := dial(t, Config{Engine: engine.Of("openai")}, "http://127.0.0.1:1").Tokenize(t.Context(), TokenizeRequest{})
	must.Hold(t, !errors.Is(err, ErrNoTokenizer) && err != nil, "nobody there: %v", err)
	if _, err := dial(t, Config{}, "http://127.0.0.1:1").Tokenize(t.Context(), TokenizeRequest{}); !errors.Is(err, ErrNoTokenizer) {
		t.Errorf("no dialect: %v", err)
	}
}

func TestTokens(t *testing.T) {
	for _, tt := range []struct {
		src  string
		want []int // nil if src is not a list of tokens
	}{
		{"[]", []int{}}, {" [ ] ", []int{}}, {"[7]", []int{7}}, {"[1, 22,\n333]", []int{1, 22, 333}},
		{"null", nil}, {`"1,2"`, nil}, {"[[1],2]", nil}, {`[{"id":1}]`, nil}, {`["1"]`, nil}, {"[null]", nil}, {"[true]", nil}, {"3", nil},
	} {
		var tokens Tokens
		err := json.Unmarshal([]byte(tt.src), &tokens)
		must.Hold(t, (err == nil) == (tt.want != nil), "%s: %v", tt.src, err)
		if ids, err := tokens.IDs(); tt.want != nil && (err != nil || tokens.Count() != len(tt.want) || !slices.Equal(ids, tt.want)) {
			t.Errorf("%s: %v, %d, %v", tt.src, ids, tokens.Count(), err)
		}
	}
}

func TestComplete(t *testing.T) {
	h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		var got struct{ Model string }
		_ = json.NewDecoder(r.Body).Decode(&got)
		if got.Model != "m" {
			w.WriteHeader(404)
			_, _ = io.WriteString(w, `{"error":{"message":"no such model"}}`)
			return
		}
		good(w, 8)
	})
	s, err := h.Complete(t.Context(), chatRequest())
	must.Hold(t, err == nil && s.Usage.Output == 8 && s.InputAsked == 11, "%v, %+v", err, s)
	r := chatRequest()
	r.Model = "n"
	_, err = h.Complete(t.Context(), r)
	must.Same(t, "", error(&Error{Kind: metric.FailStatus, Status: 404, Message: "no such model"}), err)
}

// A page may send no answer, a very slow answer, or an endless answer. Each time the client must
// respect its limits on time and on bytes.
func TestQuestionsAreBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		kind    metric.FailureKind
	}{
		"never answers": {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, metric.FailTimeout},
		"drips": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Write([]byte(" "))
				w.(http.Flusher).Flush()
				time.Sleep(time.Second)
			}
		}, metric.FailTimeout},
		"never ends": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<16)); err != nil {
					return
				}
			}
		}, metric.FailProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, tt.handler, func(t *testing.T, h *HTTP) {
				began := time.Now()
				for question, ask := range map[string]func() error{
					"models":  func() error { _, err := h.Models(t.Context()); return err },
					"metrics": func() error { _, err := h.Text(t.Context(), "/metrics", 1<<20); return err },
					"tokenize": func() error {
						_, err := h.tokenize(t.Context(), engine.VLLMTokenizer, TokenizeRequest{Text: "a b"})
						return err
					},
				} {
					e, ok := errors.AsType[*Error](ask())
					must.Hold(t, ok && e.Kind == tt.kind, "%s: %v, want kind %s", question, e, tt.kind)
				}
				took := time.Since(began)
				must.Hold(t, took <= 3*patience, "three questions took %v", took)
			})
		})
	}
}

func TestResetCaches(t *testing.T) {
	for _, tt := range []struct {
		engine string
		status int
		path   string // asked; "": none
		want   error
		fails  bool
	}{
		{"vllm", 200, "/reset_prefix_cache", nil, false},
		{"sglang", 200, "/flush_cache", nil, false},
		{"vllm", 404, "/reset_prefix_cache", ErrNoReset, true}, // the server is not in development mode
		{"sglang", 405, "/flush_cache", ErrNoReset, true},
		{"sglang", 400, "/flush_cache", nil, true}, // requests are still running
		{"llama.cpp", 200, "", ErrNoReset, true},
		{"openai", 200, "", ErrNoReset, true},
	} {
		asked := ""
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Path
			must.Hold(t, r.Method == http.MethodPost, "%s: asked by %s", tt.engine, r.Method)
			w.WriteHeader(tt.status)
		}))
		h, err := New(Config{BaseURL: s.URL, Engine: engine.Of(tt.engine), Now: realNow()})
		must.Do(t, err)
		err = h.ResetCaches(t.Context())
		h.Close()
		s.Close()
		if asked != tt.path || (err != nil) != tt.fails || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s answers %d: asked %q, error %v; want %q, %v", tt.engine, tt.status, asked, err, tt.path, tt.want)
		}
	}
}
