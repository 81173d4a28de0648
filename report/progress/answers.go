package progress

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/text"
)

// answers is the progress of a server's answers for a comparison. The server gives or scores them
// besides its measured requests.
type answers struct {
	server    string
	reading   bool
	done, due int
	since     time.Duration // on the run's clock
	lastLine  time.Duration // by Now
}

func (a *answers) title() string {
	if a.reading {
		return "reading answers on " + a.server
	}
	return "answers of " + a.server
}

func (d *Display) answersDone(e metric.AnswersDone) {
	server, reading, done, due := text.Line(e.Server), e.Reading, e.Done, e.Due
	i := slices.IndexFunc(d.answers, func(a *answers) bool { return a.server == server && a.reading == reading })
	if i < 0 {
		i = len(d.answers)
		d.answers = append(d.answers, &answers{server: server, reading: reading, since: d.time(), lastLine: d.opt.Now()})
	}
	a := d.answers[i]
	if a.done, a.due = done, due; done < due {
		d.tick()
		return
	}
	d.answers = slices.Delete(d.answers, i, i+1)
	d.say(fmt.Sprintf("%s: %d in %s", a.title(), due, text.Clock((d.time() - a.since).Seconds())))
}

func (d *Display) sayAnswers(now time.Duration) {
	for _, a := range d.answers {
		if now-a.lastLine >= lineEvery {
			a.lastLine = now
			d.say(fmt.Sprintf("%s: %d of %d", a.title(), a.done, a.due))
		}
	}
}

// reading returns the display's line about the answers that a comparison is collecting.
func (d *Display) reading(a *answers, width int) line {
	counts := fmt.Sprintf("%d/%d  %s", a.done, a.due, a.title())
	room := min(max(width-1-text.Width(counts)-9, 0), 40)
	return line{bar(a.done, a.due, room) + counts, ""}
}
