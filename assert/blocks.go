package assert

import (
	"fmt"
	"math"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// With at least leastRounds rounds, or leastBlocks blocks, their differences show how much the
// requests of a level depend on each other.
const (
	leastRounds = metric.LeastRounds
	leastBlocks = 10
)

// block is a round, or a stretch of a round that is at least one wave long. A wave is the number of
// requests in flight at the same time, which share their batches.
type block struct {
	round   *metric.Round
	samples []*metric.Sample // measured requests, in order of start
	lost    int              // due requests without a sample
	// part is the number of this block among the parts into which the round's window is divided.
	part, parts int
}

// evidence holds a level's requests in blocks.
type evidence struct {
	level  *metric.Level
	blocks []block
	rounds bool // the blocks are whole rounds
	// sound reports whether there are enough blocks for their spread to be used.
	sound bool
	// waves is the number of waves in the level. If a level has too few blocks, each wave counts as
	// one request.
	waves int
	n     int // requests, including lost ones
}

// gather divides a level into blocks. If the level has at least five rounds, the rounds are the
// blocks. Otherwise its rounds are divided into ten stretches, or into fewer if a stretch would be
// shorter than a wave.
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

// atOnce returns the number of requests that share their batches. For users it returns 1, because
// most users are thinking and the number in flight is unknown.
func atOnce(l *metric.Level) int {
	if l.Kind == metric.Users {
		return 1
	}
	return l.AtOnce()
}

// String names the blocks: "5 rounds", "10 blocks of one round".
func (e evidence) String() string {
	noun := "blocks"
	if e.rounds {
		noun = "rounds"
		if e.level.Kind == metric.Burst {
			noun = "bursts"
		}
	}
	return verdict.Count(len(e.blocks), noun)
}

// worth returns how many independent requests one further request would add: 1, or less if requests
// depend on each other. The parameter effective is the number of independent requests so far.
func (e evidence) worth(effective float64) float64 {
	if e.sound && e.n > 0 && effective > 0 {
		return effective / float64(e.n)
	}
	return 1
}

// more returns how many further requests would decide a verdict. The result words also has the time
// that these requests take. The result requests is -1 if no number of requests would decide it.
func (e evidence) more(total float64) (words string, requests int) {
	if e.warming() != "" {
		return "needs a warm server; more requests would not help", -1
	}
	total = max(total, float64(e.n+1))
	if !e.sound {
		total = max(total, float64(leastBlocks*e.level.AtOnce()))
	}
	extra := math.Ceil(total) - float64(e.n)
	if !(extra < 1e9) {
		return "no number of requests settles a value this close to its limit", -1
	}
	// Round up to two digits, because the number is an estimate.
	if step := math.Pow(10, math.Floor(math.Log10(extra))-1); step > 1 {
		extra = math.Ceil(extra/step) * step
	}
	return "needs about " + verdict.Count(int(extra), "more requests") + e.lasting(extra), int(extra)
}

// lasting returns how long the given number of requests takes at the level's pace, such as ", 15
// min"; "" if less than a minute.
func (e evidence) lasting(requests float64) string {
	if seconds := e.seconds(); seconds > 0 && e.n > 0 {
		if minutes := requests * seconds / float64(e.n) / 60; minutes >= 1 {
			return fmt.Sprintf(", %.0f min", math.Ceil(minutes))
		}
	}
	return ""
}

// seconds returns the total time of the level's rounds. If the rounds divide one window, each ends
// where the next begins, even if its last request ended later.
func (e evidence) seconds() float64 {
	sum := 0.0
	for _, r := range e.level.Rounds {
		switch {
		case e.level.Kind.Windowed():
			sum += (r.WindowEnd - r.WindowStart).Seconds()
		case r.End > r.Start:
			sum += (r.End - r.Start).Seconds()
		}
	}
	return sum
}

// stretches returns, for each block, its part of its round's window. A block without a window is
// left out.
func (e evidence) stretches(w metric.Window) []metric.Stretch {
	var out []metric.Stretch
	for _, b := range e.blocks {
		if s := e.level.Stretches(b.round, w, b.parts); s != nil {
			out = append(out, s[b.part])
		}
	}
	return out
}
