// Package nights compares the last night of a history with the nights before it. A series has one
// number for each night: the value of one metric of one workload, under the same plan.
//
//   - The function watch tests whether the last nights still agree with the reference nights. It
//     compares the mean of the last two nights, of the last three, and so on with the reference. So
//     it finds a large shift on the second night, a small shift a little later, and a slow trend
//     after weeks. A single bad night is suspect and passes.
//   - The type latch keeps an alarm for the worse until a pin accepts it, or until the series is
//     back at the reference.
//   - The function divisive finds the nights at which a series changed.
//
// The reference is the first nights of the history, or the first nights after an accepted change.
// It moves only behind a change that was found in it, or to a better level that lasted. A rolling
// reference would follow a server that gets slightly slower every night, and the change would never
// be reported.
package nights

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan/suggest"
)

// Options says how to judge the last night of a history.
type Options struct {
	// Ignore is the smallest change that is reported. It is a share of the expected value: 0.01 is
	// one percent. For a metric that is itself a share, such as success, 0.01 is one percentage
	// point. With 0 every significant change is reported.
	Ignore float64
	// Wait means that a better level becomes the reference only when its run is pinned. Without it a
	// better level that has lasted ten nights becomes the reference.
	Wait bool
	// Run is the ID that the last night must have; "" accepts any.
	Run string
	// Now is the current time; zero means that dates are not checked. A night that started more
	// than an hour after Now is an error. Otherwise a night dated next year would count as the last
	// night for a year. The hour allows for clocks that differ.
	Now time.Time
	// MaxAge is the largest time from the start of the last night to Now; 0 means any time. Without
	// MaxAge a job that no longer runs would stay green, because its last night was good.
	MaxAge time.Duration
	// Unread is the number of unreadable lines of the history. The last night may be one of them.
	Unread int
}

// Result is the result of judging the last night of a history.
type Result struct {
	Outcome verdict.Outcome // Error, Fail or Pass; a first night is recorded and passes
	Why     string          // reason for the outcome Error; "" if a series gives the reason
	// Recorded means that no series has enough nights to be judged.
	Recorded bool
	Run      string    // of the last night
	Started  time.Time // of the last night
	Pinned   *metric.Pin
	Since    int // number of nights since the pin or the start of the history, including tonight
	// Accept is the run that a pin must name to accept all failures. It is the run of the latest
	// change, because a pin restarts all series. It is "" if nothing failed.
	Accept string
	// Differs lists what changed on the servers since the night before: "vllm: version 0.19.1 →
	// 0.20.0".
	Differs []string
	Job     *metric.Job // CI job of the last night; nil if not known
	Voids   []metric.Void
	Trends  []Trend
	// Remarks says which accept blocks are not needed or too wide.
	Remarks []string
	// Events holds the nights on which several series changed in the same direction, in order.
	Events []Event
	// ByChance is the largest number of red mornings in 50 nights that is expected if nothing
	// changes. It is 0 if that is not known, because the noise is unlike any that was tried.
	ByChance int
}

// Trend is one series with its verdict. The series begins with the first night or at the last pin.
// Each runner with enough nights is judged by itself.
type Trend struct {
	metric.Trend
	// Runner is the CI runner of the nights, or SeveralRunners. It is "" if all nights of the series
	// ran on the same runner.
	Runner  string
	Unit    metric.Unit
	Better  metric.Direction
	Outcome verdict.Outcome // Skipped if there are too few nights, or if the workload has changed
	Message string          // one line
	Points  []Point
	// Tonight holds the limits for the last night, in the unit of the metric. It is nil if there
	// are too few nights to judge.
	Tonight *Bounds
	Since   string // for a Fail, the run that a pin must name to accept the change
	// Accepted is the accept block that lets a change for the worse pass; "" if none does.
	Accepted string
	// Suspect means that the last night alone is significantly worse. It passes: the next night
	// decides.
	Suspect bool
	// Changes holds the changes that were found in hindsight, in order of time.
	Changes []Move
}

// Point is one night of a series.
type Point struct {
	Run     string
	Started time.Time
	Value   float64
	Alarm   bool   // of a change
	Worse   bool   // the change is for the worse
	Suspect bool   // the night alone was significantly worse, and no change followed
	URL     string // of the night's CI job; "" if not known
}

// Bounds are the limits by which a night is judged.
type Bounds struct {
	Reference        int     // nights
	Center           float64 // geometric mean of Low and High; for shares their arithmetic mean
	verdict.Interval         // tonight's prediction interval
	// Noise is the standard deviation from night to night, as a share of Center. If the metric is
	// itself a share, Noise is in the same unit as Center.
	Noise float64
	// Shift is how far the mean since the change is from the mean of the reference. If nothing
	// changed, it is how far the last night's value is. It has the unit of Noise.
	Shift float64
	// Soon is the smallest step for the worse that is found within three nights at least four times
	// of five. It has the unit of Noise.
	Soon float64
}

// Move is a change of a series that was found in hindsight. It says what else changed in the same
// night.
type Move struct {
	Run           string // first night after the change
	Started       time.Time
	Before, After float64
	// Weekly is how much the value moves in a week if the change is a drift, in the unit of
	// Bounds.Noise. It is 0 for a step. A drift begins with Run; Before and After are the ends of
	// the line through the nights.
	Weekly float64
	P      float64     // p-value of the change; NaN for a drift, or if too few nights follow it
	Job    *metric.Job // of that night
	// Differs lists what changed on the server since the night before: "engine.version 0.19.1 →
	// 0.20.0".
	Differs []string
}

// Event is a night on which several series changed in the same direction.
type Event struct {
	Run     string // first night after the changes
	Started time.Time
	Worse   bool
	Trends  []int // indices into Result.Trends
	// Least and Most are the smallest and the largest of the changes, as shares of the value before;
	// of metrics that are shares, in points.
	Least, Most float64
	Job         *metric.Job
	Differs     []string // as in Result
}

// SeveralRunners is the name of a Trend for the nights of all runners that have too few nights to be
// judged by themselves.
const SeveralRunners = "runners with few nights"

// leastNoise is the smallest standard deviation between nights that the test assumes. Rounded
// measurements can be equal for many nights. Without leastNoise the first different digit would
// raise an alarm.
const leastNoise = 0.002

// limitMetric is the metric of capacity searches in a history. No level has this metric.
const limitMetric = "capacity"

// Judge compares the last night of h with the nights before it, for each series. It leaves out
// nights before the last pin. A figure beyond its prediction interval fails if it is worse. If it
// is better, it passes with a note. A figure that is missing tonight is an error. The package
// comment describes the method.
func Judge(h metric.History, opts Options) Result {
	out := Result{Outcome: verdict.Error, Voids: h.Voids}
	before, nights, lost := sinceLastPin(h)
	if len(h.Pins) > 0 && lost == "" {
		out.Pinned = &h.Pins[len(h.Pins)-1]
	}
	if len(nights) == 0 {
		out.Why = "the history has no nights"
		return out
	}
	last := nights[len(nights)-1]
	out.Run, out.Started, out.Job, out.Since = last.Run, last.Started, last.Job, len(nights)
	for _, n := range nights {
		if n.Simulated != last.Simulated {
			out.Why = fmt.Sprintf("run %s was simulated, but run %s was not: keep them in two histories", pick(n.Simulated, n.Run, last.Run), pick(n.Simulated, last.Run, n.Run))
			return out
		}
	}
	out.Differs = sinceLastNight(h.Nights)
	nights, other := sameGPU(nights)
	out.judge(nights, opts, remember(before, opts))
	if len(out.Trends) == 0 && other == "" {
		out.Why = "the nights have no figures"
		return out
	}
	out.Remarks = remarksOn(last.Accepts, out.Trends)
	out.Recorded, out.Outcome = true, verdict.Pass
	for _, t := range out.Trends {
		if t.Outcome != verdict.Skipped {
			out.Recorded = false
			out.Outcome = max(out.Outcome, t.Outcome)
		}
	}
	out.Accept = out.accept(nights, other != "")
	if out.Why = cmp.Or(opts.notTonight(last), lost, other); out.Why != "" {
		out.Outcome = verdict.Error
	}
	return out
}

// accept returns the run that a pin must name to accept all failures. That is the run of the latest
// change, or tonight's run if a server ran on another GPU tonight (otherGPU).
func (r *Result) accept(nights []metric.Night, otherGPU bool) string {
	if otherGPU {
		return r.Run
	}
	for _, n := range slices.Backward(nights) {
		if slices.ContainsFunc(r.Trends, func(t Trend) bool { return t.Since == n.Run }) {
			return n.Run
		}
	}
	return ""
}

// sinceLastPin splits a history at its last pin. lost says that the run of the pin is missing; then
// nights has all nights.
func sinceLastPin(h metric.History) (before metric.History, nights []metric.Night, lost string) {
	nights = slices.Clone(h.Nights)
	if len(h.Pins) == 0 {
		return before, nights, ""
	}
	last := len(h.Pins) - 1
	i := slices.IndexFunc(nights, func(n metric.Night) bool { return n.Run == h.Pins[last].Run })
	if i < 0 {
		return before, nights, lostPin(h.Pins[last], nights)
	}
	before = metric.History{Nights: nights[:i]}
	for _, p := range h.Pins[:last] {
		if slices.ContainsFunc(before.Nights, func(n metric.Night) bool { return n.Run == p.Run }) {
			before.Pins = append(before.Pins, p)
		}
	}
	return before, nights[i:], ""
}

// remember returns what the nights before a pin say of each series.
func remember(h metric.History, opts Options) map[metric.Trend]map[laneName]memory {
	if len(h.Nights) == 0 {
		return nil
	}
	earlier, nights, _ := sinceLastPin(h)
	out := remember(earlier, opts)
	if out == nil {
		out = map[metric.Trend]map[laneName]memory{}
	}
	nights, _ = sameGPU(nights)
	list, _ := readAll(gather(nights), nights, opts, out)
	_, states := watchAll(columnsOf(list))
	for i, s := range states {
		if l := list[i]; out[l.src.key] == nil {
			out[l.src.key] = map[laneName]memory{l.name: s.remembered()}
		} else {
			out[l.src.key][l.name] = s.remembered()
		}
	}
	return out
}

// lostPin explains why there is no verdict. The run of the last pin is not in the history, so no
// night can be compared with it.
func lostPin(p metric.Pin, nights []metric.Night) string {
	var runs []string
	for _, n := range nights {
		runs = append(runs, n.Run)
	}
	hint := "pin one that is"
	if near := suggest.Nearest(p.Run, runs); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return fmt.Sprintf("run %s, which was pinned, is not in the history: %s", p.Run, hint)
}

func age(d time.Duration) string {
	if days := int(d.Hours() / 24); days >= 2 {
		return fmt.Sprintf("%d days", days)
	}
	return fmt.Sprintf("%.3g hours", d.Hours())
}

// notTonight explains why the history's last night cannot stand for tonight, for example because it
// is too old. It returns "" if it can.
func (o Options) notTonight(last metric.Night) string {
	switch {
	case !o.Now.IsZero() && last.Started.After(o.Now.Add(time.Hour)):
		return fmt.Sprintf("run %s starts in the future, at %s, so a clock was wrong: remove the line of this run from the history", last.Run, last.Started.UTC().Format(time.DateTime))
	case o.MaxAge > 0 && o.Now.Sub(last.Started) > o.MaxAge:
		return fmt.Sprintf("the last run in the history, %s, started %s ago, but at most %s is allowed: were later runs not made, or not added?", last.Run, age(o.Now.Sub(last.Started)), age(o.MaxAge))
	case o.Run != "" && last.Run != o.Run:
		return fmt.Sprintf("run %s is not the last run in the history: run %s started later", o.Run, last.Run)
	case o.Unread > 0:
		return fmt.Sprintf("%s of the history cannot be read, and the last night may be among them: repair or remove them", verdict.Count(o.Unread, "lines"))
	case len(last.Figures) == 0:
		return fmt.Sprintf("run %s measured nothing", last.Run)
	}
	return ""
}
