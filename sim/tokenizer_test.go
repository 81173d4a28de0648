package sim

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/internal/must"
)

func TestCutting(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"a", []string{"a"}},
		{"The tokenizer", []string{"The", " tok", "eni", "zer"}},
		{"it is", []string{"it", " is"}},
		{"HTTP", []string{"H", "T", "T", "P"}}, // a capital letter always begins a new piece
		{"McDonald", []string{"Mc", "Don", "ald"}},
		{" a  b", []string{" a", " ", " b"}},
		{"x-1.5\n", []string{"x", "-", "1", ".", "5", "\n"}},
		{"é", []string{"\xc3", "\xa9"}},
		{" é", []string{" ", "\xc3", "\xa9"}},
		{"\xff\x00", []string{"\xff", "\x00"}},
	} {
		var got []string
		for _, id := range Tokenize(nil, test.text) {
			piece := must.Get(detokenize([]int{id}))(t)
			got = append(got, piece)
		}
		must.Hold(t, slices.Equal(got, test.want), "%q is cut into %q, want %q", test.text, got, test.want)
	}
}

func TestLongEveryIDHasAText(t *testing.T) {
	seen := make(map[string]int)
	for id := range vocabularySize {
		text, err := detokenize([]int{id})
		must.Need(t, err == nil && text != "", "id %d: %q, %v", id, text, err)
		other, ok := seen[text]
		must.Need(t, !ok || len(text) <= 1, "ids %d and %d are both %q", other, id, text)
		seen[text] = id
		if id >= tokenSpec {
			continue
		}
		back := Tokenize(nil, text)
		must.Need(t, len(back) == 1, "id %d is %q, which is cut into %v", id, text, back)
	}
	_, err := detokenize([]int{vocabularySize})
	must.Hold(t, err != nil, "an id out of the vocabulary has a text")
}

// The text of an answer has exactly as many tokens as the engine counts.
func TestAnswersCountThemselves(t *testing.T) {
	for n := 1; n < 200; n++ {
		a := answer{seed: rng(n)}
		text := string(a.append(nil, 0, n))
		if len(Tokenize(nil, text)) != n || len(text) != a.size(n) {
			t.Fatalf("%d tokens: %q has %d tokens and %d bytes, size says %d", n, text, len(Tokenize(nil, text)), len(text), a.size(n))
		}
		if parts := string(a.append(a.append(nil, 0, n/2), n/2, n)); parts != text {
			t.Fatalf("in two parts %q, in one %q", parts, text)
		}
	}
}

func FuzzTokenizer(f *testing.F) {
	for _, seed := range []string{"", "The tokenizer, 42!", " Ab\xff\x00 é\r\n", "AAAA  aaaa"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids := Tokenize(nil, text)
		back, err := detokenize(ids)
		must.Hold(t, err == nil && back == text, "%q became %q, %v", text, back, err)
	})
}

// FuzzRequest sends any body to the endpoints that read a body. The prompt and the answer of an
// accepted request must fit the context.
func FuzzRequest(f *testing.F) {
	f.Add(chat5)
	f.Add(text5)
	f.Add(`{"prompt":[[1,2]],"stop":["a","b"],"max_tokens":3}`)
	f.Add(`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"stop":"hen"}`)
	f.Add(`{"input":["a",""],"encoding_format":"base64"}`)
	f.Add(`{"input":[{"role":"user","content":[{"type":"input_text","text":"x"}]}],"stream":true,"max_output_tokens":3}`)
	f.Add(`{"system":"s","messages":[{"role":"user","content":"x"}],"max_tokens":3,"stream":true,"stop_sequences":["a"]}`)
	f.Add(`{"prompt":null,"messages":null,"tokens":[1,-1]}`)
	s := must.Get(New(Options{Profile: plain()}))(f)
	strict := effect{{Fault: "reject-unknown"}}
	f.Fuzz(func(t *testing.T, src string) {
		for _, name := range engine.APIs {
			r := httptest.NewRequest(http.MethodPost, pathChat, strings.NewReader(src))
			o, err := s.read(httptest.NewRecorder(), r, engine.API(name), strict[:len(src)%2])
			if err != nil {
				answerError(httptest.NewRecorder(), err)
				continue
			}
			if n := max(len(o.keys), 1); o.input < n || (o.input+n-1)/n+o.reply.output > s.profile.MaxModelLen {
				t.Errorf("%q: %d tokens of %d inputs", src, o.input, n)
			}
			if o.keys == nil && (o.input < 1 || o.reply.output < 1 || o.input+o.reply.output > s.profile.MaxModelLen || o.reply.length > o.reply.text.size(o.reply.output)) {
				t.Errorf("%q: %d + %d tokens, length %d", src, o.input, o.reply.output, o.reply.length)
			}
		}
		for _, path := range []string{"/tokenize", "/detokenize"} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(src)))
			must.Hold(t, w.Code == 200 || w.Code == 400, "%s %q: %d", path, src, w.Code)
		}
	})
}
