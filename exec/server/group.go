package server

import (
	"fmt"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
)

// markName is the environment variable with the mark of a server. The processes that the server
// starts inherit the variable.
const markName = "TOKGATE_SERVER"

// endGroup ends the processes of a server: those of its process group, those that have its mark in
// their environment, and what a keeper finds below them. Processes that do not end in time are
// killed.
func endGroup(c clock.Clock, group int, mark string, grace func() time.Duration) error {
	terminate(group, mark)
	within(c, grace, func() bool { return len(family(group, mark)) == 0 })
	if killAll(c, group, mark) {
		return nil
	}
	return fmt.Errorf("process group %d could not be killed: end it by hand", group)
}

func killAll(c clock.Clock, group int, mark string) bool {
	return !within(c, constant(reaped), func() bool {
		left := family(group, mark)
		for _, pid := range left {
			kill(pid)
		}
		return len(left) == 0
	})
}
