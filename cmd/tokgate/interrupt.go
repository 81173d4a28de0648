package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tokgate/tokgate/exec/server"
)

// Times after a signal in CI, and after SIGTERM anywhere. Requests in flight have hurriedDrain to
// end, and then a server has hurriedGrace. They are short, because a CI system soon kills a
// cancelled job. GitHub sends SIGINT, 7.5 s later SIGTERM and 2.5 s later SIGKILL.
const (
	hurriedDrain = 3 * time.Second
	hurriedGrace = 2 * time.Second
)

// interrupts returns two contexts, drain and now. The first signal (SIGINT, SIGTERM or SIGHUP)
// cancels drain, and requests in flight may end. The second signal cancels the context now. After
// SIGTERM or SIGHUP, and in CI after SIGINT, this context is cancelled soon after drain without a
// second signal.
func interrupts(ctx context.Context, inCI bool) (drain, now context.Context, stop func()) {
	now, endNow := context.WithCancel(ctx)
	drain, endDrain := context.WithCancel(now)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// A closed terminal must not leave servers behind. Under nohup SIGHUP is ignored.
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		var over <-chan time.Time
		for {
			select {
			case got := <-signals:
				if drain.Err() != nil {
					endNow()
				}
				endDrain()
				if over == nil && (inCI || got != os.Interrupt) {
					over = time.After(hurriedDrain)
				}
			case <-over:
				endNow()
			case <-done:
				return
			}
		}
	}()
	return drain, now, func() {
		signal.Stop(signals)
		close(done)
		endDrain()
		endNow()
	}
}

// grace returns a function that says how long a server may take to stop. The time is shorter once
// the context called now has ended.
func grace(now context.Context) func() time.Duration {
	return func() time.Duration {
		if now.Err() != nil {
			return hurriedGrace
		}
		return server.Grace
	}
}
