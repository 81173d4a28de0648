package server

import (
	"context"
	"net"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/record"
)

// Options holds what a Launcher needs.
type Options struct {
	// Clock is the clock of the run. It is required, and must be real because servers
	// are.
	Clock clock.Clock
	// Origin is the wall time at which the clock reads zero. It converts the times that the
	// built-in server records during the calibration. If Origin is zero, the calibration is left
	// out.
	Origin time.Time
	// LogDir is the folder for the logs of processes, "server-NAME.log"; "" writes
	// none.
	LogDir string
	// Dir is the plan's folder. Relative paths of profiles and processes begin there.
	Dir string
	// Redact lists the secrets that are removed from logs.
	Redact []string
	// State is the folder in which runs record what they hold; see lease.Dir. If it is "", the
	// launcher records nothing, locks nothing and finds no servers of killed runs.
	State lease.Folder
	// Holder describes this run, so that other runs can name it in their messages.
	Holder lease.Holder
	// Reap also removes containers whose run has no note and may still be alive.
	Reap bool
	// Grace returns how long a server may take to end by itself. It is called again and again
	// during the wait. If it is nil, the constant Grace applies.
	Grace func() time.Duration
	Network
}

// Network is the network on which servers listen and are reached. The zero Network is that of the
// machine. Tests use a network in memory.
type Network struct {
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Listen func(network, address string) (net.Listener, error)
}

// Launcher starts servers.
type Launcher struct {
	Options
	redactor record.Redactor
	doubt    bool // set if an unlocked note does not prove that its run has ended
}

// New returns a Launcher.
func New(o Options) *Launcher {
	return &Launcher{Options: o, redactor: record.NewRedactor(o.Redact), doubt: !lease.Proof}
}

// patience is how long the server may still take to end by itself. An interrupt
// shortens it.
func (l *Launcher) patience() time.Duration {
	if l.Grace != nil {
		return l.Grace()
	}
	return Grace
}
