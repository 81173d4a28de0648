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
type observers []exec.Observer

func (o observers) each(f func(exec.Observer) error) error {
	var errs []error
	for _, x := range o {
		errs = append(errs, f(x))
	}
	return errors.Join(errs...)
}
func (o observers) RunStarted(r *metric.Run) error {
	return o.each(func(x exec.Observer) error { return x.RunStarted(r) })
}
func (o observers) ServerStarting(server, state string) {
	for _, x := range o {
		x.ServerStarting(server, state)
	}
}
func (o observers) ServerReady(s *metric.ServerRun) error {
	return o.each(func(x exec.Observer) error { return x.ServerReady(s) })
}
func (o observers) ServerDone(s *metric.ServerRun) error {
	return o.each(func(x exec.Observer) error { return x.ServerDone(s) })
}
func (o observers) LevelStarted(l *metric.Level, due int, expected time.Duration) error {
	return o.each(func(x exec.Observer) error { return x.LevelStarted(l, due, expected) })
}
func (o observers) RequestStarted(of *metric.Level, phase metric.Phase) {
	for _, x := range o {
		x.RequestStarted(of, phase)
	}
}
func (o observers) SampleDone(s *metric.Sample) error {
	return o.each(func(x exec.Observer) error { return x.SampleDone(s) })
}
func (o observers) RoundDone(l *metric.Level, r *metric.Round) error {
	return o.each(func(x exec.Observer) error { return x.RoundDone(l, r) })
}
func (o observers) LevelDone(l *metric.Level) error {
	return o.each(func(x exec.Observer) error { return x.LevelDone(l) })
}
func (o observers) CapacityDone(c *metric.Capacity) error {
	return o.each(func(x exec.Observer) error {
		if x, ok := x.(exec.CapacityObserver); ok {
			return x.CapacityDone(c)
		}
		return nil
	})
}
func (o observers) AnswersDone(server string, reading bool, done, due int) {
	for _, x := range o {
		if x, ok := x.(exec.AnswersObserver); ok {
			x.AnswersDone(server, reading, done, due)
		}
	}
}
func (o observers) ComparisonDone(c *metric.Comparison) error {
	return o.each(func(x exec.Observer) error {
		if x, ok := x.(exec.ComparisonObserver); ok {
			return x.ComparisonDone(c)
		}
		return nil
	})
}
func (o observers) RunDone(r *metric.Run) error {
	return o.each(func(x exec.Observer) error { return x.RunDone(r) })
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
