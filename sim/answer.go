package sim

import (
	"github.com/tokgate/tokgate/answers"
)

// answer is the text of an answer. Either the text is fixed, or each token is made from the seed
// and the token's position.
type answer struct {
	seed    rng
	written []string // tokens of a fixed text; nil if the seed determines the tokens
	call    string   // tool that the answer calls, with the text as arguments; "" if none
}

func (a answer) append(b []byte, from, to int) []byte {
	for i := from; i < to; i++ {
		switch {
		case a.written != nil:
			quoted := appendQuoted(nil, a.written[i])
			b = append(b, quoted[1:len(quoted)-1]...)
		case i == 0:
			b = append(b, opening...)
		default:
			r := a.seed + rng(i)
			b = append(b, words[r.next()>>58]...)
		}
	}
	return b
}

func (a answer) size(n int) int {
	switch {
	case a.written != nil:
		return len(a.append(nil, 0, n))
	case n == 0:
		return 0
	}
	return len(opening) + (n-1)*len(words[0])
}

// write replaces the first n tokens of the answer by their text, so that a fault can change it. It
// does nothing if the answer is a text already.
func (a *answer) write(n int) {
	if a.written != nil {
		return
	}
	a.written = make([]string, n)
	for i := range a.written {
		a.written[i] = string(answer{seed: a.seed}.append(nil, i, i+1))
	}
}

// rightly makes the answer right, if the request has a right answer and the model knows it. The
// question may be one of tokgate's built-in tasks. Otherwise the right answer is the JSON or the
// tool call that the request asks for. rightly returns false if it set no answer.
func (a *answer) rightly(want *wanted, fx effect) bool {
	reach := 1.0
	if fx.is("half-context") {
		reach = 0.5
	}
	if text, ok := answers.Solve(want.text, reach); ok {
		a.written = spoken(text)
		return true
	}
	s, ok := want.ask.Example()
	switch {
	case !ok:
		return false
	case len(s.Calls) > 0:
		a.call, a.written = s.Calls[0].Name, spoken(s.Calls[0].Arguments)
	default:
		a.written = spoken(s.Text)
	}
	return true
}

// understood returns the key and the text of the prompt that the server answers, and the share of
// the text that it reads. With some simulated faults it answers another prompt.
func (fx effect) understood(want *wanted) (key uint64, text string, share float64) {
	key, text, share = want.key, want.text, 1
	if fx.is("half-context") {
		share = 0.5
	}
	if fx.is("other-answer") {
		key, text = key^0x07e2, ""
	}
	if fx.is("canned") {
		key, text = 0, ""
	}
	return key, text, share
}

// greedily returns the words of the model's most likely answer to the prompt. A share of the
// answers departs from it (see Parts).
func (p *Profile) greedily(want *wanted, fx effect) []string {
	key, text, share := fx.understood(want)
	n, parts, draw := p.NaturalOutput.length(rng(key)), 0, want.draw
	if draw.next(); draw.float() < p.NaturalOutput.Parts {
		parts = 1 + int(draw.next()%uint64(min(n, 48)))
	}
	return newLanguage(want.model, key, text, share).say(n, parts)
}

func (fx effect) sampled(want *wanted, n int, draw rng) []string {
	key, _, _ := fx.understood(want)
	return newLanguage(want.model, key, "", 1).sample(n, draw)
}

func (fx effect) onAnswer() bool {
	return fx.is("circle", "garble", "swap-tokens", "wrong-word", "blank", "broken-character", "endless")
}

func (fx effect) spoil(a *answer, limit int) {
	if fx.is("blank") {
		a.written, a.call = []string{" "}, ""
	}
	if fx.is("garble") {
		a.garble(limit)
	}
	if r := fx.of("swap-tokens"); r.Tokens > 0 {
		a.swap(r.Tokens)
	}
	if fx.is("wrong-word") {
		a.replace(min(len(a.written), limit))
	}
	if fx.is("broken-character") {
		a.written[min(len(a.written), limit)/2] = "\ufffd"
	}
	switch {
	case fx.is("circle"):
		a.repeat(limit)
	case fx.is("endless"):
		for i := uint64(0); len(a.written) < limit; i++ {
			a.written = append(a.written, words[(uint64(a.seed)+i*7)%64])
		}
	}
}

func (a *answer) repeat(limit int) {
	first := a.written[:min(4, len(a.written))]
	a.written = make([]string, limit)
	for i := range a.written {
		a.written[i] = first[i%len(first)]
	}
}

func (a *answer) garble(limit int) {
	const junk = "!#$%&()*+-/:;<=>?@[]^_{|}~QXZJKqxzjk0123456789"
	r := a.seed
	for i := (min(len(a.written), limit) + 1) / 2; i < len(a.written); i++ {
		b := []byte{junk[r.next()%uint64(len(junk))], junk[r.next()%uint64(len(junk))]}
		a.written[i] = string(b)
	}
}

func (a *answer) replace(n int) {
	r := a.seed ^ 0xa5
	at, i := r.next()%uint64(n), r.next()>>58
	if words[i] == a.written[at] {
		i = (i + 1) % 64
	}
	a.written[at] = words[i]
}

// swap replaces some tokens of the answer by random words. The chance of each token is 1 divided by
// the parameter one, which is at least 1.
func (a *answer) swap(one int) {
	r := a.seed ^ 0x5a
	for i := range a.written {
		if r.next()%uint64(one) == 0 {
			a.written[i] = words[r.next()>>58]
		}
	}
}
