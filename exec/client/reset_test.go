package client

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tokgate/tokgate/engine"
)

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
			if r.Method != http.MethodPost {
				t.Errorf("%s: asked by %s", tt.engine, r.Method)
			}
			w.WriteHeader(tt.status)
		}))
		h, err := New(Config{BaseURL: s.URL, Engine: engine.Of(tt.engine), Now: realNow()})
		if err != nil {
			t.Fatal(err)
		}
		err = h.ResetCaches(t.Context())
		h.Close()
		s.Close()
		if asked != tt.path || (err != nil) != tt.fails || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s answers %d: asked %q, error %v; want %q, %v", tt.engine, tt.status, asked, err, tt.path, tt.want)
		}
	}
}
