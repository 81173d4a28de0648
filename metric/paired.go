package metric

import (
	"strings"
	"unicode"
)

// PairedAnswers holds the answers of two compared servers to the same prompts, at temperature 0 and
// under the comparison's load. It also holds how likely the control finds each answer.
type PairedAnswers struct {
	// Due is the number of prompts that both servers should answer. Again is the number of these
	// prompts that the control should answer a second time, in another batch.
	Due   int `json:"due"`
	Again int `json:"again"`
	// Unscored is the reason why the control does not report how likely a given text is; "" if the
	// control reports it.
	Unscored string       `json:"unscored,omitempty"`
	Pairs    []AnswerPair `json:"pairs"`
}

// AnswerPair is one prompt with its answers. An answer is nil if its server did not get the prompt.
type AnswerPair struct {
	Workload  string        `json:"workload"`
	Level     string        `json:"level"`
	Order     int           `json:"order"` // number of the prompt at its level
	Control   *PairedAnswer `json:"control,omitempty"`
	Candidate *PairedAnswer `json:"candidate,omitempty"`
	Again     *PairedAnswer `json:"again,omitempty"` // the control's second
}

// PairedAnswer is one answer to a prompt of a comparison. The prompt has an answer of the other
// server too, or a second answer of the control.
type PairedAnswer struct {
	Leg     int    `json:"leg"`               // slot, see Leg
	Failure string `json:"failure,omitempty"` // why there is no answer; "" if there is one
	Finish  string `json:"finish,omitempty"`
	Asked   int    `json:"asked"`             // the maximum number of tokens
	Tokens  int    `json:"tokens"`            // by the server's count; 0 if not reported
	Empty   bool   `json:"empty,omitempty"`   // neither text nor reasoning
	Repeats bool   `json:"repeats,omitempty"` // likewise
	Invalid bool   `json:"invalid,omitempty"` // likewise
	// Loss is the negative log-likelihood of the answer on the control, in nats, summed over its
	// tokens by the control's tokenizer. Scored is the number of these tokens; 0 if the loss is not
	// known.
	Loss   float64 `json:"loss_nats"`
	Scored int     `json:"scored"`
	// Gap is a sum over tokens, in nats. Each token has a log-probability from the server that
	// answered, and another from the control; the absolute differences are added up. Weighed is the
	// number of tokens in the sum; 0 if the gap is not known.
	Gap     float64 `json:"gap_nats,omitempty"`
	Weighed int     `json:"weighed,omitempty"`
	// Agrees is the number of characters up to the first difference between this answer and the
	// control's first answer, divided by the length of the longer answer. In the control's first
	// answer itself Agrees is 0.
	Agrees float64 `json:"agrees"`
	// Stops means that this answer is a proper beginning of the answer with which it is compared.
	// The candidate's answer and the control's second answer are compared with the control's first
	// answer. The control's first answer is compared with the candidate's answer.
	Stops bool `json:"stops,omitempty"`
	// Text is the answer, reasoning included. It is kept in a file of its own; "" if
	// that file is missing.
	Text string `json:"-"`
}

// Long reports whether the answer has more tokens than the request asked for. A long answer is not
// scored.
func (a *PairedAnswer) Long() bool { return a.Tokens > a.Asked }

// Readable reports whether the answer can be scored.
func (a *PairedAnswer) Readable() bool {
	return a.Failure == "" && !a.Empty && !a.Long()
}

// PerToken is the mean loss of a token, in nats.
func (a *PairedAnswer) PerToken() (v float64, ok bool) {
	if a == nil || a.Scored == 0 {
		return 0, false
	}
	return a.Loss / float64(a.Scored), true
}

// Hold compares the texts of the answers of a pair, and sets Agrees and Stops.
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

// agree returns the number of characters up to the first difference between two texts, divided by
// the length of the longer one.
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

// stopsIn reports whether a is a proper beginning of b.
func (a *PairedAnswer) stopsIn(b *PairedAnswer) bool {
	return a.Failure == "" && b.Failure == "" && len(a.Text) < len(b.Text) && strings.HasPrefix(b.Text, strings.TrimRightFunc(a.Text, unicode.IsSpace))
}
