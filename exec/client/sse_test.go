package client

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
)

// split feeds a stream to a splitter in small reads, and lists the resulting frames. The function
// size returns the largest size of the next read.
func split(t testing.TB, p *splitter, stream []byte, size func() int) ([]string, error) {
	t.Helper()
	var frames []string
	take := func(kind frameKind, frame []byte) {
		name := "data"
		if kind == frameError {
			name = "error"
		}
		frames = append(frames, name+" "+string(frame))
	}
	for len(stream) > 0 {
		room, err := p.free()
		if err != nil {
			return frames, err
		}
		must.Need(t, len(room) != 0, "free returned no room")
		n := copy(room[:min(len(room), max(size(), 1))], stream)
		p.advance(n)
		stream = stream[n:]
		for {
			kind, frame, err := p.next()
			if err != nil {
				return frames, err
			}
			if kind == frameNone {
				break
			}
			take(kind, frame)
		}
	}
	for i := 0; ; i++ {
		kind, frame, err := p.finish()
		if err != nil {
			return frames, err
		}
		if kind == frameNone {
			return frames, nil
		}
		must.Need(t, i != 2, "finish goes on")
		take(kind, frame)
	}
}

// naive splits a whole stream at once. It follows the rules of the standard word for word.
func naive(stream []byte) []string {
	s := strings.TrimPrefix(string(stream), "\xef\xbb\xbf")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	var frames, data []string
	for _, line := range strings.Split(s, "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil {
				frames = append(frames, "data "+strings.Join(data, "\n"))
			}
			data = nil
		case name == "data":
			data = append(data, value)
		case name == "error":
			frames = append(frames, "error "+value)
		}
	}
	if data != nil {
		frames = append(frames, "data "+strings.Join(data, "\n"))
	}
	return frames
}

var streams = []struct {
	name, stream string
	want         []string
}{
	{"one", "data: a\n\n", []string{"data a"}},
	{"several", "data: a\n\ndata: b\n\ndata: [DONE]\n\n", []string{"data a", "data b", "data [DONE]"}},
	{"no space", "data:a\n\n", []string{"data a"}},
	{"one space of two", "data:  a\n\n", []string{"data  a"}},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"data a", "data b"}},
	{"CR", "data: a\r\rdata: b\r\r", []string{"data a", "data b"}},
	{"CR and LF mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", []string{"data a", "data b", "data c"}},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"data a"}},
	{"only a byte order mark", "\xef\xbb\xbf", nil},
	{"comments", ": ping\n\n:\n\n: ping\ndata: a\n: ping\n\n", []string{"data a"}},
	{"two lines", "data: a\ndata: b\n\n", []string{"data a\nb"}},
	{"three lines, a comment between", "data: a\n: x\ndata\ndata: c\n\n", []string{"data a\n\nc"}},
	{"other fields", "event: message\nid: 7\nretry: 10\ndata: a\n\n", []string{"data a"}},
	{"empty data", "data:\n\ndata\n\n", []string{"data ", "data "}},
	{"no blank line at the end", "data: a\n\ndata: b\n", []string{"data a", "data b"}},
	{"no line end at the end", "data: a\n\ndata: b", []string{"data a", "data b"}},
	{"two lines, no line end", "data: a\ndata: b", []string{"data a\nb"}},
	{"an error line", "error: {\"code\":500}\n\n", []string{`error {"code":500}`}},
	{"an error line at the end of an open event", "data: a\nerror: x", []string{"error x", "data a"}},
	{"not a stream", "<html>\n<body>\n", nil},
	{"a name that begins with data", "database: a\n\n", nil},
	{"nothing", "", nil},
	{"a NUL", "data: a\x00b\n\n", []string{"data a\x00b"}},
}

func TestSplit(t *testing.T) {
	for _, tt := range streams {
		must.Same(t, tt.name+": the reference is wrong (-want +got)", tt.want, naive([]byte(tt.stream)))
		for _, size := range []int{1, 2, 3, 7, 1 << 20} {
			got, err := split(t, new(splitter), []byte(tt.stream), func() int { return size })
			d := cmp.Diff(tt.want, got)
			must.Hold(t, d == "" && err == nil, "%s, %d bytes a read: %v (-want +got):\n%s", tt.name, size, err, d)
		}
	}
}

// Of input that is no event stream, the splitter keeps the first bytes for a message.
func TestSplitJunk(t *testing.T) {
	p := new(splitter)
	page := "<html>\n" + strings.Repeat("x", 5000) + "\n"
	must.Get(split(t, p, []byte(page), func() int { return 100 }))(t)
	got := string(p.junk)
	must.Hold(t, len(got) == maxJunk && strings.HasPrefix(got, "<html>\nxxx"), "junk: %d bytes, %.20q", len(got), got)
	p.reset()
	must.Hold(t, len(p.junk) == 0, "reset keeps junk")
}

// A long event is copied only a few times, because a full buffer doubles. So it allocates less than
// four times the size of the event.
func TestSplitLongEvent(t *testing.T) {
	const size = 2 << 20
	long := "data: a\n\ndata: " + strings.Repeat("x", size) + "\n\ndata: b\n\n"
	for _, read := range []int{100, 4096, 1 << 20} {
		p := new(splitter)
		allocated := 0
		last := 0
		got, err := split(t, p, []byte(long), func() int {
			if len(p.buf) != last {
				last = len(p.buf)
				allocated += last
			}
			return read
		})
		must.Need(t, err == nil && len(got) == 3 && len(got[1]) == size+len("data ") && got[2] == "data b", "%d bytes a read: %v, %d frames", read, err, len(got))
		must.Hold(t, allocated <= 4*size+8*firstBuffer, "%d bytes a read: buffers of %d bytes for an event of %d", read, allocated, size)
		p.reset()
		must.Hold(t, p.buf == nil, "reset keeps a buffer of %d bytes", len(p.buf))
	}
}

// An event without an end is an error, whether it is one long line or many lines.
func TestSplitTooLong(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<20)
	for name, stream := range map[string][]byte{
		"one line":   bytes.Repeat([]byte("x"), maxEvent+1<<20),
		"many lines": []byte(strings.Repeat(line+"\n", 9)),
	} {
		_, err := split(t, new(splitter), stream, func() int { return 1 << 16 })
		must.Hold(t, err == errLongEvent, "%s: %v, want %v", name, err, errLongEvent)
	}
}

func FuzzSplit(f *testing.F) {
	for i, tt := range streams {
		f.Add([]byte(tt.stream), uint64(i))
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		want := naive(stream)
		r := rand.New(rand.NewPCG(seed, 1))
		p := new(splitter)
		if seed%2 == 0 { // half of the runs reuse a splitter
			_, _ = split(t, p, []byte("data: old\ndata: old\r"), func() int { return 3 })
			p.reset()
		}
		got, err := split(t, p, stream, func() int { return 1 + r.IntN(9) })
		// Frames come in the order of the stream, with one exception. If an open event is followed
		// by an error line without an end, both splitters return the error first.
		d := cmp.Diff(want, got)
		must.Hold(t, d == "" && err == nil, "%q: %v (-want +got):\n%s", stream, err, d)
	})
}

// BenchmarkSplit measures the time to find frames, with one event per read.
func BenchmarkSplit(b *testing.B) {
	frame := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n")
	p := new(splitter)
	b.ReportAllocs()
	for b.Loop() {
		room, _ := p.free()
		p.advance(copy(room, frame))
		if kind, _, _ := p.next(); kind != frameData {
			b.Fatal(kind)
		}
	}
}

// The client also sends requests outside of the load, such as for the list of models. Whatever the
// server answers, the client must read it or return an *Error of limited length.
func FuzzAnswers(f *testing.F) {
	var status int
	var body []byte
	base := serve(f, Config{Engine: engine.Of("vllm")}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(body)
	})
	for _, seed := range []string{
		`{"object":"list","data":[{"id":"m","root":"/m","created":"yesterday","max_model_len":4096}]}`,
		`{"version":"0.19.1"}`, `{"tokens":[1,2,-3,4e9]}`, `{"error":{"message":"no","code":[1]}}`, `{"detail":[{"msg":"x"}]}`,
		"process_start_time_seconds 1.7e9\n", "<html><title>&#0;502</title>", "\xff\xfe{}", "",
	} {
		f.Add(200, []byte(seed))
		f.Add(503, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer int, content []byte) {
		status, body = 200+((answer-200)%400+400)%400, content
		if status == http.StatusNoContent || status == http.StatusNotModified || status/100 == 3 {
			status = http.StatusOK
		}
		ctx := t.Context()
		_, models := base.Models(ctx)
		_, version := base.Version(ctx)
		_, start := base.StartTime(ctx)
		_, ids := base.Tokenize(ctx, TokenizeRequest{Model: "m", API: "chat", Text: "hello"})
		for _, err := range []error{models, version, start, ids, base.Health(ctx)} {
			if err == nil || errors.Is(err, ErrNoTokenizer) {
				continue
			}
			if told, ok := errors.AsType[*Error](err); !ok || len(told.Message) > 4096 {
				t.Errorf("status %d: %d bytes, %T %.200q", status, len(err.Error()), err, err)
			}
		}
	})
}
