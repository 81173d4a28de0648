// Package prompt makes the prompts that are sent. They have exactly the requested length, as the
// server under test counts tokens. The same salt and seed give the same prompts.
//
// The package has no tokenizer, so it asks the server. Calibrate finds words whose token counts add
// up in any order on this server. Make then composes prompts from these words, without requests.
package prompt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
	"strings"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
)

// Key identifies one prompt of a run. It contains no server, so two compared servers get the same
// prompts.
type Key struct {
	Seed     int64
	Workload string
	Level    string
	Round    int
	Phase    metric.Phase
	Order    int // number of the request, counted within its round and phase
	// Shared is the beginning of the prompt that other prompts have too; zero if there is none.
	Shared Prefix
}

// Prefix describes the common beginning of the prompts in a group. Each group has one text for each
// workload. A prompt begins with Tokens + More tokens of that text. Tokens is the same for the
// whole group; More may differ.
type Prefix struct{ Group, Tokens, More int }

// Maker makes the prompts for one server and API. It is safe for concurrent use.
type Maker struct {
	salt  uint64
	exact bool

	// These fields are for prompts of text. Such a prompt has first the lead, then words of the
	// pool.
	sep     string
	lead    word   // beginning of every prompt; its cost includes the tokens of the template
	pool    []word // words that prompts are made of, each with its separator
	single  bool   // all words of the pool are one token each
	reach   []bool // reach[n]: words of the pool can make n tokens
	costs   int    // highest cost of a word of the pool, in tokens
	average int    // bytes per token, rounded up

	// On some servers the token counts of words do not add up. A prompt of n tokens then gets about
	// perToken·n + before bytes. On other servers perToken is 0.
	perToken, before float64

	// ids holds the token ids from which prompts are made; nil if prompts are text.
	ids   []int
	added int // number of tokens that the server adds to a prompt of ids
}

type word struct {
	text string
	cost int
}

// Exact reports whether the server's own tokenizer measured the lengths of prompts. Otherwise the
// token counts of small requests did, and only a precision of 1% is claimed.
func (m *Maker) Exact() bool { return m.exact }

// least returns the smallest number of tokens that a prompt of Make can have.
func (m *Maker) least() int {
	switch {
	case m.ids != nil:
		return m.added + 1
	case m.perToken > 0:
		return max(int((float64(len(m.lead.text)+2*longest)-m.before)/m.perToken)+1, 1)
	}
	return m.lead.cost
}

const longest = 16

// Make returns the prompt for the key k with the given number of tokens, as the server counts them
// with the template.
//
// Equal keys give equal prompts. Prompts of different keys differ in their third word. If a round
// has more prompts than there are words, they differ within the first few words. Make fails if it
// cannot make that number of tokens; usually the number is too small.
func (m *Maker) Make(k Key, tokens int) (client.Prompt, error) {
	h := m.hash(k)
	var p client.Prompt
	var err error
	switch {
	case m.ids != nil:
		p, err = m.makeIDs(h, k, tokens)
	case k.Shared.Tokens > 0:
		p.Text, err = m.makeShared(h, k, tokens)
	default:
		p.Text, err = m.makeText(h, k, tokens)
	}
	p.Shared = m.shared(k, tokens)
	return p, err
}

// shared returns the share of a prompt that other prompts of its group begin with too.
func (m *Maker) shared(k Key, tokens int) float64 {
	if k.Shared.Tokens+k.Shared.More == 0 {
		return 0
	}
	return float64(k.Shared.Tokens+k.Shared.More+m.addedTokens()) / float64(tokens)
}

func (m *Maker) hash(k Key) uint64 {
	f := fnv.New64a()
	var b [8]byte
	for _, n := range []uint64{m.salt, uint64(k.Seed), uint64(k.Round)} {
		binary.LittleEndian.PutUint64(b[:], n)
		_, _ = f.Write(b[:])
	}
	for _, s := range []string{k.Workload, k.Level, string(k.Phase)} {
		_, _ = f.Write(append([]byte(s), 0))
	}
	return mix(f.Sum64())
}

// mix is a hash function: each bit of x affects all bits of the result. It is the finalizer of
// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
// 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// digits returns the indices of two words of the pool, which number a prompt in its round. They
// stand after the lead, the first words of the prompt. The hash h differs from round to round and
// shifts both indices.
func digits(h uint64, order, pool int) [2]int {
	n, o := uint64(pool), uint64(order)
	return [2]int{int((h%n + o) % n), int((mix(h+1)%n + o/n) % n)}
}

func (m *Maker) makeText(h uint64, k Key, tokens int) (string, error) {
	if m.perToken > 0 {
		return m.proportional(h, k, tokens)
	}
	if tokens < m.lead.cost {
		return "", fmt.Errorf("a prompt of %d tokens cannot be made: with what the server puts around it, the least is %d", tokens, m.least())
	}
	text, ok := m.compose(m.lead, digits(h, k.Order, len(m.pool)), rand.NewPCG(h, mix(h^uint64(k.Order))), tokens-m.lead.cost)
	if !ok {
		return "", fmt.Errorf("a prompt of exactly %d tokens cannot be made of words of this tokenizer's lengths", tokens)
	}
	return text, nil
}

func (m *Maker) proportional(h uint64, k Key, tokens int) (string, error) {
	if tokens < m.least() {
		return "", fmt.Errorf("a prompt of %d tokens cannot be made: the least is about %d", tokens, m.least())
	}
	size := int(m.perToken*float64(tokens) + m.before + 0.5)
	b := append(make([]byte, 0, size+longest), m.lead.text...)
	for _, d := range digits(h, k.Order, len(m.pool)) {
		b = append(b, m.pool[d].text...)
	}
	r := rand.NewPCG(h, mix(h^uint64(k.Order)))
	for len(b) < size {
		hi, _ := bits.Mul64(r.Uint64(), uint64(len(m.pool)))
		b = append(b, m.pool[hi].text...)
	}
	return strings.TrimRight(string(b[:max(size, len(m.lead.text))]), " "), nil
}

// compose returns a text: the word begin, and then words of the pool. The parameter rest is the
// number of tokens of these words, and numbers holds the indices of the first two.
func (m *Maker) compose(begin word, numbers [2]int, r *rand.PCG, rest int) (string, bool) {
	if !m.makes(rest) {
		return "", false
	}
	var b strings.Builder
	b.Grow(len(begin.text) + rest*m.average + 32)
	b.WriteString(begin.text)
	m.words(&b, r, m.numbered(&b, numbers, rest))
	return b.String(), true
}

// numbered writes the two words that encode the number of a prompt. It leaves out a word after
// which the remaining tokens could not be made. It returns how many tokens remain.
func (m *Maker) numbered(b *strings.Builder, numbers [2]int, rest int) int {
	for _, n := range numbers {
		if w := m.pool[n]; rest >= w.cost && m.makes(rest-w.cost) {
			b.WriteString(w.text)
			rest -= w.cost
		}
	}
	return rest
}

// words writes random words of the pool whose token counts add up to rest. The caller must know
// that such words exist.
func (m *Maker) words(b *strings.Builder, r *rand.PCG, rest int) {
	n := uint64(len(m.pool))
	if m.single {
		for rest > 0 { // each random number selects four words
			x := r.Uint64()
			for range min(rest, 4) {
				b.WriteString(m.pool[(x&0xffff)*n>>16].text)
				x >>= 16
			}
			rest -= min(rest, 4)
		}
		return
	}
	for rest > 0 {
		hi, _ := bits.Mul64(r.Uint64(), n)
		// Start at a random word of the pool. Take the first word from there after which the
		// remaining tokens can still be made.
		for i := range m.pool {
			w := m.pool[(int(hi)+i)%len(m.pool)]
			if w.cost <= rest && m.makes(rest-w.cost) {
				b.WriteString(w.text)
				rest -= w.cost
				break
			}
		}
	}
}

func (m *Maker) makes(n int) bool {
	if n < 0 {
		return false
	}
	return n >= len(m.reach) || m.reach[n]
}

const maxReach = 4096

// settle computes the properties of the word pool that the method compose needs.
func (m *Maker) settle() {
	m.single, m.costs = true, 0
	size, tokens := 0, 0
	for _, w := range m.pool {
		m.single = m.single && w.cost == 1
		m.costs = max(m.costs, w.cost)
		size += len(w.text)
		tokens += w.cost
	}
	m.average = (size + tokens - 1) / tokens
	// If the costs a and b of two words have no common factor, the words can make every number of
	// tokens from (a−1)(b−1) on (Sylvester 1882). So m.reach ends at the square of the highest
	// cost. Pools in which all costs have a common factor are not used.
	m.reach = make([]bool, min(m.costs*m.costs+1, maxReach))
	m.reach[0] = true
	for n := 1; n < len(m.reach); n++ {
		for _, w := range m.pool {
			if w.cost <= n && m.reach[n-w.cost] {
				m.reach[n] = true
				break
			}
		}
	}
}

// If all their costs have a common factor, they cannot.
func (m *Maker) usable() bool {
	common := 0
	for _, w := range m.pool {
		for a, b := common, w.cost; ; a, b = b, a%b {
			if b == 0 {
				common = a
				break
			}
		}
	}
	return common == 1 && m.costs < 60 // 60² < maxReach
}

func (m *Maker) makeIDs(h uint64, k Key, tokens int) (client.Prompt, error) {
	n := tokens - m.added
	if n < 1 {
		return client.Prompt{}, fmt.Errorf("a prompt of %d tokens cannot be made: the least is %d", tokens, m.least())
	}
	ids := make([]int, n)
	shared := min(k.Shared.Tokens+k.Shared.More, n)
	if shared > 0 {
		m.fillIDs(ids[:shared], m.hash(k.group()), k.Shared.Group)
	}
	m.fillIDs(ids[shared:], h, k.Order)
	return client.Prompt{IDs: ids}, nil
}

// fillIDs fills ids with random token ids. The first ids encode the number of the prompt, which is
// order.
func (m *Maker) fillIDs(ids []int, h uint64, order int) {
	numbers := digits(h, order, len(m.ids))
	r := rand.NewPCG(h, mix(h^uint64(order)))
	for i := range ids {
		if i < len(numbers) {
			ids[i] = m.ids[numbers[i]]
			continue
		}
		hi, _ := bits.Mul64(r.Uint64(), uint64(len(m.ids)))
		ids[i] = m.ids[hi]
	}
}

// words holds the words that prompts are made of: short, common English words without capitals.
// In most vocabularies a word after a space is one token. A calibration measures which words a
// server's tokenizer really keeps whole.
var words = strings.Fields(`
time people water house world school family night money story
point study month right hand place case week company system
program question work government number home room mother area
book eye job word business issue side kind head service friend
father power hour game line end member law car city community
name president team minute idea kid body information back parent
face others level office door health person art war history party
result change morning reason research girl guy moment air teacher
force education foot boy age policy music market sense nation plan
college interest death experience effect use class control field
development role effort rate heart drug show leader light voice
wife police mind price report decision son view relationship town
road arm difference value building action season society tax
director position player record paper space ground form event
official matter center couple site project activity star table
need court oil situation cost industry figure street image phone
data picture practice piece land product doctor wall patient
worker news test movie north love support technology step baby
computer type attention film tree source organization hair look
window culture chance brother energy period course summer plant
opportunity term letter condition choice rule daughter south
husband floor campaign material population call economy hospital
church risk fire future bank defense weight bill red blue green
small large early young strong white black open free long high
low real best better great good new old big next last public able
`)
