package client

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// outcome is the part of a sample that does not depend on timing.
type outcome struct {
	Chunks      int             `json:"chunks"`
	FirstTokens int             `json:"first_tokens,omitempty"`
	Answer      bool            `json:"answer"` // true if a chunk of content or a tool call came
	Finish      string          `json:"finish,omitempty"`
	Usage       *metric.Usage   `json:"usage"`
	Failure     *metric.Failure `json:"failure,omitempty"`
}

func outcomeOf(s *metric.Sample) outcome {
	return outcome{s.Chunks, s.FirstTokens, s.FirstAnswer != 0, s.Finish, s.Usage, s.Failure}
}

// Every stream in testdata gives the same outcome, however its bytes are split into reads. The
// streams have the forms that real servers send.
func TestStreams(t *testing.T) {
	got := map[string]outcome{}
	for _, file := range recorded(t) {
		raw := must.Get(os.ReadFile(file))(t)
		name := strings.TrimSuffix(filepath.Base(file), ".sse")
		for _, size := range []int{1, 100, 1 << 20} {
			h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
				for rest := raw; len(rest) > 0; {
					n := min(size, len(rest))
					_, _ = w.Write(rest[:n])
					w.(http.Flusher).Flush()
					rest = rest[n:]
				}
			})
			s := send(t, h, requestTo(apiOf(file)))
			o := outcomeOf(s)
			before, ok := got[name]
			must.Hold(t, !ok || cmp.Equal(before, o), "%s, %d bytes a write (-want +got):\n%s", name, size, cmp.Diff(before, o))
			got[name] = o
			if s.Sent == 0 || s.Headers < s.Sent || s.Status != 200 || s.Chunks > 0 && (s.First < s.Headers || s.Last < s.First || s.End < s.Last) || len(s.Gaps) != max(s.Chunks-1, 0) {
				t.Errorf("%s: times out of order: %+v", name, s)
			}
		}
	}
	golden := "testdata/streams.golden.json"
	raw, err := json.MarshalIndent(got, "", "  ")
	must.Do(t, err)
	if *update {
		must.Do(t, os.WriteFile(golden, append(raw, '\n'), 0o644))
	}
	want, err := os.ReadFile(golden)
	must.Do(t, err)
	must.Same(t, "(-want +got)", string(want), string(raw)+"\n")
}

// The error contains the server's own message, whatever the form of the response.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"OpenAI", 500, `{"error":{"message":"CUDA out of memory","type":"server_error","code":500}}`, "CUDA out of memory"},
		{"older vLLM", 400, `{"object":"error","message":"max_tokens is too large","type":"BadRequestError","code":400}`, "max_tokens is too large"},
		{"error string", 503, `{"error":"loading"}`, "loading"},
		{"FastAPI", 422, `{"detail":[{"msg":"extra fields not permitted"}]}`, `{"detail":[{"msg":"extra fields not permitted"}]}`},
		{"a page", 502, "<html>Bad gateway</html>\n", "an HTML page: Bad gateway"},
		{"a page with a title", 404, "<!DOCTYPE HTML>\n<html><head><title>Error\n response</title></head><body><h1>No &amp; no</h1></body></html>", "an HTML page: Error response"},
		{"an empty page", 502, "<html><body></body></html>", "an HTML page: 502 Bad Gateway"},
		{"nothing", 429, "", "429 Too Many Requests"},
		{"no end", 500, strings.Repeat("x", 1<<20), strings.Repeat("x", maxMessage-len(" …")) + " …"},
		{"not UTF-8", 500, "a\x1b[31m\x00\xff", "a\x1b[31m\x00\xff"},
	} {
		for _, api := range []engine.API{engine.Chat, engine.Completions} {
			h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			r := chatRequest()
			r.API = api
			s := send(t, h, r)
			want := &metric.Failure{Kind: metric.FailStatus, Message: tt.want}
			d := cmp.Diff(want, s.Failure)
			must.Hold(t, d == "" && s.Status == tt.status && s.Headers != 0 && s.End != 0, "%s, %s: status %d (-want +got):\n%s", tt.name, api, s.Status, d)
		}
	}
}

func TestUnreachable(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l.Close()
	s := send(t, dial(t, Config{}, "http://"+l.Addr().String()), chatRequest())
	must.Hold(t, s.Failure != nil && s.Failure.Kind == metric.FailConnect && strings.Contains(s.Failure.Message, "connection refused"), "failure %+v", s.Failure)
	must.Hold(t, s.Sent == 0 && s.Status == 0 && s.First == 0 && s.End != 0, "sample %+v", s)
}

// If this machine lacks ports, descriptors or memory, the error message blames the machine, not the
// server.
func TestOurOwnLimits(t *testing.T) {
	for errno, words := range map[syscall.Errno]string{
		syscall.EADDRNOTAVAIL: "this machine ran out of local ports, which is not the server's fault",
		syscall.EMFILE:        "this machine ran out of file descriptors, which is not the server's fault",
		syscall.ENOBUFS:       "this machine ran out of socket memory, which is not the server's fault",
	} {
		h := dial(t, Config{Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
		}}, "http://server.test")
		s := send(t, h, chatRequest())
		must.Hold(t, s.Failure != nil && s.Failure.Kind == metric.FailLocal && strings.HasPrefix(s.Failure.Message, words), "%v: failure %+v", errno, s.Failure)
	}
}

func TestCancel(t *testing.T) {
	started := make(chan struct{})
	h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
		w.(http.Flusher).Flush()
		close(started)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	s := sendContext(ctx, h, chatRequest())
	must.Same(t, "", &metric.Failure{Kind: metric.FailCanceled, Message: "the run was stopped"}, s.Failure)
}

// If a server dies in the middle of an answer, the failure is "truncated".
func TestBrokenMidway(t *testing.T) {
	h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	s := send(t, h, chatRequest())
	must.Hold(t, s.Failure != nil && s.Failure.Kind == metric.FailTruncated && s.Chunks == 1, "failure %+v", s.Failure)
}

// After [DONE], the client waits for the end of the answer, but at most for the time linger.
func TestConnectionStaysOpenAfterDone(t *testing.T) {
	h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		good(w, 8)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	s := send(t, h, chatRequest())
	must.Hold(t, s.Failure == nil && s.Chunks == 8, "%d chunks, failure %+v", s.Chunks, s.Failure)
}

func TestEventTooLong(t *testing.T) {
	h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: ")
		for range maxEvent/(1<<16) + 8 {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	})
	s := send(t, h, chatRequest())
	must.Same(t, "", &metric.Failure{Kind: metric.FailProtocol, Message: errLongEvent.Error()}, s.Failure)
}

// An event of 2 MB is read whole.
func TestLongEvent(t *testing.T) {
	h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"logprobs\":%q,\"delta\":{\"content\":\"a\"}}]}\n\n", strings.Repeat("x", 2<<20))
		good(w, 7)
	})
	s := send(t, h, chatRequest())
	must.Hold(t, s.Failure == nil && s.Chunks == 8, "%d chunks, failure %+v", s.Chunks, s.Failure)
}

func TestCompressed(t *testing.T) {
	h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		must.Same(t, "asks for", "", r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		good(compressed{w, z}, 8)
		z.Close()
	})
	if s := send(t, h, chatRequest()); s.Failure != nil || s.Chunks != 8 {
		t.Errorf("%d chunks, failure %+v", s.Chunks, s.Failure)
	}
	h = serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "??")
	})
	s := send(t, h, chatRequest())
	must.Same(t, "", &metric.Failure{Kind: metric.FailProtocol, Message: `the answer is encoded as "br", but the request did not ask for that`}, s.Failure)
}

// Answers that are not streams may be compressed. So may refusals.
func TestCompressedUnary(t *testing.T) {
	h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusTooManyRequests, `{"error":{"message":"no quota"}}`
		if r.Method == http.MethodGet {
			status, body = http.StatusOK, `{"data":[{"id":"m"}]}`
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, body)
		z.Close()
	})
	models, err := h.Models(t.Context())
	must.Hold(t, err == nil && len(models) == 1 && models[0].ID == "m", "models %v, %v", models, err)
	s := send(t, h, chatRequest())
	d := cmp.Diff(&metric.Failure{Kind: metric.FailStatus, Message: "no quota"}, s.Failure)
	must.Hold(t, d == "" && s.Status == 429, "status %d, failure (-want +got):\n%s", s.Status, d)

	// This answer falsely claims to be compressed.
	h = serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "plain")
	})
	if models, err := h.Models(t.Context()); err == nil {
		t.Errorf("models %v", models)
	}
	if s := send(t, h, chatRequest()); s.Failure == nil {
		t.Errorf("sample %+v", s)
	}
}

type compressed struct {
	http.ResponseWriter
	z *gzip.Writer
}

func (c compressed) Write(b []byte) (int, error) { return c.z.Write(b) }

// The client works over TLS with a private CA and HTTP/2.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		must.Hold(t, r.ProtoMajor == 2, "HTTP/%d", r.ProtoMajor)
		_, _ = io.Copy(io.Discard, r.Body)
		good(w, 8)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	s := send(t, dial(t, Config{}, server.URL), chatRequest())
	if s.Failure == nil || s.Failure.Kind != metric.FailConnect || !strings.HasPrefix(s.Failure.Message, "the server's certificate is not accepted: x509: ") {
		t.Errorf("without the CA: %+v", s.Failure)
	}

	file := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	must.Do(t, os.WriteFile(file, cert, 0o600))
	pool := must.Get(LoadCA(file))(t)
	for _, fresh := range []bool{false, true} {
		h := dial(t, Config{RootCAs: pool, Engine: engine.Engine{Dialect: engine.Dialect{FreshConns: fresh}}}, server.URL)
		for range 3 {
			s := send(t, h, chatRequest())
			if s.Failure != nil || s.Chunks != 8 || s.Sent == 0 || s.First < s.Headers || s.Headers < s.Sent || s.Reconnects != 0 {
				t.Errorf("fresh %v: %+v, failure %+v", fresh, s, s.Failure)
			}
		}
	}

	_, err := LoadCA("http_test.go")
	must.Hold(t, err != nil, "a file without a certificate was taken")
	if _, err := LoadCA("none.pem"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// A server that asks for a certificate gets it, by both paths of the client.
func TestClientCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		good(w, 8)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	for _, tt := range []struct {
		shown []tls.Certificate
		fails bool
	}{{nil, true}, {server.TLS.Certificates, false}} {
		s := send(t, dial(t, Config{RootCAs: pool, Certificates: tt.shown}, server.URL), chatRequest())
		must.Hold(t, (s.Failure != nil) == tt.fails, "with %d certificates: %+v", len(tt.shown), s.Failure)
	}
}

// Each request of the server has the query, encoded; a redirect to another host has it not.
func TestQuery(t *testing.T) {
	const want = "a=b+c%26&api-version=2025-04-01-preview"
	var seen tally
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.add("other " + r.URL.RawQuery + r.Header.Get("Referer"))
		_, _ = io.Copy(io.Discard, r.Body)
		good(w, 2)
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.add(r.URL.Path + " " + r.URL.RawQuery)
		if strings.HasPrefix(r.URL.Path, "/away") {
			http.Redirect(w, r, other.URL+"/v1/chat/completions", http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		good(w, 2)
	}))
	t.Cleanup(server.Close)
	config := Config{Query: map[string]string{"api-version": "2025-04-01-preview", "a": "b c&"}, AnyRedirect: true}
	for _, standard := range []bool{false, true} {
		config.Standard = standard
		s := send(t, dial(t, config, server.URL), chatRequest())
		must.Hold(t, s.Failure == nil, "standard %v: %+v", standard, s.Failure)
		must.Hold(t, seen.get("/v1/chat/completions "+want) == 1, "standard %v: the server saw %v", standard, seen.n)
		seen.n = nil
	}
	s := send(t, dial(t, config, server.URL+"/away"), chatRequest())
	must.Hold(t, s.Failure == nil && seen.get("other ") == 1, "after a redirect: %+v, seen %v", s.Failure, seen.n)
}

// The API key is sent only to the server of the base URL.
func TestKeyAndRedirects(t *testing.T) {
	config := Config{APIKey: "secret", Headers: map[string]string{"X-Team": "secret2", "x-other": "secret3"}}
	var seen tally
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.add("other")
		body, _ := io.ReadAll(r.Body)
		must.Hold(t, r.Method == "POST" && strings.Contains(string(body), "hello"), "%s with %q", r.Method, body)
		for name, values := range r.Header {
			must.Hold(t, !strings.Contains(strings.Join(values, " "), "secret"), "%s went to another host", name)
		}
		good(w, 8)
	}))
	t.Cleanup(other.Close)
	redirects := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("X-Team") != "secret2" || r.Header.Get("X-Other") != "secret3" {
			t.Errorf("%s: headers %v", r.URL.Path, r.Header)
		}
		seen.add(r.URL.Path)
		switch r.URL.Path {
		case "/v1/chat/completions":
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
		case "/moved":
			http.Redirect(w, r, other.URL+"/away", http.StatusPermanentRedirect)
		}
	}
	own := chatRequest()
	own.Headers = map[string]string{"X-Own": "secret4"}
	s := send(t, serve(t, config, redirects), own)
	if s.Failure == nil || s.Failure.Kind != metric.FailStatus || s.Failure.Message != "the server redirects to "+other.URL+
		`, which is another server; write that URL in the plan, or allow it with redirects = "any"` || seen.get("other") != 0 {
		t.Errorf("another host: %+v, asked %d times", s.Failure, seen.get("other"))
	}
	n := seen.get("/v1/chat/completions")
	must.Hold(t, n == 1, "the request was sent %d times to the server that redirects", n)
	config.AnyRedirect = true
	h := serve(t, config, redirects)
	if s = send(t, h, own); h.Redirected() != other.URL {
		t.Errorf("it was redirected to %q, not %q", h.Redirected(), other.URL)
	}
	if s.Failure != nil || s.Chunks != 8 || seen.get("other") != 1 || s.Reconnects != 0 {
		t.Errorf("%d chunks, %d reconnects, failure %+v", s.Chunks, s.Reconnects, s.Failure)
	}

	h = serve(t, config, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.test/v1/chat/completions", http.StatusFound)
	})
	s = send(t, h, chatRequest())
	want := &metric.Failure{Kind: metric.FailStatus, Message: "the server redirects to elsewhere.test in a way that would turn a POST into a GET; write that URL in the plan"}
	d := cmp.Diff(want, s.Failure)
	must.Hold(t, d == "" && s.Status == 302, "status %d (-want +got):\n%s", s.Status, d)

	h = serve(t, config, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
	})
	if s = send(t, h, chatRequest()); s.Failure == nil || s.Failure.Message != "stopped after 10 redirects" {
		t.Errorf("a circle: %+v", s.Failure)
	}
	h = serve(t, config, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotModified) })
	if s = send(t, h, chatRequest()); s.Failure == nil || s.Failure.Kind != metric.FailStatus || s.Status != 304 {
		t.Errorf("304: %+v", s.Failure)
	}
}

// liar starts a server that closes connections although it promises to keep them open. On each
// connection it gives the stated number of answers. Then it reads one more request, and closes the
// connection without an answer.
func liar(t *testing.T, answers int) (url string, requests *tally) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	requests = new(tally)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for range answers {
					if !readRequest(conn) {
						return
					}
					requests.add("answered")
					var body strings.Builder
					good(stringWriter{&body}, 8)
					_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nKeep-Alive: timeout=5, max=100\r\nContent-Length: %d\r\n\r\n%s", body.Len(), body.String())
				}
				// Read the next request and drop it, as if it arrived while the server was closing
				// the connection.
				if readRequest(conn) {
					requests.add("dropped")
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), requests
}

type stringWriter struct{ io.Writer }

func (stringWriter) Header() http.Header { return http.Header{} }
func (stringWriter) WriteHeader(int)     {}

func readRequest(conn net.Conn) bool {
	var got []byte
	b := make([]byte, 4096)
	for {
		n, err := conn.Read(b)
		got = append(got, b[:n]...)
		if strings.HasSuffix(string(got), "}}") || strings.HasSuffix(string(got), "}") {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// A kept-alive connection that breaks under a request costs one reconnect. The sample counts it,
// and later requests need none.
func TestReconnect(t *testing.T) {
	url, requests := liar(t, 2)
	var said []string
	h := dial(t, Config{OnFresh: func(why string) { said = append(said, why) }}, url)
	var reconnects []int
	for i := range 6 {
		s := send(t, h, chatRequest())
		must.Need(t, s.Failure == nil && s.Chunks == 8, "request %d: failure %+v", i, s.Failure)
		must.Hold(t, s.Sent != 0 && s.First >= s.Sent, "request %d: sent %v, first %v", i, s.Sent, s.First)
		reconnects = append(reconnects, s.Reconnects)
	}
	// The first connection brings two answers and breaks at the third request. That request is sent
	// again, and every later one has its own new connection.
	must.Same(t, "reconnects (-want +got)", []int{0, 0, 1, 0, 0, 0}, reconnects)
	must.Hold(t, len(said) == 1 && h.FreshConns(), "said %q, fresh connections %v", said, h.FreshConns())
	got := requests.get("answered")
	must.Hold(t, got == 6, "%d requests answered, want 6", got)
	if got := requests.get("dropped"); got != 1 {
		t.Errorf("%d requests dropped, want 1", got)
	}
}

// The client respects a server that announces that it closes each connection. No request dies, and
// none is sent twice.
func TestConnectionClose(t *testing.T) {
	var seen tally
	h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		seen.add("requests")
		seen.add(r.RemoteAddr)
		w.Header().Set("Connection", "close")
		_, _ = io.Copy(io.Discard, r.Body)
		good(w, 8)
	})
	for range 20 {
		s := send(t, h, chatRequest())
		must.Need(t, s.Failure == nil && s.Reconnects == 0, "%d reconnects, failure %+v", s.Reconnects, s.Failure)
	}
	if seen.get("requests") != 20 || len(seen.n) != 21 || h.FreshConns() {
		t.Errorf("%d requests on %d connections, fresh %v", seen.get("requests"), len(seen.n)-1, h.FreshConns())
	}
}

// A kept-alive connection carries all ten requests. Without keep-alive each request has its own
// connection.
func TestKeepAlive(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		var seen tally
		h := serve(t, Config{Engine: engine.Engine{Dialect: engine.Dialect{FreshConns: fresh}}}, func(w http.ResponseWriter, r *http.Request) {
			seen.add(r.RemoteAddr)
			_, _ = io.Copy(io.Discard, r.Body)
			good(w, 8)
		})
		for range 10 {
			s := send(t, h, chatRequest())
			must.Need(t, s.Failure == nil, "failure %+v", s.Failure)
		}
		want := map[bool]int{false: 1, true: 10}[fresh]
		must.Hold(t, len(seen.n) == want, "fresh %v: %d connections, want %d", fresh, len(seen.n), want)
	}
}

// If the server closes a new connection without an answer, the failure is the server's.
func TestClosedWithoutAnswer(t *testing.T) {
	url, requests := liar(t, 0)
	h := dial(t, Config{}, url)
	s := send(t, h, chatRequest())
	if s.Failure == nil || s.Failure.Kind != metric.FailConnect || !strings.HasPrefix(s.Failure.Message, "the server closed the connection before it answered: ") {
		t.Errorf("failure %+v", s.Failure)
	}
	if s.Reconnects != 0 || requests.get("dropped") != 1 || s.Sent == 0 || s.Status != 0 {
		t.Errorf("%d reconnects, %d dropped, sample %+v", s.Reconnects, requests.get("dropped"), s)
	}
}

// The client allows model names that go-openai refuses.
func TestModelNames(t *testing.T) {
	for _, model := range []string{"o1", "o3-distill-llama", "gpt-5", "gpt-4o", "gpt-3.5-turbo", ""} {
		for _, api := range []engine.API{engine.Chat, engine.Completions} {
			h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				var got struct{ Model string }
				err := json.NewDecoder(r.Body).Decode(&got)
				must.Hold(t, err == nil && got.Model == model, "model %q: %v", got.Model, err)
				want := map[engine.API]string{"chat": "/v1/chat/completions", "completions": "/v1/completions"}[api]
				must.Hold(t, r.URL.Path == want, "path %s", r.URL.Path)
				good(w, 8)
			})
			temperature := 0.0
			s := send(t, h, &Request{API: api, Model: model, Prompt: Prompt{Text: "x"}, Output: 8, Temperature: &temperature})
			must.Hold(t, s.Failure == nil, "%s, %q: %+v", api, model, s.Failure)
		}
	}
}

func TestURL(t *testing.T) {
	for _, tt := range []struct{ url, root, base string }{
		{"http://h:1", "http://h:1", "http://h:1/v1"},
		{"http://h:1/", "http://h:1", "http://h:1/v1"},
		{"http://h:1/v1", "http://h:1", "http://h:1/v1"},
		{"http://h:1/v1/", "http://h:1", "http://h:1/v1"},
		{"https://h/openai/v1", "https://h/openai", "https://h/openai/v1"},
		{"https://h/openai", "https://h/openai", "https://h/openai/v1"},
		{"https://h/api/v3", "https://h/api", "https://h/api/v3"},
		{"https://h/vllm", "https://h/vllm", "https://h/vllm/v1"},
	} {
		h := dial(t, Config{}, tt.url)
		must.Hold(t, h.root == tt.root && h.base == tt.base, "%s: root %s, base %s; want %s, %s", tt.url, h.root, h.base, tt.root, tt.base)
	}
	for _, bad := range []string{"", "h:1", "ftp://h", "http://", "http://u:secret@h", "http://h?key=secret", "http://h#x", "http://h:x"} {
		_, err := New(Config{BaseURL: bad, Now: realNow()})
		if err == nil {
			t.Errorf("%q was taken", bad)
		} else if strings.Contains(bad, "secret") && strings.Contains(err.Error(), "secret") {
			t.Errorf("the secret is in %q", err)
		}
	}
	_, err := New(Config{BaseURL: "http://h"})
	must.Hold(t, err != nil, "no clock, no error")
}

// A plan can measure a server that speaks only HTTP/2 without TLS.
func TestH2C(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		must.Hold(t, r.ProtoMajor == 2 && r.TLS == nil, "HTTP/%d", r.ProtoMajor)
		_, _ = io.Copy(io.Discard, r.Body)
		good(w, 8)
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	h := dial(t, Config{H2C: true}, server.URL)
	for range 3 {
		s := send(t, h, chatRequest())
		must.Hold(t, s.Failure == nil && s.Chunks == 8 && s.Sent != 0 && s.First >= s.Headers && s.Headers >= s.Sent && s.Reconnects == 0, "%+v", s)
	}
	s := send(t, dial(t, Config{}, server.URL), chatRequest())
	must.Hold(t, s.Failure != nil, "HTTP/1.1 is not refused")
}

// A server that refuses a request may ask the client to wait for some seconds or until a date. The
// client waits at most metric.MaxRetryAfter.
func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		header string
		want   time.Duration
	}{
		{"", 0}, {"2", 2 * time.Second}, {"0", 0}, {"-1", 0}, {"3600", metric.MaxRetryAfter}, {"99999999999999999999", 0}, {"soon", 0},
		{"Sun, 06 Nov 1994 08:49:40 GMT", 3 * time.Second}, {"Sun, 06 Nov 1994 08:49:30 GMT", 0}, {"Sun, 06 Nov 2094 08:49:37 GMT", metric.MaxRetryAfter},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
			if tt.header != "" {
				w.Header().Set("Retry-After", tt.header)
			}
			http.Error(w, "busy", http.StatusTooManyRequests)
		}))
		s := send(t, dial(t, Config{}, server.URL), chatRequest())
		server.Close()
		must.Hold(t, s.RetryAfter == tt.want && s.Failure != nil, "Retry-After: %q is %v, want %v", tt.header, s.RetryAfter, tt.want)
	}
}

// The cases say to which addresses a server may redirect a request. The API key goes only to the
// host in the plan.
func TestRedirect(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		any      bool
		refused  bool
		key      bool // is sent along
	}{
		{from: "http://a.test", to: "http://a.test", key: true},
		{from: "http://a.test", to: "https://a.test"},
		{from: "https://a.test", to: "http://a.test", refused: true},
		{from: "https://a.test", to: "https://a.test:8443", refused: true},
		{from: "http://a.test", to: "https://b.test", refused: true},
		{from: "http://a.test", to: "http://b.test", refused: true},
		{from: "https://a.test", to: "http://a.test", any: true},
		{from: "http://a.test", to: "http://b.test", any: true},
	} {
		h, err := New(Config{BaseURL: tt.from, Now: func() time.Duration { return 1 }, AnyRedirect: tt.any, Headers: map[string]string{"X-Key": "k"}})
		must.Do(t, err)
		request := func(base string) *http.Request {
			r := httptest.NewRequest(http.MethodPost, base+"/v1/chat/completions", nil)
			r.Header.Set("Authorization", "Bearer k")
			r.Header.Set("X-Key", "k")
			r.Response = &http.Response{StatusCode: http.StatusTemporaryRedirect}
			return r
		}
		r := request(tt.to)
		err = h.redirect(r, []*http.Request{request(tt.from)})
		must.Hold(t, (err != nil) == tt.refused, "%s to %s: %v", tt.from, tt.to, err)
		sent := r.Header.Get("Authorization") != "" || r.Header.Get("X-Key") != ""
		must.Hold(t, tt.refused || sent == tt.key, "%s to %s: the key goes along: %v", tt.from, tt.to, sent)
		must.Same(t, fmt.Sprintf("%s to %s: told", tt.from, tt.to), (!tt.refused && tt.from != tt.to), h.Redirected() != "")
	}
}
