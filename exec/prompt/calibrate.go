package prompt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/exec/client"
)

// Counter returns how many prompt tokens the server counts for p.
type Counter func(ctx context.Context, p client.Prompt) (int, error)

// Options says whom Calibrate may ask.
type Options struct {
	// Salt makes the prompts of one run differ from those of any other.
	Salt uint64
	// Tokenizer counts without running the model; nil, or
	// client.ErrNoTokenizer from its first call: the server has none to ask.
	// It may leave out what the server puts around a prompt, as long as that
	// is the same for all: Usage tells.
	Tokenizer Counter
	// Usage is prompt_tokens of a real request for one token. Required.
	Usage Counter
	// IDs, if set, returns the token ids of bare text; prompts are then made
	// of ids.
	IDs func(ctx context.Context, text string) ([]int, error)
	// Known, if set, is what was learnt before: it is checked by two requests for
	// one token, and learnt again where they are counted otherwise.
	Known *Known
}

// effort is how much may be asked of a counter.
type effort struct {
	pool    int // words wanted
	least   int // words without which it is no pool
	firsts  int // first words wanted
	segment int // words of one question
	hunts   int // questions to find words that do not add up
	atOnce  int // questions under way
}

var (
	thorough = effort{pool: 128, least: 12, firsts: 64, segment: 2048, hunts: 400, atOnce: 8}
	sparing  = effort{pool: 40, least: 12, firsts: 32, segment: 600, hunts: 40, atOnce: 4}
)

// Calibrate learns how the server counts, by about a hundred small questions to
// its tokenizer and two requests to the model; without a tokenizer by fifty to a
// hundred requests for one token.
func Calibrate(ctx context.Context, o Options) (*Maker, error) {
	if o.Usage == nil {
		return nil, errors.New("prompt: Options.Usage is missing")
	}
	o.Usage = patient(o.Usage, "a request")
	if m := o.recall(ctx); m != nil {
		return m, nil
	}
	if o.IDs != nil {
		return calibrateIDs(ctx, o)
	}
	if o.Tokenizer != nil {
		o.Tokenizer = patient(o.Tokenizer, "the tokenizer")
		_, err := o.Tokenizer(ctx, client.Prompt{Text: words[0]})
		if err == nil {
			m, err := calibrateText(ctx, o.Tokenizer, thorough, o.Salt)
			agree := false
			if err == nil {
				agree, err = m.agree(ctx, o.Usage)
			}
			if err != nil && !errors.Is(err, errNotAdditive) {
				return nil, err
			}
			if agree {
				m.exact = true
				return m, nil
			}
			// The tokenizer counts otherwise than the model is charged: the
			// latter is what a plan speaks of.
		} else if !errors.Is(err, client.ErrNoTokenizer) {
			return nil, fmt.Errorf("could not ask the tokenizer: %w", err)
		}
	}
	m, err := calibrateText(ctx, o.Usage, sparing, o.Salt)
	if errors.Is(err, errNotAdditive) {
		m, err = proportional(ctx, o.Usage, o.Salt)
	}
	if err != nil {
		return nil, fmt.Errorf("could not size prompts by the usage of small requests: %w", err)
	}
	return m, nil
}

// attempts bounds how often one question is asked. That a server fails now and
// then is for the plan to judge, not a reason to measure nothing.
const attempts = 4

// patient asks again if count fails. It gives up at once if that is of no use: there is no
// tokenizer, or nobody waits for the answer.
func patient(count Counter, asked string) Counter {
	return func(ctx context.Context, p client.Prompt) (int, error) {
		var err error
		for range attempts {
			var n int
			if n, err = count(ctx, p); err == nil {
				return n, nil
			}
			if ctx.Err() != nil || errors.Is(err, client.ErrNoTokenizer) {
				return 0, err
			}
		}
		size := fmt.Sprintf("%d bytes", len(p.Text))
		if len(p.IDs) > 0 {
			size = fmt.Sprintf("%d token ids", len(p.IDs))
		}
		return 0, fmt.Errorf("%s about a prompt of %s failed %d times: %w", asked, size, attempts, err)
	}
}

// errNotAdditive says that no words were found whose counts add up.
var errNotAdditive = errors.New("token counts do not add up")

// proportional is for a server whose counts do not add up by words, a gateway
// that estimates tokens from bytes for one: so many tokens a byte.
func proportional(ctx context.Context, count Counter, salt uint64) (*Maker, error) {
	m := &Maker{salt: salt, sep: " ", joint: " " + words[0], perToken: 1}
	for _, w := range words {
		m.pool = append(m.pool, word{text: " " + w, cost: 1})
		m.firsts = append(m.firsts, word{text: w})
	}
	var bytes, tokens [2]int
	for i, n := range []int{500, 3000} {
		p, err := m.Make(Key{Level: "calibration", Order: i}, n)
		if err != nil {
			return nil, err
		}
		bytes[i] = len(p.Text)
		if tokens[i], err = count(ctx, p); err != nil {
			return nil, err
		}
	}
	if tokens[1] <= tokens[0] || tokens[0] <= 0 {
		return nil, fmt.Errorf("prompts of %d and %d bytes were counted as %d and %d tokens", bytes[0], bytes[1], tokens[0], tokens[1])
	}
	m.perToken = float64(bytes[1]-bytes[0]) / float64(tokens[1]-tokens[0])
	m.before = float64(bytes[0]) - m.perToken*float64(tokens[0])
	return m, nil
}

// separators are tried in turn: a vocabulary with tokens that span words
// spoils the first.
var separators = []string{" ", "\n", ", "}

func calibrateText(ctx context.Context, count Counter, e effort, salt uint64) (*Maker, error) {
	var last error
	for _, sep := range separators {
		m := &Maker{salt: salt, sep: sep}
		q := &questions{ctx: ctx, count: count, sep: sep}
		if last = m.learn(q, e); last == nil {
			return m, nil
		}
		if q.err != nil { // the server, not the words
			return nil, q.err
		}
	}
	return nil, last
}

// learn fills in pool, joint and first words.
func (m *Maker) learn(q *questions, e effort) error {
	for _, group := range []int{8, 1} {
		measured := q.measure(e.pool, e.atOnce, group)
		for size := len(measured); q.err == nil && size >= e.least; size /= 2 {
			pool, ok := q.additive(measured[:size], e)
			if !ok || len(pool) < e.least {
				continue
			}
			m.pool = pool
			if m.settle(); m.usable() {
				return m.begin(q, e)
			}
		}
		if q.err != nil {
			return q.err
		}
	}
	return fmt.Errorf("%w: found fewer than %d words that can be joined by %q", errNotAdditive, e.least, m.sep)
}

// begin measures the first words: each costs what a prompt of it and the joint
// costs, so that what surrounds a prompt is in it.
func (m *Maker) begin(q *questions, e effort) error {
	joint := slices.MinFunc(m.pool, func(a, b word) int { return cmp.Compare(a.cost, b.cost) })
	m.joint = joint.text
	// Two spellings: a word at the very start, as people write, or behind a
	// separator, where small vocabularies have more of them whole. The cheaper
	// one wins; a few words tell.
	var bare, spaced []word
	for _, w := range words[:min(e.firsts, len(words))] {
		bare = append(bare, word{text: w})
	}
	for _, w := range m.pool[:min(e.firsts, len(m.pool))] {
		spaced = append(spaced, word{text: w.text})
	}
	few := min(8, len(bare), len(spaced))
	firsts := bare
	if q.begin(bare[:few], m.joint, e) > q.begin(spaced[:few], m.joint, e) {
		firsts = spaced
	}
	q.begin(firsts[few:], m.joint, e)
	if q.err != nil {
		return q.err
	}
	slices.SortStableFunc(firsts, func(a, b word) int { return cmp.Compare(a.cost, b.cost) })
	// A first word of several tokens may share its first one with others:
	// those of one token are preferred where there are enough of them.
	whole := 0
	for whole < len(firsts) && firsts[whole].cost == firsts[0].cost {
		whole++
	}
	if m.single && whole >= len(firsts)/4 {
		firsts = firsts[:whole]
	}
	m.firsts = firsts
	return m.confirm(q)
}

// confirm compares what was learnt with three prompts as they will be made.
func (m *Maker) confirm(q *questions) error {
	for i, size := range []int{20, 200, 1000} {
		tokens := m.Least() + size*m.costs
		text, err := m.makeText(mix(uint64(i)), Key{Order: i}, tokens)
		if err != nil {
			return err
		}
		got, err := q.total(text)
		if err != nil {
			q.err = err
			return err
		}
		if got != tokens {
			return fmt.Errorf("%w: a prompt composed to %d tokens was counted as %d", errNotAdditive, tokens, got)
		}
	}
	return nil
}

// off is how many more tokens usage counts of two prompts than they were made
// for.
func (m *Maker) off(ctx context.Context, usage Counter, tokens ...int) (off [2]int, err error) {
	for i, n := range tokens {
		got, err := m.Check(ctx, usage, Key{Level: "calibration", Order: i}, n)
		if err != nil {
			return off, fmt.Errorf("could not learn how the server counts a prompt: %w", err)
		}
		off[i] = got - n
	}
	return off, nil
}

// agree compares tokenizer and usage by two prompts. A constant difference is
// what the tokenizer leaves out, and is corrected. With any other difference
// they do not agree.
func (m *Maker) agree(ctx context.Context, usage Counter) (bool, error) {
	off, err := m.off(ctx, usage, m.Least()+16*m.costs, m.Least()+256*m.costs)
	if err != nil {
		return false, err
	}
	if off[0] != off[1] {
		return false, nil
	}
	for i := range m.firsts {
		m.firsts[i].cost += off[0]
	}
	return true, nil
}

// Check counts one prompt of tokens tokens by count, and returns what it
// counted: a spot check of what was calibrated.
func (m *Maker) Check(ctx context.Context, count Counter, k Key, tokens int) (int, error) {
	p, err := m.Make(k, tokens)
	if err != nil {
		return 0, err
	}
	return count(ctx, p)
}

// calibrateIDs takes the ids that ordinary text is made of, and learns what the
// server adds to them.
func calibrateIDs(ctx context.Context, o Options) (*Maker, error) {
	ids, err := o.IDs(ctx, " "+strings.Join(words, " "))
	if err != nil {
		return nil, fmt.Errorf("could not ask the tokenizer: %w", err)
	}
	slices.Sort(ids)
	m := &Maker{salt: o.Salt, ids: slices.Compact(ids), exact: true}
	if len(m.ids) < 16 {
		return nil, fmt.Errorf("the tokenizer made only %d different tokens of %d words", len(m.ids), len(words))
	}
	off, err := m.off(ctx, o.Usage, 16, 256)
	if err != nil {
		return nil, err
	}
	if off[0] != off[1] || off[0] < 0 {
		return nil, fmt.Errorf("prompts of 16 and 256 token ids were counted as %d and %d", 16+off[0], 256+off[1])
	}
	m.around = off[0]
	return m, nil
}
