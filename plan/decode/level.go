package decode

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/tokgate/tokgate/plan"
)

func (b *body) loaded() bool { return len(b.blocks["load"])+len(b.blocks["capacity"]) > 0 }

func readSeeds(b *body) []int64 {
	var seeds []int64
	seen := map[int]bool{}
	for _, e := range b.list("seeds") {
		n, ok := e.integer()
		switch {
		case !ok:
		case seen[n]:
			e.errorf(sumDuplicateSeed, "The seed %d is used twice: both rounds would send the same prompts.", n)
		default:
			seen[n] = true
			seeds = append(seeds, int64(n))
		}
	}
	if len(seeds) == 0 {
		seeds = []int64{1}
	}
	return seeds
}

func addLevels(b *body, l *plan.Load, name string, read func(item) (plan.Level, bool)) {
	if !b.given(name) {
		return
	}
	list := b.list(name)
	l.Levels = slices.Grow(l.Levels, len(list))
	for _, e := range list {
		if level, ok := read(e); ok && b.d.countLevel(b.rng) {
			level.Rounds, level.Range = max(level.Rounds, 1), e.rng
			l.Levels = append(l.Levels, level)
		}
	}
}

func (d *decoder) countLevel(rng hcl.Range) bool {
	if d.levels++; d.levels > maxLevels {
		d.errorf(rng, sumTooManyInstances, "A plan has at most %d levels.", maxLevels)
		return false
	}
	return true
}

func addCounts(b *body, l *plan.Load, name string) {
	addLevels(b, l, name, func(e item) (plan.Level, bool) {
		n, ok := e.integer()
		return plan.Level{Name: plan.LevelName(l.Kind, n), N: n}, ok
	})
}
