package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/traffic"
)

// Rows is an iterator over the rows of a data set, for one start of a server. It is not safe for
// concurrent use.
type Rows struct {
	set    *traffic.Dataset
	order  []int
	begins *traffic.Beginnings
	fits   []fit   // how each row of order gets its length; nil if rows are sent as they are
	later  *fitter // finds it when a row is sent; nil if it is known
}

// NewRows returns the rows of set in their order. If shuffled, the seed decides the order. begins knows
// which of them were sent already.
func NewRows(set *traffic.Dataset, begins *traffic.Beginnings, shuffled bool, seed int64) *Rows {
	r := &Rows{set: set, order: make([]int, len(set.Rows)), begins: begins}
	for i := range r.order {
		r.order[i] = i
	}
	if shuffled {
		rand.New(rand.NewPCG(uint64(seed), uint64(len(r.order)))).Shuffle(len(r.order), func(i, j int) {
			r.order[i], r.order[j] = r.order[j], r.order[i]
		})
	}
	return r
}

// byBytes bounds the number of tokens of a part of a prompt. The part's share of the tokens is at
// most byBytes times its share of the bytes.
const byBytes = 1.25

// mostOfARow is the largest share of a prompt that begins like others and goes on differently.
const mostOfARow = 0.999

// place returns where the row of a request stands in the order. The argument number counts the server's
// requests with the same purpose, or its conversations, from 0.
//
// Measured requests take the rows in order, and repeat a row only after all rows were sent. Other
// requests, such as warm-up, take rows from the end.
func (r *Rows) place(phase metric.Phase, number int) int {
	n := len(r.order)
	if number %= n; phase != metric.Measured {
		number = n - 1 - number
	}
	return number
}

// Prompt returns the prompt of a request, or of the first turn of a conversation. See place for its
// arguments. The error says that its row cannot be as long as FitLater asks for.
func (r *Rows) Prompt(phase metric.Phase, number int) (p client.Prompt, err error) {
	number = r.place(phase, number)
	i := r.order[number]
	if r.later != nil && r.fits[number].bytes == 0 {
		if r.fits[number], err = r.later.fit(number); err != nil {
			return p, err
		}
	}
	p = Of(&r.set.Rows[i])
	alike, sent := r.begins.Alike(i), r.begins.Send(i)
	p.Row, p.Shared, p.Bound = i+1, sent, byBytes*alike
	if r.fits != nil {
		whole := p.Bytes()
		p = r.fitted(number, r.fits[number])
		// No other row has the text that was removed from this prompt, or added to it. So the text
		// shared with other rows is now another share of the prompt.
		longer := float64(whole) / float64(p.Bytes())
		p.Row, p.Shared, p.Bound = i+1, longer*sent, max(1, longer)*byBytes*alike
	}
	// Only a whole row that came before is shared whole, however much byBytes allows.
	p.Shared, p.Bound = min(p.Shared, mostOfARow), min(p.Bound, mostOfARow)
	if sent == 1 {
		p.Shared = 1
	}
	if sent == 1 || alike == 1 {
		p.Bound = 1
	}
	return p, nil
}

// Again reports whether the row of a prompt was taken by another request too. Prompts are made before they
// are sent, so either of the two may be sent first.
func (r *Rows) Again(p client.Prompt) bool { return p.Row > 0 && r.begins.Again(p.Row-1) }

// Turns returns how many turns the conversation of a row has. See place for the arguments.
func (r *Rows) Turns(phase metric.Phase, number int) int {
	return max(len(r.set.Rows[r.order[r.place(phase, number)]].Turns), 1)
}

// Next returns the prompt of turn n of the conversation of a row, from 2. It goes on from the prompt that
// was sent before, and from the server's own answer; if that is nil, from the recorded one. If earlier
// requests sent only the prompt before and its answer, Shared is 0, and the caller sets Before.
func (r *Rows) Next(n int, sent client.Prompt, own *string) client.Prompt {
	row := &r.set.Rows[sent.Row-1]
	p := Of(row)
	p.Row, p.Messages = sent.Row, row.Next(n, sent.Messages, own)
	if sent.Bound < 1 {
		return p // it differs from all other rows within its first turn
	}
	if p.Bound = 1; sent.Shared == 1 && own == nil && r.begins.Alike(sent.Row-1) < 1 {
		p.Shared = 1 // the whole recording was sent
	}
	return p
}

// Added returns the messages that turn n of a conversation adds to the prompt that was sent before.
func (r *Rows) Added(n int, sent client.Prompt) json.RawMessage {
	return r.set.Rows[sent.Row-1].Adds(n)
}

// Of returns the prompt that is sent for a row.
func Of(row *traffic.Row) client.Prompt {
	return client.Prompt{Text: row.Prompt, Messages: row.Messages, Output: row.MaxTokens, Fields: row.Fields()}
}

// Spare returns how many rows, from the end, the requests of a saturation repeat. Measured requests come
// to these rows last.
func (r *Rows) Spare() int { return max(len(r.order)/4, 1) }

type fit struct {
	bytes int    // length of the row's question and of the texts after it, in bytes
	pad   string // text that is added at the end; "" if none
}

// Fit cuts or extends rows to the requested number of tokens. The server counts the tokens, with
// its chat template. Only the rows that are sent are fitted: the first ones in the order, up to the
// number most. A row's question is cut at its end, or continues with the texts of the next rows.
func (r *Rows) Fit(ctx context.Context, o Options, tokens, most int) error {
	r.order = r.order[:min(most, len(r.order))]
	if o.Tokenizer == nil {
		return fmt.Errorf("rows of %s cannot be cut to %d tokens: %w", r.set.Path, tokens, client.ErrNoTokenizer)
	}
	f := fitter{rows: r, ctx: ctx, tokens: tokens, count: patient(o.Tokenizer, "the tokenizer"), perToken: 4}
	if err := f.learn(patient(o.Usage, "a request")); err != nil {
		return f.failed(err)
	}
	fits := make([]fit, len(r.order))
	q := &questions{ctx: ctx}
	q.each(len(fits), thorough.atOnce, func(i int) (err error) {
		fits[i], err = f.fit(i)
		return err
	})
	if q.err != nil {
		return f.failed(q.err)
	}
	r.fits = fits
	return nil
}

// FitLater does what Fit does, for each row when it is sent. The server's usage must count as count does.
func (r *Rows) FitLater(count Counter, tokens int) {
	r.fits = make([]fit, len(r.order))
	r.later = &fitter{rows: r, ctx: context.Background(), tokens: tokens, count: count, perToken: 4}
}

// Short checks that the prompts of the first rows can be as short as requested. It returns an error
// that names the row that is too long. The callback count counts the tokens of a prompt without a
// server.
func (r *Rows) Short(ctx context.Context, count Counter, tokens, most int) error {
	r.order = r.order[:min(most, len(r.order))]
	for _, i := range r.order {
		row := &r.set.Rows[i]
		if row.Messages == nil && i != r.order[0] {
			continue // every row of text can be cut to the same length
		}
		least := row.Asking("a")
		n, err := count(ctx, Of(&least))
		if err == nil && n > tokens {
			err = r.noRoom(row, tokens)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Rows) noRoom(row *traffic.Row, tokens int) error {
	return fmt.Errorf("%s:%d: what stands around its question takes more than input_tokens = %d", r.set.Path, row.Line, tokens)
}

// joined returns text of about the given number of bytes. It begins with the question of one row,
// and goes on with the rows after it; the parameter place is the index of the first row in the
// order. It cuts no character, and has no white space at its ends.
func (r *Rows) joined(place, bytes int) string {
	var b strings.Builder
	// cannot fail: a row without a question was refused before
	own, _ := r.set.Rows[r.order[place]].Question()
	b.WriteString(strings.TrimLeftFunc(own, unicode.IsSpace))
	for next := place + 1; b.Len() < bytes; next++ {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(strings.TrimSpace(r.set.Rows[r.order[next%len(r.order)]].Text()))
	}
	text := b.String()
	for bytes = min(bytes, len(text)); bytes > 0 && bytes < len(text) && !utf8.RuneStart(text[bytes]); {
		bytes--
	}
	return strings.TrimRightFunc(text[:bytes], unicode.IsSpace)
}

// fitted returns the prompt of the row at r.order[place]. The fit f says how to cut or pad it.
func (r *Rows) fitted(place int, f fit) client.Prompt {
	row := r.set.Rows[r.order[place]].Asking(r.joined(place, f.bytes) + f.pad)
	return Of(&row)
}

type fitter struct {
	rows     *Rows
	ctx      context.Context
	tokens   int
	count    Counter
	extra    int     // tokens that the server's usage counts and its tokenizer does not
	perToken float64 // estimated bytes per token
}

func (f *fitter) failed(err error) error {
	if errors.Is(err, client.ErrNoTokenizer) {
		return fmt.Errorf("rows of %s cannot be cut to %d tokens: %w in the way that it is asked by this workload", f.rows.set.Path, f.tokens, client.ErrNoTokenizer)
	}
	return err
}

// learn finds how many tokens the server's usage counts more than the tokenizer. It compares the
// counts for two prompts in the form of the first row.
func (f *fitter) learn(usage Counter) error {
	var off [2]int
	for i, n := range []int{16, 200} {
		row := f.rows.set.Rows[f.rows.order[0]].Asking(strings.Join(words[:n], " "))
		p := Of(&row)
		told, err := f.count(f.ctx, p)
		if err != nil {
			return err
		}
		charged, err := usage(f.ctx, p)
		if err != nil {
			return err
		}
		off[i] = charged - told
	}
	if off[0] != off[1] {
		return fmt.Errorf("rows of %s cannot be cut to %d tokens: the server's tokenizer counts %d and %d tokens fewer than the model is charged for", f.rows.set.Path, f.tokens, off[0], off[1])
	}
	f.extra = off[0]
	return nil
}

func (f *fitter) counted(place int, x fit) (int, error) {
	n, err := f.count(f.ctx, f.rows.fitted(place, x))
	return n + f.extra, err
}

// fit finds where to cut the text to get the requested number of tokens. It tries places between a
// cut with too few tokens and a cut with too many. This mostly succeeds, because one more character
// rarely adds more than one token.
func (f *fitter) fit(place int) (fit, error) {
	const most = 64 // most requests to the tokenizer for one row
	perToken := f.perToken
	low, high := 0, 0 // nearest cuts with too few and too many tokens, in bytes; 0: none yet
	fewer, more := 0, 0
	n := max(int(float64(f.tokens)*perToken), 1)
	for asked := range most {
		have, err := f.counted(place, fit{bytes: n})
		switch {
		case err != nil:
			return fit{}, err
		case have == f.tokens:
			return fit{bytes: n}, nil
		case have < f.tokens:
			low, fewer = n, have
		default:
			high, more = n, have
		}
		switch {
		case high == 0:
			n = low + max(int(float64(f.tokens-fewer)*max(perToken, float64(low)/float64(max(fewer, 1)))), 1)
		case high-low <= 1 && low == 0:
			return fit{}, f.rows.noRoom(&f.rows.set.Rows[f.rows.order[place]], f.tokens)
		case high-low <= 1:
			return f.pad(place, low, f.tokens-fewer)
		case asked%3 == 2:
			n = (low + high) / 2
		default:
			n = low + int(float64(high-low)*float64(f.tokens-fewer)/float64(more-fewer))
			n = min(max(n, low+1), high-1)
		}
	}
	return fit{}, f.uneven(place)
}

// pads are texts that mostly are one token, whatever stands before them.
var pads = []string{" a", " the", ".", "\n", "!"}

func (f *fitter) pad(place, bytes, tokens int) (fit, error) {
	for _, p := range pads {
		x := fit{bytes, strings.Repeat(p, tokens)}
		if have, err := f.counted(place, x); err != nil || have == f.tokens {
			return x, err
		}
	}
	return fit{}, f.uneven(place)
}

func (f *fitter) uneven(place int) error {
	return fmt.Errorf("%s:%d: it cannot be made exactly %d tokens long", f.rows.set.Path, f.rows.set.Rows[f.rows.order[place]].Line, f.tokens)
}
