package assert

import (
	"fmt"
	"math"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// With at least this many rounds or blocks, their differences show how much requests depend on each
// other.
const (
	leastRounds = metric.LeastRounds
	leastBlocks = 10
)

// block is a whole round, or a part of a round that lasts at least one wave. In a wave, a group of
// requests is in flight at the same time.
type block struct {
	round   *metric.Round
	samples []*metric.Sample // measured requests, in order of start
	lost    int              // number of requests that were due but have no sample
	// The round's window is divided into a number of blocks. The field parts is this number, and
	// part is the index of this block.
	part, parts int
}

// evidence holds a level's requests in blocks. The spread between blocks shows how much requests
// depend on each other.
type evidence struct {
	level  *metric.Level
	blocks []block
	rounds bool // each block is a whole round
	// sound means that there are enough blocks to judge by the spread between them.
	sound bool
	// waves is the number of waves in the level: groups of requests in flight at the same time.
	// With too few blocks, each wave counts as one request.
	waves int
	n     int // requests, including lost ones
}

// gather divides a level into blocks. If the level has at least five rounds, they are the blocks.
// Otherwise each round is divided, so that there are at least ten blocks, or fewer if each must
// last a wave.
func gather(l *metric.Level) evidence {
	e := evidence{level: l}
	type pass struct {
		round   *metric.Round
		samples []*metric.Sample
		lost    int
	}
	var passes []pass
	for _, r := range l.Rounds {
		p := pass{round: r, samples: r.MeasuredSamples()}
		p.lost = max(r.Due-len(p.samples), 0)
		if len(p.samples)+p.lost > 0 {
			passes = append(passes, p)
		}
	}
	e.rounds = len(passes) >= leastRounds || l.Kind == metric.Burst
	perRound := 1
	if !e.rounds && len(passes) > 0 {
		perRound = (leastBlocks + len(passes) - 1) / len(passes)
	}
	for _, p := range passes {
		n := len(p.samples) + p.lost
		waves := max(n/atOnce(l), 1)
		if l.Kind == metric.Burst {
			waves = 1
		}
		e.n += n
		e.waves += waves
		parts := min(perRound, waves)
		for i := range parts {
			b := block{round: p.round, samples: p.samples[len(p.samples)*i/parts : len(p.samples)*(i+1)/parts], part: i, parts: parts}
			if i == parts-1 {
				b.lost = p.lost
			}
			e.blocks = append(e.blocks, b)
		}
	}
	e.sound = len(passes) >= leastRounds || len(e.blocks) >= leastBlocks
	return e
}

// atOnce returns how many requests run in the same batches of the server. For users it returns 1,
// because nobody knows how many of them are thinking.
func atOnce(l *metric.Level) int {
	if l.Kind == metric.Users {
		return 1
	}
	return l.AtOnce()
}

// String says how many blocks there are, such as "5 rounds" or "10 blocks of one round".
func (e evidence) String() string {
	noun := "blocks"
	if e.rounds {
		_, noun = e.level.RoundNames()
		if e.level.Kind == metric.Burst {
			noun = "bursts"
		}
	}
	return verdict.Count(len(e.blocks), noun)
}

// independence returns how many independent requests one more request adds: 1, or less if requests
// depend on each other. The argument effective is the number of independent requests so far.
func (e evidence) independence(effective float64) float64 {
	if e.sound && e.n > 0 && effective > 0 {
		return effective / float64(e.n)
	}
	return 1
}

// shortfall returns how many more requests would decide a verdict; -1 if no number would. It also
// says this in words, with the time that the requests take.
func (e evidence) shortfall(total float64) (words string, requests int) {
	if e.warming() != "" {
		return "needs a longer warmup: the first requests took much longer than all others, and more requests would not change that", -1
	}
	total = max(total, float64(e.n+1))
	if !e.sound {
		total = max(total, float64(leastBlocks*e.level.AtOnce()))
	}
	extra := math.Ceil(total) - float64(e.n)
	if !(extra < 1e9) {
		return "the value is so close to its limit that no number of requests would decide the verdict", -1
	}
	// Round up to two digits; the number is only an estimate.
	if step := math.Pow(10, math.Floor(math.Log10(extra))-1); step > 1 {
		extra = math.Ceil(extra/step) * step
	}
	return verdict.NeedsMore(int(extra), "requests") + e.lasting(extra), int(extra)
}

// lasting says how long the given number of requests takes at the level's pace, such as ", 15 min".
// It returns "" for less than a minute.
func (e evidence) lasting(requests float64) string {
	if seconds := e.seconds(); seconds > 0 && e.n > 0 {
		if minutes := requests * seconds / float64(e.n) / 60; minutes >= 1 {
			return fmt.Sprintf(", %.0f min", math.Ceil(minutes))
		}
	}
	return ""
}

// seconds returns the total time of the level's rounds. If one window is divided into rounds, each
// round ends where the next begins. Its last request may end later.
func (e evidence) seconds() float64 {
	sum := 0.0
	for _, r := range e.level.Rounds {
		switch {
		case e.level.Windowed():
			sum += (r.WindowEnd - r.WindowStart).Seconds()
		case r.End > r.Start:
			sum += (r.End - r.Start).Seconds()
		}
	}
	return sum
}

// stretches returns for each block which part of the round's window it covers. It skips blocks of
// rounds without a window. For batches it returns equal parts of the whole window.
func (e evidence) stretches(w metric.Window) []metric.Stretch {
	if e.batched() && e.rounds {
		return e.level.Windows(w)
	}
	var out []metric.Stretch
	for _, b := range e.blocks {
		if s := e.level.Stretches(b.round, w, b.parts); s != nil {
			out = append(out, s[b.part])
		}
	}
	return out
}
