package sim

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
)

// BenchmarkServe measures the processor time of one chunk, in the server and in a reader that
// discards it. It streams over loopback, with 64 streams at a time. The engine itself costs almost
// nothing.
func BenchmarkServe(b *testing.B) {
	p := plain()
	p.OverheadMS, p.Prefill, p.Decode = 0, PrefillCost{}, DecodeCost{BaseMS: 0.01}
	s := must.Get(New(Options{Profile: p}))(b)
	must.Do(b, s.Start("127.0.0.1:0"))
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	const streams, tokens = 64, 200
	body := strings.Replace(chat5, `"max_tokens":5`, `"max_tokens":200`, 1)
	b.ReportAllocs()
	for b.Loop() {
		var group sync.WaitGroup
		for range streams {
			group.Go(func() {
				r, err := client.Post(s.URL()+pathChat, "application/json", strings.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				defer r.Body.Close()
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					b.Error(err)
				}
			})
		}
		group.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*streams*tokens), "ns/chunk")
}

// BenchmarkChunk measures how long it takes to write one chunk, without a connection. It must not
// allocate.
func BenchmarkChunk(b *testing.B) {
	s := must.Get(New(Options{Profile: plain()}))(b)
	c := &chunker{server: s, w: discard{}, order: &order{Call: Call{api: engine.Chat, input: 1, reply: reply{output: 1, length: -1}}}, id: "chatcmpl-test"}
	c.begin()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.tokens(i, i+1)
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
func (discard) Flush()                      {}

func BenchmarkTokenize(b *testing.B) {
	text := string(bytes.Repeat([]byte("The tokenizer cuts words. "), 5000))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	ids := Tokenize(nil, text)
	for b.Loop() {
		ids = Tokenize(ids[:0], text)
	}
}
