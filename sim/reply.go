package sim

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/tokgate/tokgate/answers"
	"github.com/tokgate/tokgate/engine"
)

type badRequest struct {
	status  int
	param   string
	message string
}

func (b *badRequest) Error() string { return b.message }

func refuse(param, format string, args ...any) error {
	return &badRequest{http.StatusBadRequest, param, fmt.Sprintf(format, args...)}
}

type wanted struct {
	api       engine.API
	input     int    // prompt tokens
	max       int    // largest number of tokens in the answer
	param     string // name of the parameter that set the length; "" if none did
	min       int
	ignoreEOS bool
	stop      []string
	ask       *answers.Ask // required form of the answer
	text      string       // text of the prompt; "" if the prompt is token ids
	greedy    bool         // temperature is 0: the answer is the same on every server
	model     string
	key       uint64 // hash of the prompt, the same on every server
	draw      rng    // of this request
}

type reply struct {
	output int    // tokens
	finish string // finish_reason
	text   answer
	length int // bytes of text before the stop string; -1 without a stop string

	claimed int // output tokens that the server reports instead of the true number; 0: none
}

// reportedTokens returns how many output tokens the usage reports if the server has sent as many as
// the parameter sent says. If the server is to report a false total, claimed, the result is false
// in the same proportion.
func (r *reply) reportedTokens(sent int) int {
	if r.claimed == 0 {
		return sent
	}
	return sent * r.claimed / r.output
}

func (p *Profile) reply(want wanted, hash rng, fx effect) (reply, error) {
	room := p.MaxModelLen - want.input
	if want.input < 1 {
		return reply{}, refuse("prompt", "the prompt is empty")
	}
	if room < 1 {
		return reply{}, refuse("prompt", "This model's maximum context length is %d tokens. However, your request has %d input tokens. Please reduce the length of the input messages.",
			p.MaxModelLen, want.input)
	}
	limit := room
	if want.api == engine.Completions {
		limit = min(room, 16) // default limit of the completions API
	}
	if want.param != "" {
		switch {
		case want.max < 1:
			return reply{}, refuse(want.param, "%s must be at least 1, got %d.", want.param, want.max)
		case want.max > room:
			return reply{}, refuse(want.param, "'%s' is too large: %d. This model's maximum context length is %d tokens and your request has %d input tokens (%d > %d - %d).",
				want.param, want.max, p.MaxModelLen, want.input, want.max, p.MaxModelLen, want.input)
		}
		limit = want.max
	}
	if want.min > limit {
		return reply{}, refuse("min_tokens", "min_tokens must be less than or equal to max_tokens=%d, got %d.", limit, want.min)
	}

	r := reply{output: limit, finish: "length", text: answer{seed: hash}, length: -1}
	if fx.is("other-answer") {
		r.text.seed ^= 0x07e2
	}
	if fx.is("canned") {
		r.text = answer{}
	}
	if !want.ignoreEOS {
		p.natural(&r, &want, limit, room, fx)
	}
	if times := fx.of("overcount").Tokens; times > 0 {
		r.claimed, r.output = r.output, (r.output+times-1)/times
	}
	if len(want.stop) > 0 {
		r.applyStop(want.stop)
	}
	if n := fx.of("early-stop").Tokens; n > 0 && n < r.output {
		r.output, r.finish = n, "stop"
	}
	if fx.is("tool-call") && want.api.Chats() {
		r.finish = "tool_calls"
	}
	return r, nil
}

// natural decides how long a natural answer is: the model ends it after at most limit tokens. A
// fault may change that. room is the number of tokens that still fit into the context.
func (p *Profile) natural(r *reply, want *wanted, limit, room int, fx effect) {
	n := max(want.min, p.NaturalOutput.length(r.text.seed))
	if fx.is("endless") {
		limit = room
	}
	_, formed := want.ask.Example()
	switch {
	case want.greedy && want.min == 0 && !formed:
		r.text.written = p.greedily(want, fx)
		n = len(r.text.written)
	case want.min > 0 || fx.is("bad-sampler") && !want.greedy:
	case !fx.is("other-answer") && !fx.is("canned") && r.text.rightly(want, fx):
		n = len(r.text.written)
	default:
		r.text.written = fx.sampled(want, n, r.text.seed)
	}
	if fx.onAnswer() {
		r.text.write(n)
		fx.spoil(&r.text, limit)
		n = len(r.text.written)
	}
	r.output = min(n, limit)
	if r.finish = "stop"; n > limit || fx.is("endless") || fx.is("circle") {
		r.finish = "length"
	}
	if r.finish == "stop" && r.text.call != "" {
		r.finish = "tool_calls"
	}
}

// length returns a random number of tokens for a natural answer. hash depends on the prompt and the
// server's seed, so a prompt always gets an answer of the same length.
func (n NaturalOutput) length(hash rng) int {
	mean := float64(cmp.Or(n.Mean, 200))
	sigma := sigmaOf(n.CV)
	// The method of Box and Muller makes a normally distributed number from two uniform ones in [0,
	// 1). The logarithm is finite, because 1 − the first number is never 0.
	z := math.Sqrt(-2*math.Log(1-hash.float())) * math.Cos(2*math.Pi*hash.float())
	return max(1, int(math.Round(mean*logNormal(sigma, z))))
}

func (r *reply) applyStop(stops []string) {
	text := string(r.text.append(nil, 0, r.output))
	cut := -1
	for _, stop := range stops {
		if i := strings.Index(text, stop); stop != "" && i >= 0 && (cut < 0 || i+len(stop) < cut) {
			cut, r.length = i+len(stop), i
		}
	}
	if cut < 0 {
		return
	}
	for n := 1; n <= r.output; n++ {
		if r.text.size(n) >= cut {
			r.output, r.finish = n, "stop"
			return
		}
	}
}

func (r *reply) appendText(b []byte, from, to int, fx effect) []byte {
	if from == 0 && fx.is("hostile-text") {
		quoted := appendQuoted(nil, fx.of("hostile-text").Text)
		return append(b, quoted[1:len(quoted)-1]...)
	}
	begin := len(b)
	b = r.text.append(b, from, to)
	if r.length >= 0 {
		if over := r.text.size(to) - r.length; over > 0 {
			b = b[:max(begin, len(b)-over)]
		}
	}
	return b
}

func (r *reply) calls(fx effect) string {
	if fx.is("tool-call") {
		return "lookup"
	}
	return r.text.call
}
