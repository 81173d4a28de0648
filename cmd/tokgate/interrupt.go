package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tokgate/tokgate/exec/server"
)

// A CI system that cancels a job soon kills what is left of it: GitHub sends SIGINT,
// 7.5 s later SIGTERM and 2.5 s later SIGKILL. So in CI, and on SIGTERM, requests in
// flight get hurriedDrain to end, and a server gets hurriedGrace more before it is
// killed.
const (
	hurriedDrain = 3 * time.Second
	hurriedGrace = 2 * time.Second
)

// interrupts returns two contexts. The first signal (SIGINT, SIGTERM or SIGHUP) cancels the context
// drain, and requests in flight may then end. The second signal cancels the context now. After
// SIGTERM or SIGHUP, and in CI also after SIGINT, now is cancelled soon after drain without a
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

// grace returns how long a server may take to stop before it is killed. The time is shorter if the
// run was told to hurry.
func grace(now context.Context) func() time.Duration {
	return func() time.Duration {
		if now.Err() != nil {
			return hurriedGrace
		}
		return server.Grace
	}
}
