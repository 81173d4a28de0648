package traffic_test

import "testing"

func TestQuestion(t *testing.T) {
	for _, tt := range []struct{ row, question, asking, bad string }{
		{row: `{"prompt":"a b"}`, question: "a b", asking: "c"},
		{
			row:      `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null},{"role":"user","content":"b","name":"n"},{"role":"assistant","content":"x"}]}`,
			question: "b",
			asking:   `[{"content":"a","role":"user"},{"content":null,"role":"assistant"},{"content":"c","name":"n","role":"user"},{"content":"x","role":"assistant"}]`,
		},
		{
			row:      `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`,
			question: "b",
			asking:   `[{"content":[{"text":"a","type":"text"},{"text":"c","type":"text"}],"role":"user"}]`,
		},
		{row: `{"messages":[{"role":"system","content":"a"}]}`, bad: "it has no message of a user"},
		{
			row: `{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`,
			bad: "message 2 holds a part that is not text, whose tokens cannot be counted",
		},
		{row: `{"messages":[{"role":"user","content":[7]}]}`, bad: "message 1 holds parts that are no objects"},
	} {
		d, err := parse(t, "a.jsonl", tt.row, "")
		if err != nil {
			t.Fatal(err)
		}
		row := &d.Rows[0]
		question, err := row.Question()
		if tt.bad != "" {
			if err == nil || err.Error() != tt.bad {
				t.Errorf("%s: %v, want %s", tt.row, err, tt.bad)
			}
			continue
		}
		if err != nil || question != tt.question {
			t.Errorf("%s asks %q: %v", tt.row, question, err)
		}
		if again := row.Asking("c"); again.Prompt+string(again.Messages) != tt.asking {
			t.Errorf("%s%s, want %s", again.Prompt, again.Messages, tt.asking)
		}
	}
}
