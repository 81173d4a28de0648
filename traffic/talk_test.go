package traffic_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/traffic"
)

// said writes what a list of messages says, as "u: a | a: b": the first letter of each role, and the content.
func said(t *testing.T, messages json.RawMessage) string {
	t.Helper()
	var list []struct{ Role, Content string }
	must.Do(t, json.Unmarshal(messages, &list))
	var out []string
	for _, m := range list {
		out = append(out, m.Role[:1]+": "+m.Content)
	}
	return strings.Join(out, " | ")
}

func talksOf(row string, own bool) (*traffic.Dataset, error) {
	d, err := traffic.Parse(strings.NewReader(row), "talk.jsonl", traffic.Options{Talks: true})
	if err != nil {
		return nil, err
	}
	return d.Talks(own)
}

// A turn ends where the recording has an answer. With the server's own answers the recorded ones are left
// out, and own answers take their place. An answer at the end is nobody's question.
func TestTalks(t *testing.T) {
	const (
		asked = `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"1"},{"role":"assistant","content":"a"},` +
			`{"role":"user","content":"2"},{"role":"user","content":"3"},{"role":"assistant","content":"b"},{"role":"user","content":"4"},{"role":"assistant","content":"c"}]}`
		tool = `{"messages":[{"role":"user","content":"1"},{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","content":"t"},` +
			`{"role":"assistant","content":"a"},{"role":"user","content":"2"}]}`
		greeted = `{"messages":[{"role":"assistant","content":"hello"},{"role":"user","content":"1"},{"role":"assistant","content":"a"},{"role":"user","content":"2"}]}`
		share   = `{"conversations":[{"from":"system","value":"s"},{"from":"gpt","value":"an answer to nothing"},{"from":"human","value":"1"},{"from":"human","value":"2"},` +
			`{"from":"gpt","value":"a"},{"from":"bard","value":"b"},{"from":"human","value":" "},{"from":"human","value":"3"},{"from":"gpt","value":"c"}]}`
	)
	for _, tt := range []struct {
		row  string
		own  bool
		want string // the request of each turn; or the error
	}{
		{asked, false, "s: s | u: 1 // s: s | u: 1 | a: a | u: 2 | u: 3 // s: s | u: 1 | a: a | u: 2 | u: 3 | a: b | u: 4"},
		{asked, true, "s: s | u: 1 // s: s | u: 1 | a: own | u: 2 | u: 3 // s: s | u: 1 | a: own | u: 2 | u: 3 | a: own | u: 4"},
		{greeted, true, "a: hello | u: 1 // a: hello | u: 1 | a: own | u: 2"},
		{tool, false, "u: 1 // u: 1 | a:  | t: t // u: 1 | a:  | t: t | a: a | u: 2"},
		{tool, true, "the row talk.jsonl:1 has results of tools, which belong to the recorded calls"},
		{share, false, "s: s | u: 1\n\n2 // s: s | u: 1\n\n2 | a: a\n\nb | u: 3"},
		{share, true, "s: s | u: 1\n\n2 // s: s | u: 1\n\n2 | a: own | u: 3"},
		{strings.Replace(asked, `{"messages"`, `{"tools":[{"type":"function"}],"messages"`, 1), true, "the row talk.jsonl:1 has tools, and the server's calls of them would have no results"},
		{`{"messages":[{"role":"system","content":"s"}]}`, false, "the row talk.jsonl:1 has no message of a user"},
		{`{"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"a"}]}`, false, "no row of talk.jsonl has more than one turn"},
		{`{"prompt":"1"}`, false, "no row of talk.jsonl has more than one turn"},
		{`{"conversations":[{"from":"gpt","value":"a"}]}`, false, "talk.jsonl: no person speaks in any of its conversations"},
		{`{"conversations":[1]}`, false, `talk.jsonl:1: its conversations are not a list of {"from", "value"}`},
	} {
		d, err := talksOf(tt.row, tt.own)
		if err != nil {
			must.Same(t, tt.row, tt.want, err.Error())
			continue
		}
		r, sent, got := &d.Rows[0], d.Rows[0].Messages, []string{said(t, d.Rows[0].Messages)}
		for n := 2; n <= len(r.Turns); n++ {
			var own *string
			if tt.own {
				answer := "own"
				own = &answer
			}
			sent = r.Next(n, sent, own)
			got = append(got, said(t, sent))
		}
		must.Same(t, tt.row, tt.want, strings.Join(got, " // "))
	}
}

// A conversation goes on as it was recorded: the request of each turn begins with the one before it, and
// the last one holds the recorded messages up to the last question.
func FuzzTalks(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"text","text":"2"}]}]}`,
		`{"messages":[{"role":"system","content":"s"} , {"role":"user","content":"1"},{"role":"assistant","content":null},{"role":"tool","content":"t"}]}`,
		`{"conversations":[{"from":"human","value":"1"},{"from":"gpt","value":"a"},{"from":"human","value":"2"}]}`,
		`{"messages":[{"r\u006fle":"user"},{"role":"assistant","role":"user"}]}`, `{"conversations":null}`, `{"prompt":"1"}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, own bool) {
		o := traffic.Options{Talks: true}
		read, err := traffic.Parse(bytes.NewReader(data), "x.jsonl", o)
		if err != nil {
			return
		}
		d, err := read.Talks(own)
		if err != nil {
			return
		}
		most := 1
		for i := range d.Rows {
			r := &d.Rows[i]
			if r.Turns == nil {
				continue
			}
			most = max(most, len(r.Turns))
			sent, n := r.Messages, len(elementsOf(t, r.Messages))
			for turn := 2; turn <= len(r.Turns); turn++ {
				adds, answer := len(elementsOf(t, r.Adds(turn))), (*string)(nil)
				if own {
					answer, adds = new(string), adds+1
				}
				next := r.Next(turn, sent, answer)
				n += adds
				must.Need(t, adds > 0 && len(elementsOf(t, next)) == n && bytes.HasPrefix(next, sent[:len(sent)-1]), "turn %d of %s: %s after %s", turn, r.Last().Messages, next, sent)
				sent = next
			}
			if !own {
				all := elementsOf(t, read.Rows[i].Messages)
				must.Same(t, "as recorded", all[:n], elementsOf(t, sent))
				must.Same(t, "the last turn", string(sent), string(r.Last().Messages))
			}
		}
		must.Need(t, most > 1 && d.Turns().Max == most, "%d turns, and %+v", most, d.Turns())
	})
}

// elementsOf returns the messages of a list.
func elementsOf(t *testing.T, list json.RawMessage) (out []string) {
	t.Helper()
	var all []json.RawMessage
	must.Do(t, json.Unmarshal(list, &all))
	for _, m := range all {
		out = append(out, string(m))
	}
	return out
}
