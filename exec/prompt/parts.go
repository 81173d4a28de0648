package prompt

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
)

// MakeParts returns the prompt for the key k, made of the given pieces. In the prompts of one
// round, pieces with the same Key begin with the same tokens. The prompt is as long as its pieces
// together, but at least Least tokens. Its field Shared is the share of the tokens that the server
// itself adds, because a cache may hold them.
func (m *Maker) MakeParts(k Key, parts []metric.Piece) (client.Prompt, error) {
	k.Order = 0
	h := m.hash(k)
	p := m.outline(parts)
	total := p.Tokens
	var err error
	switch {
	case len(parts) == 0:
		err = fmt.Errorf("a prompt has no part")
	case m.ids != nil:
		p.IDs = m.partIDs(h, parts, total)
	case m.perToken > 0:
		p.Text = m.proportionalParts(h, parts, total)
	default:
		p.Text, err = m.partWords(h, parts, total)
	}
	return p, err
}

// outline returns the prompt of the given pieces without its content.
func (m *Maker) outline(parts []metric.Piece) client.Prompt {
	total := 0
	for _, p := range parts {
		total += p.Tokens
	}
	total = max(total, m.least())
	return client.Prompt{Tokens: total, Shared: float64(m.addedTokens()) / float64(total)}
}

func textSource(h uint64, p metric.Piece) *rand.PCG { return rand.NewPCG(mix(h^p.Key), p.Key) }

func (m *Maker) partIDs(h uint64, parts []metric.Piece, total int) []int {
	ids := make([]int, 0, total-m.added)
	for _, p := range parts {
		r := textSource(h, p)
		for n := 0; n < p.Tokens && len(ids) < total-m.added; n++ {
			hi, _ := bits.Mul64(r.Uint64(), uint64(len(m.ids)))
			ids = append(ids, m.ids[hi])
		}
	}
	for len(ids) < total-m.added {
		ids = append(ids, m.ids[0])
	}
	return ids
}

// partWords writes a prompt that consists of several pieces. A server may put tokens of its own
// behind a prompt. So each piece except the last is longer by that many tokens. Its words then do
// not depend on the next piece.
func (m *Maker) partWords(h uint64, parts []metric.Piece, total int) (string, error) {
	var b strings.Builder
	b.Grow(len(m.lead.text) + total*m.average + 32)
	b.WriteString(m.lead.text)
	made, upTo := m.lead.cost, 0
	for i, p := range parts {
		last := i == len(parts)-1
		upTo += p.Tokens
		n := min(upTo+m.addedTokens(), total) - made
		if last {
			n = total - made
		}
		if n > 0 && m.makes(n) && (m.makes(total-made-n) || last) {
			m.words(&b, textSource(h, p), n)
			made += n
		}
	}
	if made != total {
		return "", fmt.Errorf("a prompt of exactly %d tokens cannot be made of words of this tokenizer's lengths", total)
	}
	return b.String(), nil
}

// proportionalParts makes a prompt of the given pieces, for a server that counts by bytes. It
// writes as many bytes as the tokens should take.
func (m *Maker) proportionalParts(h uint64, parts []metric.Piece, total int) string {
	size := int(m.perToken*float64(total) + m.before + 0.5)
	b := append(make([]byte, 0, size+longest), m.lead.text...)
	upTo := 0
	for i, p := range parts {
		r := textSource(h, p)
		upTo += p.Tokens
		end := min(int(m.perToken*float64(upTo)+m.before+0.5), size)
		if i == len(parts)-1 {
			end = size
		}
		for len(b) < end {
			hi, _ := bits.Mul64(r.Uint64(), uint64(len(m.pool)))
			b = append(b, m.pool[hi].text...)
		}
	}
	return strings.TrimRight(string(b[:max(size, 1)]), " ")
}
