package prompt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/exec/client"
)

// Items makes prompts from the items of a built-in task. It fills each item up with words of a
// Maker to a number of tokens. It is safe for concurrent use.
type Items struct {
	maker *Maker
	items []answers.Item
	costs []int // tokens of each item without filler
	exact bool
}

const probe = 64

// NewItems learns how many tokens each item has. It asks the server's tokenizer, and learns from
// one real request how many tokens the server adds. Without a tokenizer it reads the usage of a few
// requests.
func NewItems(ctx context.Context, m *Maker, o Options, items []answers.Item) (*Items, error) {
	x := &Items{maker: m, items: items, costs: make([]int, len(items)), exact: true}
	if m.ids != nil || m.perToken > 0 {
		return nil, fmt.Errorf("this server counts no words of text, so that no item can be filled up to a number of tokens")
	}
	usage := patient(o.Usage, "a request")
	real, err := x.cost(ctx, usage, 0)
	if err != nil {
		return nil, err
	}
	if o.Tokenizer == nil || !m.exact {
		return x, x.bySome(ctx, usage, real)
	}
	tokenizer := patient(o.Tokenizer, "the tokenizer")
	q := &questions{ctx: ctx}
	q.each(len(items), thorough.atOnce, func(i int) error {
		var err error
		x.costs[i], err = x.cost(ctx, tokenizer, i)
		return err
	})
	off := real - x.costs[0]
	for i := range x.costs {
		x.costs[i] += off
	}
	return x, q.err
}

// bySome measures the costs of a few items and uses the largest for all items. The lengths of
// prompts are exact only if the measured costs are equal.
func (x *Items) bySome(ctx context.Context, usage Counter, first int) error {
	most := first
	for i := 1; i < min(5, len(x.items)); i++ {
		n, err := x.cost(ctx, usage, i)
		if err != nil {
			return err
		}
		x.exact = x.exact && n == first
		most = max(most, n)
	}
	for i := range x.costs {
		x.costs[i] = most
	}
	return nil
}

func (x *Items) cost(ctx context.Context, count Counter, i int) (int, error) {
	text, err := x.build(i, probe)
	if err != nil {
		return 0, err
	}
	n, err := count(ctx, client.Prompt{Text: text})
	return n - probe, err
}

// Exact reports whether prompts have exactly the requested length.
func (x *Items) Exact() bool { return x.exact && x.maker.exact }

// Prompt returns the i-th item, with filler up to the given number of tokens.
func (x *Items) Prompt(i, tokens int) (string, error) {
	filler := tokens - x.costs[i]
	if filler < 8 {
		return "", fmt.Errorf("an item of this task takes at least %d tokens: raise input_tokens", x.costs[i]+8)
	}
	return x.build(i, filler)
}

// build returns the item with the given number of tokens of filler. The same numbers give
// the same text.
func (x *Items) build(i, filler int) (string, error) {
	m, item := x.maker, x.items[i]
	h := mix(m.salt ^ uint64(i)<<20)
	text, ok := m.compose(word{}, digits(h, i, len(m.pool)), rand.NewPCG(h, uint64(filler)), filler)
	if !ok {
		return "", fmt.Errorf("the words of this tokenizer cannot make a filler of exactly %d tokens", filler)
	}
	at := int(item.Depth * float64(len(text)))
	if next := strings.Index(text[at:], m.sep); next >= 0 {
		at += next
	} else {
		at = len(text)
	}
	return item.Prompt(text[:at], text[at:]), nil
}
