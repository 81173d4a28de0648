package sim

import (
	"container/list"
	"slices"

	"github.com/tokgate/tokgate/metric"
)

// prefixCache stores blocks of tokens. When it is full, it evicts the least recently used blocks.
// The hash of a block covers the block and all tokens before it, so a match includes all earlier
// blocks.
type prefixCache struct {
	blocks int // capacity, in blocks
	at     map[uint64]*list.Element
	order  *list.List // hashes of the blocks (uint64), the most recently used first
}

func newPrefixCache(blocks int) *prefixCache {
	c := &prefixCache{blocks: blocks}
	c.reset()
	return c
}

func (c *prefixCache) reset() {
	c.at = make(map[uint64]*list.Element)
	c.order = list.New()
}

func (c *prefixCache) match(prefix []uint64) int {
	n := 0
	for n < len(prefix) && c.at[prefix[n]] != nil {
		n++
	}
	c.touch(prefix[:n])
	return n
}

func (c *prefixCache) insert(prefix []uint64) (evicted int) {
	c.touch(prefix)
	for ; c.order.Len() > c.blocks; evicted++ {
		last := c.order.Back()
		delete(c.at, c.order.Remove(last).(uint64))
	}
	return evicted
}

// touch marks blocks as used, from the last to the first. So the first blocks of a prompt leave the
// cache last. The later blocks are useless without them.
func (c *prefixCache) touch(prefix []uint64) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if e := c.at[prefix[i]]; e != nil {
			c.order.MoveToFront(e)
		} else {
			c.at[prefix[i]] = c.order.PushFront(prefix[i])
		}
	}
}

// AnswerPiece returns the server's answer to a prompt, as a piece of a later prompt.
func AnswerPiece(prompt []metric.Piece, tokens int) metric.Piece {
	h := rng(2)
	for _, p := range prompt {
		h = rng(h.next() ^ p.Key)
		h = rng(h.next() ^ uint64(p.Tokens))
	}
	return metric.Piece{Key: h.next(), Tokens: tokens}
}

// Pieces returns tokens as pieces of a prompt. Pieces are equal if their tokens are. They end where
// blocks of the cache do, counted from the first of the tokens.
func Pieces(tokens []int, blockTokens int) []metric.Piece {
	var out []metric.Piece
	for part := range slices.Chunk(tokens, blockTokens) {
		h := rng(3)
		for _, t := range part {
			h = rng(h.next() ^ uint64(t))
		}
		out = append(out, metric.Piece{Key: h.next(), Tokens: len(part)})
	}
	return out
}

// partHashes returns the block hashes of a prompt that consists of parts; see prefixHashes.
func partHashes(parts []metric.Piece, blockTokens int) []uint64 {
	var hashes []uint64
	h, room := rng(1), blockTokens
	for _, p := range parts {
		for at := 0; at < p.Tokens; {
			n := min(room, p.Tokens-at)
			h = rng(h.next() ^ p.Key)
			h = rng(h.next() ^ uint64(at)<<32 ^ uint64(n))
			at += n
			if room -= n; room == 0 {
				hashes, room = append(hashes, h.next()), blockTokens
				h = rng(hashes[len(hashes)-1])
			}
		}
	}
	return hashes
}

func prefixHashes(tokens []int, blockTokens int) []uint64 {
	hashes := make([]uint64, 0, len(tokens)/blockTokens)
	h := rng(1)
	for i, t := range tokens {
		h = rng(h.next() ^ uint64(t))
		if (i+1)%blockTokens == 0 {
			hashes = append(hashes, h.next())
		}
	}
	return hashes
}

func (e *Engine) blocks(s *sequence, tokens int) []uint64 {
	return s.Prefix[:min(tokens/e.profile.PrefixCache.BlockTokens, len(s.Prefix))]
}

func (e *Engine) keep(s *sequence, tokens int) {
	e.state.CacheEvicted += e.cache.insert(e.blocks(s, tokens)) * e.profile.PrefixCache.BlockTokens
}
