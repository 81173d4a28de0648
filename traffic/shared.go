package traffic

import (
	"bytes"
	"fmt"
	"math"
	"slices"
)

// Shared describes prompts that begin alike. There are several groups of prompts. All prompts of a
// group begin with the same text, its prefix, or with the first part of it. The zero Shared means
// that prompts share nothing.
type Shared struct {
	Groups int `plan:"groups"` // number of prefixes, at least 1
	// Tokens is the usual length of a prefix. Some prompts, the share Longer in [0, 1), have a
	// prefix of Tokens + More tokens.
	Tokens int `plan:"tokens"`
	More   int
	Longer float64
}

// Lengths of prefixes that are computed from a hit rate, in tokens. Servers find only whole blocks
// of a prompt in their caches. A block of vLLM has 16 tokens on GPUs, and up to 128 on CPUs. So a
// prefix is a multiple of 128 tokens, or of less for short prompts.
const (
	wholeBlock = 128
	leastBlock = 16
	hitGroups  = 16
)

// LeastUnique is the smallest number of tokens of a prompt after its shared prefix. No other prompt
// has these tokens.
const LeastUnique = 64

// ForHitRate chooses prefixes for the hit rate of a cache. rate is the share of all prompt tokens
// that a server should find in its cache, in (0, 1). input is the length of a prompt in tokens. The
// error says that no prefix gives this rate.
func ForHitRate(input int, rate float64) (Shared, error) {
	want := rate * float64(input)
	for block := wholeBlock; block >= leastBlock; block /= 2 {
		tokens := int(want/float64(block)) * block
		s := Shared{Groups: hitGroups, Tokens: tokens, More: block, Longer: (want - float64(tokens)) / float64(block)}
		if s.Longer < 1e-9 {
			s.More, s.Longer = 0, 0
		}
		if tokens > 0 && s.most() <= input-LeastUnique {
			return s, nil
		}
	}
	least, most := float64(leastBlock)/float64(input), float64((input-LeastUnique)/leastBlock*leastBlock)/float64(input)
	if most < least {
		return Shared{}, fmt.Errorf("prompts of %d tokens are too short to share any", input)
	}
	return Shared{}, fmt.Errorf("prompts of %d tokens can share from %.0f%% to %.0f%% of them", input, math.Ceil(100*least), math.Floor(100*most))
}

// most returns the length of the longest shared prefix, in tokens.
func (s Shared) most() int { return s.Tokens + s.More }

// Of chooses the prefix of a request: its group, and how many tokens of the group's prefix it has.
// In a round, the share Longer of the requests, to within one request, has the longer prefix. draw
// and round are random numbers of the request and its round. order is its number in the round.
func (s Shared) Of(draw, round uint64, order int) (group, tokens int) {
	group, tokens = int(draw%uint64(s.Groups)), s.Tokens
	begin := float64(round%(1<<20)) / (1 << 20)
	before, after := math.Floor(begin+float64(order)*s.Longer), math.Floor(begin+float64(order+1)*s.Longer)
	if after > before {
		tokens += s.More
	}
	return group, tokens
}

// key returns the text of a row in the order in which most servers read it: tools before messages.
func (r *Row) key() []byte {
	if r.Messages == nil {
		return append(bytes.Clone(r.Tools), r.Prompt...)
	}
	return slices.Concat(r.Tools, r.Messages)
}

// Shares returns for each row the length of its longest beginning that also begins a different row.
// The length is a share of the row's bytes; 1 means that a different row begins with the whole row.
func (d *Dataset) Shares() []float64 {
	keys, order := make([][]byte, len(d.Rows)), make([]int, len(d.Rows))
	for i := range d.Rows {
		keys[i], order[i] = d.Rows[i].key(), i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	shares := make([]float64, len(d.Rows))
	// Among the sorted rows, a row shares its longest beginning with a neighbour.
	for n := 1; n < len(order); n++ {
		a, b := order[n-1], order[n]
		same := 0
		for same < min(len(keys[a]), len(keys[b])) && keys[a][same] == keys[b][same] {
			same++
		}
		for _, i := range []int{a, b} {
			shares[i] = max(shares[i], float64(same)/float64(len(keys[i])))
		}
	}
	return shares
}
