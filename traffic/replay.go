package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Stretch says which part of a trace is replayed, and how.
type Stretch struct {
	From, To time.Duration // time since the trace's first request; To 0 means until the trace ends
	// Spread is the largest random delay of a request; 0 means no delay. In some traces, times are
	// rounded down to multiples of a step. A Spread of that step undoes the rounding.
	Spread   time.Duration
	Seed     int64 // seed of the random delays that Spread adds
	Truncate bool  // shorten requests that exceed the server's context; see Recorded.Fit
}

// Replay is a stretch of a trace that is ready to be replayed.
type Replay struct {
	*Trace
	Stretch
	// Rows are all rows of the trace in order, with their times in the replay. The measured rows
	// are Due rows from index First on.
	Rows       []Recorded
	First, Due int
}

// Replay prepares a replay of the given stretch of the trace. It returns an error if the stretch
// has no request.
func (t *Trace) Replay(s Stretch) (*Replay, error) {
	r := &Replay{Trace: t, Stretch: s, Rows: t.Rows}
	if s.Spread > 0 {
		r.Rows = spread(t.Rows, s)
	}
	from := func(at time.Duration) int {
		n, _ := slices.BinarySearchFunc(r.Rows, at, func(row Recorded, at time.Duration) int { return cmp.Compare(row.At, at) })
		return n
	}
	r.First = from(s.From)
	end := len(r.Rows)
	if s.To > 0 {
		end = from(s.To)
	}
	if r.Due = end - r.First; r.Due <= 0 {
		last := t.Rows[len(t.Rows)-1].At
		return nil, fmt.Errorf("no request was sent in that stretch: the trace lasts %v", last.Round(time.Millisecond))
	}
	if r.Length() <= 0 {
		return nil, errors.New("all its requests were sent at one time: that is a burst")
	}
	return r, nil
}

func spread(rows []Recorded, s Stretch) []Recorded {
	out, order, place := slices.Clone(rows), make([]int, len(rows)), make([]int, len(rows))
	for i := range out {
		r := rand.New(rand.NewPCG(uint64(s.Seed), uint64(out[i].Line)))
		out[i].At += time.Duration(r.Float64() * float64(s.Spread))
		order[i] = i
	}
	sort.Stable(byTime[int]{out, order})
	for i, was := range order {
		place[was] = i
	}
	for i := range out {
		if p := out[i].Parent; p >= 0 {
			out[i].Parent = place[p]
		}
	}
	return out
}

// Length returns the duration of the replayed stretch.
func (r *Replay) Length() time.Duration {
	if r.To > 0 {
		return r.To - r.From
	}
	return r.Rows[len(r.Rows)-1].At - r.From
}

// Rate returns the stretch's requests per second.
func (r *Replay) Rate() float64 { return float64(r.Due) / r.Length().Seconds() }

// Measured returns the rows of the replayed stretch. Their requests are measured.
func (r *Replay) Measured() []Recorded { return r.Rows[r.First : r.First+r.Due] }

// Before returns the index of the first row that was sent at most d before the given row. If the
// given row is not after the first replayed row, d is counted back from the start of the stretch.
func (r *Replay) Before(row int, d time.Duration) int {
	from := r.From
	if row > r.First {
		from = r.Rows[row].At
	}
	i := row
	for i > 0 && r.Rows[i-1].At >= from-d {
		i--
	}
	return i
}

// Fit returns the lengths of a request, in tokens, so that it fits the context. A context of 0 has
// no limit. cut is set if the request was too long. Then its answer has at most half of the
// context, or all that the prompt leaves if that is more, and the prompt has the rest.
func (r *Recorded) Fit(context int) (input, output int, cut bool) {
	if context == 0 || r.Input+r.Output <= context {
		return r.Input, r.Output, false
	}
	output = min(r.Output, max(context/2, context-r.Input))
	return min(r.Input, context-output), output, true
}

// TooLong returns the first replayed row that does not fit the context. It returns nil if all rows
// fit, or if requests are cut to the context.
func (r *Replay) TooLong(context int) *Recorded {
	if context == 0 || r.Truncate {
		return nil
	}
	for i := range r.Measured() {
		if row := &r.Rows[r.First+i]; row.Input+row.Output > context {
			return row
		}
	}
	return nil
}

// HasMessages reports whether at least one replayed row has chat messages.
func (r *Replay) HasMessages() bool {
	return slices.ContainsFunc(r.Measured(), func(row Recorded) bool { return row.Text != nil && row.Text.Messages != nil })
}

// Means returns the mean length of the replayed prompts and of their answers, in tokens.
func (r *Replay) Means() (input, output float64) {
	for _, row := range r.Measured() {
		input, output = input+float64(row.Input), output+float64(row.Output)
	}
	return input / float64(r.Due), output / float64(r.Due)
}

// Parts returns the pieces of the prompt of row i, in order.
func (r *Replay) Parts(i int) []metric.Piece {
	row := &r.Rows[i]
	var parts []metric.Piece
	if row.Prefix > 0 {
		parent := r.Rows[row.Parent]
		parts = append(r.Parts(row.Parent), metric.Piece{Key: keyOf(ofAnswers, uint64(parent.Line)), Tokens: parent.Output})
		parts = Cut(parts, row.Prefix)
	}
	rest := row.Input - row.Prefix
	for _, id := range row.Blocks {
		n := min(rest, r.Block)
		parts, rest = append(parts, metric.Piece{Key: keyOf(ofBlocks, id), Tokens: n}), rest-n
	}
	if rest > 0 {
		parts = append(parts, metric.Piece{Key: keyOf(ofRows, uint64(row.Line)), Tokens: rest})
	}
	return parts
}

// Cut returns the first pieces of a prompt, with the given number of tokens together. It shortens
// the last piece if necessary.
func Cut(parts []metric.Piece, tokens int) []metric.Piece {
	for i, p := range parts {
		if tokens <= p.Tokens {
			parts[i].Tokens = tokens
			return parts[:i+1]
		}
		tokens -= p.Tokens
	}
	return parts
}

// A key is made from the id of a block, of a row or of an answer.
const (
	ofBlocks = iota
	ofRows
	ofAnswers
)

// keyOf makes a key of 64 bits from an id, by the last step of SplitMix64.
func keyOf(kind, id uint64) uint64 {
	x := id + kind*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Repeats returns, for each row in [from, end), how many tokens at the beginning of its prompt are
// also at the beginning of an earlier row's prompt. If all is set, later rows count too. Rows
// before from never count. Prompts are cut to the context, in tokens; 0 means no limit.
func (r *Replay) Repeats(from, end, context int, all bool) []int {
	seen := map[[2]uint64]stem{}
	out := make([]int, end-from)
	parts := func(i int) []metric.Piece {
		row := &r.Rows[i]
		input, _, cut := row.Fit(context)
		p := r.Parts(i)
		if cut {
			p = Cut(p, input)
		}
		return p
	}
	if all {
		for i := from; i < end; i++ {
			grow(seen, parts(i), i)
		}
	}
	for i := from; i < end; i++ {
		p := parts(i)
		out[i-from] = shares(seen, p, i)
		if !all {
			grow(seen, p, i)
		}
	}
	return out
}

// TextsRepeated returns, for each row in [from, end), the share of its recorded text with which the text of
// an earlier row begins too. Rows before from never count. It is 0 for rows without a text.
func (r *Replay) TextsRepeated(from, end int) []float64 {
	if !slices.ContainsFunc(r.Rows[from:end], func(row Recorded) bool { return row.Text != nil }) {
		return make([]float64, end-from)
	}
	out := make([]float64, end-from)
	b := beginnings(end-from, func(i int) []byte {
		if t := r.Rows[from+i].Text; t != nil {
			return t.key()
		}
		return nil
	})
	for i := range out {
		out[i] = b.Send(i)
	}
	return out
}

// stem describes the pieces of prompts that have one key and follow the same tokens. most is the
// number of tokens of the longest piece, and row is its row. next is the number of tokens of the
// longest piece in another row.
type stem struct{ most, row, next int }

func grow(seen map[[2]uint64]stem, parts []metric.Piece, row int) {
	chain := uint64(0)
	for _, p := range parts {
		at := [2]uint64{chain, p.Key}
		s, ok := seen[at]
		switch {
		case !ok || p.Tokens > s.most:
			s = stem{p.Tokens, row, s.most}
		case p.Tokens > s.next:
			s.next = p.Tokens
		}
		seen[at] = s
		chain = keyOf(p.Key, chain^uint64(p.Tokens))
	}
}

// shares returns how many tokens at the beginning of a prompt are also at the beginning of another
// row's prompt.
func shares(seen map[[2]uint64]stem, parts []metric.Piece, row int) int {
	chain, sum := uint64(0), 0
	for _, p := range parts {
		s := seen[[2]uint64{chain, p.Key}]
		most := s.most
		if s.row == row {
			most = s.next
		}
		sum += min(most, p.Tokens)
		if most < p.Tokens {
			break
		}
		chain = keyOf(p.Key, chain^uint64(p.Tokens))
	}
	return sum
}

// HitRate returns the share of prompt tokens that a cache of unlimited size would find. It would
// find a token if an earlier prompt begins with the same tokens up to it. from is the first row
// that counts as earlier. A real cache finds less, because an earlier request may not be processed
// yet. HitRate is 0 if the lengths of prompts are unknown.
func (r *Replay) HitRate(from, context int) float64 {
	sum, all := 0, 0
	for i, n := range r.Repeats(from, r.First+r.Due, context, false) {
		if at := from + i; at >= r.First {
			input, _, _ := r.Rows[at].Fit(context)
			sum, all = sum+n, all+input
		}
	}
	if all == 0 {
		return 0
	}
	return float64(sum) / float64(all)
}

const mostSteps = 60

// Rates returns the rates of the trace, in requests per second, in equal intervals. step is the
// length of an interval, a round number. The last interval may be shorter.
func (r *Replay) Rates() (rates []float64, step time.Duration) {
	for _, n := range []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600} {
		if step = n * time.Second; r.Length()/step < mostSteps {
			break
		}
	}
	step *= (r.Length()/step + mostSteps) / mostSteps
	rates = make([]float64, max((r.Length()+step-1)/step, 1))
	for _, row := range r.Measured() {
		// A request exactly at the end belongs to the last interval.
		i := min(int((row.At-r.From)/step), len(rates)-1)
		rates[i] += 1 / min(step, max(r.Length()-step*time.Duration(i), time.Second)).Seconds()
	}
	return rates, step
}

// Sessions returns the number of sessions in the measured part of the trace. waiting is the number
// of rows that are sent only after the answer to an earlier row.
func (r *Replay) Sessions() (sessions, waiting int) {
	seen := map[int]bool{}
	for _, row := range r.Measured() {
		if row.Session > 0 {
			seen[row.Session] = true
		}
		if row.Parent >= r.First {
			waiting++
		}
	}
	return len(seen), waiting
}

// Quantum returns the unit to which the times of the trace are rounded, as published traces often
// are. All times are then multiples of the unit, to within a millisecond. The unit is from one
// second to one minute, or 0 if the times are not rounded.
func (t *Trace) Quantum() time.Duration {
	for _, q := range []time.Duration{time.Minute, 30 * time.Second, 10 * time.Second, 5 * time.Second,
		3 * time.Second, 2 * time.Second, time.Second} {
		whole := len(t.Rows) >= 20
		for i := range t.Rows {
			off := t.Rows[i].At % q
			if off > time.Millisecond && off < q-time.Millisecond {
				whole = false
				break
			}
		}
		if whole {
			return q
		}
	}
	return 0
}

// Types returns the number of measured requests of each type.
func (r *Replay) Types() map[string]int {
	out := map[string]int{}
	for _, row := range r.Measured() {
		if row.Type != "" {
			out[row.Type]++
		}
	}
	return out
}
