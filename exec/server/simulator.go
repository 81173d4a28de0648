package server

import (
	"context"
	"fmt"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/telemetry"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/sim"
)

// It is nil if the profile has no GPU. The power in the readings follows the engine's load.
func gpuOf(p *sim.Profile, c clock.Clock, state func(now time.Duration) sim.State) telemetry.Source {
	if p.GPU == nil {
		return nil
	}
	meter := func(time.Duration, sim.State, map[string]float64, map[string]float64) {}
	if p.GPU.Power != nil {
		meter = p.GPU.Power.Meter()
	}
	return telemetry.Direct(func() (*telemetry.Reading, error) {
		now := c.Now()
		r := &telemetry.Reading{Gauges: p.GPU.At(now), Counters: map[string]float64{}}
		meter(now, state(now), r.Gauges, r.Counters)
		return r, nil
	})
}

func (l *Launcher) simulator(ctx context.Context, s *plan.Server, state func(string)) (*exec.Target, error) {
	profile, err := sim.LoadProfile(s.Simulator.Profile, l.Dir)
	if err != nil {
		return nil, err
	}
	server, err := sim.New(sim.Options{Profile: profile, Seed: s.Simulator.Seed, Engine: s.Engine, Listen: l.Listen})
	if err != nil {
		return nil, err
	}
	if err := server.Start("127.0.0.1:0"); err != nil {
		server.Close()
		return nil, fmt.Errorf("could not start the built-in server: %w", err)
	}
	// The built-in server has vLLM's API, even if it stands in for another engine.
	r, err := l.reach(s, state, client.Config{BaseURL: server.URL(), Engine: engine.Of("vllm")})
	if err != nil {
		server.Close()
		return nil, err
	}
	r.cleanup = server.Close
	r.gpu = gpuOf(profile, l.Clock, func(time.Duration) sim.State { return server.State() })
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
