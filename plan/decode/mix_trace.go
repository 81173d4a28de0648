package decode

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// A mix can replay a trace: each row becomes a request of one of the mix's workloads. The row's
// type chooses the workload, or else chance does. The row sets the time and the lengths of the
// request. The workload sets everything else.

func (m *mixture) allLoads() []*plan.Load {
	if m.Capacity == nil || m.Capacity.Load == nil {
		return m.Loads
	}
	return append(slices.Clone(m.Loads), m.Capacity.Load)
}

func (m *mixture) unread(l *plan.Load) bool {
	return l.Open != nil && len(l.Levels) == 0 && slices.Contains(m.Loads, l)
}

func (m *mixture) recorded(part *plan.Workload) {
	sum, n := 0, 0
	for _, row := range m.Replays().Measured() {
		if part.Type == "" || row.Type == part.Type {
			sum, n = sum+row.Output, n+1
		}
	}
	part.Input, part.Prompt = 0, plan.Prompt{}
	part.Output = plan.Output{Mean: max(int(math.Round(float64(sum)/float64(max(n, 1)))), 1)}
}

func (d *decoder) checkReplayed(m *mixture, l *plan.Load) {
	t := l.Open.Trace
	if slices.ContainsFunc(m.allLoads(), func(l *plan.Load) bool { return l.Open == nil || l.Open.Trace == nil }) {
		d.errorf(l.Range, sumConflict, "One load of this mix replays a trace, and another does not. With the trace, its rows set the lengths of requests; with the other load, the parts of the mix do. Move one of these loads to another mix.")
		return
	}
	if len(m.parts) == 0 {
		return // an error of the mix was reported before
	}
	for _, part := range m.Mix {
		if !part.API.Chats() && t.HasMessages() {
			d.errorf(l.Range, sumTrace, `The trace %s contains chat messages, which workload.%s cannot send. Write api = "chat" in that workload.`, t.Path, part.PartName())
		}
		if part.Score != nil {
			d.errorf(l.Range, sumConflict, "A trace has no right answers, but workload.%s scores its answers. Remove its score block.", part.PartName())
		}
	}
	types := map[string]bool{}
	for _, part := range m.parts {
		types[cmp.Or(part.rows, part.name)] = true
	}
	for i := range t.Rows {
		row := &t.Rows[i]
		switch known := types[row.Type]; {
		case m.byType() && row.Type == "":
			d.errorf(l.Range, sumTrace, `The row %s:%d has no type, so it belongs to no part of workload.%s. Give every row a type, or give each part a share, such as { %s = "70%%" }.`, t.Path, row.Line, m.Address(), m.parts[0].name)
		case m.byType() && !known:
			d.errorf(l.Range, sumTrace, "The row %s:%d has the type %q, but no part of workload.%s has this type. The types of its parts are %s.", t.Path, row.Line, row.Type, m.Address(), choices(slices.Sorted(maps.Keys(types))))
		case !m.byType() && known:
			d.errorf(m.rng, sumConflict, "The rows of %s already name their parts: line %[3]d has the type %[2]s. Write types instead of shares, such as { %[2]s = %[2]q }.", t.Path, row.Type, row.Line)
		case !m.byType() && row.Parent >= 0:
			d.errorf(l.Range, sumTrace, "The row %s:%d continues the conversation of an earlier row, so its part cannot be drawn at random. Give each row a type, and write the types instead of shares.", t.Path, row.Line)
		default:
			continue
		}
		return
	}
}

func (m *mixture) byType() bool { return len(m.parts) > 0 && m.parts[0].rows != "" }

func (m *mixture) checkParts(d *decoder) {
	sum, of := 0, map[string]bool{}
	for _, part := range m.parts {
		sum += part.share
		switch {
		case m.byType() != (part.rows != ""):
			d.errorf(m.rng, sumConflict, `mix.%s and mix.%s differ: one is a share, such as "70%%", and the other is a type of rows in a trace. Write shares for all parts, or types for all.`, part.name, m.parts[0].name)
			return
		case part.rows != "" && of[part.rows]:
			d.errorf(m.rng, sumConflict, "Two parts of the mix have the type %q. Give each part its own type.", part.rows)
			return
		}
		of[part.rows] = true
	}
	if sum != traffic.Whole && !m.byType() {
		d.errorf(m.rng, sumOutOfRange, "The shares of a mix must add up to 100%%, but these add up to %s.", metric.Format(metric.Ratio, float64(sum)/traffic.Whole))
	}
}
