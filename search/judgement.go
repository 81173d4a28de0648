package search

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// Judgement is what a judge says of the samples of a level, or of their beginning.
type Judgement struct {
	// Outcome is Pass if all thresholds that can fail the plan certainly hold, and Fail if one
	// certainly fails.
	Outcome metric.Outcome
	// Invalid is the reason why the measurement cannot be judged; "" if it can.
	Invalid string
	// Needs is the approximate number of further requests that would decide an inconclusive
	// outcome. 0 means that it is not known. A negative number means that no requests can decide
	// it.
	Needs int
	// Follows is set if a saturation after the level may still certify its rate. Nothing else
	// failed.
	Follows bool
	// ForGood is set if an exact threshold fails, and nothing that the level may still measure could
	// mend it.
	ForGood bool
	Binding string   // name of the threshold that decided; of several, the nearest to its limit
	Margins []Margin // of each threshold, in the order of the plan
}

// Invalid returns the judgement of samples that say nothing about the server. If the load generator
// is the cause, it was saturated.
func Invalid(why string, byGenerator bool) Judgement {
	if byGenerator {
		return Judgement{Outcome: metric.Saturated, Invalid: why}
	}
	return Judgement{Outcome: metric.Inconclusive, Invalid: why}
}

// Unjudged returns why the samples say nothing about the server; "" if they do, or if the load
// generator was saturated.
func (j Judgement) Unjudged() string {
	switch {
	case j.Outcome == metric.Saturated:
		return ""
	case j.Outcome == metric.Pending:
		return cmp.Or(j.Invalid, "the judge gave no verdict")
	}
	return j.Invalid
}

// Result returns the result of a probe of level n with this judgement of its samples, the level l.
// requests is their number.
func (j Judgement) Result(n, requests int, l *metric.Level) Result {
	r := Result{N: n, Outcome: j.Outcome, Requests: requests, Needs: j.Needs, Binding: j.Binding, Margins: j.Margins, Note: j.Invalid}
	if l.Kind == metric.Users {
		// The requests of users are not known beforehand, so a search over users counts rounds.
		r.Requests = len(l.Rounds)
		if j.Needs > 0 {
			r.Needs = (j.Needs*r.Requests + requests - 1) / max(requests, 1)
		}
	}
	if why := j.Unjudged(); why != "" {
		// An invalid probe says nothing about the server. More requests would not make it valid.
		r.Outcome, r.Needs, r.Note = metric.Inconclusive, -1, why
	} else if j.Outcome == metric.Fail {
		if admitted, ok := admission(l); ok {
			r.Outcome, r.Cap = metric.Capped, admitted
			r.Note = fmt.Sprintf("the server answered 429 or 503 whenever %d requests were in flight", admitted)
		}
	}
	return r
}

// CutShort returns the result of a probe of level n that ended before its next look. It fails if
// enough requests of the last round were answered, and all of them failed. Otherwise it is
// inconclusive.
func CutShort(n int, l *metric.Level) Result {
	r := Result{N: n, Outcome: metric.Inconclusive, Needs: -1}
	if len(l.Rounds) == 0 {
		return r
	}
	failed := 0
	for _, x := range l.Rounds[len(l.Rounds)-1].All() {
		switch {
		case x.Completed():
			return r
		case x.Failure.Kind != metric.FailCanceled && x.Failure.Kind != metric.FailConnect && x.Failure.Kind != metric.FailLocal:
			failed++
		}
	}
	if failed >= max(10, 2*l.N) { // as many as a warm-up may lose
		r.Outcome, r.Binding, r.Needs = metric.Fail, "success", 0
	}
	return r
}

// admission returns how many requests the server admits at a time. ok is true only if the server
// refused some requests with 429 or 503, no request failed for another reason, and the number is
// smaller than the level's number of requests in flight.
func admission(l *metric.Level) (admitted int, ok bool) {
	type edge struct {
		at    time.Duration
		delta int
	}
	var edges []edge
	turned := 0
	for _, r := range l.Rounds {
		for _, s := range r.All() {
			switch {
			case s.Failure != nil && (s.Status == 429 || s.Status == 503):
				turned++
				continue
			case s.Failure != nil && s.Failure.Kind != metric.FailCanceled:
				return 0, false
			case s.Sent == 0:
				continue
			}
			edges = append(edges, edge{s.Sent, 1}, edge{s.End, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta)) })
	inFlight := 0
	for _, e := range edges {
		inFlight += e.delta
		admitted = max(admitted, inFlight)
	}
	return admitted, turned > 0 && admitted > 0 && admitted < l.N
}
