package server

import (
	"os"
	osexec "os/exec"
)

// keeperName is the first argument of a keeper.
//
// A keeper is a small process of the same program that is the parent of a server. The kernel gives it
// every process below the server that loses its own parent (it is a "subreaper"). So each process
// that the server started can be found and ended, even one that left the process group and cleared
// its environment. A keeper ends when nothing is left below it. It outlives the run if the run is
// killed, so that the next run finds the server.
const keeperName = "tokgate-keeper"

// kept reports whether this program can keep servers; see Keep.
var kept bool

// Keep turns the process into a keeper, if it was started as one, and then does not return. A program
// that starts servers calls it first. Without the call, or on a system other than Linux, servers are
// started directly.
func Keep() {
	if len(os.Args) > 2 && os.Args[0] == keeperName {
		keep(os.Args[1], os.Args[2:])
		os.Exit(0)
	}
	kept = true
}

// start starts the program of a server. The function ended waits for the end of the program, and
// says how it ended.
func start(cmd *osexec.Cmd) (ended func() (how string), err error) {
	if kept && keeps && cmd.Err == nil {
		return startKept(cmd)
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() string {
		_ = cmd.Wait() // the state says more: a program that ends with a failure is an error here
		return cmd.ProcessState.String()
	}, nil
}

// markName is the environment variable with the mark of a server. The processes that the server
// starts inherit the variable.
const markName = "TOKGATE_SERVER"
