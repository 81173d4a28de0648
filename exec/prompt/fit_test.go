package prompt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/sim"
	"github.com/tokgate/tokgate/traffic"
)

// mixed returns a data set with rows of many kinds: short and long texts, characters of several
// bytes, messages, parts and tools.
func mixed(t testing.TB) *traffic.Dataset {
	t.Helper()
	var lines []string
	for i := range 12 {
		lines = append(lines,
			fmt.Sprintf(`{"prompt":"%d is short"}`, i),
			fmt.Sprintf(`{"prompt":"%d is %s"}`, 100+i, strings.Repeat("some longer words of a question, ", 40)),
			fmt.Sprintf(`{"prompt":"%d は%s"}`, 200+i, strings.Repeat("日本語のテキスト、", 30)),
			fmt.Sprintf(`{"messages":[{"role":"system","content":"be kind to everyone of the %d"},{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":[{"type":"text","text":"first"},{"type":"text","text":"and the rest"}]}],"tools":[{"type":"function"}]}`, i))
	}
	d := must.Get(traffic.Parse(strings.NewReader(strings.Join(lines, "\n")), "a.jsonl", traffic.Options{}))(t)
	return d
}

// counting returns options that count tokens as the simulated server does. The tokenizer leaves out
// some of the tokens that the usage reports; their number is the parameter leaves.
func counting(leaves int) Options {
	count := func(off int) Counter {
		return func(_ context.Context, p client.Prompt) (int, error) {
			n, err := sim.CountChat(p.Text, p.Messages)
			return n - off, err
		}
	}
	return Options{Tokenizer: count(leaves), Usage: count(0)}
}

// Every row gets the requested length. A row that is too long is cut, and text of other rows makes
// a short row longer. The beginning of a row does not change.
func TestFit(t *testing.T) {
	set := mixed(t)
	for _, tokens := range []int{64, 257, 2000} {
		r := NewRows(set, set.Beginnings(), true, 3)
		asked := 0
		o := counting(2)
		tokenizer := o.Tokenizer
		o.Tokenizer = func(ctx context.Context, p client.Prompt) (int, error) { asked++; return tokenizer(ctx, p) }
		thorough.atOnce = 1 // one call at a time, because the counter has no lock
		err := r.Fit(t.Context(), o, tokens, 40)
		thorough.atOnce = 8
		must.Do(t, err)
		must.Hold(t, asked <= 40*12, "%d questions for 40 rows of %d tokens", asked, tokens)
		for i := range 50 { // 50 requests for 40 rows, so the last ten repeat rows
			p := must.Get(r.Prompt(metric.Measured, i))(t)
			row := set.Rows[p.Row-1]
			if n, err := sim.CountChat(p.Text, p.Messages); n != tokens || err != nil {
				t.Errorf("row %d has %d tokens, want %d: %v", p.Row, n, tokens, err)
			}
			must.Hold(t, (p.Shared == 1) == (i >= 40), "request %d: %v may be in a cache", i, p.Shared)
			before, _ := row.Question()
			sent := traffic.Row{Prompt: p.Text, Messages: p.Messages}
			after, err := sent.Question()
			if strings.Contains(before, "は") { // the cut may leave room for filler words; ignore these
				after = strings.TrimRight(after, " a")
			}
			if same := min(len(before), len(after)); err != nil || before[:same] != after[:same] {
				t.Errorf("row %d begins %.40q…, want %.40q…", p.Row, after[:same], before)
			}
			if strings.TrimSpace(after) != after && !strings.HasSuffix(after, "\n") {
				t.Errorf("row %d ends in white space: %q", p.Row, after[max(0, len(after)-20):])
			}
		}
	}
}

func TestFitRefuses(t *testing.T) {
	set := mixed(t)
	uneven := counting(0)
	uneven.Tokenizer = func(_ context.Context, p client.Prompt) (int, error) { return len(p.Text) + len(p.Messages), nil }
	none := counting(0)
	none.Tokenizer = func(context.Context, client.Prompt) (int, error) { return 0, client.ErrNoTokenizer }
	for _, tt := range []struct {
		name   string
		o      Options
		tokens int
		want   string
	}{
		{"no room", counting(0), 20, "a.jsonl:4: what stands around its question takes more than input_tokens = 20"},
		{"another tokenizer", uneven, 100, "rows of a.jsonl cannot be cut to 100 tokens: the server's tokenizer counts"},
		{"no tokenizer", none, 100, "rows of a.jsonl cannot be cut to 100 tokens: the server has no tokenizer to ask"},
		{"nobody to ask", Options{}, 100, "rows of a.jsonl cannot be cut to 100 tokens: the server has no tokenizer to ask"},
	} {
		err := NewRows(set, set.Beginnings(), false, 1).Fit(t.Context(), tt.o, tt.tokens, 100)
		must.Hold(t, err != nil && strings.HasPrefix(err.Error(), tt.want), "%s: %v, want %s", tt.name, err, tt.want)
		if none := strings.Contains(tt.want, "no tokenizer"); none != errors.Is(err, client.ErrNoTokenizer) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	count := counting(0).Usage
	err := NewRows(set, set.Beginnings(), false, 1).Short(t.Context(), count, 20, 100)
	must.Hold(t, err != nil && strings.HasPrefix(err.Error(), "a.jsonl:4: what stands around"), "error %v", err)
	if err := NewRows(set, set.Beginnings(), false, 1).Short(t.Context(), count, 60, 100); err != nil {
		t.Error(err)
	}
}

// The simulated server gets requests over HTTP. For each row it must count the requested number of
// tokens.
func TestFitAgainstServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, h := builtIn(t, engine.Of("vllm"))
		set := mixed(t)
		r := NewRows(set, set.Beginnings(), false, 1)
		target := Target{HTTP: h, API: "chat", Model: server.Model(), Timeout: time.Minute}
		must.Do(t, r.Fit(t.Context(), target.Options(1), 300, 16))
		for i := range 16 {
			s, err := h.Complete(t.Context(), &client.Request{API: "chat", Model: server.Model(), Prompt: must.Get(r.Prompt(metric.Measured, i))(t), Input: 300, Output: 2, Timeout: time.Hour})
			if err != nil || s.Usage == nil || s.Usage.Input != 300 {
				t.Errorf("row %d was charged as %+v: %v", i+1, s.Usage, err)
			}
		}
	})
}
