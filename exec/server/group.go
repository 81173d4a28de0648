package server

import (
	"fmt"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
)

// markName is the environment variable with the mark of a server. The processes that the server
// starts inherit the variable.
const markName = "TOKGATE_SERVER"

// endGroup ends a process group. It also ends processes outside of the group that have the server's
// mark in their environment. Processes that do not end in time are killed.
func endGroup(c clock.Clock, group int, mark string, grace func() time.Duration) error {
	gone := func() bool { return !alive(group) && len(marked(mark)) == 0 }
	terminate(group)
	if within(c, grace, gone) {
		kill(group)
		for _, pid := range marked(mark) {
			killOne(pid)
		}
	}
	if within(c, constant(reaped), gone) {
		return fmt.Errorf("process group %d could not be killed: end it by hand", group)
	}
	return nil
}
