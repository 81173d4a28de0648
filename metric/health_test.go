package metric

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tokgate/tokgate/internal/must"
)

// A recording tells standstills that did not happen from standstills that were not recorded.
func TestStandstillsRecorded(t *testing.T) {
	for _, tt := range []struct {
		name     string
		health   Health
		recorded bool
		held     float64
	}{
		{"not recorded", Health{}, false, 0},
		{"none", Health{Standstills: []Standstill{}}, true, 0},
		// 0.25 s + 0.5 s in standstills, and 0.02 s in shorter delays
		{"two", Health{Standstills: []Standstill{{time.Second, 1250 * time.Millisecond}, {2 * time.Second, 2500 * time.Millisecond}}, Late: 20 * time.Millisecond}, true, 0.77},
	} {
		raw := must.Get(json.Marshal(tt.health))(t)
		var read Health
		must.Do(t, json.Unmarshal(raw, &read))
		must.Same(t, tt.name+": read back as", tt.health, read)
		held, recorded := read.Held()
		must.Hold(t, held == tt.held && recorded == tt.recorded, "%s: held for %v s, recorded %v; want %v, %v", tt.name, held, recorded, tt.held, tt.recorded)
	}
}

// A standstill from 1 s to 2 s may have begun 10 ms earlier, after the last heartbeat that came. The
// first reads after it may have their times 10 ms later.
func TestStoodStill(t *testing.T) {
	const ms = time.Millisecond
	h := Health{Standstills: []Standstill{{1000 * ms, 2000 * ms}, {5000 * ms, 5100 * ms}}}
	for _, tt := range []struct {
		from, to time.Duration
		want     bool
	}{
		{0, 989 * ms, false},
		{0, 990 * ms, true},
		{1500 * ms, 1600 * ms, true},
		{900 * ms, 3000 * ms, true},
		{2010 * ms, 2010 * ms, true},
		{2011 * ms, 4989 * ms, false},
		{4000 * ms, 6000 * ms, true},
		{5111 * ms, 9000 * ms, false},
	} {
		must.Same(t, fmt.Sprintf("from %v to %v", tt.from, tt.to), tt.want, h.StoodStill(tt.from, tt.to))
	}
	must.Hold(t, !(Health{Stall: time.Second}).StoodStill(0, time.Hour), "a recording without standstills has one")
}

// A round keeps at most 1,000 standstills. Of 1,500, each of 50 ms in every 100 ms, the first 999
// are kept. The last one begins at 999 · 100 ms and ends with the last, at 1,499 · 100 ms + 50 ms.
func TestMostStandstills(t *testing.T) {
	const ms = time.Millisecond
	var h Health
	for i := range time.Duration(1500) {
		h.AddStandstill(Standstill{i * 100 * ms, i*100*ms + 50*ms})
	}
	if n := len(h.Standstills); n != 1000 || h.Standstills[998] != (Standstill{99800 * ms, 99850 * ms}) || h.Standstills[999] != (Standstill{99900 * ms, 149950 * ms}) {
		t.Errorf("%d standstills, the last %v", n, h.Standstills[n-2:])
	}
	err := h.Possible()
	must.Hold(t, err == nil, "%v", err)
}

func TestImpossibleHealth(t *testing.T) {
	many := make([]Standstill, mostStandstills+1)
	for i := range many {
		many[i] = Standstill{time.Duration(2 * i), time.Duration(2*i + 1)}
	}
	for _, tt := range []struct {
		health Health
		want   string // "" if it is possible
	}{
		{Health{CPU: -1}, ""},
		{Health{CPU: -2}, "out of range"},
		{Health{Stall: -1}, "out of range"},
		{Health{Late: -1}, "out of range"},
		{Health{Standstills: []Standstill{{0, 1}, {2, 3}}}, ""},
		{Health{Standstills: []Standstill{{-1, 1}}}, "not in order"},
		{Health{Standstills: []Standstill{{5, 5}}}, "not in order"},
		{Health{Standstills: []Standstill{{5, 4}}}, "not in order"},
		{Health{Standstills: []Standstill{{0, 5}, {4, 6}}}, "not in order"},
		{Health{Standstills: []Standstill{{4, 6}, {0, 3}}}, "not in order"},
		{Health{Standstills: many[:mostStandstills]}, ""},
		{Health{Standstills: many}, "1001 standstills (allowed 1000)"},
	} {
		err := tt.health.Possible()
		must.Hold(t, (err == nil) == (tt.want == "") && (err == nil || strings.Contains(err.Error(), tt.want)), "%.200v: %v, want %q", tt.health, err, tt.want)
	}
}
