package metric

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// heldShare is how much longer the server's time from the first token of an answer to its last
	// may be than the client's, as a share of the client's.
	heldShare = 0.20
	// heldLeast is the largest difference of these times that the two clocks explain.
	heldLeast = 5 * time.Millisecond
	// leastCompared is the smallest number of tokens of an answer whose times are compared.
	leastCompared = 16
	// mostApart is the largest difference between the numbers of answers of the server and of the
	// client, as a share, at which they are the same answers.
	mostApart = 0.10
)

// heldBack explains that the streams were held back before they arrived; "" if they were not, or if
// the server's metrics do not tell. A client cannot read an answer in less time than the server takes
// to make it.
func (l *Level) heldBack() string {
	made, n, ok := l.decodeTime()
	if !ok {
		return ""
	}
	finished, short := 0, 0
	compared, rest, later, took := 0, 0.0, 0.0, time.Duration(0)
	for i, r := range l.Rounds {
		for _, s := range r.All() {
			if !s.Completed() || s.Usage == nil || !l.readIn(i, s.Last) {
				continue
			}
			if finished++; s.Usage.Output < leastCompared {
				short++
				continue
			}
			if r.Health.StoodStill(s.First, s.Last) {
				continue
			}
			compared++
			all, first := float64(s.Usage.Output), float64(s.FirstTokens)
			if first == 0 {
				first = all / float64(max(s.Chunks, 1))
			}
			rest, later = rest+max(all-max(first, 1), 0), later+all-1
			took += s.Last - s.First
		}
	}
	if math.Abs(n-float64(finished)) > mostApart*float64(finished) || float64(short) > mostUnstreamed*float64(finished) || compared == 0 {
		return ""
	}
	read := took.Seconds() / float64(compared)
	if made *= rest / later; made <= (1+heldShare)*read || made-read <= heldLeast.Seconds() {
		return ""
	}
	return fmt.Sprintf("the streams were held back before they arrived, so the speed at which the server made them is unknown: from the first tokens of an answer to its last the server took %s, but they were read within %s. A proxy may collect chunks; switch its buffering off",
		Format(Seconds, made), Format(Seconds, read))
}

// decodeTime returns the server's mean time from the first token of an answer to its last, in seconds,
// and the number of answers. It does not use the time between tokens, because an engine that
// speculates makes several tokens in one step.
func (l *Level) decodeTime() (mean, n float64, ok bool) {
	if h, why := l.Histogram("decode"); why == "" {
		mean, ok = h.Mean()
		return mean, h.N(), ok
	}
	whole, why1 := l.Histogram("server_e2e")
	first, why2 := l.Histogram("server_ttft")
	if why1 != "" || why2 != "" || math.Abs(whole.N()-first.N()) > mostApart*whole.N() {
		return 0, 0, false
	}
	e2e, ok1 := whole.Mean()
	ttft, ok2 := first.Mean()
	return e2e - ttft, whole.N(), ok1 && ok2
}

// readIn reports whether the time t lies between the two readings of round i of the level, or of a
// later round.
func (l *Level) readIn(i int, t time.Duration) bool {
	return slices.ContainsFunc(l.Rounds[i:], func(r *Round) bool {
		return r.Telemetry != nil && t > r.Telemetry.From && t <= r.Telemetry.To
	})
}
