package prompt

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/internal/must"
)

// An earlier calibration is used again if two requests confirm it. It then makes the same prompts.
func TestKnown(t *testing.T) {
	for _, tt := range fakes {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.new()
			first := calibrated(t, f, 7)
			again := tt.new()
			o := again.options(7)
			o.Known = throughJSON(t, first.Known())
			m := must.Get(Calibrate(t.Context(), o))(t)
			n := again.usages.Load() + again.asks.Load()
			must.Hold(t, n == 2, "%d questions, want 2", n)
			must.Hold(t, m.Exact() == first.Exact(), "exact %v, and was %v", m.Exact(), first.Exact())
			for order, tokens := range []int{first.least() + 40*first.costs, first.least() + 999*first.costs} {
				want, err1 := first.Make(Key{Workload: "w", Order: order}, tokens)
				got, err2 := m.Make(Key{Workload: "w", Order: order}, tokens)
				diff := cmp.Diff(want, got)
				must.Hold(t, diff == "" && err1 == nil && err2 == nil, "%v, %v (-learnt +known):\n%s", err1, err2, diff)
			}
		})
	}
}

// A calibration is not used for another server or another template, nor if its content cannot be
// right. Then calibration starts again.
func TestKnownOfAnother(t *testing.T) {
	words := calibrated(t, &fake{t: byWord, around: 9}, 7).Known()
	for name, f := range map[string]*fake{
		"another tokenizer": {t: byPiece, around: 9}, "another template": {t: byWord, around: 10}, "bytes": {t: byByte},
	} {
		o := f.options(7)
		o.Known = words
		m := must.Get(Calibrate(t.Context(), o))(t)
		n := f.asks.Load()
		must.Hold(t, n != 0, "%s: nothing was learnt anew", name)
		tokens := m.least() + 100*m.costs
		got, err := m.check(t.Context(), f.options(7).Usage, Key{Order: 1}, tokens)
		must.Hold(t, err == nil && got == tokens, "%s: %d tokens of %d (%v)", name, got, tokens, err)
	}
	ids := &Known{IDs: make([]int, 400)}
	for i := range ids.IDs {
		ids.IDs[i] = i
	}
	for _, raw := range []string{
		`{}`, `{"lead":{"text":"a","cost":1},"pool":[]}`, `{"separator":" ","pool":[{"text":" a","cost":1}]}`, `{"ids":[1,2,3]}`, `{"ids":[-1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}`,
		`{"separator":" ","lead":{"text":"a","cost":0},"pool":[{"text":" a","cost":1}]}`,
		`{"separator":" ","lead":{"text":"a","cost":2},"pool":[{"text":" a","cost":2},{"text":" b","cost":4}]}`, // cannot make an odd number of tokens
		`{"lead":{"text":"` + strings.Repeat("a", 100) + `","cost":1},"pool":[{"text":" a","cost":1}]}`,
	} {
		k := new(Known)
		must.Do(t, json.Unmarshal([]byte(raw), k))
		must.Hold(t, k.maker(1) == nil, "%s was believed", raw)
	}
	m := ids.maker(1)
	must.Hold(t, m != nil && m.least() == 1, "ids that are sound were not believed")
	// Token ids of an earlier calibration cannot be used if prompts are text.
	f := &fake{t: byWord, around: 9}
	o := f.options(7)
	if o.Known = ids; o.recall(t.Context()) != nil {
		t.Error("ids were taken for text")
	}
}

func throughJSON(t *testing.T, k *Known) *Known {
	t.Helper()
	raw := must.Get(json.Marshal(k))(t)
	out := new(Known)
	must.Do(t, json.Unmarshal(raw, out))
	must.Hold(t, len(raw) <= 32<<10, "%d bytes to be remembered", len(raw))
	return out
}

// The file of an earlier calibration may hold anything. If it is accepted, making a prompt either
// fails or reports the prompt's true length.
func FuzzKnown(f *testing.F) {
	f.Add([]byte(`{"separator":" ","lead":{"text":"a a","cost":3},"pool":[{"text":" a","cost":1},{"text":" bc","cost":2}]}`))
	f.Add([]byte(`{"exact":true,"ids":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],"around":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		k := new(Known)
		if json.Unmarshal(raw, k) != nil {
			return
		}
		m := k.maker(1)
		if m == nil {
			return
		}
		o := Options{Known: k, Salt: 1, Usage: func(_ context.Context, p client.Prompt) (int, error) { return len(p.Text) + len(p.IDs), nil }}
		if k.IDs != nil {
			o.AsIDs = true
		}
		o.recall(t.Context())
		for _, tokens := range []int{0, 1, m.least(), m.least() + 3*max(m.costs, 1), 5000} {
			p, err := m.Make(Key{Order: 3}, tokens)
			must.Hold(t, err != nil || len(p.Text) != 0 || len(p.IDs) != 0, "an empty prompt of %d tokens", tokens)
		}
	})
}
