package assert

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/sample"
	"github.com/tokgate/tokgate/metric"
)

// These constants limit the difference between a time that the client measured and the server's own
// time of the same requests. HTTP, the chat template and the tokenizer take time before the
// server's clock starts: 15 to 30 % of a TTFT of 0.1 s on a real vLLM server. A longer time of the
// server can only come from clock errors and from requests at the start or end of a reading.
const (
	frontLeast   = 100 * time.Millisecond
	frontShare   = 0.5
	behindLeast  = 5 * time.Millisecond
	behindShare  = 0.05
	tokenShare   = 0.10 // allowed relative difference of the time between tokens
	tokenLeast   = time.Millisecond
	witnessLeast = 20   // smallest number of requests for comparing means
	witnessApart = 0.10 // allowed difference between the client's and the server's request counts, as a share
)

// pooled adds up times.
type pooled struct{ sum, n float64 }

func (p *pooled) add(d time.Duration, n int) { p.sum, p.n = p.sum+d.Seconds(), p.n+float64(n) }

func (p pooled) mean() float64 { return p.sum / p.n }

// seen sums up what the client measured between the server's readings: the times to the first
// token, whole requests, and the times between tokens.
type seen struct{ first, whole, token pooled }

func seenOf(l *metric.Level) (s seen) {
	for i, r := range l.Rounds {
		within := func(t time.Duration) bool { // reports whether t is in round i or a later one
			return slices.ContainsFunc(l.Rounds[i:], func(r *metric.Round) bool {
				return r.Telemetry != nil && t > r.Telemetry.From && t <= r.Telemetry.To
			})
		}
		for _, x := range r.All() {
			// If the reasoning is hidden, the server's first token came before the client's. So do
			// not compare the two times.
			if within(x.First) && !(x.Usage != nil && x.Usage.Hidden > 0) {
				s.first.add(x.First-x.Sent, 1)
			}
			if !x.Completed() || x.Usage == nil || !within(x.Last) {
				continue
			}
			s.whole.add(x.Last-x.Sent, 1)
			if rest, took := x.Streamed(); within(x.First) && rest > 0 {
				s.token.add(took, rest)
			}
		}
	}
	return s
}

// witnessed compares the server's means with the client's means for the same period. It returns a
// note for each large difference.
func witnessed(l *metric.Level) []string {
	l, _ = l.Told()
	if sample.Elsewhere(l) != "" {
		return nil // the caller reports the result of sample.Elsewhere
	}
	s := seenOf(l)
	theirs := func(name string) float64 {
		h, why := l.Histogram(name)
		if why != "" && name == "server_itl" {
			return stepped(l, s)
		}
		mean, _ := h.Mean()
		return mean
	}
	front := max(frontLeast.Seconds(), frontShare*theirs("server_ttft"))
	behind := func(name string) float64 { return -max(behindLeast.Seconds(), behindShare*theirs(name)) }
	step := max(tokenLeast.Seconds(), tokenShare*theirs("server_itl"))
	var notes []string
	for _, w := range []struct {
		name      string
		ours      pooled
		by        string  // histogram whose number of requests is compared with n
		n         float64 // number of the client's requests
		low, high float64
	}{
		{"server_ttft", s.first, "server_ttft", s.first.n, behind("server_ttft"), front},
		{"server_itl", s.token, "server_ttft", s.first.n, -step, step},
		{"server_e2e", s.whole, "server_e2e", s.whole.n, behind("server_e2e"), front},
	} {
		h, why := l.Histogram(w.by)
		if same := why == "" && !disagree(h.N(), w.n) || w.name == "server_itl" && stepped(l, s) > 0; !same || w.n < witnessLeast ||
			!(theirs(w.name) > 0) {
			continue
		}
		if drafts := l.Added(metric.Drafts); w.name == "server_itl" && drafts.OK && drafts.V > 0 {
			continue // with draft tokens, one step of the engine makes several tokens
		}
		if diff := w.ours.mean() - theirs(w.name); diff < w.low || diff > w.high {
			def := metric.MustLookup(w.name)
			notes = append(notes, fmt.Sprintf("the server reports another value: the mean %s is %s, but tokgate measured %s (%+.0f%%). The network alone does not explain the difference",
				def.Title, metric.Format(def.Unit, theirs(w.name)), metric.Format(def.Unit, w.ours.mean()), 100*diff/theirs(w.name)))
		}
	}
	return notes
}

// disagree reports whether two counts differ too much to be counts of the same requests.
func disagree(theirs, ours float64) bool { return !(math.Abs(theirs-ours) <= witnessApart*ours) }

// stepped returns the mean time between tokens, in seconds. It computes the mean from the server's
// total decoding time (llama.cpp: tools/server, t_token_generation). It returns 0 if the engine
// does not report this time, or if the server also counted tokens of other clients.
func stepped(l *metric.Level, s seen) float64 {
	seconds, tokens := l.Added(metric.GeneratedSeconds), l.Added(metric.GeneratedTokens)
	rest := tokens.V - s.whole.n
	if !seconds.OK || !tokens.OK || rest <= 0 || disagree(rest, s.token.n) {
		return 0
	}
	return seconds.V / rest
}
