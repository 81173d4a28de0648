package sim

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// FuzzRequest sends any body to the endpoints that read a body. The prompt and the answer of an
// accepted request must fit the context.
func FuzzRequest(f *testing.F) {
	f.Add(chat5)
	f.Add(text5)
	f.Add(`{"prompt":[[1,2]],"stop":["a","b"],"max_tokens":3}`)
	f.Add(`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"stop":"hen"}`)
	f.Add(`{"prompt":null,"messages":null,"tokens":[1,-1]}`)
	s := must.Get(New(Options{Profile: plain()}))(f)
	f.Fuzz(func(t *testing.T, src string) {
		for _, chat := range []bool{true, false} {
			r := httptest.NewRequest(http.MethodPost, pathChat, strings.NewReader(src))
			o, err := s.read(httptest.NewRecorder(), r, chat, &effect{strict: len(src)%2 == 0})
			if err != nil {
				answerError(httptest.NewRecorder(), err)
				continue
			}
			if o.input < 1 || o.reply.output < 1 || o.input+o.reply.output > s.profile.MaxModelLen || o.reply.length > o.reply.text.size(o.reply.output) {
				t.Errorf("%q: %d + %d tokens, length %d", src, o.input, o.reply.output, o.reply.length)
			}
		}
		for _, path := range []string{"/tokenize", "/detokenize"} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(src)))
			if w.Code != 200 && w.Code != 400 {
				t.Errorf("%s %q: %d", path, src, w.Code)
			}
		}
	})
}
