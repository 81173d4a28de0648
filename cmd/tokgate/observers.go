package main

import (
	"errors"
	"sync"
	"time"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report/github"
	"github.com/tokgate/tokgate/report/progress"
)

// observers passes every event to each observer, even if another one returns an error.
func observers(each ...exec.Observer) exec.Observer {
	return func(e metric.Event) error {
		var errs []error
		for _, observe := range each {
			errs = append(errs, observe(e))
		}
		return errors.Join(errs...)
	}
}

// paintEvery is the time between two repaints while a run waits without output.
const paintEvery = 100 * time.Millisecond

func (a *app) progress(o progress.Options) (d *progress.Display, stop func()) {
	out := a.Err
	if a.actions != nil {
		out, o.Fold = a.actions.log, github.Folds()
	}
	t := a.terminal(out)
	o.TTY = progress.Repaint(a.getenv, t.isTTY)
	o.Width = func() int { return a.terminal(out).width }
	o.Color = t.color
	d = progress.New(out, o)
	ticker, done := time.NewTicker(paintEvery), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				d.Tick()
			case <-done:
				return
			}
		}
	}()
	var once sync.Once
	return d, func() {
		once.Do(func() {
			ticker.Stop()
			close(done)
			d.Close()
		})
	}
}
