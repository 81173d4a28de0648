package progress

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

func (l *level) title() string { return l.workload + " at " + l.name + " on " + l.server }

// resultWords describes the result of a level in a few words: for a saturation level the largest
// rate, and for any other level the number of requests.
func (l *level) resultWords(m *metric.Level) string {
	n := len(m.Saturation)
	if !m.Saturates() || n == 0 {
		return verdict.Count(l.done, "requests")
	}
	mean := 0.0
	for _, rate := range m.Saturation {
		mean += rate / float64(n)
	}
	return "the largest rate that the server can sustain is " + metric.Format(metric.PerSecond, mean)
}

func (l *level) numbers() []string {
	var out []string
	ttft := l.ttft.distribution()
	if p50, ok := ttft.Percentile(50); ok {
		p95, _ := ttft.Percentile(95)
		out = append(out, "TTFT p50 "+metric.Format(metric.Seconds, p50)+" p95 "+metric.Format(metric.Seconds, p95))
	}
	if took := l.took.sum(); took > 0 {
		out = append(out, "speed "+metric.Format(metric.TokensPerSecond, l.tokens.sum()/took))
	}
	return out
}

// eta returns the remaining time of the level, by the pace of the finished requests. Before the
// first request has finished, it uses the expected duration.
func (l *level) eta(now time.Duration) (time.Duration, bool) {
	switch {
	case l.done >= l.due:
		return 0, false
	case l.done > 0 && l.measured && now > l.measuring:
		return time.Duration(float64(now-l.measuring) / float64(l.done) * float64(l.due-l.done)), true
	case l.expected > now-l.since: // in real time only
		return l.expected - (now - l.since), true
	}
	return 0, false
}

// position returns the position of a level in the plan, such as " (3 of 8)". A probe of a capacity
// search has no position, so it gets its purpose, such as " (capacity: bisect)".
func (d *Display) position(l *level) string {
	switch l.probe {
	case "":
	case metric.SaturationName:
		return "" // the level's name already says that it is the saturation
	default:
		return " (" + l.probe + ")"
	}
	_, n := d.opt.Forecast.count((*Work).isLevel)
	if l.index > n {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", l.index, n)
}

func (d *Display) facts(l *level) []string {
	facts := []string{fmt.Sprintf("%d of %d", l.done, l.due), fmt.Sprintf("%d in flight", l.inFlight)}
	if l.warming {
		facts = append(facts, "warming up")
	}
	if l.failed > 0 {
		facts = append(facts, fmt.Sprintf("%d failed", l.failed))
	}
	facts = append(facts, l.numbers()...)
	if eta, ok := l.eta(d.opt.Now()); ok {
		facts = append(facts, "ETA "+text.Clock(eta.Seconds()))
	}
	return facts
}

// ring holds the last observations.
type ring struct {
	values []float64
	next   int
}

func (r *ring) add(v float64) {
	if len(r.values) < window {
		r.values = append(r.values, v)
		return
	}
	r.values[r.next] = v
	r.next = (r.next + 1) % window
}

func (r *ring) sum() float64 {
	total := 0.0
	for _, v := range r.values {
		total += v
	}
	return total
}

// distribution returns the distribution of the values of completed requests. Failed requests are
// left out, because the display shows what users with an answer experienced.
func (r *ring) distribution() metric.Distribution {
	return metric.NewDistribution(slices.Clone(r.values), 0, metric.LowerIsBetter)
}
