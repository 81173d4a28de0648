package decode

import (
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/plan/suggest"
	"github.com/zclconf/go-cty/cty"
)

type levelSet struct {
	names []string
	alone []string // names of the levels that are not stages, so that they run alone
	have  map[string]bool
	stray bool // whether the workload has an unknown name, which may be a misspelt load or capacity
}

// levelsOf returns the levels that one of the workloads has.
func levelsOf(workloads ...*plan.Workload) levelSet {
	s := levelSet{have: map[string]bool{}}
	for _, w := range workloads {
		for _, level := range w.Levels() {
			if s.have[level.Name] {
				continue
			}
			s.have[level.Name] = true
			s.names = append(s.names, level.Name)
			if level.Stage == nil {
				s.alone = append(s.alone, level.Name)
			}
		}
	}
	return s
}

// The default is every level, and the capacity if the workload has a capacity search. A workload
// without a load has the levels of the mixes that contain it.
func readAt(b *body, sla *plan.SLA, w *plan.Workload, levels levelSet) []string {
	searched, deferred := w.Capacity != nil, b.d.isLoadless(w)
	if !b.given("at") {
		sla.AtCapacity = searched
		switch {
		case searched:
			b.note("at", "every level, and the capacity", "")
		case len(levels.alone) > 0:
			b.note("at", "every level", "")
		case len(levels.names) > 0:
			b.d.errorf(b.rng, sumMissing, "An sla block without `at` does not apply to stages. Name the stages, such as at = %q.", levels.names[len(levels.names)-1])
		}
		return slices.Clone(levels.alone)
	}
	var out []string
	seen := map[string]bool{}
	b.d.at[sla] = []levelNamed{}
	for _, e := range b.list("at") {
		name, ok := readLevelName(e)
		if !ok {
			continue
		}
		b.d.at[sla] = append(b.d.at[sla], levelNamed{name, e.rng})
		switch {
		case deferred && !seen[name]: // see checkMixedAt
			seen[name] = true
		case !levels.have[name] && levels.stray:
		case name == "capacity" && !searched:
			b.d.errorf(e.rng, sumNoCapacity, "`at` names \"capacity\", but the workload has no capacity block. Add capacity { up_to = 64 }.")
		case name == "capacity" && sla.AtCapacity:
			b.d.errorf(e.rng, sumDuplicateLevel, "The capacity is named twice.")
		case name == "capacity":
			sla.AtCapacity = true
		case seen[name]:
			b.d.errorf(e.rng, sumDuplicateLevel, "`at` names the level %s twice. Remove one.", name)
		case !levels.have[name]:
			b.d.unknownLevel(e.rng, name, levels)
		default:
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// If the claim names workloads, each of them must have these levels. Otherwise one workload with
// these levels is enough.
func readClaimAt(b *body, c *plan.Claim) []string {
	all := levelsOf(c.Workloads...)
	if !b.given("at") {
		if len(all.names) > 0 {
			b.note("at", "every level", "")
		}
		return all.names
	}
	var out []string
	for _, e := range b.list("at") {
		name, ok := readLevelName(e)
		if !ok {
			continue
		}
		lacks := slices.IndexFunc(c.Workloads, func(w *plan.Workload) bool { return !levelsOf(w).have[name] })
		switch {
		case name == "capacity":
			b.d.errorf(e.rng, sumUnknownLevel, "In a comparison, `at` lists levels only. Remove \"capacity\" from `at`, and write capacity = \"-15%%\" beside the other metrics.")
		case slices.Contains(out, name):
			b.d.errorf(e.rng, sumDuplicateLevel, "`at` names the level %s twice. Remove one.", name)
		case !all.have[name]:
			b.d.unknownLevel(e.rng, name, all)
		case lacks >= 0 && b.given("workloads"):
			b.d.errorf(e.rng, sumUnknownLevel, "workload.%s has no level %q; it has %s.", c.Workloads[lacks].Address(), name, choices(levelsOf(c.Workloads[lacks]).names))
		default:
			out = append(out, name)
		}
	}
	return out
}

func readLevelName(e item) (name string, ok bool) {
	if e.unknown() {
		return "", false
	}
	switch e.value.Type() {
	case cty.String:
		return levelName(e.value.AsString()), true
	case cty.Number:
		n, ok := e.like(loadBlock.attr("concurrency")).integer()
		return strconv.Itoa(n), ok
	}
	e.wrongType(`a level such as 30 or "burst 8"`)
	return "", false
}

func (d *decoder) unknownLevel(rng hcl.Range, name string, levels levelSet) {
	if len(levels.names) == 0 || d.enoughErrors() {
		return // already reported as undeclared
	}
	hint := ""
	if levels.have[name+" users"] {
		hint = ` Did you mean "` + name + ` users"?`
	} else if levels.have["burst "+name] {
		hint = ` Did you mean "burst ` + name + `"?`
	} else if _, err := strconv.Atoi(name); err != nil {
		hint = suggest.DidYouMean(name, levels.names)
	}
	if hint == "" {
		hint = " It has " + choices(levels.names) + "."
	}
	d.errorf(rng, sumUnknownLevel, "The workload has no level %q.%s", name, hint)
}
