package prompt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// tokenizer turns text into tokens, in order.
type tokenizer func(text string) []string

// byWord has one token per word, including the space before it, as most vocabularies
// have for common words.
func byWord(text string) []string {
	tokens := make([]string, 0, len(text)/4)
	letter := func(i int) bool { return i < len(text) && text[i] >= 'a' && text[i] <= 'z' }
	for i := 0; i < len(text); {
		from := i
		for i++; letter(i) && (letter(i-1) || text[i-1] == ' '); i++ {
		}
		tokens = append(tokens, text[from:i])
	}
	return tokens
}

// byByte is a tokenizer with one token per byte.
func byByte(text string) []string { return strings.Split(text, "") }

// hashOf returns the FNV-1a hash of the joined parts.
func hashOf(parts ...string) uint32 {
	h := uint32(2166136261)
	for _, s := range parts {
		for i := range len(s) {
			h = (h ^ uint32(s[i])) * 16777619
		}
	}
	return h
}

// byPiece splits text as a small vocabulary does. A third of the words are cut in two. A word
// without a space before it is cut into pairs of letters.
func byPiece(text string) []string {
	var tokens []string
	for _, p := range byWord(text) {
		switch {
		case p[0] != ' ':
			for ; len(p) > 2; p = p[2:] {
				tokens = append(tokens, p[:2])
			}
			tokens = append(tokens, p)
		case hashOf(p)%3 == 0 && len(p) > 3:
			tokens = append(tokens, p[:2], p[2:])
		default:
			tokens = append(tokens, p)
		}
	}
	return tokens
}

// acrossSpaces splits text like byPiece, and then merges some pairs of neighbours into one
// token. The vocabularies of some models have tokens that span words.
func acrossSpaces(text string) []string {
	tokens := byPiece(text)
	var merged []string
	for i := 0; i < len(tokens); i++ {
		if i+1 < len(tokens) && hashOf(tokens[i], tokens[i+1])%400 == 0 {
			merged = append(merged, tokens[i]+tokens[i+1])
			i++
			continue
		}
		merged = append(merged, tokens[i])
	}
	return merged
}

// fake is a server that counts with the tokenizer t, and adds a template of a fixed number of
// tokens, the field added. It may limit the length of prompts.
type fake struct {
	t       tokenizer
	around  int
	bare    bool // the server's tokenizer does not count the tokens of the template
	without bool // the server has no tokenizer to ask
	told    bool // the server's tokenizer returns the tokens, not only their number
	usages  atomic.Int64
	asks    atomic.Int64
}

func (f *fake) count(p client.Prompt) int {
	if len(p.IDs) > 0 {
		return len(p.IDs) + 1 // 1 for the server's own token at the beginning
	}
	return f.around + len(f.t(p.Text))
}

// ids returns the token ids of a text. Equal tokens have equal ids.
func (f *fake) ids(_ context.Context, text string) ([]int, error) {
	f.asks.Add(1)
	var ids []int
	for _, token := range f.t(text) {
		ids = append(ids, int(hashOf(token)))
	}
	return ids, nil
}

func (f *fake) options(salt uint64) Options {
	o := Options{
		Salt: salt,
		Tokenizer: func(_ context.Context, p client.Prompt) (int, error) {
			if f.without {
				return 0, client.ErrNoTokenizer
			}
			f.asks.Add(1)
			n := f.count(p)
			if f.bare {
				n -= f.around
			}
			return n, nil
		},
		Usage: func(_ context.Context, p client.Prompt) (int, error) {
			f.usages.Add(1)
			return f.count(p), nil
		},
	}
	if f.told {
		o.IDs = f.ids
	}
	return o
}

var fakes = []struct {
	name string
	new  func() *fake
}{
	{"words", func() *fake { return &fake{t: byWord, around: 9} }},
	{"words, template left out", func() *fake { return &fake{t: byWord, around: 9, bare: true} }},
	{"words, no tokenizer", func() *fake { return &fake{t: byWord, around: 9, without: true} }},
	{"pieces", func() *fake { return &fake{t: byPiece} }},
	{"pieces, no tokenizer", func() *fake { return &fake{t: byPiece, without: true} }},
	{"across spaces", func() *fake { return &fake{t: acrossSpaces, around: 4} }},
	{"across spaces, no tokenizer", func() *fake { return &fake{t: acrossSpaces, without: true, around: 3} }},
	{"bytes", func() *fake { return &fake{t: byByte} }},
	{"bytes, template", func() *fake { return &fake{t: byByte, around: 5} }},
	{"words, told", func() *fake { return &fake{t: byWord, around: 9, told: true} }},
	{"pieces, told", func() *fake { return &fake{t: byPiece, told: true} }},
	{"across spaces, told", func() *fake { return &fake{t: acrossSpaces, around: 4, told: true} }},
	{"bytes, told", func() *fake { return &fake{t: byByte, told: true} }},
}

func calibrated(t testing.TB, f *fake, salt uint64) *Maker {
	t.Helper()
	m := must.Get(Calibrate(t.Context(), f.options(salt)))(t)
	return m
}

// A prompt of n tokens counts as n tokens, whichever tokenizer the server has.
func TestExactLength(t *testing.T) {
	for _, tt := range fakes {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.new()
			m := calibrated(t, f, 7)
			must.Hold(t, m.Exact() != f.without, "exact %v", m.Exact())
			t.Logf("%d words of 1 to %d tokens, %q, %q, least %d; %d questions, %d requests",
				len(m.pool), m.costs, m.lead.text, m.sep, m.least(), f.asks.Load(), f.usages.Load())
			r := rand.New(rand.NewPCG(1, 2))
			targets := []int{16, 17, 18, 19, 20, 21, 50000}
			for range 40 {
				targets = append(targets, 16+r.IntN(200))
			}
			for range 4 {
				targets = append(targets, 16+r.IntN(50_000-16))
			}
			for i, n := range targets {
				p, err := m.Make(Key{Seed: r.Int64(), Level: "4", Round: r.IntN(9), Order: r.IntN(1000)}, n)
				must.Need(t, err == nil, "%d tokens: %v", n, err)
				got := f.count(p)
				must.Need(t, got == n, "target %d: %d tokens counted as %d", i, n, got)
			}
			most := int64(60)
			must.Hold(t, (!f.without || f.usages.Load() <= most) && (f.without || f.usages.Load() == 2), "%d requests", f.usages.Load())
		})
	}
}

// TestFewQuestions limits how many questions are asked to learn how a server counts words. It also
// limits how many groups of parallel questions follow each other, because each group takes the time
// of one answer.
func TestFewQuestions(t *testing.T) {
	for _, tt := range []struct {
		fake    *fake
		most    int64
		volleys time.Duration
	}{
		{&fake{t: byWord, around: 9}, 8, 3},
		{&fake{t: byWord, around: 9, bare: true}, 8, 3},
		{&fake{t: byWord, around: 9, told: true}, 8, 4},
		{&fake{t: byPiece, around: 9, told: true}, 8, 4},
		{&fake{t: byByte, told: true}, 8, 4},
		{&fake{t: byWord, around: 9, without: true}, 8, 2},
		{&fake{t: byPiece, around: 9, without: true}, 26, 5},
		{&fake{t: byByte, around: 9, without: true}, 26, 5},
		{&fake{t: acrossSpaces, around: 9, without: true}, 30, 6},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, begin := tt.fake, time.Now()
			o := f.options(7)
			slow := func(c Counter) Counter {
				return func(ctx context.Context, p client.Prompt) (int, error) {
					n, err := c(ctx, p)
					if err == nil {
						time.Sleep(time.Second)
					}
					return n, err
				}
			}
			o.Tokenizer, o.Usage = slow(o.Tokenizer), slow(o.Usage)
			if f.told {
				o.IDs = func(ctx context.Context, text string) ([]int, error) {
					time.Sleep(time.Second)
					return f.ids(ctx, text)
				}
			}
			m := must.Get(Calibrate(t.Context(), o))(t)
			n := f.asks.Load() + f.usages.Load()
			must.Hold(t, n <= tt.most && m.Exact() != f.without, "%d questions, want %d; exact %v", n, tt.most, m.Exact())
			took := time.Since(begin)
			must.Hold(t, took <= tt.volleys*time.Second, "%v, want %d volleys", took, tt.volleys)
		})
	}
}

// A server refuses more than three requests at once. The refused questions are repeated one by one.
func TestTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{t: byPiece, around: 9, without: true}
		o := f.options(7)
		usage, running := o.Usage, atomic.Int64{}
		o.Usage = func(ctx context.Context, p client.Prompt) (int, error) {
			defer running.Add(-1)
			if running.Add(1) > 3 {
				return 0, &client.Error{Kind: metric.FailStatus, Status: 429}
			}
			time.Sleep(time.Second)
			return usage(ctx, p)
		}
		m := must.Get(Calibrate(t.Context(), o))(t)
		n, err := m.check(t.Context(), f.options(0).Usage, Key{}, 500)
		must.Hold(t, err == nil && n == 500, "a prompt of 500 tokens was counted as %d, %v", n, err)
	})
}

// All prompts of a run differ. If there are enough words, the prompts of a round differ right
// after the two words that all prompts begin with. Two prompts never share more than a few
// words.
func TestUnique(t *testing.T) {
	for _, tt := range fakes {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.new()
			m := calibrated(t, f, 7)
			seen := map[string]Key{}
			var prompts [][]string
			for _, phase := range []metric.Phase{metric.Warmup, metric.Measured} {
				for _, level := range []string{"1", "30"} {
					for round := range 2 {
						for _, seed := range []int64{42, 43} {
							begins := map[string]bool{}
							for order := range 60 {
								k := Key{Seed: seed, Workload: "w", Level: level, Round: round, Phase: phase, Order: order}
								p := must.Get(m.Make(k, 64))(t)
								if other, ok := seen[p.Text]; ok {
									t.Fatalf("%+v and %+v are one", k, other)
								}
								seen[p.Text] = k
								tokens := f.t(p.Text)
								prompts = append(prompts, tokens)
								own, ok := strings.CutPrefix(p.Text, m.lead.text)
								must.Need(t, ok, "%q does not begin with %q", p.Text, m.lead.text)
								begins[f.t(own)[0]] = true
							}
							// Sixty prompts begin with sixty different words. If words have several
							// tokens, two words may begin with the same token. If tokens are bytes,
							// all words begin with the separator.
							least := min(60, len(m.pool))
							if !m.single {
								least = 1
							}
							must.Hold(t, len(begins) >= least, "%d first tokens in 60 prompts, want %d", len(begins), least)
						}
					}
				}
			}
			// After sorting, the prompts that share the most are neighbours.
			slices.SortFunc(prompts, func(a, b []string) int { return slices.Compare(a, b) })
			longest, longestWords := 0, 0
			for i := 1; i < len(prompts); i++ {
				n, words := 0, 0
				for ; prompts[i][n] == prompts[i-1][n]; n++ {
					if strings.ContainsAny(prompts[i][n], " \n") {
						words++
					}
				}
				longest, longestWords = max(longest, n), max(longestWords, words)
			}
			// The smallest possible pool has 12 words. With its 12⁵ combinations of five words,
			// about two of the 960²/2 pairs of prompts share five words. The salt is fixed, so
			// chance cannot fail this test.
			must.Hold(t, longestWords <= 5, "two prompts share %d words (%d tokens)", longestWords, longest)
		})
	}
}

// The same salt and key give the same prompt. If either differs, the prompt differs.
func TestReproducible(t *testing.T) {
	base := Key{Seed: 42, Workload: "chat", Level: "30", Round: 1, Phase: metric.Measured, Order: 5}
	make := func(salt uint64, k Key) string {
		p := must.Get(calibrated(t, &fake{t: byPiece, around: 3}, salt).Make(k, 200))(t)
		return p.Text
	}
	want := make(7, base)
	got := make(7, base)
	must.Hold(t, got == want, "the same salt and key gave two prompts")
	others := map[string]string{"salt": make(8, base)}
	for name, change := range map[string]func(k *Key){
		"seed":     func(k *Key) { k.Seed++ },
		"workload": func(k *Key) { k.Workload = "cha" },
		"level":    func(k *Key) { k.Level = "3" },
		"round":    func(k *Key) { k.Round++ },
		"phase":    func(k *Key) { k.Phase = metric.Warmup },
		"order":    func(k *Key) { k.Order++ },
	} {
		k := base
		change(&k)
		others[name] = make(7, k)
	}
	for name, got := range others {
		must.Hold(t, got != want, "another %s gave the same prompt", name)
	}
}

// Each prompt contains its number in the round, as two words. So even very short prompts of a round
// are unique.
func TestUniqueWhenShort(t *testing.T) {
	f := &fake{t: byWord, around: 9}
	m := calibrated(t, f, 7)
	n := m.least() + 2
	seen := map[string]bool{}
	for order := range 5000 {
		p, err := m.Make(Key{Order: order}, n)
		if err != nil || f.count(p) != n {
			t.Fatal(err, f.count(p))
		}
		must.Need(t, !seen[p.Text], "prompt %d, %q, was made before", order, p.Text)
		seen[p.Text] = true
	}
}

func TestTooShort(t *testing.T) {
	m := calibrated(t, &fake{t: byWord, around: 9}, 7)
	if m.least() != 11 { // template, lead
		t.Errorf("least %d, want 11", m.least())
	}
	_, err := m.Make(Key{}, 11)
	must.Hold(t, err == nil, "%v", err)
	if _, err := m.Make(Key{}, 10); err == nil || err.Error() != "a prompt of 10 tokens cannot be made: with what the server puts around it, the least is 11" {
		t.Errorf("error %v", err)
	}
}

// Prompts for a gateway that estimates tokens from bytes have the requested length within 1%.
func TestProportional(t *testing.T) {
	estimate := func(text string) []string { return make([]string, (len(text)*10+36)/37) } // 3.7 bytes a token
	for _, f := range []*fake{{t: estimate, around: 12}, {t: estimate, around: 12, without: true}} {
		m := calibrated(t, f, 7)
		must.Hold(t, !m.Exact(), "claims to be exact")
		for _, n := range []int{500, 2000, 32768} {
			p := must.Get(m.Make(Key{Order: n}, n))(t)
			got := f.count(p)
			must.Hold(t, got >= n*99/100 && got <= n*101/100, "%d tokens counted as %d", n, got)
		}
		_, err := m.Make(Key{}, 5)
		must.Hold(t, err != nil, "5 tokens were made, of which the template alone takes 12")
	}
}

// If the tokenizer and the usage of a server disagree, the usage decides the length of prompts.
func TestTokenizerDisagrees(t *testing.T) {
	f := &fake{t: byWord, around: 9}
	o := f.options(7)
	o.Tokenizer = func(_ context.Context, p client.Prompt) (int, error) { return len(p.Text), nil }
	m, err := Calibrate(t.Context(), o)
	must.Do(t, err)
	p, err := m.Make(Key{}, 300)
	if got := f.count(p); err != nil || got != 300 || m.Exact() {
		t.Errorf("%d tokens, exact %v, %v", got, m.Exact(), err)
	}
}

func TestErrors(t *testing.T) {
	down := errors.New("connection refused")
	fails := func(context.Context, client.Prompt) (int, error) { return 0, down }
	good, pieces := (&fake{t: byWord}).options(7), (&fake{t: byPiece}).options(7)
	after := func(n int64, c Counter) Counter {
		var asked atomic.Int64
		return func(ctx context.Context, p client.Prompt) (int, error) {
			if asked.Add(1) > n {
				return 0, down
			}
			return c(ctx, p)
		}
	}
	for name, o := range map[string]Options{
		"tokenizer":                      {Tokenizer: fails, Usage: good.Usage},
		"usage":                          {Usage: fails},
		"usage after the tokenizer":      {Tokenizer: good.Tokenizer, Usage: fails},
		"tokenizer in the first volley":  {Tokenizer: after(2, good.Tokenizer), Usage: good.Usage},
		"tokenizer in the second volley": {Tokenizer: after(4, good.Tokenizer), Usage: good.Usage},
		"tokenizer while measuring":      {Tokenizer: after(20, pieces.Tokenizer), Usage: pieces.Usage},
		"tokenizer while pairing":        {Tokenizer: after(54, pieces.Tokenizer), Usage: pieces.Usage},
		"usage while measuring":          {Usage: after(20, pieces.Usage)},
		"ids":                            {Usage: good.Usage, AsIDs: true, IDs: func(context.Context, string) ([]int, error) { return nil, down }},
		"usage of ids":                   {Usage: fails, AsIDs: true, IDs: someIDs},
		"usage after the first with ids": {Usage: after(1, good.Usage), AsIDs: true, IDs: someIDs},
	} {
		_, err := Calibrate(t.Context(), o)
		must.Hold(t, errors.Is(err, down), "%s: %v", name, err)
	}
	_, err := Calibrate(t.Context(), Options{})
	must.Hold(t, err != nil, "no usage, no error")
	// If a server counts every prompt as one token, no prompt can have a requested length.
	one := func(context.Context, client.Prompt) (int, error) { return 1, nil }
	if _, err := Calibrate(t.Context(), Options{Usage: one}); err == nil {
		t.Error("a constant count was believed")
	}
	if _, err := Calibrate(t.Context(), Options{Usage: one, AsIDs: true, IDs: someIDs}); err == nil {
		t.Error("a constant count of ids was believed")
	}
	if _, err := Calibrate(t.Context(), Options{Usage: good.Usage, AsIDs: true, IDs: func(context.Context, string) ([]int, error) { return []int{1, 2, 1}, nil }}); err == nil {
		t.Error("two ids were enough")
	}
}

// TestSomeQuestionsFail: each question fails three times before the server answers it. The
// prompts are the same as if no question had failed.
func TestSomeQuestionsFail(t *testing.T) {
	busy := errors.New("503 Service Unavailable")
	shaky := func(c Counter, fails int) Counter {
		var mu sync.Mutex
		asked := map[string]int{}
		return func(ctx context.Context, p client.Prompt) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			if asked[p.Text]++; asked[p.Text] <= fails {
				return 0, busy
			}
			return c(ctx, p)
		}
	}
	good := (&fake{t: byWord, around: 9}).options(7)
	for name, o := range map[string]Options{
		"tokenizer": {Salt: 7, Tokenizer: shaky(good.Tokenizer, 3), Usage: shaky(good.Usage, 3)},
		"usage":     {Salt: 7, Usage: shaky(good.Usage, 3)},
	} {
		m, err := Calibrate(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n, err := m.check(t.Context(), good.Usage, Key{Level: "1"}, 500); err != nil || n != 500 {
			t.Errorf("%s: a prompt of 500 tokens was counted as %d, %v", name, n, err)
		}
	}
	_, err := Calibrate(t.Context(), Options{Usage: shaky(good.Usage, 4)})
	want := "a request about a prompt of 520 bytes failed 4 times: 503 Service Unavailable"
	must.Hold(t, err != nil && strings.Contains(err.Error(), want), "error %v, want one that says %q", err, want)
}

// A request that the server refuses as wrong is not sent again, and the server's words are the error.
// Only the tokenizer's page may be missing.
func TestRefused(t *testing.T) {
	wrong := &client.Error{Kind: metric.FailStatus, Status: 400, Message: "top_k must be -1 or at least 1, got -3"}
	good := (&fake{t: byWord, around: 9}).options(7)
	asked := map[string]int{}
	refuse := func(_ context.Context, p client.Prompt) (int, error) {
		asked[p.Text]++
		return 0, wrong
	}
	for name, o := range map[string]Options{"with a tokenizer": {Tokenizer: good.Tokenizer, Usage: refuse}, "without": {Usage: refuse}} {
		clear(asked)
		_, err := Calibrate(t.Context(), o)
		want := "the server refuses this workload's requests: HTTP 400: top_k must be -1 or at least 1, got -3"
		must.Hold(t, err != nil && err.Error() == want, "%s: error %v, want %q", name, err, want)
		for text, n := range asked {
			must.Hold(t, n <= 1, "%s: %q was asked %d times", name, text, n)
		}
		must.Hold(t, len(asked) != 0, "%s: nothing was asked", name)
	}
}

func someIDs(_ context.Context, text string) ([]int, error) {
	ids := make([]int, len(strings.Fields(text)))
	for i := range ids {
		ids[i] = 1000 + i/2*7 // each twice
	}
	return ids, nil
}

func TestIDs(t *testing.T) {
	f := &fake{t: byWord}
	o := f.options(7)
	o.IDs, o.AsIDs = someIDs, true
	m, err := Calibrate(t.Context(), o)
	if err != nil || !m.Exact() || m.least() != 2 {
		t.Fatal(err, m.Exact(), m.least())
	}
	seen := map[string]bool{}
	begins := map[int]bool{}
	for order := range 100 {
		for _, n := range []int{16, 1000} {
			p, err := m.Make(Key{Seed: 3, Order: order}, n)
			if err != nil || f.count(p) != n || p.Text != "" {
				t.Fatalf("%d tokens counted as %d: %v", n, f.count(p), err)
			}
			seen[fmt.Sprint(p.IDs)] = true
			begins[p.IDs[0]] = true
			for _, id := range p.IDs {
				must.Need(t, id >= 1000 && (id-1000)%7 == 0, "id %d was never told", id)
			}
		}
	}
	must.Hold(t, len(seen) == 200 && len(begins) == 100, "%d different prompts of 200, %d first ids of 100", len(seen), len(begins))
	if _, err := m.Make(Key{}, 1); err == nil {
		t.Error("one token was made, although the server adds one itself")
	}
}

func TestCheck(t *testing.T) {
	f := &fake{t: byWord, around: 9}
	m := calibrated(t, f, 7)
	count := f.options(0).Usage
	got, err := m.check(t.Context(), count, Key{}, 100)
	must.Hold(t, got == 100 && err == nil, "checked %d, %v", got, err)
	f.around++ // the server changed
	if got, err := m.check(t.Context(), count, Key{}, 100); got != 101 || err != nil {
		t.Errorf("checked %d, %v", got, err)
	}
	if _, err := m.check(t.Context(), count, Key{}, 1); err == nil {
		t.Error("no error for what cannot be made")
	}
}

// The sequence of everyPair has each ordered pair of neighbours once. No shorter sequence has all
// pairs.
func TestEveryPair(t *testing.T) {
	for _, n := range []int{1, 2, 3, 12, 40} {
		s := everyPair(n)
		pairs := map[[2]int]int{}
		for i := 1; i < len(s); i++ {
			pairs[[2]int{s[i-1], s[i]}]++
		}
		must.Hold(t, len(s) == n*n+1 && len(pairs) == n*n, "%d words: %d long, %d pairs", n, len(s), len(pairs))
	}
}

func TestWords(t *testing.T) {
	sorted := slices.Sorted(slices.Values(words))
	must.Hold(t, len(sorted) == len(slices.Compact(slices.Clone(sorted))) && len(sorted) >= 200, "%d words, some twice", len(sorted))
	for _, w := range words {
		must.Hold(t, len(w) < longest, "%q is too long", w)
	}
}

// BenchmarkMake measures how long it takes to make 300 prompts of 32,768 tokens.
func BenchmarkMake(b *testing.B) {
	m := calibrated(b, &fake{t: byWord, around: 9}, 7)
	b.ReportAllocs()
	for b.Loop() {
		for order := range 300 {
			must.Get(m.Make(Key{Order: order}, 32*1024))(b)
		}
	}
}
