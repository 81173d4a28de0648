package metric

import (
	"fmt"
	"time"
)

// Of answers that came in one piece the end is known, but not the speed at which they
// were made. A few of them are left out; a level that has more than mostUnstreamed says
// nothing of its streams.
const (
	mostUnstreamed = 0.05 // of the completed answers
	// An answer came in one piece where all that followed its first chunk took less than
	// one token does, or less than leastPerToken for each: the fastest servers stream a
	// few thousand tokens a second to one user. With fewer tokens than leastStreamed
	// chance alone may do that.
	leastPerToken = 100 * time.Microsecond
	leastStreamed = 3
	// mostPerChunk is how many tokens a chunk may hold on average where the engine makes one
	// a step. A real vLLM on a busy machine merges up to 1.3.
	mostPerChunk = 2.0
	onePerStep   = 1.1
)

// FewPerChunk is how many tokens a chunk holds at most, on average, where the gap between two
// chunks is about the time of one token.
const FewPerChunk = 1.05

// Unstreamed says why the answers of the level tell nothing of how they streamed; "" where
// they do. What depends on their beginning or end alone (ttft, e2e) and on how many tokens
// came (throughput) is none of it.
func (l *Level) Unstreamed() string {
	samples := l.MeasuredSamples()
	token := l.tokenTime(samples)
	pieces, short, completed, tokens, chunks := 0, 0, 0, 0, 0
	for _, s := range samples {
		if !s.Completed() || s.Usage == nil {
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
	most := mostUnstreamed * float64(completed)
	switch per := float64(tokens) / float64(max(chunks, 1)); {
	case float64(pieces) > most:
		return fmt.Sprintf("%d of %d answers came in one piece, which says nothing of the speed at which they were made: does a proxy hold streams back, or is the load generator short of time?", pieces, completed)
	case float64(short+pieces) > most:
		return fmt.Sprintf("%d of %d answers are too short to have a speed", short+pieces, completed)
	case chunks > 0 && per >= mostPerChunk && l.steps() <= onePerStep:
		return fmt.Sprintf("a chunk holds %s on average, and the engine makes one token a step: the streams were buffered on their way", Format(Tokens, per))
	}
	return ""
}

// tokenTime is how long a token takes: by the server's own count, or by all streams together,
// whichever is longer.
func (l *Level) tokenTime(samples []*Sample) time.Duration {
	tokens, took := 0, time.Duration(0)
	for _, s := range samples {
		n, t := s.Streamed()
		tokens, took = tokens+n, took+t
	}
	token := took / time.Duration(max(tokens, 1))
	if h, why := l.Histogram("server_itl"); why == "" && l.steps() <= onePerStep {
		mean, _ := h.Mean()
		token = max(token, time.Duration(mean*float64(time.Second)))
	}
	return token
}

// steps is how many tokens the engine makes of a request in one step, by its own counters. It
// is a large number where they do not say.
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
