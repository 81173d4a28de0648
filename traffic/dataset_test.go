package traffic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/traffic"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func parse(t *testing.T, path, text, column string) (*traffic.Dataset, error) {
	t.Helper()
	return traffic.Parse(strings.NewReader(text), path, traffic.Options{Column: column})
}

func TestRows(t *testing.T) {
	chat := `{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}],"max_tokens":7,"tools":[{"type":"function"}],"response_format":{"type":"json_object"},"answer":{"exact":"42"},"id":9}`
	want := []traffic.Row{
		{Line: 1, Prompt: "one"},
		{
			Line:      3,
			Messages:  raw(`[{"role":"system","content":"s"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}]`),
			MaxTokens: 7, Tools: raw(`[{"type":"function"}]`), ResponseFormat: raw(`{"type":"json_object"}`), Answer: raw(`{"exact":"42"}`),
		},
		{Line: 4, Prompt: "three", Answer: raw(`"3"`)},
	}
	for _, tt := range []struct {
		name, path, column, text string
		want                     []traffic.Row
	}{
		{"lines", "a.jsonl", "", `{"prompt":"one","messages":null}` + "\n\n" + chat + "\r\n" + ` {"prompt":"three","answer":"3"}`, want},
		{"a byte order mark", "a.jsonl", "", "\ufeff{\"prompt\":\"one\"}\n", want[:1]},
		{"an array", "a.json", "", `[{"prompt":"one"},` + "\n\n" + chat + ",\n" + `{"prompt":"three","answer":"3"}]` + "\n", want},
		{"an array that begins late", "a.json", "", "\n\n  [\n{\"prompt\":\"one\"}]", []traffic.Row{{Line: 4, Prompt: "one"}}},
		{"conversations of ShareGPT", "a.json", "", `[{"id":"x","conversations":[{"from":"gpt","value":"hi"},{"from":"human","value":"one"},{"from":"human","value":"two"}]},` + "\n" + `{"conversations":[]}, {"conversations":[{"from":"gpt","value":"x"},{"from":"human","value":" "}]}]`,
			[]traffic.Row{{Line: 1, Prompt: "one"}}},
		{"a table", "a.csv", "question", "id,question,max_tokens,answer\n1,\"two\nlines\",,\n2,b,5,yes\n",
			[]traffic.Row{{Line: 2, Prompt: "two\nlines"}, {Line: 4, Prompt: "b", MaxTokens: 5, Answer: raw(`"yes"`)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := must.Get(parse(t, tt.path, tt.text, tt.column))(t)
			must.Same(t, "", tt.want, d.Rows)
			must.Hold(t, len(d.Hash) == 64 && d.Path == tt.path, "hash %q, path %q", d.Hash, d.Path)
		})
	}
}

func TestRefuses(t *testing.T) {
	for _, tt := range []struct{ name, path, column, text, want string }{
		{"nothing", "a.jsonl", "", "", "a.jsonl: it has no row"},
		{"blank", "a.jsonl", "", " \n\n", "a.jsonl: it has no row"},
		{"an empty array", "a.json", "", "[ ]", "a.json: it has no row"},
		{"half a line", "a.jsonl", "", "{\"prompt\":\"a\"}\n{\"prompt\":", "a.jsonl:2: it is not valid JSON: it ends too early"},
		{"text", "a.jsonl", "", "hello", "a.jsonl:1: it is not valid JSON: unexpected character at byte 1"},
		{"NUL", "a.jsonl", "", "{\"prompt\":\"a\x00\"}", "a.jsonl:1: it holds a NUL byte"},
		{"a number", "a.jsonl", "", "7", "a.jsonl:1: it is a number, not an object"},
		{"silent conversations", "a.json", "", `[{"conversations":[]}]`, "a.json: no person speaks in any of its conversations"},
		{"no conversation", "a.json", "", `[{"conversations":"x"}]`, `a.json:1: its conversations are not a list of {"from", "value"}`},
		{"no prompt", "a.jsonl", "", `{"text":"a"}`, `a.jsonl:1: it has neither "messages" nor a "prompt"`},
		{"both", "a.jsonl", "", `{"prompt":"a","messages":[{"role":"user"}]}`, "a.jsonl:1: it has both messages and a prompt"},
		{"an empty prompt", "a.jsonl", "", `{"prompt":" "}`, "a.jsonl:1: its prompt is empty"},
		{"a list as prompt", "a.jsonl", "", `{"prompt":[1]}`, "a.jsonl:1: its prompt is no text"},
		{"no message", "a.jsonl", "", `{"messages":[]}`, "a.jsonl:1: it has no message"},
		{"no role", "a.jsonl", "", `{"messages":[{"role":"user"},{"content":"a"}]}`, "a.jsonl:1: message 2 has no role"},
		{"content", "a.jsonl", "", `{"messages":[{"role":"user","content":7}]}`, "a.jsonl:1: the content of message 1 is neither text nor a list of parts"},
		{"messages", "a.jsonl", "", `{"messages":"a"}`, "a.jsonl:1: its messages are no list"},
		{"tools", "a.jsonl", "", `{"prompt":"a","tools":{}}`, "a.jsonl:1: its tools are no list"},
		{"response format", "a.jsonl", "", `{"prompt":"a","response_format":"json"}`, "a.jsonl:1: its response_format is not an object"},
		{"max_tokens", "a.jsonl", "", `{"prompt":"a","max_tokens":0.5}`, "a.jsonl:1: its max_tokens is a number, but not a whole number from 1 to 100000000"},
		{"an array without an end", "a.json", "", "[{\"prompt\":\"a\"},\n", "a.json:1: the array has no end"},
		{"a row of an array", "a.json", "", "[{\"prompt\":\"a\"},\n{\"prompt\":7}]", "a.json:2: its prompt is no text"},
		{"two arrays", "a.json", "", "[{\"prompt\":\"a\"}] []", "a.json:1: there is more after the end of the array"},
		{"a table without column", "a.csv", "", "a,b\n", "a.csv: a CSV file needs the name of the column that holds the prompts"},
		{"lines with column", "a.jsonl", "x", "{}", "a.jsonl: only a CSV file has columns; its name ends in .csv"},
		{"another column", "a.csv", "x", "a,b\n", `a.csv:1: none of its 2 columns is "x"`},
		{"a short line", "a.csv", "a", "a,b\n1,2\n1\n", "a.csv:3: it is no CSV: wrong number of fields"},
		{"a quote", "a.csv", "a", "a,b\n1,\"2\n1", "a.csv:2: it is no CSV: extraneous or missing \" in quoted-field"},
		{"no header", "a.csv", "a", "", "a.csv:1: it has no header"},
		{"an empty cell", "a.csv", "a", "a,b\n,1\n", "a.csv:2: its prompt is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(t, tt.path, tt.text, tt.column)
			must.Need(t, err != nil, "no error, want %s", tt.want)
			got := err.Error()
			must.Hold(t, got == tt.want, "%s\nwant %s", got, tt.want)
		})
	}
}

// endless is a file that repeats the same bytes forever.
type endless struct {
	head, body string
	left       int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.head)
	e.head = e.head[n:]
	for n < len(p) && e.left > 0 {
		m := copy(p[n:min(len(p), n+int(e.left))], e.body)
		n, e.left = n+m, e.left-int64(m)
	}
	if n == 0 {
		return 0, errors.New("read to its end")
	}
	return n, nil
}

// A row of a gigabyte is refused long before the whole row is read.
func TestLongRows(t *testing.T) {
	for _, tt := range []struct{ path, column, head, body string }{
		{"a.jsonl", "", `{"prompt":"`, "aaaa"},
		{"a.json", "", `[{"prompt":"`, "aaaa"},
		{"a.json", "", `[`, "    "},
		{"a.csv", "a", "a,b\n\"", "aaaa"},
	} {
		in := &endless{tt.head, strings.Repeat(tt.body, 1<<12), 1 << 30}
		_, err := traffic.Parse(in, tt.path, traffic.Options{Column: tt.column})
		must.Hold(t, err != nil && strings.Contains(err.Error(), "a row is longer than 33554432 bytes"), "%s: %v", tt.path, err)
		read := 1<<30 - in.left
		must.Hold(t, read <= 2*traffic.MaxRow, "%s: %d bytes were read", tt.path, read)
	}
}

// Nesting deeper than the decoder allows is an error, not a crash.
func TestDeep(t *testing.T) {
	deep := `{"messages":` + strings.Repeat("[", 200_000)
	for _, path := range []string{"a.jsonl", "a.json"} {
		text := deep
		if path == "a.json" {
			text = "[" + deep
		}
		_, err := parse(t, path, text, "")
		must.Hold(t, err != nil && strings.Contains(err.Error(), path+":1: it is not valid JSON: unexpected character at byte 10012"), "%v", err)
	}
}

// No error quotes the file: it may hold private data, or not be meant for tokgate at all. The
// readers meet a secret in every place of a file.
func TestNothingIsQuoted(t *testing.T) {
	const secret = "AKIAQ7XSECRET"
	for _, text := range []string{
		secret, "TOKEN=" + secret + "\x00PATH=/bin", `"` + secret + `"`, "[" + secret, `["` + secret + `"]`, `{"` + secret + `":1}`,
		`{"prompt":["` + secret + `"]}`, `{"prompt":"a","max_tokens":"` + secret + `"}`, `{"messages":[{"` + secret + `":1}]}`,
		`{"messages":[{"role":"` + secret + `"}]}`, `{"messages":[{"role":["` + secret + `"]}]}`, `{"prompt":"a","tools":"` + secret + `"}`,
		secret + ",b\n1,2\n", "a,b\n" + secret + "\n", "a,b\n\"" + secret + "\"x,1\n", "prompt,max_tokens\na," + secret + "\n",
		`{"timestamp":"` + secret + `","input_length":1,"output_length":1}`, `{"timestamp":1,"input_length":"` + secret + `","output_length":1}`,
		`{"timestamp":1,"input_length":1,"output_length":1,"hash_ids":"` + secret + `"}`, `{"timestamp":1,"input_length":1,"output_length":1,"hash_ids":["` + secret + `"]}`,
		`{"session_id":"a","delay":"` + secret + `","input_length":1,"output_length":1}`,
		"id,input_len,output_len,arrival_time,round_idx,tool_wait_after_ms,prefix_len\n0,1,1,0,0," + secret + ",0\n",
		`{"session_id":{"` + secret + `":1},"round_idx":1,"tool_wait_after_ms":1,"timing_events":[]}`,
	} {
		for _, path := range []string{"a.jsonl", "a.json", "a.csv"} {
			for _, column := range []string{"", "prompt"} {
				_, err := parse(t, path, text, column)
				must.Hold(t, err == nil || !strings.Contains(err.Error(), secret), "a data set: %v", err)
			}
			for _, f := range append(traffic.Formats, traffic.Format{}) {
				_, err := traffic.ParseTrace(strings.NewReader(text), path, f.Name, nil)
				must.Hold(t, err == nil || !strings.Contains(err.Error(), secret), "a trace as %q: %v", f.Name, err)
			}
		}
	}
}

func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.jsonl")
	must.Do(t, os.WriteFile(path, []byte(`{"prompt":"a"}`), 0o600))
	d, err := traffic.Read(path, traffic.Options{})
	must.Hold(t, err == nil && len(d.Rows) == 1, "%v, %v", d, err)
	for path, want := range map[string]string{
		dir:                          dir + ": it is no regular file",
		filepath.Join(dir, "b.json"): filepath.Join(dir, "b.json") + ": no such file or directory",
	} {
		_, err := traffic.Read(path, traffic.Options{})
		must.Hold(t, err != nil && err.Error() == want, "%v, want %s", err, want)
	}
}

func FuzzDataset(f *testing.F) {
	for _, seed := range []string{"{\"prompt\":\"a\"}\n", "[{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}]", "a,b\n1,\"2\n3\"\n", "\ufeff{}", "[", "{\"prompt\":\"\x00\"}"} {
		for _, kind := range []string{".jsonl", ".json", ".csv"} {
			f.Add(kind, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		o := traffic.Options{}
		if kind == ".csv" {
			o.Column = "a"
		}
		d, err := traffic.Parse(bytes.NewReader(data), "x"+kind, o)
		if err != nil {
			bad, ok := errors.AsType[*traffic.Error](err)
			must.Need(t, ok && bad.Line >= 0 && bad.Line <= bytes.Count(data, []byte("\n"))+1, "%#v", err)
			return
		}
		last := 0
		for i, r := range d.Rows {
			must.Need(t, r.Line >= last && r.Line <= bytes.Count(data, []byte("\n"))+1, "row %d is on line %d, the one before on %d", i, r.Line, last)
			last = r.Line
			must.Need(t, (r.Messages == nil) != (strings.TrimSpace(r.Prompt) == "") && (r.Messages == nil || json.Valid(r.Messages)), "row %d: %+v", i, r)
		}
	})
}

// table returns a data set with the given number of rows, in the usual JSON format of chats.
func table(rows int) []byte {
	var b bytes.Buffer
	text := strings.Repeat("What is the capital of the country? ", 25)
	for i := range rows {
		fmt.Fprintf(&b, `{"id":%d,"messages":[{"role":"system","content":"You are kind."},{"role":"user","content":"%d %s"}],"max_tokens":200}`+"\n", i, i, text)
	}
	return b.Bytes()
}

// BenchmarkDataset reads 100,000 rows of about a kilobyte.
func BenchmarkDataset(b *testing.B) {
	src := table(100_000)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := traffic.Parse(bytes.NewReader(src), "a.jsonl", traffic.Options{})
		must.Need(b, err == nil && len(d.Rows) == 100_000, "%v", err)
	}
}

// A prompt's share is the part of its bytes with which another prompt begins too, or one that was sent
// before. For example, "abcd" shares half of its bytes with "ab", and is sent first.
func TestBeginnings(t *testing.T) {
	d := must.Get(parse(t, "a.jsonl", `{"prompt":"abcd"}`+"\n"+`{"prompt":"x"}`+"\n"+`{"prompt":"ab"}`+"\n"+`{"prompt":"yz"}`+"\n"+`{"prompt":"yz","tools":[1]}`+"\n"+`{"prompt":"abce"}`+"\n"+`{"prompt":"x"}`, ""))(t)
	b := d.Beginnings()
	var alike, sent, again []float64
	for i := range d.Rows {
		alike = append(alike, b.Alike(i))
	}
	for _, into := range []*[]float64{&sent, &again} {
		for i := range d.Rows {
			*into = append(*into, b.Send(i))
		}
	}
	must.Same(t, "alike", []float64{0.75, 1, 1, 0, 0, 0.75, 1}, alike)
	must.Same(t, "sent", []float64{0, 0, 1, 0, 0, 0.75, 1}, sent)
	must.Same(t, "again", []float64{1, 1, 1, 1, 1, 1, 1}, again)
}

// Send agrees with a search among all prompts that were sent before.
func FuzzBeginnings(f *testing.F) {
	f.Add([]byte("aab aaba b aa aabb"), uint64(3))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		var d traffic.Dataset
		for _, word := range bytes.Split(text, []byte(" ")) {
			d.Rows = append(d.Rows, traffic.Row{Prompt: string(word)})
		}
		b := d.Beginnings()
		order := rand.New(rand.NewPCG(seed, 1)).Perm(len(d.Rows))
		for n, i := range order {
			most, of := 0, d.Rows[i].Prompt
			for _, k := range order[:n] {
				same := 0
				for same < min(len(of), len(d.Rows[k].Prompt)) && of[same] == d.Rows[k].Prompt[same] {
					same++
				}
				most = max(most, same)
			}
			got := b.Send(i)
			must.Need(t, got == float64(most)/float64(max(len(of), 1)), "%q after %v: %v, want %d bytes", of, order[:n], got, most)
			must.Need(t, got <= b.Alike(i), "%q: %v is more than %v", of, got, b.Alike(i))
		}
	})
}

func TestText(t *testing.T) {
	d := must.Get(parse(t, "a.jsonl", `{"prompt":"a"}`+"\n"+
		`{"messages":[{"role":"system","content":"b"},{"role":"assistant","content":null},{"role":"user","content":[{"type":"text","text":"c\u0064"},{"type":"image_url","image_url":{"url":"data:"}}]}]}`, ""))(t)
	a, b := d.Rows[0].Text(), d.Rows[1].Text()
	must.Hold(t, a == "a" && b == "bcd", "%q, %q", a, b)
}
