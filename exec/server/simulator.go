package server

import (
	"context"
	"fmt"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// gpuOf reads the GPU of a profile; nil where it has none.
func gpuOf(p *sim.Profile, c clock.Clock) telemetry.Source {
	if p.GPU == nil {
		return nil
	}
	return telemetry.Direct(func() (*telemetry.Reading, error) {
		return &telemetry.Reading{Gauges: p.GPU.At(c.Now())}, nil
	})
}

// simulator starts the built-in server inside this process, reached over a
// socket of its own like any other.
func (l *Launcher) simulator(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
	profile, err := sim.LoadProfile(s.Simulator.Profile, l.Dir)
	if err != nil {
		return nil, err
	}
	server, err := sim.New(sim.Options{Profile: profile, Seed: s.Simulator.Seed, Listen: l.Listen})
	if err != nil {
		return nil, err
	}
	if err := server.Start("127.0.0.1:0"); err != nil {
		server.Close()
		return nil, fmt.Errorf("could not start the built-in server: %w", err)
	}
	// It speaks as vLLM does, whatever engine it stands in for.
	r, err := l.reach(s, state, client.Config{BaseURL: server.URL(), Engine: engine.Of("vllm")})
	if err != nil {
		server.Close()
		return nil, err
	}
	r.cleanup = server.Close
	r.gpu = gpuOf(profile, l.Clock)
	t, err := r.target(ctx)
	if err != nil {
		server.Close()
		return nil, err
	}
	t.Reset = r.reset
	t.Fingerprint["engine"] = "simulator"
	t.Fingerprint["profile"] = profile.Name
	return t, nil
}
