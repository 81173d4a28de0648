package prompt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/prompt"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/traffic"
)

func dataset(t *testing.T, lines ...string) *traffic.Dataset {
	t.Helper()
	d := must.Get(traffic.Parse(strings.NewReader(strings.Join(lines, "\n")), "a.jsonl", traffic.Options{}))(t)
	return d
}

// All rows are sent once before any row is sent a second time. A row that is sent again may be in
// the server's cache completely.
func TestRows(t *testing.T) {
	var lines []string
	for i := range 50 {
		lines = append(lines, fmt.Sprintf(`{"prompt":"%02d is a number"}`, i))
	}
	set := dataset(t, lines...)
	numbers := func(shuffled bool, seed int64) (rows []int, again int) {
		r := prompt.NewRows(set, set.Beginnings(), shuffled, seed)
		for i := range 60 {
			p := must.Get(r.Prompt(metric.Measured, i))(t)
			rows = append(rows, p.Row)
			if p.Shared == 1 {
				again++
			} else if p.Bound > byOther || p.Shared > p.Bound {
				t.Errorf("row %d shares %v, at most %v", p.Row, p.Shared, p.Bound)
			}
		}
		return rows, again
	}
	// Nine tenths in common are not a row that came before; the second of two equal rows is.
	begins := strings.Repeat("the same beginning ", 10)
	alike := dataset(t, fmt.Sprintf(`{"prompt":"%sof one row"}`, begins), fmt.Sprintf(`{"prompt":"%sof another"}`, begins),
		`{"prompt":"twice"}`, `{"prompt":"twice"}`)
	r := prompt.NewRows(alike, alike.Beginnings(), false, 1)
	// The third begins as the first does: with a "t", one of its five bytes.
	for i, want := range []struct{ low, high, bound float64 }{{0, 0, 0.999}, {0.9, 0.999, 0.999}, {0.2, 0.2, 1}, {1, 1, 1}} {
		if p := must.Get(r.Prompt(metric.Measured, i))(t); p.Shared < want.low || p.Shared > want.high || p.Bound != want.bound {
			t.Errorf("row %d shares %v, at most %v; want %v", p.Row, p.Shared, p.Bound, want)
		}
	}
	inOrder, again := numbers(false, 1)
	for i, row := range inOrder {
		must.Hold(t, row == i%50+1, "request %d is row %d", i, row)
	}
	must.Hold(t, again == 10, "%d of 10 repeats", again)
	one, _ := numbers(true, 1)
	same, _ := numbers(true, 1)
	other, _ := numbers(true, 2)
	must.Hold(t, cmp.Equal(one, same) && !cmp.Equal(one, other) && !cmp.Equal(one, inOrder), "%v\n%v\n%v", one, same, other)
	seen := map[int]bool{}
	for _, row := range one[:50] {
		seen[row] = true
	}
	must.Hold(t, len(seen) == 50, "%d different rows among the first 50", len(seen))
}

// byOther is the largest share of a row such as "07 is a number" that another row may begin with
// too: its first digit, one of 14 bytes. The factor 1.25 is needed because tokens are not bytes.
const byOther = 1.25 / 14

func TestRowAsSent(t *testing.T) {
	set := dataset(t, `{"messages":[{"role":"user","content":"a"}],"max_tokens":9,"tools":[1],"response_format":{"type":"json_object"},"answer":"b"}`, `{"prompt":"c"}`)
	r := prompt.NewRows(set, set.Beginnings(), false, 1)
	want := client.Prompt{
		Messages: []byte(`[{"role":"user","content":"a"}]`), Output: 9, Row: 1,
		Fields: map[string]json.RawMessage{"tools": []byte(`[1]`), "response_format": []byte(`{"type":"json_object"}`)},
	}
	must.Same(t, "", want, must.Get(r.Prompt(metric.Measured, 0))(t))
	// A warm-up request gets a row from the end of the order.
	p := must.Get(r.Prompt(metric.Warmup, 0))(t)
	must.Hold(t, p.Row == 2 && p.Text == "c" && p.Shared == 0, "%+v", p)
	if p := must.Get(r.Prompt(metric.Measured, 1))(t); p.Row != 2 || p.Shared != 1 {
		t.Errorf("%+v", p)
	}
}

// TooLong finds the first row with too many tokens. It asks for token counts only if a row has
// enough bytes to be too long.
func TestTooLong(t *testing.T) {
	set := dataset(t, `{"prompt":"a b"}`, `{"prompt":"three longer words"}`, `{"prompt":"five words are too many"}`, `{"prompt":"and six are even more so"}`)
	room := func(*traffic.Row) int { return 4 }
	var asked atomic.Int64
	o := prompt.Options{Tokenizer: func(_ context.Context, p client.Prompt) (int, error) {
		asked.Add(1)
		return len(strings.Fields(p.Text)), nil
	}}
	row, tokens, err := prompt.TooLong(t.Context(), o, set, room)
	must.Hold(t, err == nil && row != nil && row.Line == 3 && tokens == 5, "%+v of %d tokens, %v; want line 3 of 5", row, tokens, err)
	must.Hold(t, asked.Load() == 3, "%d rows were counted, want 3", asked.Load())
	if row, _, err := prompt.TooLong(t.Context(), o, dataset(t, `{"prompt":"a b"}`), room); row != nil || err != nil || asked.Load() != 3 {
		t.Errorf("%+v, %v, %d counted", row, err, asked.Load())
	}
	for want, none := range map[error]bool{client.ErrNoTokenizer: true, io.ErrUnexpectedEOF: false} {
		o.Tokenizer = func(context.Context, client.Prompt) (int, error) { return 0, want }
		if row, _, err := prompt.TooLong(t.Context(), o, set, room); row != nil || (err == nil) != none || !none && !errors.Is(err, want) {
			t.Errorf("%v: %+v, %v", want, row, err)
		}
	}
}
