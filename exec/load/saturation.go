package load

import (
	"cmp"
	"math"
	"time"
)

// Saturation decides how many requests a saturation keeps in flight. It doubles N until requests
// wait in a queue, or until the server gets no faster. More requests would only make the queue
// longer.
type Saturation struct {
	N    int // number of requests in flight
	Most int // largest value of N, at least N
	// Enough is a speed, in tokens per second, at which N is not raised further. 0 means that there
	// is no such speed.
	Enough float64
	// Anew reports that N was raised for the first time. The caller must then restart all requests,
	// because the first N requests began at the same moment.
	Anew bool

	raised time.Duration // time at which N, the number of slots, was last raised; 0 if never
	filled time.Duration // time from raised until nearly all requests had a first token; 0 before
	before float64       // output tokens per second before N, the number of slots, was raised
	marks  []mark        // recent calls of Look, since N was raised
}

// mark holds the time and the arguments of one call of the method Look.
type mark struct {
	at      time.Duration
	waiting int
	tokens  int64
}

const (
	// settling is how long the number of waiting requests must not shrink. It counts from when N,
	// the number of slots, was raised. Requests that still wait after this time are a queue.
	settling = 10 * time.Second
	// mostSettling is the longest wait for the number of waiting requests to stop shrinking.
	mostSettling = time.Minute
	// mostFilling limits the time in which the server reads the prompts after N, the number of
	// slots, is doubled. The estimate is twice the time that the present N requests took.
	mostFilling = 30 * time.Second
	// more is the factor by which N, the number of slots, is raised. N is raised again only if the
	// last raise made the server at least 1.05 times as fast.
	more, faster = 2, 1.05
)

// Look decides whether to start the measurement. If not, it may raise N. Call it about once a
// second. waiting is the number of requests without a first token, and tokens is the number of
// tokens streamed so far. warm means that the first N requests have warmed up.
func (s *Saturation) Look(at time.Duration, waiting int, tokens int64, warm bool) (measure bool) {
	s.marks = append(s.marks, mark{at, waiting, tokens})
	for len(s.marks) > 2 && s.marks[1].at <= at-settling {
		s.marks = s.marks[1:]
	}
	if s.filled == 0 && fewWait(waiting, s.N) {
		s.filled = at - s.raised
	}
	if s.raised > 0 {
		warm = s.settled()
	}
	if !warm {
		return false
	}
	speed := s.speed()
	switch {
	case s.Queues(waiting), s.N >= s.Most, s.before > 0 && speed < faster*s.before, s.Enough > 0 && speed >= s.Enough:
		return true
	case more*cmp.Or(s.filled, at-s.raised) > mostFilling:
		return true
	}
	s.Anew = s.raised == 0
	if waiting += min(more*s.N, s.Most) - s.N; s.Anew {
		waiting = min(more*s.N, s.Most)
	}
	s.N, s.before, s.raised, s.filled = min(more*s.N, s.Most), speed, at, 0
	s.marks = []mark{{at, waiting, tokens}}
	return false
}

// Queues reports whether the waiting requests are a queue: at least a quarter of the requests in
// flight are waiting.
func (s *Saturation) Queues(waiting int) bool { return 4*waiting >= s.N }

// A saturation that is compared with a speed looks at it after firstLook, and then every nextLook.
// Each look divides the time so far into lookBlocks equal blocks. lookQuantile is the 95 % quantile
// of Student's t with lookBlocks − 1 degrees of freedom.
const (
	firstLook    = 20 // seconds
	nextLook     = 10
	lookBlocks   = 10
	lookQuantile = 1.8331
)

// Excludes reports whether a saturation has certainly another speed than the given one, in tokens
// per second. marks holds the number of tokens at the beginning and after each second. It is false
// between looks.
func Excludes(marks []int64, speed float64) bool {
	n := len(marks) - 1
	if n < firstLook || n%nextLook != 0 {
		return false
	}
	each := n / lookBlocks
	mean, squares := 0.0, 0.0
	for i := range lookBlocks {
		x := float64(marks[(i+1)*each]-marks[i*each]) / float64(each)
		mean, squares = mean+x/lookBlocks, squares+x*x
	}
	variance := max(squares-lookBlocks*mean*mean, 0) / (lookBlocks - 1)
	return math.Abs(mean-speed) > lookQuantile*math.Sqrt(variance/lookBlocks)
}

func fewWait(waiting, n int) bool { return 20*waiting <= n }

func (s *Saturation) settled() bool {
	first, last := s.marks[0], s.marks[len(s.marks)-1]
	if last.at-s.raised >= mostSettling {
		return true
	}
	if last.at-first.at < settling {
		return false
	}
	for _, m := range s.marks {
		if !fewWait(m.waiting, s.N) {
			return first.waiting-last.waiting < s.N/100
		}
	}
	return true
}

func (s *Saturation) speed() float64 {
	first, last := s.marks[0], s.marks[len(s.marks)-1]
	if last.at <= first.at {
		return 0
	}
	return float64(last.tokens-first.tokens) / (last.at - first.at).Seconds()
}
