package telemetry

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tokgate/tokgate/metric"
)

type history struct {
	readings []stamped
	failed   []failure
	back     bool          // a counter went back; see Reading.wentBack
	every    time.Duration // planned time between two readings
	absent   bool          // the source does not exist
	reason   string        // the reason why the source is absent
}

func (h *history) add(r stamped) {
	if n := len(h.readings); n > 0 && !h.back {
		h.back = r.wentBack(h.readings[n-1].Reading)
	}
	h.readings = append(h.readings, r)
}

// span is a part of a measured window: from its beginning to its end. The whole window lasts from
// begin to end.
type span struct{ from, to, begin, end time.Duration }

// summarize computes the telemetry of a round from readings. It depends only on its arguments.
func summarize(of span, server, gpu history) *metric.Telemetry {
	t := server.told(of)
	gpu.addGPU(t, of)
	return t
}

// behind is what was read of one of several replicas. rested is its last reading before the load; nil
// if there is none.
type behind struct {
	url    string
	rested *Reading
	history
}

// summarizeAll is summarize for several replicas.
func summarizeAll(of span, replicas []behind, gpu history) *metric.Telemetry {
	var parts []*metric.Telemetry
	var names []string
	for _, r := range replicas {
		parts, names = append(parts, r.told(of)), append(names, r.url)
	}
	t := metric.Together(parts, names)
	gpu.addGPU(t, of)
	return t
}

// whole returns what a replica did from its last reading before the load to its last reading.
func (r behind) whole(gauges map[string]metric.Gauge) metric.Replica {
	out := metric.Replica{URL: r.url, Gauges: map[string]metric.Gauge{}}
	for _, name := range []string{"running", "waiting", "kv_usage"} {
		if g, ok := gauges[name]; ok {
			g.Why = ""
			out.Gauges[name] = g
		}
	}
	if out.Missing = r.unread(); out.Missing != "" {
		return out
	}
	last := r.readings[len(r.readings)-1]
	switch {
	case r.back:
		out.Missing = restarted
		return out
	case r.rested == nil || last.Reading == r.rested:
		out.Missing = "it was not read both before the load and after it"
		return out
	}
	out.Added = map[string]float64{}
	for _, name := range serverCounters {
		if n, ok := last.Counters[name]; ok {
			out.Added[name] = n - r.rested.Counters[name]
		}
	}
	out.Requests = last.Histograms["server_e2e"].N() - r.rested.Histograms["server_e2e"].N()
	return out
}

// told returns what a server reported of itself.
func (h history) told(of span) *metric.Telemetry {
	t := &metric.Telemetry{
		Reads: len(h.readings) + len(h.failed), Failed: len(h.failed),
		Added: map[string]float64{}, Histograms: map[string]metric.Histogram{},
		Gauges: map[string]metric.Gauge{}, Missing: map[string]string{},
	}
	if t.Restarted = h.back; t.Restarted {
		// The page was of two servers in turn, or of one that was restarted. No figure on it is of the
		// server that answered the load.
		h.absent, h.reason = true, restarted
	}
	a, b, why := h.edges(of)
	if why == "" {
		t.From, t.To = h.readings[a].at, h.readings[b].at
	}
	for _, name := range wantedOf(metric.Server) {
		h.describe(t, name, of.from, of.to, a, b, why)
	}
	for _, name := range serverCounters {
		if why != "" {
			t.Missing[name] = why
			continue
		}
		h.counter(t, name, a, b)
	}
	return t
}

func (h history) addGPU(t *metric.Telemetry, of span) {
	if a, b, why := h.edges(of); why == "" {
		h.counter(t, metric.Energy, a, b)
		h.counter(t, metric.ECCErrors, a, b)
		t.Added[metric.EnergySeconds] = (h.readings[b].at - h.readings[a].at).Seconds()
	}
	for _, name := range append(wantedOf(metric.GPU), metric.LastXID) {
		h.gauge(t, name, of.from, of.to)
	}
}

const restarted = "the server's counters went back in the middle of the round: it was restarted, or its page is that of several servers in turn"

// wentBack reports whether a counter or a histogram decreased since the reading before, or vanished.
func (r *Reading) wentBack(before *Reading) bool {
	for name, was := range before.Counters {
		if is, ok := r.Counters[name]; !ok || is < was {
			return true
		}
	}
	for name, was := range before.Histograms {
		is, ok := r.Histograms[name]
		if !ok || !slices.Equal(is.Bounds, was.Bounds) || len(is.Counts) != len(was.Counts) {
			return true
		}
		for k := range is.Counts {
			if is.Counts[k] < was.Counts[k] {
				return true
			}
		}
	}
	return false
}

// serverCounters lists the counters from which level-wide metrics are computed.
var serverCounters = []string{
	metric.Preempted, metric.AcceptedTokens, metric.DraftTokens, metric.Drafts, metric.PrefillTokens, metric.PrefillSeconds,
	metric.CacheQueries, metric.CacheHits, metric.GeneratedTokens, metric.GeneratedSeconds, metric.Aborted, metric.Errors, metric.Rejected,
}

// wantedOf lists the names that a source must report. Gauges and histograms have the names of
// metrics. Counters have their own names.
func wantedOf(source metric.Source) []string {
	if source == metric.GPU {
		return metric.Names(func(d metric.Def) bool { return d.Source == source && d.Scope == metric.PerReading })
	}
	return metric.Names(func(d metric.Def) bool { return d.Source == source })
}

func (h history) describe(t *metric.Telemetry, name string, from, to time.Duration, a, b int, why string) {
	def, _ := metric.Lookup(name)
	switch def.Scope {
	case metric.PerReading:
		h.gauge(t, name, from, to)
		return
	case metric.Counted:
		if why != "" {
			t.Missing[name] = why
			return
		}
		h.histogram(t, name, a, b)
		return
	}
	if name != "accept_rate" {
		return
	}
	// SGLang has no counters for these two metrics. It reports their means.
	for _, g := range []string{"accept_rate", "accept_length"} {
		h.gauge(t, g, from, to)
	}
	for i := 0; why == ""; i++ {
		c := metric.AcceptedAt(i)
		if _, ok := h.readings[b].Counters[c]; !ok {
			break
		}
		h.counter(t, c, a, b)
	}
}

// unread returns the reason why a source gave no reading at all; "" if it gave at least one.
func (h history) unread() string {
	switch {
	case h.absent:
		return cmp.Or(h.reason, unread)
	case len(h.readings) > 0:
		return ""
	case len(h.failed) > 0:
		return h.failed[len(h.failed)-1].why
	}
	return unread
}

const unread = "it was not read"

// edges returns the indices of the two readings that are nearest to the start and the end of a part
// of a window. Both may be the same reading: the neighbouring parts then cover its time too. If the
// readings at the edges of the whole window are the same, or together further away than a quarter of
// it, the result why says so.
func (h history) edges(of span) (a, b int, why string) {
	if why := h.unread(); why != "" {
		return 0, 0, why
	}
	if of.to <= of.from {
		return 0, 0, "there was no measured window"
	}
	a, b = h.nearest(of.begin), h.nearest(of.end)
	off := (h.readings[a].at - of.begin).Abs() + (h.readings[b].at - of.end).Abs()
	if a == b || off > (of.end-of.begin)/4 {
		why = fmt.Sprintf("no two readings are close enough to the edges of the window of %v", (of.end - of.begin).Round(time.Millisecond))
		if n := len(h.failed); n > 0 {
			why += ", since some failed: " + h.failed[n-1].why
		}
		return 0, 0, why
	}
	return h.nearest(of.from), h.nearest(of.to), ""
}

func (h history) nearest(t time.Duration) int {
	i, _ := slices.BinarySearchFunc(h.readings, t, func(r stamped, t time.Duration) int { return int(r.at - t) })
	if i == len(h.readings) || i > 0 && t-h.readings[i-1].at <= h.readings[i].at-t {
		i--
	}
	return i
}

// absence returns the reason why a source that was read has no value with this name.
func (h history) absence(name string) string {
	if why := h.readings[len(h.readings)-1].None[name]; why != "" {
		return why
	}
	if def, ok := metric.Lookup(name); ok {
		return def.NoValue
	}
	return "the server reports no such value"
}

func (h history) counter(t *metric.Telemetry, name string, a, b int) {
	if _, ok := h.readings[b].Counters[name]; !ok {
		t.Missing[name] = h.absence(name)
		return
	}
	before := h.readings[a].Counters[name] // 0 if the server did not report it yet
	first := before
	series := metric.Series{Metric: name}
	for _, r := range h.readings[a+1 : b+1] {
		now, ok := r.Counters[name]
		if !ok || now < before {
			t.Missing[name] = restarted
			return
		}
		series.At, series.Values = append(series.At, r.at.Milliseconds()), append(series.Values, now-before)
		before = now
	}
	if x := before - first; !math.IsInf(x, 0) {
		t.Added[name] = x
		if name == metric.Preempted {
			series.Thin()
			t.Series = append(t.Series, series)
		}
	}
}

func (h history) histogram(t *metric.Telemetry, name string, a, b int) {
	end, ok := h.readings[b].Histograms[name]
	if !ok {
		t.Missing[name] = h.absence(name)
		return
	}
	begin, ok := h.readings[a].Histograms[name]
	if !ok {
		begin = metric.Histogram{Bounds: end.Bounds, Counts: make([]float64, len(end.Counts))}
	}
	if begin.Sum > end.Sum {
		t.Missing[name] = restarted
		return
	}
	out := metric.Histogram{Bounds: end.Bounds, Counts: make([]float64, len(end.Counts)), Sum: end.Sum - begin.Sum}
	for i := range out.Counts {
		out.Counts[i] = end.Counts[i] - begin.Counts[i]
	}
	t.Histograms[name] = out
}

// gauge summarises the readings of a gauge in the window. It also keeps all readings of the round
// as a series. If readings are missing for longer than mostBlind, the gauge has no value: its
// maximum may have occurred in that time.
func (h history) gauge(t *metric.Telemetry, name string, from, to time.Duration) {
	if why := h.unread(); why != "" {
		t.Missing[name] = why
		return
	}
	within := func(at time.Duration) bool { return at >= from && at <= to }
	g, sum := metric.Gauge{Min: math.Inf(1), Max: math.Inf(-1)}, 0.0
	series := metric.Series{Metric: name}
	seen, blind := from, time.Duration(0)
	for _, r := range h.readings {
		v, ok := r.Gauges[name]
		if !ok {
			if within(r.at) {
				g.Missed++
				g.Why = cmp.Or(r.None[name], "it was not told")
			}
			continue
		}
		series.At, series.Values = append(series.At, r.at.Milliseconds()), append(series.Values, v)
		now := min(max(r.at, from), to)
		seen, blind = now, max(blind, now-seen)
		if within(r.at) {
			g.N++
			sum += v
			g.Min, g.Max = min(g.Min, v), max(g.Max, v)
		}
	}
	if len(series.At) == 0 {
		t.Missing[name] = h.absence(name)
		return
	}
	blind = max(blind, to-seen)
	series.Thin()
	t.Series = append(t.Series, series)
	for _, f := range h.failed {
		if within(f.at) {
			g.Missed++
			g.Why = f.why
		}
	}
	switch {
	case g.N == 0 && g.Missed > 0:
		t.Missing[name] = fmt.Sprintf("all readings in the window failed: %s", g.Why)
	case blind > mostBlind(h.every):
		t.Missing[name] = fmt.Sprintf("nothing was read for %v of the window; a reading was due every %v", blind.Round(time.Millisecond), h.every)
		if g.Why != "" {
			t.Missing[name] += ": " + g.Why
		}
	case g.N == 0:
		t.Missing[name] = metric.TooShort
	default:
		g.Mean = sum / float64(g.N)
		t.Gauges[name] = g
	}
}

// mostBlind returns the longest time that may pass without a reading of a gauge. It allows two
// missed readings in a row. It is at least 1 s, because reading a page takes time.
func mostBlind(every time.Duration) time.Duration { return max(7*every/2, time.Second) }

// String lists the names in a reading, for messages and tests.
func (r *Reading) String() string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(r.Gauges)), maps.Keys(r.Counters))
	names = slices.AppendSeq(names, maps.Keys(r.Histograms))
	slices.Sort(names)
	return strings.Join(names, " ")
}
