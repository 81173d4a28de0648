package metric

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

var day = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func accepted(alter func(*Accept)) *Accept {
	a := &Accept{Name: "a", Workloads: []string{"rag"}, At: []string{"8", "16"}, Metric: "ttft", Stat: "p95", Limit: 3, Until: day.AddDate(0, 0, 30)}
	if alter != nil {
		alter(a)
	}
	return a
}

func TestAcceptIncludes(t *testing.T) {
	for _, tt := range []struct {
		name        string
		alter       func(*Accept)
		includes    bool // the altered one includes the other
		includesToo bool // the other includes the altered one
	}{
		{"the same", nil, true, true},
		{"another name and reason", func(a *Accept) { a.Name, a.Why = "b", "c" }, true, true},
		{"wider", func(a *Accept) { a.Limit = 4 }, true, false},
		{"longer", func(a *Accept) { a.Until = day.AddDate(0, 0, 31) }, true, false},
		{"every workload", func(a *Accept) { a.Workloads = nil }, true, false},
		{"a workload more", func(a *Accept) { a.Workloads = []string{"chat", "rag"} }, true, false},
		{"every level", func(a *Accept) { a.At = nil }, true, false},
		{"wider and shorter", func(a *Accept) { a.Limit, a.Until = 4, day }, false, false},
		{"another statistic", func(a *Accept) { a.Stat = "p99" }, false, false},
		{"another metric", func(a *Accept) { a.Metric = "e2e" }, false, false},
		{"of nights", func(a *Accept) { a.Of = AcceptNights }, false, false},
	} {
		one, other := accepted(tt.alter), accepted(nil)
		got, too := one.Includes(other), other.Includes(one)
		must.Hold(t, got == tt.includes && too == tt.includesToo, "%s: %v and %v, want %v and %v", tt.name, got, too, tt.includes, tt.includesToo)
	}
	// Of a speed, a lower limit is wider; of a capacity, a larger fall.
	for _, name := range []string{"speed", "capacity"} {
		wide, narrow := &Accept{Metric: name, Limit: -0.2}, &Accept{Metric: name, Limit: -0.1}
		must.Hold(t, wide.Includes(narrow) && !narrow.Includes(wide), "%s: -20%% must include -10%%, and not the other way", name)
	}
}

// The end counts by the date of the run. A simulated run has none.
func TestAcceptLapsed(t *testing.T) {
	for _, tt := range []struct {
		until, date time.Time
		counts      bool
	}{
		{day.AddDate(0, 0, 1), day, true},
		{day, day, false},
		{day, day.Add(-time.Second), true},
		{day.AddDate(0, 0, 90), day, true},
		{day.AddDate(0, 0, 91), day, false},
		{day.AddDate(0, 0, 91), day.AddDate(0, 0, 1), true},
		{day.AddDate(-9, 0, 0), time.Time{}, true},
	} {
		a := Accept{Until: tt.until}
		got := a.Lapsed(tt.date)
		must.Hold(t, (got == "") == tt.counts, "until %v on %v: %q", tt.until, tt.date, got)
	}
}
