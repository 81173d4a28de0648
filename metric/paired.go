package metric

import (
	"math"
	"strings"
	"unicode"
)

// PairedAnswers holds the answers of two compared servers to the same prompts, at temperature 0, and
// some of their measured answers. It also holds the log-probabilities that the control gives to all
// these answers.
type PairedAnswers struct {
	// Due is the number of prompts that both servers should answer. Again is how many of these
	// prompts the control answers a second time.
	Due   int `json:"due"`
	Again int `json:"again"`
	// Unscored is the reason why the control cannot report the log-probabilities of a given text;
	// "" if it can.
	Unscored string       `json:"unscored,omitempty"`
	Pairs    []AnswerPair `json:"pairs"`
	// Sampled holds measured answers of both servers. It is empty if the plan sends all its
	// requests at temperature 0.
	Sampled []SampledAnswer `json:"sampled,omitempty"`
	// Embedded holds the answers of workloads of embeddings, which have no text; nil without such
	// workloads.
	Embedded *PairedAnswers `json:"embeddings,omitempty"`
}

// SampledAnswer is a measured answer whose tokens the server drew at random, at a temperature above
// 0. Workload, Level, Round and Order identify the request.
type SampledAnswer struct {
	Workload  string `json:"workload"`
	Level     string `json:"level"`
	Round     int    `json:"round"`
	Order     int    `json:"order"`
	Candidate bool   `json:"candidate,omitempty"` // the candidate's answer; otherwise the control's
	PairedAnswer
}

// AnswerPair is the answers of both servers to one prompt. An answer is nil if its server did not
// get the prompt.
type AnswerPair struct {
	Workload  string        `json:"workload"`
	Level     string        `json:"level"`
	Order     int           `json:"order"` // number of the prompt in its level
	Control   *PairedAnswer `json:"control,omitempty"`
	Candidate *PairedAnswer `json:"candidate,omitempty"`
	Again     *PairedAnswer `json:"again,omitempty"` // the control's second
}

// PairedAnswer is one of the answers to a prompt in a comparison. Both servers answer each prompt,
// and the control answers some prompts twice.
type PairedAnswer struct {
	Leg     int    `json:"leg"`               // slot, see Leg
	Failure string `json:"failure,omitempty"` // why there is no answer; "" if there is one
	Finish  string `json:"finish,omitempty"`
	Asked   int    `json:"asked"`             // requested maximum number of tokens
	Tokens  int    `json:"tokens"`            // token count of the server; 0 if not reported
	Empty   bool   `json:"empty,omitempty"`   // neither text nor reasoning
	Repeats bool   `json:"repeats,omitempty"` // likewise
	Invalid bool   `json:"invalid,omitempty"` // likewise
	// Loss is the negative log-likelihood of the control's answer, in nats. It is a sum over the
	// tokens of the answer, by the control's tokenizer. Scored is the number of these tokens; 0 if
	// the loss is unknown.
	Loss   float64 `json:"loss_nats"`
	Scored int     `json:"scored"`
	// Worst is the negative log-likelihood of the least likely of these tokens, in nats; 0 if
	// unknown.
	Worst float64 `json:"worst_nats,omitempty"`
	// Gap is how far the log-probabilities of the tokens differ between the server that answered
	// and the control: the sum of the absolute differences, in nats. Weighed is the number of
	// tokens in the sum; 0 if the gap is unknown.
	Gap     float64 `json:"gap_nats,omitempty"`
	Weighed int     `json:"weighed,omitempty"`
	// Agrees compares this answer with the control's first answer. It is the share of the longer
	// text that comes before the first difference. In the control's first answer itself it is 0.
	Agrees float64 `json:"agrees"`
	// Stops means that this answer is only the beginning of another answer to the same prompt. The
	// control's first answer is compared with the candidate's answer. All other answers are
	// compared with the control's first answer.
	Stops bool `json:"stops,omitempty"`
	// Distance is how far embeddings are from the control's first ones; see Distance. nil if one of the
	// two is missing, and for texts.
	Distance *float64 `json:"cosine_distance,omitempty"`
	// Text is the answer with its reasoning. It is stored in another file; "" if that file is
	// missing.
	Text string `json:"-"`
}

// Long reports whether the answer has more tokens than requested. A long answer is not scored.
func (a *PairedAnswer) Long() bool { return a.Tokens > a.Asked }

// Readable reports whether the control can score the answer.
func (a *PairedAnswer) Readable() bool { return a.Failure == "" && !a.Empty && !a.Long() }

// PerToken is the mean loss of a token, in nats.
func (a *PairedAnswer) PerToken() (v float64, ok bool) {
	if a == nil || a.Scored == 0 {
		return 0, false
	}
	return a.Loss / float64(a.Scored), true
}

// Hold compares the other answers of a pair with the control's answer, and sets Agrees and Stops.
func (p *AnswerPair) Hold() {
	if p.Control == nil {
		return
	}
	for _, other := range []*PairedAnswer{p.Candidate, p.Again} {
		if other != nil {
			other.Agrees = agree(p.Control.Text, other.Text)
			other.Stops = other.stopsIn(p.Control)
		}
	}
	if p.Candidate != nil {
		p.Control.Stops = p.Control.stopsIn(p.Candidate)
	}
}

// agree returns the share of the longer text that comes before the first difference.
func agree(a, b string) float64 {
	x, y := []rune(a), []rune(b)
	n, longer := 0, max(len(x), len(y))
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	if longer == 0 {
		return 1
	}
	return float64(n) / float64(longer)
}

// stopsIn reports whether the text of a is the beginning of b's text, and shorter.
func (a *PairedAnswer) stopsIn(b *PairedAnswer) bool {
	return a.Failure == "" && b.Failure == "" && len(a.Text) < len(b.Text) &&
		strings.HasPrefix(b.Text, strings.TrimRightFunc(a.Text, unicode.IsSpace))
}

// Distance returns how far the vectors b are from the vectors a: the mean of 1 − the cosine of the
// angle between two vectors of the same input. It is 0 if they point the same way, and at most 2. A
// vector of b that has another length, or no direction, counts as 1, as if it were of another input. A
// vector of a that has no direction tells nothing: ok is then false, as it is without any.
func Distance(a, b [][]float32) (mean float64, ok bool) {
	for i := range a {
		length := math.Sqrt(product(a[i], a[i]))
		if !(length > 0) || math.IsInf(length, 0) {
			return 0, false
		}
		cosine := 0.0
		if i < len(b) && len(a[i]) == len(b[i]) {
			cosine = product(a[i], b[i]) / (length * math.Sqrt(product(b[i], b[i])))
		}
		if math.IsNaN(cosine) || math.IsInf(cosine, 0) {
			cosine = 0
		}
		mean += max(1-cosine, 0) / float64(len(a)) // rounding may make a cosine larger than 1
	}
	return mean, len(a) > 0
}

// product is the inner product of two vectors of one length.
func product(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
