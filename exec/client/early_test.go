package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/memnet"
	"github.com/tokgate/tokgate/metric"
)

// hasty writes the given bytes on every connection, as soon as it has read the given number of bytes
// of a request. Then it reads the rest.
func hasty(l net.Listener, read int, answer string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if _, err := io.ReadFull(conn, make([]byte, read)); err == nil {
				_, _ = io.WriteString(conn, answer)
			}
			time.Sleep(10 * time.Second)
			_, _ = io.Copy(io.Discard, conn)
		}()
	}
}

// longPrompt does not fit into the network's buffers, so its request is not sent while the server
// reads nothing.
var longPrompt = strings.Repeat("x", 400<<10)

// An answer that begins before its request was sent belongs to another request. A refusal may come
// early. Both paths make the same samples, except on a new connection: there net/http may take the
// early bytes for a broken connection.
func TestAnswerBeforeItsRequest(t *testing.T) {
	good := byChunks(goodBody, 60)
	busy := sized("HTTP/1.1 503 Busy\r\nConnection: close\r\n", `{"error":"busy"}`)
	for _, tt := range []struct {
		name   string
		read   int // bytes of the request before the answer
		prompt string
		answer string
		want   *metric.Failure
	}{
		{"on a new connection", 0, "hello", good, &metric.Failure{Kind: metric.FailProtocol, Message: errEarly.Message}},
		{"while the request is written", 300, longPrompt, good, &metric.Failure{Kind: metric.FailProtocol, Message: errEarly.Message}},
		{"a refusal on a new connection", 0, "hello", busy, &metric.Failure{Kind: metric.FailStatus, Message: "busy"}},
		{"a refusal while the request is written", 300, longPrompt, busy, &metric.Failure{Kind: metric.FailStatus, Message: "busy"}},
		{"an interim answer while the request is written", 300, longPrompt, "HTTP/1.1 100 Continue\r\n\r\n" + good, nil},
	} {
		got := map[string]*metric.Sample{}
		for _, path := range []string{"net/http", "direct"} {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				go hasty(l, tt.read, tt.answer)
				start := time.Now()
				h := must.Get(New(on(path, Config{
					BaseURL: "http://memory.test",
					Now:     func() time.Duration { return time.Since(start) + time.Second },
					Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
						conn, err := l.DialContext(ctx, network, address)
						time.Sleep(ms) // so what the server sends at once arrives before the request
						return conn, err
					},
				})))(t)
				r := chatRequest()
				r.Prompt.Text = tt.prompt
				got[path] = send(t, h, r)
				h.Close()
				l.Close()
				time.Sleep(24 * time.Hour)
			})
		}
		must.Same(t, tt.name+" (-want +got)", tt.want, got["direct"].Failure)
		s := got["direct"]
		must.Hold(t, s.Sent != 0 && s.Headers >= s.Sent && (tt.want == nil || s.First == 0), "%s: %+v", tt.name, s)
		d := cmp.Diff(got["net/http"], got["direct"])
		must.Hold(t, d == "" || tt.read <= 0, "%s (-net/http +direct):\n%s", tt.name, d)
	}
}

// nosy is a connection on which bytes of an answer wait when its second request is about to be
// written.
type nosy struct {
	net.Conn
	asked int
}

func (c *nosy) Pending() bool {
	c.asked++
	return c.asked == 2
}

// A kept-alive connection on which bytes wait is closed unused. The request takes another connection,
// which is no reconnect, because nothing was sent.
func TestAnswerWaitsOnIdleConnection(t *testing.T) {
	for _, path := range []string{"net/http", "direct"} {
		synctest.Test(t, func(t *testing.T) {
			l := memnet.Listen()
			go scripted(l, []answer{{pieces: []string{byChunks(goodBody, 60)}}})
			start, dialled := time.Now(), 0
			h := must.Get(New(on(path, Config{
				BaseURL: "http://memory.test",
				Now:     func() time.Duration { return time.Since(start) + time.Second },
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					dialled++
					conn, err := l.DialContext(ctx, network, address)
					return &nosy{Conn: conn}, err
				},
			})))(t)
			for i := range 2 {
				if s := send(t, h, chatRequest()); s.Failure != nil || s.Chunks != 2 || s.Reconnects != 0 || h.FreshConns() {
					t.Errorf("%s, request %d: %d chunks, %d reconnects, failure %+v", path, i, s.Chunks, s.Reconnects, s.Failure)
				}
				time.Sleep(ms)
			}
			must.Hold(t, dialled == 2, "%s: %d connections, want 2", path, dialled)
			h.Close()
			l.Close()
			time.Sleep(24 * time.Hour)
		})
	}
}

// An answer without end is given up, whatever its text is. What is kept of it is bounded.
func TestAnswerWithoutEnd(t *testing.T) {
	for _, tt := range []struct {
		delta  string
		output int
		want   int
	}{
		{`{"content":"a"}`, 64, 64 + 1000},
		{`{"reasoning":"a"}`, 200, 8 * 200},
		{`{"tool_calls":[{"index":0,"function":{"arguments":"a"}}]}`, 64, 64 + 1000},
	} {
		got := map[string]*metric.Sample{}
		for _, path := range []string{"net/http", "direct"} {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				go func() {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
						return
					}
					_, err = io.WriteString(conn, okHead+"Transfer-Encoding: chunked\r\n\r\n")
					for err == nil {
						time.Sleep(ms)
						_, err = io.WriteString(conn, chunked(`data: {"choices":[{"delta":`+tt.delta+`}]}`+"\n\n"))
					}
				}()
				start := time.Now()
				h := must.Get(New(on(path, Config{BaseURL: "http://memory.test", Dial: l.DialContext, Now: func() time.Duration { return time.Since(start) + time.Second }})))(t)
				r := chatRequest()
				r.Output = tt.output
				got[path] = send(t, h, r)
				h.Close()
				l.Close()
				time.Sleep(time.Hour)
			})
		}
		if s := got["direct"]; s.Chunks != tt.want || len(s.Gaps) != tt.want-1 || s.Failure == nil || s.Failure.Kind != metric.FailProtocol {
			t.Errorf("%s: %d chunks, want %d; failure %+v", tt.delta, s.Chunks, tt.want, s.Failure)
		}
		must.Same(t, tt.delta+" (-net/http +direct)", got["net/http"], got["direct"])
	}
}

func TestMostTexts(t *testing.T) {
	for _, tt := range []struct{ output, context, want int }{
		{1, 0, 1001},
		{64, 4096, 1064},
		{1000, 4096, 8000},
		{0, 4096, 8 * 4096},
		{0, 0, 8_000_000},
	} {
		r := Request{Output: tt.output, Context: tt.context}
		must.Same(t, fmt.Sprintf("%+v", tt), tt.want, r.mostTexts())
	}
}
