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

// key returns the text of a row in the order in which most servers read it: tools before messages. Of a
// message it has the first letter of the role, what the message says, and whatever else it has, as JSON.
func (r *Row) key() []byte {
	out := bytes.Clone(r.Tools)
	if r.Messages == nil {
		return append(out, r.Prompt...)
	}
	_ = elements(r.Messages, func(m []byte) error {
		content, rest := []byte(nil), []byte(nil)
		members(m, func(name, v []byte) {
			switch string(name) {
			case "role":
				out = append(out, v[1])
			case "content":
				content = bytes.Trim(v, `"`)
			default:
				rest = append(rest, v...)
			}
		})
		out = append(append(append(out, content...), rest...), 0)
		return nil
	})
	return out
}

// Beginnings knows with how many bytes prompts begin alike, and which were sent. It is not safe for
// concurrent use.
type Beginnings struct {
	size []int // of each prompt, in bytes
	rank []int // place of each prompt in the order of their bytes
	same []int // by rank: with how many bytes the prompt begins as the one before it does
	sent []int // by rank: how many requests send the prompt
}

// Beginnings returns the beginnings of the rows. No row was sent yet. A conversation counts with its
// first turn.
func (d *Dataset) Beginnings() *Beginnings {
	return beginnings(len(d.Rows), func(i int) []byte { return d.Rows[i].key() })
}

func beginnings(n int, key func(i int) []byte) *Beginnings {
	b := &Beginnings{size: make([]int, n), rank: make([]int, n), same: make([]int, n), sent: make([]int, n)}
	keys, order := make([][]byte, n), make([]int, n)
	for i := range n {
		keys[i], order[i] = key(i), i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	for rank, i := range order {
		b.size[i], b.rank[i] = len(keys[i]), rank
		if rank == 0 {
			continue
		}
		before := keys[order[rank-1]]
		for b.same[rank] < min(len(before), len(keys[i])) && before[b.same[rank]] == keys[i][b.same[rank]] {
			b.same[rank]++
		}
	}
	return b
}

// Alike returns the longest beginning of prompt i that another prompt begins with too, as a share of its
// bytes. 1 means that another prompt begins with the whole of it.
func (b *Beginnings) Alike(i int) float64 {
	// Among the sorted prompts, one shares its longest beginning with a neighbour.
	at := b.rank[i]
	most := b.same[at]
	if at+1 < len(b.same) {
		most = max(most, b.same[at+1])
	}
	return b.share(i, most)
}

// Send returns the longest beginning of prompt i with which a prompt began that was sent before, as a
// share of its bytes. From then on, prompt i was sent too.
func (b *Beginnings) Send(i int) float64 {
	at := b.rank[i]
	if b.sent[at]++; b.sent[at] > 1 {
		return 1
	}
	most := 0
	for n, same := at-1, b.same[at]; n >= 0 && same > most; n-- {
		if b.sent[n] > 0 {
			most = same
		}
		same = min(same, b.same[n])
	}
	for n, same := at+1, math.MaxInt; n < len(b.same); n++ {
		if same = min(same, b.same[n]); same <= most {
			break
		}
		if b.sent[n] > 0 {
			most = same
		}
	}
	return b.share(i, most)
}

// Again reports whether Send was called for prompt i more than once.
func (b *Beginnings) Again(i int) bool { return b.sent[b.rank[i]] > 1 }

func (b *Beginnings) share(i, same int) float64 {
	return float64(same) / float64(max(b.size[i], 1))
}
