package sim

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tokgate/tokgate/answers"
)

// words are the words that answers consist of. Each word is one token, together with its leading
// space.
var words = [64]string{
	" the", " and", " you", " can", " see", " how", " our", " own", " new", " set", " run", " one", " two", " ten", " few", " may",
	" lot", " bit", " way", " day", " sun", " sky", " sea", " air", " cat", " dog", " fox", " owl", " bee", " ant", " cow", " hen",
	" red", " big", " old", " hot", " icy", " dry", " wet", " odd", " put", " get", " let", " say", " ask", " try", " use", " fix",
	" cut", " dig", " fly", " hop", " jog", " mix", " nod", " pay", " row", " sip", " tap", " win", " yes", " not", " but", " for",
}

const opening = "The" // first word of every answer; it is one token

func spoken(text string) []string {
	var out []string
	for len(text) > 0 {
		_, size := nextToken(text)
		if _, whole := utf8.DecodeRuneInString(text); size == 1 {
			size = whole // keep the bytes of one character together
		}
		out, text = append(out, text[:size]), text[size:]
	}
	if out == nil {
		out = []string{" "}
	}
	return out
}

// language yields the model's most likely answer to a prompt, token by token. It also yields the
// probability of any other answer. Both depend only on the model's name, the prompt and the tokens
// so far. So all servers of a model give an answer the same score.
type language struct {
	state  rng
	at     int
	solved []string // tokens of the answer to a built-in task; nil if the answer is words
}

// newLanguage returns the language of a model before the first token of an answer. The parameter
// key is a hash of the prompt.
//
// The parameter text is the prompt if it may be a question that the model can answer; otherwise "".
// The model reads only the first part of text, and share is that part's share of text.
func newLanguage(model string, key uint64, text string, share float64) language {
	h := fnv.New64a()
	h.Write([]byte(model)) // never fails
	l := language{state: rng(h.Sum64() ^ key)}
	l.state.next()
	if answer, ok := answers.Solve(text, share); ok {
		l.solved = spoken(answer)
	}
	return l
}

// oneIn says how often two words are about equally likely: at one of oneIn tokens, on average.
const oneIn = 8

// choice returns the model's most likely and second most likely next token, each with its cost in
// nats. If both are about equally likely, the answers of two servers of the same model may differ
// at this token.
func (l *language) choice() (first, second string, cost, dearer float64) {
	switch {
	case l.solved != nil && l.at < len(l.solved):
		return l.solved[l.at], "", 0.05, 0
	case l.solved != nil:
		return "", "", 0, 0
	case l.at == 0:
		return opening, "", 0.05, 0
	}
	r := l.state + rng(l.at)
	x := r.next()
	first, second = words[x>>58], words[(x>>58+1+x%63)%64]
	if (x>>16)%oneIn == 0 {
		return first, second, 0.70, 0.72
	}
	return first, second, 0.05 + 0.4*r.float(), 2 + 2*r.float()
}

// take appends a token to the answer and returns its cost in nats. The second most likely token
// changes the rest of the answer. Any other token does not change it.
func (l *language) take(token string) float64 {
	first, second, cost, dearer := l.choice()
	r := l.state ^ rng(l.at)<<32 ^ 0x0dd
	odd := r.float()
	l.at++
	switch {
	case token == first:
		return cost
	case token == second:
		l.state ^= rng(0x9e37 + l.at*0x10001)
		l.state.next()
		return dearer
	case l.solved == nil && slices.Contains(words[:], token):
		return 7 + 3*odd
	}
	return 9 + 3*odd
}

// costs returns the cost of each token of an answer, in nats. An unlikely token has a high cost.
func (l language) costs(tokens []string) []float64 {
	out := make([]float64, len(tokens))
	for i, token := range tokens {
		out[i] = l.take(token)
	}
	return out
}

// say returns the model's most likely answer. An answer of words has n tokens.
//
// If parts is not 0, the answer differs from the most likely one at one token, as after another
// batch or kernel in a real server. That token is the first one, not before the index parts, at
// which two words are about equally likely.
func (l language) say(n int, parts int) []string {
	if l.solved != nil {
		n = len(l.solved)
	}
	out := make([]string, n)
	for i := range out {
		first, second, cost, dearer := l.choice()
		out[i] = first
		if parts > 0 && i >= parts && second != "" && dearer-cost < 0.1 {
			out[i], parts = second, 0
		}
		l.take(out[i])
	}
	return out
}

// otherIn says how often a sampled token is neither of the model's two most likely ones: one of
// otherIn tokens, on average.
const otherIn = 1000

func (l language) sample(n int, draw rng) []string {
	out := make([]string, n)
	for i := range out {
		first, second, cost, _ := l.choice()
		out[i] = first
		switch {
		case second == "":
		case draw.next()%otherIn == 0:
			out[i] = words[draw.next()>>58]
		case draw.float() > math.Exp(-cost):
			out[i] = second
		}
		l.take(out[i])
	}
	return out
}

// answerStart returns the index at which the answer begins. The ids are the tokens of a prompt and
// its answer.
//
// The answer begins after the last header of the assistant. Without a header it begins at the last
// token that can start an answer. Without such a token, behind returns the length of ids.
func answerStart(ids []int) int {
	header := append(Tokenize([]int{tokenStart}, "assistant"), '\n')
	for at := len(ids) - len(header); at >= 0; at-- {
		if slices.Equal(ids[at:at+len(header)], header) {
			return at + len(header)
		}
	}
	first := Tokenize(nil, opening)[0]
	for at := len(ids) - 1; at >= 0; at-- {
		if ids[at] == first {
			return at
		}
	}
	return len(ids)
}

func keyOf(ids []int) uint64 {
	var hash rng
	for _, id := range ids {
		hash = rng(hash.next() ^ uint64(id))
	}
	return uint64(hash)
}

// asked returns the text of the first user message of a chat. prompt is the text of the chat's
// tokens. If there is no user message, asked returns prompt.
func asked(prompt string) string {
	if _, after, ok := strings.Cut(prompt, specials[0]+"user\n"); ok {
		prompt, _, _ = strings.Cut(after, specials[1])
	}
	return prompt
}

// logprobs returns the model's log-probabilities of all tokens of a prompt and its answer. The
// values for the tokens of the prompt are arbitrary.
func logprobs(model string, ids []int) []float64 {
	out := make([]float64, len(ids))
	at := answerStart(ids)
	for i := range out[:at] {
		out[i] = -4
	}
	if at == len(ids) {
		return out
	}
	prompt, _ := detokenize(ids[:at])
	tokens := make([]string, len(ids)-at)
	for i, id := range ids[at:] {
		tokens[i], _ = detokenize([]int{id}) // cannot fail: the ids were checked before
	}
	for i, cost := range newLanguage(model, keyOf(ids[:at]), asked(prompt), 1).costs(tokens) {
		out[at+i] = -cost
	}
	return out
}

// appendLogprobs appends the log-probabilities of a prompt's tokens, as vLLM writes them. The first
// token has null, and every other token has an object with one member. ids is nil if the request
// did not ask for them.
func appendLogprobs(b []byte, model string, ids []int) []byte {
	if ids == nil {
		return b
	}
	b = append(b, `,"prompt_logprobs":[null`...)
	for i, v := range logprobs(model, ids)[1:] {
		b = append(b, `,{"`...)
		b = strconv.AppendInt(b, int64(ids[i+1]), 10)
		b = append(b, `":{"logprob":`...)
		b = strconv.AppendFloat(b, v, 'g', -1, 64)
		b = append(b, `,"rank":1}}`...)
	}
	return append(b, ']')
}
