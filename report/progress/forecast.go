package progress

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/report/text"
)

// Forecast lists the parts of a run, with what is known beforehand about their durations. It
// estimates the duration of the run and, during the run, the remaining time.
type Forecast struct {
	Parts []Part
	Rest  time.Duration // duration outside the parts, such as warm-up and teardown; 0 if unknown
}

// Part is a kind of work that a run repeats: the starts of a server, the visits of a level, or a
// capacity search.
type Part struct {
	Server   string
	Workload string // "" for starts of the server
	Level    string // "" for a capacity search
	Times    int    // how often the part runs: once, or in a comparison once per leg
	// Took is the duration of one repetition in earlier runs. Known is false if there were no
	// earlier runs.
	Took  time.Duration
	Known bool
	// Size is the work of one repetition. All levels use the same unit, so that the duration of one
	// level gives an estimate for all others. 0 means that the work is not known, and all levels
	// are expected to take equally long.
	Size float64
	// Beside is set if this part always runs together with a second part of the same kind.
	Beside bool

	skipped bool // set if no more repetitions of the part will run
	done    int
	spent   time.Duration // time of the repetitions that are over
	going   bool
	since   time.Duration // the time at which the current repetition began
	rest    time.Duration // remaining time of the current repetition, by its own pace; 0 if unknown
}

// Total returns the expected duration of the run before it starts. It counts only parts of known
// duration; unknown is the number of all other parts.
func (f *Forecast) Total() (sum time.Duration, unknown int) {
	sum = f.Rest
	for i := range f.Parts {
		p := &f.Parts[i]
		if !p.Known {
			unknown++
		}
		sum += p.alone(time.Duration(p.Times) * p.Took)
	}
	return sum, unknown
}

// alone returns how much a part adds to the duration of the run. This is the part's duration d, or
// half of it if a second part runs at the same time.
func (p *Part) alone(d time.Duration) time.Duration {
	if p.Beside {
		return d / 2
	}
	return d
}

func (p *Part) isStart() bool  { return p.Workload == "" }
func (p *Part) isLevel() bool  { return p.Level != "" }
func (p *Part) isSearch() bool { return !p.isStart() && !p.isLevel() }

// count returns how many runs of parts of one kind there are in all, and how many of these runs are
// over. A part that runs several times counts several times.
func (f *Forecast) count(kind func(*Part) bool) (done, all int) {
	for i := range f.Parts {
		if p := &f.Parts[i]; kind(p) {
			done, all = done+min(p.done, p.Times), all+p.Times
		}
	}
	return done, all
}

// part returns the part for a server, a workload and a level; nil if the forecast has no such part.
func (f *Forecast) part(server, workload, level string) *Part {
	i := slices.IndexFunc(f.Parts, func(p Part) bool {
		return text.Line(p.Server) == text.Line(server) && text.Line(p.Workload) == text.Line(workload) && text.Line(p.Level) == text.Line(level)
	})
	if i < 0 {
		return nil
	}
	return &f.Parts[i]
}

// begin, end and skip record the progress of a part. They do nothing on nil.
func (p *Part) begin(now time.Duration) {
	if p != nil && !p.going {
		p.going, p.since, p.rest = true, now, 0
	}
}

func (p *Part) end(now time.Duration) {
	if p != nil && p.going {
		p.going, p.done, p.spent = false, p.done+1, p.spent+now-p.since
	}
}

func (p *Part) skip() {
	if p != nil && !p.going {
		p.skipped = true
	}
}

// seen returns the total duration of the part's repetitions so far, and their number. It includes
// the running repetition if its remaining time can be estimated.
func (p *Part) seen(now time.Duration) (took time.Duration, times int) {
	if p.going && p.rest > 0 {
		return p.spent + now - p.since + p.rest, p.done + 1
	}
	return p.spent, p.done
}

// each estimates the duration of one repetition of a part. It uses the repetitions of this run, or
// else an earlier run, or else similar parts of this run.
func (f *Forecast) each(p *Part, now time.Duration) (time.Duration, bool) {
	if took, n := p.seen(now); n > 0 {
		return took / time.Duration(n), true
	}
	if p.Known || p.isSearch() {
		return p.Took, p.Known
	}
	for _, like := range []func(*Part) bool{
		func(o *Part) bool { return o.Workload == p.Workload && o.Level == p.Level },
		func(o *Part) bool { return o.Workload == p.Workload && o.isLevel() == p.isLevel() },
		func(o *Part) bool { return o.isStart() == p.isStart() && !o.isSearch() },
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

func (p *Part) size() float64 {
	if p.Size > 0 {
		return p.Size
	}
	return 1
}

// left returns the remaining time of a run that began at the time began. It leaves out capacity
// searches of unknown duration; searches is their number. ok is false if the duration of a start or
// a level that still has to run is unknown.
func (f *Forecast) left(now, began time.Duration) (left time.Duration, searches int, ok bool) {
	between := now - began
	for i := range f.Parts {
		p := &f.Parts[i]
		pace, known := f.each(p, now)
		between -= p.alone(p.spent)
		more := p.Times - p.done
		if p.going {
			between -= p.alone(now - p.since)
			if more > 0 && known {
				left, more = left+p.alone(max(pace-(now-p.since), p.rest)), more-1
			}
		}
		switch {
		case more <= 0 || p.skipped:
		case known:
			left += p.alone(time.Duration(more) * pace)
		case p.isSearch():
			searches += more
		default:
			return 0, 0, false
		}
	}
	// For each start of a server, some time is spent outside of the parts. In this time tokgate
	// learns how the server counts tokens, and later stops the server.
	if done, all := f.count((*Part).isStart); done > 0 && between > 0 {
		return left + between/time.Duration(done)*time.Duration(all-done), searches, true
	}
	return left + f.Rest, searches, true
}

// remaining describes how far the run is: "2 of 16 starts", "3 of 34 levels", "ETA 12m30s". It
// returns nothing for a run of one level.
func (d *Display) remaining() []string {
	f := &d.opt.Forecast
	done, all := f.count((*Part).isLevel)
	if all < 2 {
		return nil
	}
	var out []string
	if done, all := f.count((*Part).isStart); all > 1 {
		out = append(out, fmt.Sprintf("%d of %d starts", done, all))
	}
	out = append(out, fmt.Sprintf("%d of %s", done, plural(all, "level")))
	if eta := d.runETA(); eta != "" {
		out = append(out, "ETA "+eta)
	}
	return out
}

// runETA formats the remaining time of the run: "12m30s", or "12m30s and a capacity
// search"; "" if it is unknown.
func (d *Display) runETA() string {
	now := d.opt.Now()
	if len(d.opt.Forecast.Parts) == 0 {
		return ""
	}
	for _, l := range d.levels {
		if p := d.opt.Forecast.part(l.server, l.workload, l.name); p != nil {
			if p.rest, _ = l.eta(now); l.done > 0 && l.done >= l.due {
				p.rest = 1 // almost 0: all requests of the level have ended
			}
		}
	}
	left, searches, ok := d.opt.Forecast.left(now, d.begun)
	switch {
	case !ok:
		return ""
	case searches == 1:
		return text.Clock(left.Seconds()) + " and a capacity search"
	case searches > 1:
		return fmt.Sprintf("%s and %d capacity searches", text.Clock(left.Seconds()), searches)
	}
	return text.Clock(left.Seconds())
}
