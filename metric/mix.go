package metric

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// PartName returns the name of a part within its mix, such as "chat" for "production/chat".
func PartName(mix, address string) string { return strings.TrimPrefix(address, mix+"/") }

// AtOnce returns how many of n requests in flight belong, on average, to a part of a mix; at least
// 1. share is the part's share of the requests, and 0 means all.
func AtOnce(n int, share float64) int {
	if share > 0 {
		return max(int(math.Round(share*float64(n))), 1)
	}
	return max(n, 1)
}

// Fraction is the level's share of the requests in flight, in (0, 1]. Only that of a part of a mix is
// less than 1.
func (l *Level) Fraction() float64 { return cmp.Or(l.Share, 1) }

// AtOnce returns how many of the level's requests are in flight at once, or are sent at once.
func (l *Level) AtOnce() int { return AtOnce(l.N, l.Share) }

// OfParts reports whether each part of a mix has its own value of the metric. The parts share the
// server, its price and its slots, so metrics of these belong to the whole mix.
func OfParts(d Def) bool {
	return d.Source == Client && d.Name != "synchrony" && d.Name != "scaling_efficiency"
}

// Mixed reports whether the level is one of a mix.
func (l *Level) Mixed() bool { return len(l.Parts) > 0 }

// Alone reports whether no other requests than the level's own were in flight. It is false for a part
// of a mix.
func (l *Level) Alone() bool { return l.Of == "" }

// All returns the levels of the run. The level of a mix is followed by those of its parts, which are
// made anew by each call; see Part. A saturation is not divided.
func (r *Run) All() []*Level {
	var out []*Level
	for _, l := range r.Levels {
		out = append(out, l.Divided()...)
	}
	return out
}

// Divided returns the level, and after it the levels of the parts of a mix; see Part.
func (l *Level) Divided() []*Level {
	out := []*Level{l}
	if l != nil && !l.Saturates() {
		for _, p := range l.Parts {
			out = append(out, l.Part(p))
		}
	}
	return out
}

// Hang moves each level of Levels that is part of a mix to the mix's Parts. A part without its mix
// stays.
func (r *Run) Hang() {
	mixes := map[[3]string]*Level{}
	for _, l := range r.Levels {
		mixes[[3]string{l.Server, l.Workload, l.Name}] = l
	}
	r.Levels = slices.DeleteFunc(r.Levels, func(l *Level) bool {
		mix := mixes[[3]string{l.Server, l.Of, l.Name}]
		if l.Of == "" || mix == nil || mix == l {
			return false
		}
		mix.Parts = append(mix.Parts, l)
		return true
	})
}

// Part returns the level of one part of the mix, with only the part's requests. It keeps the rounds
// and windows of the mix, but leaves out a round without a request of the part.
func (l *Level) Part(of *Level) *Level {
	out := *of
	out.Kind, out.Batches, out.N, out.Rate, out.Stage = l.Kind, l.Batches, l.N, l.Rate, l.Stage
	out.Cut, out.Saturation = l.Cut, l.Saturation
	out.Shed, out.Skipped, out.Probe, out.Looks, out.Parts = l.Shed, l.Skipped, l.Probe, l.Looks, nil
	name := PartName(l.Workload, of.Workload)
	out.Rounds, out.Voided = partOf(l.Rounds, of, name), partOf(l.Voided, of, name)
	return &out
}

func partOf(rounds []*Round, of *Level, name string) []*Round {
	var out []*Round
	for _, r := range rounds {
		if r != nil {
			if r := r.part(of, name); r.Due > 0 {
				out = append(out, r)
			}
		}
	}
	return out
}

// part returns the round with only the requests of one part of a mix. Due requests that the
// recording lacks count too, because they may have belonged to the part.
func (r *Round) part(of *Level, name string) *Round {
	all := r.All()
	out := r.With(partSamples(all, of, name))
	out.Telemetry, out.Start, out.End = nil, r.End, r.Start
	measured := func(s *Sample) bool { return s != nil && s.Phase == Measured }
	own := 0
	for _, s := range out.Samples {
		if measured(s) {
			own++
			out.Start, out.End = min(out.Start, s.Scheduled), max(out.End, s.End)
		}
	}
	out.Due = own + max(r.Due-count(all, measured), 0)
	if r.Stored != nil {
		out.Samples, out.Stored = nil, func() []*Sample { return partSamples(r.All(), of, name) }
	}
	return out
}

// partSamples returns copies of the requests of a mix's part, numbered in the order of the part
// alone.
func partSamples(all []*Sample, of *Level, name string) []*Sample {
	var out []*Sample
	orders := ordersOf(all, name)
	for _, s := range all {
		if s == nil || s.Part != name {
			continue
		}
		c := *s
		c.Workload, c.Part, c.Order = of.Workload, "", orders[s]
		out = append(out, &c)
	}
	return out
}

func count(samples []*Sample, which func(*Sample) bool) int {
	n := 0
	for _, s := range samples {
		if which(s) {
			n++
		}
	}
	return n
}

// ordersOf numbers the requests of the named workload by their starts. Each phase is numbered from
// 0.
func ordersOf(all []*Sample, name string) map[*Sample]int {
	var own []*Sample
	for _, s := range all {
		if s != nil && s.Part == name {
			own = append(own, s)
		}
	}
	sortByStart(own)
	next, out := map[Phase]int{}, map[*Sample]int{}
	for _, s := range own {
		out[s] = next[s.Phase]
		next[s.Phase]++
	}
	return out
}

// AddPart adds the level of a part of the mix, with the part's share of the requests, in (0, 1].
func (l *Level) AddPart(part *Level, share float64) {
	part.Of, part.Share = l.Workload, share
	l.Natural = l.Natural || part.Natural
	l.Parts = append(l.Parts, part)
}
