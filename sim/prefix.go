package sim

import "container/list"

// prefixCache remembers the blocks of prompts, least recently used ones
// leaving first. A block's hash covers everything before it, so a match of one
// is a match of all before it.
type prefixCache struct {
	blocks int // capacity
	at     map[uint64]*list.Element
	order  *list.List // of uint64, most recently used first
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

// match counts the leading blocks that are known, and marks them as used.
func (c *prefixCache) match(prefix []uint64) int {
	n := 0
	for n < len(prefix) && c.at[prefix[n]] != nil {
		n++
	}
	c.touch(prefix[:n])
	return n
}

// insert remembers all blocks of a prompt.
func (c *prefixCache) insert(prefix []uint64) {
	c.touch(prefix)
	for c.order.Len() > c.blocks {
		last := c.order.Back()
		delete(c.at, c.order.Remove(last).(uint64))
	}
}

// touch goes from the end to the beginning, so that a prompt's first blocks
// are its most recently used ones: the others are worth nothing without them.
func (c *prefixCache) touch(prefix []uint64) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if e := c.at[prefix[i]]; e != nil {
			c.order.MoveToFront(e)
		} else {
			c.at[prefix[i]] = c.order.PushFront(prefix[i])
		}
	}
}

// PrefixHashes returns the hashes of the full blocks of a prompt, as Job wants
// them.
func PrefixHashes(tokens []int, blockTokens int) []uint64 {
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
