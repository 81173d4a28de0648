package server

import (
	"context"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// reached is a server that is spoken to over HTTP.
type reached struct {
	*Launcher
	server   *plan.Server
	config   client.Config // of api
	given    []string      // the GPUs that it was given; nil: as the plan says
	state    func(string)
	url      string
	api      *client.HTTP
	servedAs string // id to send; "": asked for
	datasets map[*plan.Workload]rowPrompts
	items    map[*plan.Workload]taskPrompts
	listed   []string     // the ids that it lists
	gone     func() error // why it is gone; nil: not known
	log      func() string
	cleanup  func() error     // what ends it; nil: not ours
	gpu      telemetry.Source // of a simulator that has one; nil: its tools are looked for
	// Of a server that was started on this machine; else nil.
	facts     func(metric.Fingerprint)     // adds what else is known of it
	instance  func(context.Context) string // tells it from one in its place
	lastWords func() string                // of its log
}

// reach prepares to speak to a server; it touches no network.
func (l *Launcher) reach(s *plan.Server, state func(string), c client.Config) (*reached, error) {
	c.Now, c.Dial = l.Clock.Now, l.Dial
	c.OnFresh = func(reason string) { l.Clock.Post(func() { state(reason) }) }
	h, err := client.New(c)
	if err != nil {
		return nil, err
	}
	return &reached{Launcher: l, server: s, config: c, state: state, url: c.BaseURL, api: h, servedAs: s.ServedAs()}, nil
}

// failed adds the end of its log, where there is one.
func (r *reached) failed(err error) error {
	if r.log == nil {
		return err
	}
	return &exec.ServerError{Err: err, Log: r.log()}
}
