package progress

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/report/text"
)

// Forecast lists the parts of a run, and what is known about their durations. It estimates the
// duration of the run before it starts, and the remaining time during the run.
type Forecast struct {
	Parts []Work
	Rest  time.Duration // expected time outside the parts, such as warm-up and teardown; 0 if unknown
	Early bool          // comparisons may end before their last round, so the forecast is for the longest run
}

// Work is a kind of work that a run may repeat: starting a server, measuring a level, or a capacity
// search.
type Work struct {
	Server   string
	Workload string // address or name of the workload; "" for starts of the server
	Level    string // name of the level; "" for a capacity search
	Times    int    // number of repetitions: one, or one for each leg of a comparison
	// Took is the duration of one repetition in an earlier run. Known is false if no earlier run
	// has it.
	Took  time.Duration
	Known bool
	First time.Duration // of the first repetition, if it takes longer; else 0
	// Size is the amount of work in one repetition, in one unit for all levels. So the known
	// duration of one level gives an estimate for other levels. 0 means that the work is not known;
	// all levels then count as equally long.
	Size float64
	// Beside is set if the same level is measured on another server at the same time.
	Beside bool

	skipped bool // no more repetitions of the part will run
	done    int
	spent   time.Duration // total time of the finished repetitions
	opening time.Duration // of the first repetition
	going   bool
	since   time.Duration // time at which the current repetition began
	rest    time.Duration // remaining time of the current repetition, by its progress; 0 if unknown
}

// Total returns the expected duration of the run before it starts. It adds up the parts of known
// duration; unknown is the number of parts of unknown duration.
func (f *Forecast) Total() (sum time.Duration, unknown int) {
	sum = f.Rest
	for i := range f.Parts {
		p := &f.Parts[i]
		if !p.Known {
			unknown++
		}
		sum += p.added()
	}
	return sum, unknown
}

// added returns how much time all repetitions of the part add to the run.
func (p *Work) added() time.Duration { return p.Share(1) }

// Share returns how much time a share of the repetitions adds to the run. The first is among them.
func (p *Work) Share(share float64) time.Duration {
	took := share * float64(p.Times) * float64(p.Took)
	if p.First > 0 {
		took += float64(p.First - p.Took)
	}
	return p.addedTime(time.Duration(took))
}

// addedTime returns how much time a part adds to the run. It is its duration d, or half of d if
// another part runs beside it.
func (p *Work) addedTime(d time.Duration) time.Duration {
	if p.Beside {
		return d / 2
	}
	return d
}

func (p *Work) isStart() bool  { return p.Workload == "" }
func (p *Work) isLevel() bool  { return p.Level != "" }
func (p *Work) isSearch() bool { return !p.isStart() && !p.isLevel() }

// count returns how often parts of one kind have run so far, and how often they run in total. The
// function kind reports whether a part is of that kind.
func (f *Forecast) count(kind func(*Work) bool) (done, all int) {
	for i := range f.Parts {
		if p := &f.Parts[i]; kind(p) {
			done, all = done+min(p.done, p.Times), all+p.Times
		}
	}
	return done, all
}

func (f *Forecast) part(server, workload, level string) *Work {
	i := slices.IndexFunc(f.Parts, func(p Work) bool {
		return text.Line(p.Server) == text.Line(server) && text.Line(p.Workload) == text.Line(workload) &&
			text.Line(p.Level) == text.Line(level)
	})
	if i < 0 {
		return nil
	}
	return &f.Parts[i]
}

// begin, end and skip record the progress of a part. If the part is nil, they do nothing.
func (p *Work) begin(now time.Duration) {
	if p != nil && !p.going {
		p.going, p.since, p.rest = true, now, 0
	}
}

func (p *Work) end(now time.Duration) {
	if p != nil && p.going {
		if p.done == 0 {
			p.opening = now - p.since
		}
		p.going, p.done, p.spent = false, p.done+1, p.spent+now-p.since
	}
}

func (p *Work) skip() {
	if p != nil && !p.going {
		p.skipped = true
	}
}

// seen returns the total duration and the number of the part's repetitions so far. The running one
// is included if its remaining time can be estimated.
func (p *Work) seen(now time.Duration) (took time.Duration, times int) {
	if p.going && p.rest > 0 {
		return p.spent + now - p.since + p.rest, p.done + 1
	}
	return p.spent, p.done
}

// repetitionTime estimates the duration of one repetition of a part. It uses the part's repetitions
// in this run if there are any, or else in an earlier run, or else similar parts of this run.
func (f *Forecast) repetitionTime(p *Work, now time.Duration) (time.Duration, bool) {
	took, n := p.seen(now)
	if p.isStart() && p.done > 0 && (n > 1 || p.Known) {
		// The first start may be cold, so later ones tell better what the next one takes.
		if took, n = took-p.opening, n-1; n == 0 {
			return p.Took, true
		}
	}
	if n > 0 {
		return took / time.Duration(n), true
	}
	if p.Known || p.isSearch() {
		return p.Took, p.Known
	}
	for _, like := range []func(*Work) bool{
		func(o *Work) bool { return o.Workload == p.Workload && o.Level == p.Level },
		func(o *Work) bool { return o.Workload == p.Workload && o.isLevel() == p.isLevel() },
		func(o *Work) bool { return o.isStart() == p.isStart() && !o.isSearch() },
	} {
		took, work := 0.0, 0.0
		for i := range f.Parts {
			if o := &f.Parts[i]; like(o) {
				d, n := o.seen(now)
				took, work = took+d.Seconds(), work+float64(n)*o.size()
			}
		}
		if work > 0 {
			return time.Duration(took / work * p.size() * float64(time.Second)), true
		}
	}
	return 0, false
}

func (p *Work) size() float64 {
	if p.Size > 0 {
		return p.Size
	}
	return 1
}

// remaining returns the remaining time of a run, whose start is the parameter began. It leaves out
// capacity searches of unknown duration, whose number is searches. ok is false if the duration of
// any other remaining part is unknown.
func (f *Forecast) remaining(now, began time.Duration) (left time.Duration, searches int, ok bool) {
	between := now - began
	for i := range f.Parts {
		p := &f.Parts[i]
		pace, known := f.repetitionTime(p, now)
		between -= p.addedTime(p.spent)
		more := p.Times - p.done
		if p.going {
			between -= p.addedTime(now - p.since)
			if more > 0 && known {
				left, more = left+p.addedTime(max(pace-(now-p.since), p.rest)), more-1
			}
		}
		switch {
		case more <= 0 || p.skipped:
		case known:
			left += p.addedTime(time.Duration(more) * pace)
		case p.isSearch():
			searches += more
		default:
			return 0, 0, false
		}
	}
	// A run also spends time outside its parts. tokgate learns how a new server counts tokens, and
	// later stops the server. So this time is about equal for each start of a server.
	if done, all := f.count((*Work).isStart); done > 0 && between > 0 {
		return left + between/time.Duration(done)*time.Duration(all-done), searches, true
	}
	return left + f.Rest, searches, true
}

// remaining describes the progress of the run, such as "2 of 16 starts", "3 of 34 levels" and "ETA
// 12m30s". It returns nil for a run of fewer than two levels.
func (d *Display) remaining() []string {
	f := &d.opt.Forecast
	done, all := f.count((*Work).isLevel)
	if all < 2 {
		return nil
	}
	var out []string
	if done, all := f.count((*Work).isStart); all > 1 {
		out = append(out, fmt.Sprintf("%d of %d starts", done, all))
	}
	out = append(out, fmt.Sprintf("%d of %s", done, verdict.Count(all, "levels")))
	if eta := d.runETA(); eta != "" {
		out = append(out, "ETA "+eta)
	}
	return out
}

// runETA formats the remaining time of the run: "12m30s", or "12m30s and a capacity
// search"; "at most 12m30s" if comparisons may end early; "" if it is unknown.
func (d *Display) runETA() string {
	now := d.opt.Now()
	if len(d.opt.Forecast.Parts) == 0 {
		return ""
	}
	for _, l := range d.levels {
		if p := d.opt.Forecast.part(l.server, l.workload, l.name); p != nil {
			if p.rest, _ = l.eta(now); l.done > 0 && l.done >= l.due {
				p.rest = 1 // almost 0, because every request has ended; 0 would mean unknown
			}
		}
	}
	left, searches, ok := d.opt.Forecast.remaining(now, d.begun)
	eta := text.Clock(left.Seconds())
	if d.opt.Forecast.Early {
		eta = "at most " + eta
	}
	switch {
	case !ok:
		return ""
	case searches == 1:
		return eta + " and a capacity search"
	case searches > 1:
		return fmt.Sprintf("%s and %d capacity searches", eta, searches)
	}
	return eta
}
