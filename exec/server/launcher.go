package server

import (
	"context"
	"net"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record"
)

// Options configures a Launcher.
type Options struct {
	// Clock is the clock of the run. It is required. It must be a real clock, because servers run
	// in real time.
	Clock clock.Clock
	// Origin is the wall time at which the clock reads zero. It converts the times that the
	// built-in server records during the calibration. If Origin is zero, the calibration is left
	// out.
	Origin time.Time
	// LogDir is the folder for the logs of server processes, named "server-NAME.log". If it is "",
	// no logs are written.
	LogDir string
	// Dir is the plan's folder. Relative paths of profiles and processes begin there.
	Dir string
	// Redact lists the secrets that are removed from logs.
	Redact []string
	// State is the folder in which each run notes its servers and locks; see lease.Dir. If it is
	// "", the launcher notes and locks nothing, and finds no servers of killed runs.
	State lease.Folder
	// Holder describes this run. Other runs name it in their messages.
	Holder lease.Holder
	// Stacks are those that the plans of the run declare. The launcher runs their down commands, and no
	// other, to end what a killed run left.
	Stacks []*plan.Stack
	// Life is how long a pod of the run may live; 0 means six hours.
	Life time.Duration
	// Reap also removes containers of runs that have no note and may still be alive.
	Reap bool
	// Standard reads all streams with net/http; see client.Config.
	Standard bool
	// Workers says that other processes send the load, so prompts are made where they are sent.
	Workers bool
	// Grace returns how long a server may take to end by itself. It is called repeatedly while the
	// launcher waits. If Grace is nil, the constant Grace applies.
	Grace func() time.Duration
	Network
}

// Network is the network on which servers listen and clients reach them. The zero value is the
// network of the machine. Tests use a network in memory.
type Network struct {
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Listen func(network, address string) (net.Listener, error)
}

// Launcher starts servers.
type Launcher struct {
	Options
	redactor record.Redactor
	pods     int             // that were started
	dead     map[string]bool // runs that left pods, and have ended for certain
	doubt    bool            // an unlocked note does not prove that its run has ended
}

// New returns a Launcher.
func New(o Options) *Launcher {
	return &Launcher{Options: o, redactor: record.NewRedactor(o.Redact), dead: map[string]bool{}, doubt: !lease.Proof}
}

// patience returns how much longer the server may take to end by itself. An interrupt shortens this
// time.
func (l *Launcher) patience() time.Duration {
	if l.Grace != nil {
		return l.Grace()
	}
	return Grace
}
