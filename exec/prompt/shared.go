package prompt

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

func (k Key) group() Key { return Key{Workload: k.Workload, Phase: "shared", Order: k.Shared.Group} }

// addedTokens returns by how many tokens a shared text prefix is made longer. The server may add
// that many tokens after a prompt, and counts them as tokens of the prompt. Without the addition,
// the cache would lose a whole block.
func (m *Maker) addedTokens() int {
	if m.ids != nil || m.perToken > 0 {
		return 0
	}
	return min(m.lead.cost, mostBehind)
}

const mostBehind = 32

// makeShared returns text that begins with the prefix that the prompt's group shares. The first
// words after it encode the number of the prompt, so no two prompts are equal.
func (m *Maker) makeShared(h uint64, k Key, tokens int) (string, error) {
	group := k.group()
	head := k.Shared.Tokens + m.addedTokens()
	rest := tokens - head - k.Shared.More
	if rest < 1 {
		return "", fmt.Errorf("a prompt of %d tokens has no room for a prefix of %d", tokens, head+k.Shared.More)
	}
	if m.perToken > 0 {
		return m.proportionalShared(h, k, tokens)
	}
	text, err := m.makeText(m.hash(group), group, head)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.Grow(len(text) + (tokens-head)*m.average + 32)
	b.WriteString(text)
	gh := mix(m.hash(group))
	if !m.makes(k.Shared.More) || !m.makes(rest) {
		return "", fmt.Errorf("%d and %d tokens behind a shared prefix cannot be made of words of this tokenizer's lengths", k.Shared.More, rest)
	}
	m.words(&b, rand.NewPCG(gh, uint64(group.Order)), k.Shared.More)
	rest = m.numbered(&b, digits(h, k.Order, len(m.pool)), rest)
	m.words(&b, rand.NewPCG(h, mix(h^uint64(k.Order))), rest)
	return b.String(), nil
}

// proportionalShared makes a prompt with a shared prefix, if token counts are estimated from bytes.
// If they are exact, makeShared makes it.
func (m *Maker) proportionalShared(h uint64, k Key, tokens int) (string, error) {
	group := k.group()
	whole, err := m.proportional(m.hash(group), group, tokens)
	if err != nil {
		return "", err
	}
	own := k
	own.Shared = Prefix{}
	text, err := m.proportional(h, own, tokens)
	if err != nil {
		return "", err
	}
	cut := min(int(m.perToken*float64(k.Shared.Tokens+k.Shared.More)), len(whole), len(text)-1)
	cut = max(strings.LastIndexByte(whole[:cut], ' '), 0)
	return whole[:cut] + " " + text[:len(text)-cut-1], nil
}
