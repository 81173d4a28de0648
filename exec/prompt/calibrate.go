package prompt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/exec/client"
)

// Counter returns how many prompt tokens the server counts for p.
type Counter func(ctx context.Context, p client.Prompt) (int, error)

// Options configures Calibrate.
type Options struct {
	// Salt is different in every run, so that no two runs have the same prompts.
	Salt uint64
	// Tokenizer counts tokens without running the model. If it is nil, or if its first call returns
	// client.ErrNoTokenizer, the server has no tokenizer.
	//
	// Tokenizer may leave out the tokens that the server puts around a prompt, if every prompt gets
	// the same number of them. Usage shows that number.
	Tokenizer Counter
	// Usage returns prompt_tokens of a real request for one token. Required.
	Usage Counter
	// IDs returns the token ids of bare text; nil if the server cannot. With ids, one question
	// gives the token counts of many words.
	IDs func(ctx context.Context, text string) ([]int, error)
	// AsIDs makes prompts of token ids. It requires IDs.
	AsIDs bool
	// Known is the result of an earlier calibration; nil if there is none. Calibrate checks it with
	// two requests for one token. If the server now counts differently, Calibrate starts again.
	Known *Known
}

type effort struct {
	pool    int  // words wanted
	least   int  // smallest number of words that is accepted
	weigh   int  // number of questions that measure the token costs of words
	volley  int  // number of words in each of the first questions
	segment int  // words of one question
	hunts   int  // largest number of questions that look for words whose counts do not add up
	halve   bool // tries half of the words before it looks for words that do not add up
	atOnce  int  // questions under way
}

var (
	thorough = effort{pool: 128, least: 12, weigh: 48, volley: 8192, segment: 2048, hunts: 400, atOnce: 8}
	sparing  = effort{pool: 40, least: 12, weigh: 16, volley: 600, segment: 600, hunts: 40, halve: true, atOnce: mostAtOnce}
)

// mostAtOnce limits the number of questions that wait for an answer at the same time.
const mostAtOnce = 16

// Calibrate learns how the server counts tokens. If each word is one token, or if the tokenizer
// returns token ids, it asks the tokenizer six questions and the model for two tokens. Otherwise it
// asks about 25 questions. Without a tokenizer it asks the model.
func Calibrate(ctx context.Context, o Options) (*Maker, error) {
	m, err := calibrate(ctx, o)
	if e, _ := errors.AsType[*client.Error](err); refused(err) {
		return nil, fmt.Errorf("the server refuses this workload's requests: %w", e)
	}
	return m, err
}

func calibrate(ctx context.Context, o Options) (*Maker, error) {
	if o.Usage == nil {
		return nil, errors.New("prompt: Options.Usage is missing")
	}
	o.Usage = patient(o.Usage, "a request")
	if m := o.recall(ctx); m != nil {
		return m, nil
	}
	if o.AsIDs {
		return calibrateIDs(ctx, o)
	}
	if o.Tokenizer != nil {
		m, err := calibrateText(ctx, patient(o.Tokenizer, "the tokenizer"), o.IDs, thorough, o.Salt)
		switch {
		case err == nil:
			if m.exact, err = m.agree(ctx, o.Usage); m.exact || err != nil {
				return m, err
			}
			// The server's tokenizer and its usage report count differently. A plan's numbers mean
			// the tokens of the usage report, which are charged, so prompts are sized by usage.
		case !errors.Is(err, errNotAdditive) && !errors.Is(err, client.ErrNoTokenizer):
			return nil, fmt.Errorf("could not ask the tokenizer: %w", err)
		}
	}
	m, err := calibrateText(ctx, o.Usage, nil, sparing, o.Salt)
	if errors.Is(err, errNotAdditive) {
		m, err = proportional(ctx, o.Usage, o.Salt)
	}
	if err != nil {
		return nil, fmt.Errorf("could not size prompts by the usage of small requests: %w", err)
	}
	return m, nil
}

// attempts bounds how often one question is repeated. A server that fails now and then must
// still be measured, because the plan judges its failures.
const attempts = 4

// patient returns a counter that asks again if the function count fails. It does not ask again if
// there is no tokenizer, if the server would refuse the question again, or if the context has ended.
// A busy server may accept only a few questions at a time. If it refuses one, that question is
// repeated alone.
func patient(count Counter, asked string) Counter {
	turn, slots := make(chan struct{}, 1), make(chan struct{}, mostAtOnce)
	ask := func(ctx context.Context, p client.Prompt, takes int) (int, error) {
		turn <- struct{}{}
		for range takes {
			slots <- struct{}{}
		}
		<-turn
		defer func() {
			for range takes {
				<-slots
			}
		}()
		return count(ctx, p)
	}
	return func(ctx context.Context, p client.Prompt) (int, error) {
		var err error
		for range attempts {
			n, takes := 0, 1
			if turnedAway(err) {
				takes = mostAtOnce
			}
			if n, err = ask(ctx, p, takes); err == nil {
				return n, nil
			}
			if ctx.Err() != nil || errors.Is(err, client.ErrNoTokenizer) || refused(err) {
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

func refused(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Final()
}

func turnedAway(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && (e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable)
}

var errNotAdditive = errors.New("token counts do not add up")

// proportional calibrates a Maker for a server that estimates token counts from bytes, as a gateway
// may do. It learns the number of bytes per token.
func proportional(ctx context.Context, count Counter, salt uint64) (*Maker, error) {
	m := &Maker{salt: salt, sep: " ", lead: word{text: lead(" ")}, perToken: 1}
	for _, w := range words {
		m.pool = append(m.pool, word{text: " " + w, cost: 1})
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

// separators lists the texts to put between words, in the order of trial. A separator fails if some
// tokens of the model span two words.
var separators = []string{" ", "\n", ", "}

// calibrateText learns to make prompts of text. The function ids returns the token ids of bare
// text; nil if the server cannot.
func calibrateText(ctx context.Context, count Counter, ids func(context.Context, string) ([]int, error), e effort,
	salt uint64) (*Maker, error) {
	var last error
	for _, sep := range separators {
		m := &Maker{salt: salt, sep: sep}
		q := &questions{ctx: ctx, count: count, ids: ids, sep: sep}
		if last = m.learn(q, e); last == nil {
			return m, nil
		}
		if q.err != nil { // after a failure of the server, another separator does not help
			return nil, q.err
		}
	}
	return nil, last
}

// learn fills in the fields pool and lead. It first tests a guess of how many tokens each word
// costs. If the guess is wrong, it asks the server.
func (m *Maker) learn(q *questions, e effort) error {
	quick := *q // sends fewer, longer questions first; they fail if the server refuses long prompts
	brief := e
	brief.segment, brief.hunts = e.volley, 0
	if m.take(&quick, quick.likely(e.pool), brief) && m.begin(&quick) == nil {
		return nil
	}
	if q.base = quick.base; errors.Is(quick.err, client.ErrNoTokenizer) || q.base == 0 && refused(quick.err) {
		q.err = quick.err
		return q.err
	}
	try := scales
	if quick.wordError > 1 {
		try = scales[1:]
	}
	for _, by := range try {
		measured := chosen(q.weigh(by, e.weigh, e.atOnce), e.pool)
		for size := len(measured); q.err == nil && size >= e.least; size /= 2 {
			allowed := e
			if e.halve && size/2 >= e.least {
				allowed.hunts = 0
			}
			if m.take(q, measured[:size], allowed) {
				return m.begin(q)
			}
		}
		if q.err != nil {
			return q.err
		}
	}
	return fmt.Errorf("%w: found fewer than %d words that can be joined by %q", errNotAdditive, e.least, m.sep)
}

// take fills the pool with the words of list whose token counts add up. It reports whether there
// are enough.
func (m *Maker) take(q *questions, list []word, e effort) bool {
	pool, ok := q.additive(list, e)
	if !ok || len(pool) < e.least {
		return false
	}
	m.pool = pool
	m.settle()
	return m.usable()
}

// begin sets the words with which every prompt begins. Their cost includes the tokens that the
// server's template puts around a prompt. Then it checks the calibration.
func (m *Maker) begin(q *questions) error {
	m.lead = word{lead(m.sep), q.base}
	if joint := m.sep + opening[1]; !slices.ContainsFunc(m.pool, func(w word) bool { return w.text == joint }) {
		// Usually a prompt begins with two opening words. The second is not in the pool, so its
		// count may not add up. The cheapest word of the pool replaces it.
		cheapest := slices.MinFunc(m.pool, func(a, b word) int { return cmp.Compare(a.cost, b.cost) })
		m.lead.text = opening[0] + cheapest.text
		if m.lead.cost, q.err = q.total(m.lead.text); q.err != nil {
			return q.err
		}
	}
	return m.confirm(q)
}

func (m *Maker) confirm(q *questions) error {
	sizes := []int{20, 1000}
	q.each(len(sizes), len(sizes), func(i int) error {
		tokens := m.least() + sizes[i]*m.costs
		text, err := m.makeText(mix(uint64(i)), Key{Order: i}, tokens)
		if err != nil {
			return err
		}
		got, err := q.total(text)
		if err == nil && got != tokens {
			sizes[i] = 0
		}
		return err
	})
	if q.err == nil && slices.Contains(sizes, 0) {
		return fmt.Errorf("%w: a prompt was counted as more or fewer tokens than its words", errNotAdditive)
	}
	return q.err
}

// usageError makes two prompts of the requested lengths. For each it returns by how many tokens the
// count of the function usage is too high.
func (m *Maker) usageError(ctx context.Context, usage Counter, tokens ...int) (off [2]int, err error) {
	q := questions{ctx: ctx}
	q.each(len(off), len(off), func(i int) error {
		got, err := m.check(ctx, usage, Key{Level: "calibration", Order: i}, tokens[i])
		off[i] = got - tokens[i]
		return err
	})
	if q.err != nil {
		return off, fmt.Errorf("could not learn how the server counts a prompt: %w", q.err)
	}
	return off, nil
}

// agree compares the tokenizer's counts of two prompts with their usage. If both differ by the same
// number, the tokenizer leaves out that many tokens around a prompt, and agree corrects m.
// Otherwise it returns false.
func (m *Maker) agree(ctx context.Context, usage Counter) (bool, error) {
	off, err := m.usageError(ctx, usage, m.least()+16*m.costs, m.least()+256*m.costs)
	if err != nil {
		return false, err
	}
	if off[0] != off[1] {
		return false, nil
	}
	m.lead.cost += off[0]
	return true, nil
}

// check tests the calibration by a sample. It makes a prompt of the given number of tokens, and
// returns how many tokens the function count finds in it.
func (m *Maker) check(ctx context.Context, count Counter, k Key, tokens int) (int, error) {
	p, err := m.Make(k, tokens)
	if err != nil {
		return 0, err
	}
	return count(ctx, p)
}

// calibrateIDs makes a Maker whose prompts consist of token ids from ordinary text. It learns how
// many tokens the server adds to a prompt.
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
	off, err := m.usageError(ctx, o.Usage, 16, 256)
	if err != nil {
		return nil, err
	}
	if off[0] != off[1] || off[0] < 0 {
		return nil, fmt.Errorf("prompts of 16 and 256 token ids were counted as %d and %d", 16+off[0], 256+off[1])
	}
	m.added = off[0]
	return m, nil
}
