package metric

import (
	"fmt"
	"time"
)

// If an answer arrives in one piece, it does not show how fast the server made it. Such an answer
// has no value of a streaming metric. If their share of a level's answers is above mostUnstreamed,
// the level has no value either.
const (
	mostUnstreamed = 0.05 // of the completed answers
	// An answer is unstreamed if everything after its first chunk took less time than one token, or
	// less than leastPerToken for each token. Real servers stream at most a few thousand tokens per
	// second to one user. An answer with fewer than leastStreamed tokens after the first chunk is
	// never unstreamed, because its short time may be chance.
	leastPerToken = 100 * time.Microsecond
	leastStreamed = 3
	// mostPerChunk is the largest allowed mean number of tokens in a chunk. It applies to an engine
	// that makes one token in a step. A real vLLM on a busy machine reaches 1.3.
	mostPerChunk = 2.0
	onePerStep   = 1.1
)

// FewPerChunk is the largest mean number of tokens in a chunk at which a gap between two chunks
// still measures one token.
const FewPerChunk = 1.05

// Unstreamed explains why the level's answers do not show how fast the server streamed; "" if they
// do. It does not matter to metrics that depend only on the start or end of an answer (ttft, e2e),
// or only on its number of tokens (throughput).
func (l *Level) Unstreamed() string {
	token := l.tokenTime()
	pieces, short, completed, tokens, chunks := 0, 0, 0, 0, 0
	for _, r := range l.Rounds {
		for _, s := range r.All() {
			if s.Phase != Measured || !s.Completed() || s.Usage == nil {
				continue
			}
			// An answer that the generator read at once after a standstill of its own is left out of
			// every metric of streaming, and says nothing of the server.
			if s.OneChunk() && s.Chunks > 1 && r.Health.StoodStill(s.First, s.Last) {
				continue
			}
			completed++
			tokens, chunks = tokens+s.Usage.Output-s.Usage.Hidden, chunks+s.Chunks
			rest, took := s.Streamed()
			switch {
			case s.Usage.Output < 2:
				short++
			case s.OneChunk(), rest >= leastStreamed && (took < token || took < time.Duration(rest)*leastPerToken):
				pieces++
			}
		}
	}
	most := mostUnstreamed * float64(completed)
	switch per := float64(tokens) / float64(max(chunks, 1)); {
	case float64(pieces) > most:
		return fmt.Sprintf("%d of %d answers came in one piece, so the speed at which the server made them is unknown: either a proxy holds streams back, or the load generator is overloaded", pieces, completed)
	case float64(short+pieces) > most:
		return fmt.Sprintf("%d of %d answers are too short to have a speed", short+pieces, completed)
	case chunks > 0 && per >= mostPerChunk && l.steps() <= onePerStep:
		return fmt.Sprintf("a chunk holds %s on average, but the engine makes one token a step, so something on the way buffered the streams", Format(Tokens, per))
	}
	return l.heldBack()
}

// tokenTime returns the mean time of one token over all streams. If the server's own time is
// longer, it returns that time.
func (l *Level) tokenTime() time.Duration {
	tokens, took := 0, time.Duration(0)
	for _, r := range l.Rounds {
		for _, s := range r.All() {
			if s.Phase == Measured {
				n, t := s.Streamed()
				tokens, took = tokens+n, took+t
			}
		}
	}
	token := took / time.Duration(max(tokens, 1))
	if h, why := l.Histogram("server_itl"); why == "" && l.steps() <= onePerStep {
		mean, _ := h.Mean()
		token = max(token, time.Duration(mean*float64(time.Second)))
	}
	return token
}

// steps returns the number of tokens that the engine makes for one request in one step. It comes
// from the engine's counters. If the engine does not report these, the result is a very large
// number.
func (l *Level) steps() float64 {
	const unknown = 1e9
	generated := l.Added(GeneratedTokens)
	first, why1 := l.Histogram("server_ttft")
	later, why2 := l.Histogram("server_itl")
	if drafts := l.Added(Drafts); !generated.OK || why1 != "" || why2 != "" || drafts.OK && drafts.V > 0 {
		return unknown
	}
	return generated.V / (first.N() + later.N())
}
