package server

import (
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

type reached struct {
	*Launcher
	server   *plan.Server
	config   client.Config // of api
	given    []string      // GPUs that the launcher gave to the server; nil if the plan names them
	state    func(string)
	url      string
	api      *client.HTTP
	servedAs string // model name to send; "" to take it from the server's list
	datasets datasets
	items    map[*plan.Workload]taskPrompts
	listed   []string         // ids of the models that the server lists
	fronts   []*client.HTTP   // of more URLs of the server, in the order of the plan
	replicas []*replica       // behind the URL, if the plan names them
	cleanup  func() error     // ends the server; nil if tokgate did not start the server
	gpu      telemetry.Source // GPU readings of a simulator; nil means the vendor's tools
	// program, log and facts are set only for a server that tokgate started.
	program running
	log     *tail
	facts   func(metric.Fingerprint) // adds further known facts
}

// replica is one of several servers behind an endpoint. It is asked for its facts and its metrics
// page, and gets no load.
type replica struct {
	url      string
	api      *client.HTTP
	model    string             // its name for the model
	found    metric.Fingerprint // at the start
	started  string             // when its process was started, in its own words; "" if not reported
	counters map[string]float64 // at the last reading
	lost     error              // it was restarted, by its counters
}

// It sends nothing.
func (l *Launcher) reach(s *plan.Server, state func(string), c client.Config) (*reached, error) {
	c.Now, c.Dial, c.Standard = l.Clock.Now, l.Dial, l.Standard
	c.OnFresh = func(reason string) { l.Clock.Post(func() { state(reason) }) }
	h, err := client.New(c)
	if err != nil {
		return nil, err
	}
	return &reached{
		Launcher: l, server: s, config: c, state: state, url: c.BaseURL, api: h, servedAs: s.ServedAs(),
		datasets: newDatasets(), items: map[*plan.Workload]taskPrompts{},
	}, nil
}

func (r *reached) close() {
	r.api.Close()
	for _, h := range r.fronts {
		h.Close()
	}
	for _, x := range r.replicas {
		x.api.Close()
	}
}

func (r *reached) failed(err error) error {
	if r.log == nil {
		return err
	}
	return &exec.ServerError{Err: err, Log: r.log.String()}
}
