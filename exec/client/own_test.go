package client

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/memnet"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

// answer holds what a server writes for one request, in pieces.
type answer struct {
	pieces []string
	pause  time.Duration // before each piece
	close  bool
	torn   bool // true if a chunk arrives in several reads
}

// scripted answers on every connection: the nth request gets the nth answer of the script. The last
// answer is repeated.
func scripted(l net.Listener, script []answer) {
	var mu sync.Mutex
	n := 0
	next := func() answer {
		mu.Lock()
		defer mu.Unlock()
		a := script[min(n, len(script)-1)]
		n++
		return a
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			br := bufio.NewReader(conn)
			for {
				r, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				a := next()
				for _, piece := range a.pieces {
					time.Sleep(a.pause)
					if _, err := io.WriteString(conn, piece); err != nil {
						return
					}
				}
				if a.close {
					return
				}
			}
		}()
	}
}

// cut cuts s into pieces of n bytes each.
func cut(s string, n int) (pieces []string) {
	for ; len(s) > n; s = s[n:] {
		pieces = append(pieces, s[:n])
	}
	return append(pieces, s)
}

const (
	okHead   = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	goodBody = `data: {"choices":[{"delta":{"content":" word"}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{"content":" word"}}]}` + "\n\n" + answerTail
)

func byChunks(body string, n int) string {
	out := okHead + "Transfer-Encoding: chunked\r\n\r\n"
	for _, piece := range cut(body, n) {
		if piece != "" {
			out += chunked(piece)
		}
	}
	return out + "0\r\n\r\n"
}

func sized(head, body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	z.Close()
	return b.String()
}

// scripts returns answers of servers, and of gateways in front of them: every recorded stream, and
// the invalid answers that the docs and RFC 9112 describe.
func scripts(t *testing.T) map[string][]answer {
	one := func(s string) []answer { return []answer{{pieces: []string{s}}} }
	last := func(s string) []answer { return []answer{{pieces: []string{s}, close: true}} }
	good := byChunks(goodBody, 60)
	refusal := `{"error":{"message":"CUDA out of memory","type":"server_error","code":500}}`
	out := map[string][]answer{
		"good":                              one(good),
		"good, by bytes":                    {{pieces: cut(good, 1)}},
		"good, slowly":                      {{pieces: strings.SplitAfter(good, "\r\n\r\n"), pause: 20 * ms}},
		"good, by length":                   one(sized(okHead, goodBody)),
		"good, until it closes":             last(okHead + "\r\n" + goodBody),
		"good, and closes":                  last(strings.Replace(good, "\r\n", "\r\nConnection: close\r\n", 1)),
		"good, HTTP/1.0":                    last("HTTP/1.0 200 OK\r\n\r\n" + goodBody),
		"good, HTTP/1.0, kept":              one(sized("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", goodBody)),
		"good, then dies":                   {{pieces: []string{good}}, {pieces: []string{good}, close: true}, {pieces: []string{good}}},
		"good, then dies unanswered":        {{pieces: []string{good}}, {close: true}, {pieces: []string{good}}},
		"good, then dies in the head":       {{pieces: []string{good}}, {pieces: []string{"HTTP/1.1 200"}, close: true}, {pieces: []string{good}}},
		"good, then says more":              one(good + "HTTP/1.1 200 OK\r\n\r\n"),
		"good, LF only":                     one(strings.ReplaceAll(okHead, "\r", "") + "Content-Length: 3\n\n\n\n\n"),
		"interim answers":                   one("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + good),
		"interim answers, slowly":           {{pieces: []string{"HTTP/1.1 100 Continue\r\n\r\n", good}, pause: 50 * ms}},
		"only an interim answer":            last("HTTP/1.1 100 Continue\r\n\r\n"),
		"switches protocols":                last("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
		"no content":                        one("HTTP/1.1 204 No Content\r\n\r\n"),
		"created":                           one(strings.Replace(good, "200 OK", "201 Created", 1)),
		"a status of no number":             last("HTTP/1.1 abc OK\r\n\r\n"),
		"a status below 100":                last("HTTP/1.1 099 What\r\n\r\n" + goodBody),
		"refused":                           one(sized("HTTP/1.1 500 Oops\r\n", refusal)),
		"refused now and then":              {{pieces: []string{good}}, {pieces: []string{sized("HTTP/1.1 503 Busy\r\nRetry-After: 2\r\n", refusal)}}, {pieces: []string{good}}},
		"refused by chunks":                 one("HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(refusal) + "0\r\n\r\n"),
		"refused without end":               last("HTTP/1.1 500 Oops\r\n\r\n" + strings.Repeat("x", 200<<10)),
		"refused, compressed":               one(sized("HTTP/1.1 500 Oops\r\nContent-Encoding: gzip\r\n", zipped(refusal))),
		"refused, with a page":              one(sized("HTTP/1.1 502 Bad Gateway\r\n", "<html><title>No</title></html>")),
		"refused, cut short":                last("HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nno"),
		"compressed":                        one(sized(okHead+"Content-Encoding: gzip\r\n", zipped(goodBody))),
		"compressed by chunks":              one(okHead + "Content-Encoding: x-gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(zipped(goodBody)) + "0\r\n\r\n"),
		"said to be compressed":             one(sized(okHead+"Content-Encoding: gzip\r\n", goodBody)),
		"compressed as nobody knows":        one(sized(okHead+"Content-Encoding: br\r\n", "??")),
		"not compressed, said so":           one(sized(okHead+"Content-Encoding: identity\r\n", goodBody)),
		"not modified":                      one("HTTP/1.1 304 Not Modified\r\n\r\n"),
		"redirected nowhere":                one("HTTP/1.1 307 Go\r\nContent-Length: 0\r\n\r\n"),
		"redirected, as a GET":              one("HTTP/1.1 302 Found\r\nLocation: /away\r\nContent-Length: 0\r\n\r\n"),
		"redirected once":                   {{pieces: []string{"HTTP/1.1 307 Go\r\nLocation: /v1/chat/completions\r\nContent-Length: 0\r\n\r\n"}}, {pieces: []string{good}}},
		"redirected once, as a GET":         {{pieces: []string{"HTTP/1.1 302 Found\r\nLocation: /v1/chat/completions\r\nContent-Length: 2\r\n\r\nno"}}, {pieces: []string{good}}},
		"not modified once":                 {{pieces: []string{"HTTP/1.1 304 Not Modified\r\n\r\n"}}, {pieces: []string{good}}},
		"redirected, then more":             {{pieces: []string{"HTTP/1.1 308 Go\r\nLocation: /x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "0\r\n\r\n"}, pause: ms}, {pieces: []string{good}}},
		"redirected in a circle":            one("HTTP/1.1 307 Go\r\nLocation: /v1/chat/completions\r\nContent-Length: 0\r\n\r\n"),
		"redirected later on":               {{pieces: []string{good}}, {pieces: []string{"HTTP/1.1 307 Go\r\nLocation: http://elsewhere.test/v1\r\nContent-Length: 0\r\n\r\n"}}},
		"another protocol":                  last("SSH-2.0-OpenSSH_9.6\r\n"),
		"HTTP/2":                            last("HTTP/2.0 200 OK\r\n\r\n" + goodBody),
		"nothing":                           last(""),
		"half a head":                       last("HTTP/1.1 200 OK\r\nContent-Ty"),
		"a head with a line of no field":    last("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n" + goodBody),
		"a head that goes on on a new line": one(sized("HTTP/1.1 200 OK\r\nX-Long: a\r\n b\r\n", goodBody)),
		"two lengths":                       last("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"),
		"a length below zero":               last("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabcdef"),
		"a length and chunks":               one(strings.Replace(good, "\r\n", "\r\nContent-Length: 7\r\n", 1)),
		"a transfer of no known coding":     last("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + goodBody),
		"a length too large":                last(okHead + "Content-Length: 100000\r\n\r\n" + goodBody),
		"a length too small":                last(okHead + "Content-Length: 60\r\n\r\n" + goodBody),
		"a length of 0":                     one(okHead + "Content-Length: 0\r\n\r\n"),
		"chunks with extensions":            one(okHead + "Transfer-Encoding: chunked\r\n\r\n" + strings.ReplaceAll(chunked(goodBody), "\r\n", " ;name=\"value\"\r\n") + "0\r\n\r\n"),
		"chunks that are mostly extension":  last(okHead + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 3000)+"\r\n:\r\n", 20)),
		"a chunk's size too long":           last(okHead + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 5000)),
		"a chunk's size with LF only":       last(okHead + "Transfer-Encoding: chunked\r\n\r\n5\nabcde\r\n"),
		"a chunk's size with a stray CR":    last(okHead + "Transfer-Encoding: chunked\r\n\r\n5\r;\r\nabcde\r\n"),
		"a chunk of no size":                last(okHead + "Transfer-Encoding: chunked\r\n\r\n\r\nabcde\r\n"),
		"a chunk of 17 digits":              last(okHead + "Transfer-Encoding: chunked\r\n\r\n00000000000000005\r\nabcde\r\n"),
		"a chunk of the largest size":       last(okHead + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabcde\r\n"),
		"a chunk longer than its size":      last(okHead + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcdefgh\r\n"),
		"a trailer":                         one(strings.TrimSuffix(good, "\r\n") + "X-Sum: 1\r\n\r\n"),
		"a trailer that is none":            last(strings.TrimSuffix(byChunks(strings.TrimSuffix(goodBody, "data: [DONE]\n\n"), 60), "\r\n") + "nonsense\r\n\r\n"),
		"a trailer without end":             last(strings.TrimSuffix(byChunks(strings.TrimSuffix(goodBody, "data: [DONE]\n\n"), 60), "\r\n") + strings.Repeat("a: b\r\n", 2000)),
		"a trailer cut short":               last(strings.TrimSuffix(byChunks(strings.TrimSuffix(goodBody, "data: [DONE]\n\n"), 60), "\r\n")),
		"not a stream":                      one(sized("HTTP/1.1 200 OK\r\n", `{"object":"error","message":"no"}`)),
		"an error in the stream":            one(byChunks(goodBody[:60]+"data: {\"error\":{\"message\":\"lost\"}}\n\n", 50)),
		"open after the end":                {{pieces: []string{strings.TrimSuffix(good, "0\r\n\r\n")}}},
		"a long event":                      one(sized(okHead, fmt.Sprintf("data: {\"choices\":[{\"logprobs\":%q,\"delta\":{\"content\":\"a\"}}]}\n\n", strings.Repeat("x", 2<<20))+goodBody)),
		"an event too long":                 last(okHead + "\r\ndata: " + strings.Repeat("x", maxEvent+1000)),
		"a head without end":                last("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("b", 1<<19)+"\r\n", 10<<20>>19+1)),
	}
	for n := range len(good) {
		if n%13 == 0 {
			out[fmt.Sprintf("cut off after %d bytes", n)] = last(good[:n])
		}
	}
	for _, file := range recorded(t) {
		raw := must.Get(os.ReadFile(file))(t)
		for _, size := range []int{1, 100, 1 << 20} {
			out[fmt.Sprintf("%s by chunks of %d", filepath.Base(file), size)] = one(byChunks(string(raw), size))
		}
		out[filepath.Base(file)+" torn"] = []answer{{pieces: cut(byChunks(string(raw), 70), 7), pause: ms, torn: true}}
	}
	return out
}

// silent returns scripts with long times in which the server sends nothing. They need virtual time.
func silent() map[string][]answer {
	good := byChunks(goodBody, 60)
	return map[string][]answer{
		"no answer":          {{}},
		"no answer any more": {{pieces: []string{good}}, {}},
		"half an answer":     {{pieces: []string{good[:200]}, torn: true}},
		"half a head, kept":  {{pieces: []string{"HTTP/1.1 200 OK\r\nContent-"}}},
		"no head, kept":      {{pieces: []string{"SSH-2.0\r\n"}}},
		"a byte a minute":    {{pieces: cut(good, 1), pause: time.Minute}},
		"half a refusal":     {{pieces: []string{"HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nno"}}},
	}
}

// three sends three requests one after another, and returns their samples.
func three(t *testing.T, h *HTTP, api engine.API) (out []*metric.Sample) {
	r := requestTo(api)
	r.Timeout = 5 * time.Minute
	for i := range 3 {
		if i == 2 { // build the third request in advance
			h.Warm(t.Context(), 1)
			r.Prompt = h.Prepare(r)
		}
		out = append(out, send(t, h, r))
	}
	return out
}

// on returns the Config of a client that takes the given path: net/http, or package direct with its
// pollers, or with a goroutine for each connection.
func on(path string, c Config) Config {
	switch path {
	case "net/http":
		c.Standard = true
	case "one poller":
		c.Pollers = 1
	case "two pollers":
		c.Pollers = 2
	case "a goroutine":
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return struct{ net.Conn }{conn}, err
		}
	}
	return c
}

// untimed returns a copy of the sample without its chunk times.
func untimed(s *metric.Sample) *metric.Sample {
	c := *s
	c.First, c.FirstAnswer, c.Last, c.End, c.Gaps = 0, 0, 0, 0, nil
	return &c
}

// For any behaviour of a server, both paths make the same samples, to the nanosecond. The exception
// is a chunk that arrives in several pieces. The direct path passes an event on as soon as it is
// complete, but net/http waits for the last piece.
func TestLongPathsAgree(t *testing.T) {
	rows := scripts(t)
	for name, script := range silent() {
		rows[name] = script
	}
	recorded := map[string][]*metric.Sample{}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		script := rows[name]
		got := map[string][]*metric.Sample{}
		for _, path := range []string{"net/http", "direct"} {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				go scripted(l, script)
				start := time.Now()
				h := must.Get(New(on(path, Config{BaseURL: "http://memory.test", Dial: l.DialContext, Now: func() time.Duration { return time.Since(start) + time.Second }})))(t)
				got[path] = three(t, h, apiOf(name))
				h.Close()
				l.Close()
				// After a day of virtual time, the server has noticed that the client has gone.
				time.Sleep(24 * time.Hour)
			})
		}
		if script[0].torn {
			for i, s := range got["direct"] {
				other := got["net/http"][i]
				must.Hold(t, s.First-s.Sent <= other.First-other.Sent && s.End-s.Sent <= other.End-other.Sent, "%s: %v later than %v", name, s, other)
				s.Sent, s.Headers = got["net/http"][i].Sent, got["net/http"][i].Headers
				got["direct"][i], got["net/http"][i] = untimed(s), untimed(got["net/http"][i])
			}
		}
		must.Same(t, name+": (-net/http +direct)", got["net/http"], got["direct"])
		for path := range got {
			recorded[path] = append(recorded[path], got[path]...)
		}
	}
	standard, ours := recording(t, recorded["net/http"]), recording(t, recorded["direct"])
	must.Hold(t, len(standard) >= 300*len(rows) && bytes.Equal(standard, ours), "recordings of %d and %d bytes differ, or hold too little", len(standard), len(ours))
}

// recording returns the bytes that a run writes of the samples.
func recording(t *testing.T, samples []*metric.Sample) []byte {
	dir := t.TempDir()
	w := must.Get(record.Create(dir))(t)
	for i, s := range samples {
		s.Order = i
		must.Do(t, w.Observe(metric.SampleDone{Sample: s}))
	}
	must.Do(t, w.Close())
	raw := must.Get(os.ReadFile(filepath.Join(dir, "samples.jsonl")))(t)
	return raw
}

// The paths must also agree over real sockets, with each kind of watcher. So must one poller and two,
// which read the answers to several requests at once. Times are not compared, because they are not exact
// there.
func TestPathsAgreeOverSockets(t *testing.T) {
	rows := scripts(t)
	maps.DeleteFunc(rows, func(name string, script []answer) bool {
		// Leave out scripts that would take real time, because they have pauses or very long pieces. If
		// the server says more after an answer, the result of net/http depends on timing.
		return script[0].pause > 0 || len(script[0].pieces[0]) > 1<<20 || name == "good, then says more"
	})
	paths := []string{"net/http", "a goroutine", "one poller", "two pollers"}
	slots := make(chan struct{}, 4)
	for name, script := range rows {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			got := map[string][]outcome{}
			for _, path := range paths {
				got[path] = overSocket(t, name, script, path)
			}
			for _, path := range paths[1:] {
				must.Same(t, fmt.Sprintf("%s: (-net/http +%s)", name, path), got["net/http"], got[path])
			}
		}()
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
}

// overSocket returns what three requests to a scripted server come to.
func overSocket(t *testing.T, name string, script []answer, path string) (got []outcome) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return nil
	}
	defer l.Close()
	go scripted(l, script)
	h := dial(t, on(path, Config{}), "http://"+l.Addr().String())
	for _, s := range three(t, h, apiOf(name)) {
		if s.Failure != nil {
			s.Failure.Message = strings.ReplaceAll(s.Failure.Message, l.Addr().String(), "SERVER")
		}
		if s.Sent == 0 || s.Status != 0 && s.Headers < s.Sent || s.Chunks > 0 && (s.First < s.Headers || s.Last < s.First || s.End < s.Last) {
			t.Errorf("%s, %s: times out of order: %+v", name, path, s)
		}
		got = append(got, outcomeOf(s))
	}
	return got
}

// Requests that need TLS, HTTP/2 or another special treatment take the standard path.
func TestDetours(t *testing.T) {
	for _, tt := range []struct {
		config Config
		want   string
	}{
		{Config{BaseURL: "http://127.0.0.1:1"}, ""},
		{Config{BaseURL: "http://h", Headers: map[string]string{"X-Team": "a b", "Host": "other"}}, ""},
		{Config{BaseURL: "http://h", Standard: true}, "--transport"},
		{Config{BaseURL: "https://h"}, "TLS"},
		{Config{BaseURL: "http://h", H2C: true}, "HTTP/2"},
		{Config{BaseURL: "http://h", MaxConns: 3}, "a bound on connections"},
		{Config{BaseURL: "http://h", Headers: map[string]string{"connection": "close"}}, `the header "connection"`},
		{Config{BaseURL: "http://h", Headers: map[string]string{"X-A": "a\nb"}}, `the header "X-A"`},
		{Config{BaseURL: "http://h", Headers: map[string]string{"X A": "a"}}, `the header "X A"`},
		{Config{BaseURL: "http://bücher.test"}, "a host name that is not ASCII"},
	} {
		tt.config.Now = realNow()
		h := must.Get(New(tt.config))(t)
		must.Hold(t, h.Detour() == tt.want && (h.own == nil) == (tt.want != ""), "%+v: %q, want %q", tt.config, h.Detour(), tt.want)
	}
}

// Both paths of the client send the same request.
func TestPathsSendTheSame(t *testing.T) {
	var got [2][]string
	for i, path := range []string{"net/http", "own"} {
		h := serve(t, on(path, Config{APIKey: "k", Headers: map[string]string{"host": "other.test", "X-Team": " a b"}, Engine: engine.Of("vllm")}), func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got[i] = append(got[i], fmt.Sprint(r.Method, r.URL, r.Proto, r.Host, r.Header, r.ContentLength, r.TransferEncoding, r.Close, string(body)))
			good(w, 8)
		})
		for _, fresh := range []bool{false, true} {
			h.freshOnly.Store(fresh)
			for _, api := range []engine.API{engine.Chat, engine.Completions} {
				r := chatRequest()
				if r.API = api; api == "completions" {
					r.Headers = map[string]string{"x-team": "mine", "authorization": "other", "HOST": "own.test", "X-New": "n"}
				}
				for range 2 {
					s := send(t, h, r)
					must.Need(t, s.Failure == nil, "%v", s.Failure)
					r.Prompt = h.Prepare(r)
				}
			}
		}
	}
	must.Same(t, "(-net/http +direct)", got[0], got[1])
	for _, sent := range got[1] {
		wanted := []string{"other.test", "Authorization:[Bearer k]", "X-Team:[a b]"}
		if strings.Contains(sent, "/v1/completions") { // the request's own headers win
			wanted = []string{"own.test", "Authorization:[other]", "X-Team:[mine]", "X-New:[n]"}
		}
		for _, want := range wanted {
			must.Hold(t, strings.Contains(sent, want), "no %q in %s", want, sent)
		}
	}
}

// A request whose own headers concern the connection takes the standard path.
func TestOwnHeadersDetour(t *testing.T) {
	h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		must.Hold(t, r.Header.Get("Te") == "trailers", "headers %v", r.Header)
		good(w, 8)
	})
	r := chatRequest()
	r.Headers = map[string]string{"TE": "trailers"}
	if r.Prompt = h.Prepare(r); r.Prompt.Ready != nil {
		t.Error("the request was built for the direct path")
	}
	if s := send(t, h, r); s.Failure != nil || h.own.Idle() != 0 {
		t.Errorf("%+v, %d idle connections of the direct path", s.Failure, h.own.Idle())
	}
}

// The client prepares the bytes of a request in advance. It must not send them for another request.
func TestPreparedForAnother(t *testing.T) {
	h := serve(t, Config{Engine: engine.Of("vllm")}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		must.Hold(t, strings.Contains(string(body), `"min_tokens":9`), "sent %s", body)
		good(w, 8)
	})
	r := chatRequest()
	r.Prompt = h.Prepare(r)
	r.Output = 9
	s := send(t, h, r)
	must.Hold(t, s.Failure == nil, "%v", s.Failure)
}

// FuzzPaths feeds the same bytes, split into the same reads, to both implementations of the client,
// as the answers to two requests through one of the APIs. If ahead is set, they arrive before the
// request is written. It begins with every recorded answer, through its API.
func FuzzPaths(f *testing.F) {
	good := byChunks(goodBody, 60)
	for _, seed := range []string{
		good, sized(okHead, goodBody), okHead + "\r\n" + goodBody, sized("HTTP/1.1 500 Oops\r\n", `{"error":{"message":"no"}}`),
		"HTTP/1.1 100 Continue\r\n\r\n" + good, okHead + "Content-Encoding: gzip\r\n\r\n" + zipped(goodBody),
		okHead + "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nabcde\r\n0\r\nX: y\r\n\r\n", "SSH-2.0\r\n", "HTTP/1.1 200\n\n",
		good + good, "HTTP/1.1 302 Found\r\nLocation: /away\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n",
		"HTTP/1.1 307 Go\r\nLocation: /v1\r\nContent-Length: 2\r\n\r\nno",
	} {
		f.Add([]byte(seed), uint16(0), false, uint8(0))
		f.Add([]byte(seed), uint16(7), false, uint8(0))
		f.Add([]byte(seed), uint16(0), true, uint8(0))
	}
	for _, file := range recorded(f) {
		of := uint8(slices.Index(engine.APIs, string(apiOf(file))))
		f.Add([]byte(byChunks(string(must.Get(os.ReadFile(file))(f)), 60)), uint16(7), false, of)
	}
	f.Fuzz(func(t *testing.T, raw []byte, size uint16, ahead bool, of uint8) {
		if len(raw) > 1<<16 || ahead && bytes.Contains(raw, []byte("HTTP/1.1 3")) {
			return // net/http does not wait for the body of a redirect while it writes
		}
		pieces := []string{string(raw)}
		if size > 0 {
			pieces = cut(string(raw), max(int(size), len(raw)/100+1))
		}
		got := map[string][]outcome{}
		for _, path := range []string{"net/http", "direct"} {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				if ahead {
					go hasty(l, 300, string(raw))
				} else {
					go scripted(l, []answer{{pieces: pieces}})
				}
				start := time.Now()
				h := must.Get(New(on(path, Config{
					BaseURL: "http://memory.test",
					Now:     func() time.Duration { return time.Since(start) + time.Second },
					Dial:    l.DialContext,
				})))(t)
				for range 2 {
					r := requestTo(engine.API(engine.APIs[int(of)%len(engine.APIs)]))
					r.Timeout = 2 * time.Second
					if ahead {
						r.Prompt.Text = longPrompt
					}
					o := outcomeOf(send(t, h, r))
					if f := o.Failure; f != nil && f.Kind == metric.FailConnect {
						// The message quotes the bad head as far as it was read. How far that is differs
						// between the paths.
						f.Message = ""
					}
					if f := o.Failure; f != nil && !bytes.Contains(raw, []byte("\n\n")) && !bytes.Contains(raw, []byte("\n\r\n")) {
						// A bad line at the end of a head without an end may go on, so net/http waits for
						// more.
						f.Kind, f.Message = "", ""
					}
					got[path] = append(got[path], o)
					time.Sleep(time.Second) // what else the server says arrives on an idle connection
				}
				h.Close()
				l.Close()
				time.Sleep(time.Hour)
			})
		}
		must.Same(t, "(-net/http +direct)", got["net/http"], got["direct"])
	})
}
