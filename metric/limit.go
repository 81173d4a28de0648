package metric

import "slices"

// LegLimit times the control's longest leg is how long a candidate's leg may take in a comparison that
// tolerates no loss.
const LegLimit = 3

// FinishLimit is the finish of a request that AtLimit counts as ended.
const FinishLimit = "limit of its leg"

// AtLimit returns a leg that reached its limit of time as it would be at best: each request in flight
// counts as if its last token had come just then, and later requests are not due. The server was at
// least as slow as this shows, so the result can prove a failure, but no pass. Any other round is
// returned as it is.
func (r *Round) AtLimit() *Round {
	if r.Limit == 0 {
		return r
	}
	out := r.With(nil)
	perChunk := r.TokensPerChunk()
	out.Due = 0
	for _, s := range r.All() {
		if s.Canceled() && s.Phase == Measured && s.Sent != 0 {
			s = s.endedNow(perChunk)
		}
		if s.Phase == Measured {
			out.Due++
		}
		out.Samples = append(out.Samples, s)
	}
	out.Complete, out.Stopped = !slices.ContainsFunc(out.Samples, func(s *Sample) bool { return s.Phase == Measured && s.Canceled() }), ""
	return out
}

// endedNow returns a cancelled request as if a last chunk had come when it was cancelled.
func (s *Sample) endedNow(perChunk float64) *Sample {
	out := *s
	out.Failure, out.Finish, out.Status, out.Gaps = nil, FinishLimit, 200, slices.Clone(s.Gaps)
	if out.Headers == 0 {
		out.Headers = s.End
	}
	if out.First == 0 {
		out.First = s.End
	} else {
		out.Gaps.Add(s.End - s.Last)
	}
	if out.FirstAnswer == 0 {
		out.FirstAnswer = s.End
	}
	out.Last, out.Chunks = s.End, s.Chunks+1
	out.OutputAsked = max(int(perChunk*float64(out.Chunks)), out.Chunks, 1)
	out.Usage = &Usage{Input: s.InputAsked, Output: out.OutputAsked, Cached: -1}
	return &out
}

// GivenUp reports whether the level sent fewer requests than planned because its server was too slow.
func (l *Level) GivenUp() bool { return l.Kind == OpenLoop && l.Cut != "" || len(l.Overran()) > 0 }

// Overran returns the rounds of the level that reached their limit of time.
func (l *Level) Overran() (out []*Round) {
	for _, r := range l.Rounds {
		if r.Limit > 0 {
			out = append(out, r)
		}
	}
	return out
}
