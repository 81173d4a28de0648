package server

import (
	"context"
	"net"
	"time"

	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/record"
)

// Options says what a Launcher needs.
type Options struct {
	// Clock is the run's; required, and a real one: servers are.
	Clock clock.Clock
	// Origin is the wall time of the clock's zero, by which the built-in
	// server's own times are compared with ours; zero: no calibration.
	Origin time.Time
	// LogDir is where logs of processes go, "server-NAME.log"; "": nowhere.
	LogDir string
	// Dir is the plan's folder: profiles and processes start from there.
	Dir string
	// Redact lists the secrets to be taken out of logs.
	Redact []string
	// State is where runs note what they hold, see lease.Dir; "": nothing is
	// noted, nothing locked and nothing looked for.
	State lease.Folder
	// Holder names this run to others.
	Holder lease.Holder
	// Reap also removes containers without a note, whose runs are not proven dead.
	Reap bool
	// Grace is how long a server may take to end itself. It is called again while the launcher
	// waits for a server. nil: the constant.
	Grace func() time.Duration
	Network
}

// Network is how servers are reached, and where those of this process listen.
// The zero Network is the machine's; tests have one in memory.
type Network struct {
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Listen func(network, address string) (net.Listener, error)
}

// Launcher starts servers.
type Launcher struct {
	Options
	redactor record.Redactor
	doubt    bool // it is not known whether an unlocked note proves that its run is dead
}

// New returns a Launcher.
func New(o Options) *Launcher {
	return &Launcher{Options: o, redactor: record.NewRedactor(o.Redact), doubt: !lease.Proof}
}

// patience is how long the server may take to end itself, as of now: an
// interrupt shortens it.
func (l *Launcher) patience() time.Duration {
	if l.Grace != nil {
		return l.Grace()
	}
	return Grace
}
