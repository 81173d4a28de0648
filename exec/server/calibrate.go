package server

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/sim"
)

// These constants are the load of a calibration: 64 streams at 50 tok/s each. Every 20 ms all
// streams send a chunk at the same time, as a server does that decodes them in one batch. A
// calibration takes about half a second.
const (
	calibrationStreams = 64
	calibrationTokens  = 25
	calibrationStepMS  = 20
	calibrationLimit   = 2 * time.Second
)

// Calibrate measures the delay with which the generator reads chunks. The result is kept until the
// next start of the machine.
func (l *Launcher) Calibrate(ctx context.Context) (*metric.Calibration, error) {
	key := calibrationKey()
	var known metric.Calibration
	if boot() != "" && l.State.Recall(lease.Calibrations, key, &known) && known.Streams == calibrationStreams {
		return &known, nil
	}
	c, err := l.calibrate(ctx)
	if err == nil && boot() != "" {
		l.State.Remember(lease.Calibrations, key, c)
	}
	return c, err
}

func calibrationKey() string { return fmt.Sprintf("calibration-%s-%d", boot(), runtime.GOMAXPROCS(0)) }

func (l *Launcher) calibrate(ctx context.Context) (*metric.Calibration, error) {
	if l.Origin.IsZero() {
		return nil, errors.New("the clock's origin is not known")
	}
	emitted := &stamps{at: map[string][]time.Duration{}}
	server, err := sim.New(sim.Options{Profile: calibrationProfile(), Listen: l.Listen, OnEmit: func(id string, chunk int, at time.Time) {
		emitted.add(id[strings.LastIndexByte(id, '-')+1:], at.Sub(l.Origin))
	}})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	if err := server.Start("127.0.0.1:0"); err != nil {
		return nil, err
	}

	ctx, cancel := clock.WithTimeout(ctx, l.Clock, calibrationLimit)
	defer cancel()
	begin := l.Clock.Now()
	health := Meter()()
	read := make([]*arrivals, calibrationStreams)
	left := 0
	for i := range read {
		// Each stream has its own client, because the client's header carries the stream's number.
		h, err := client.New(client.Config{
			BaseURL: server.URL(), Now: l.Clock.Now, Dial: l.Dial, Standard: l.Standard, Engine: engine.Of("vllm"),
			Headers: map[string]string{"X-Request-Id": strconv.Itoa(i)},
		})
		if err != nil {
			return nil, err
		}
		defer h.Close()
		left++
		read[i] = &arrivals{done: func() { l.Clock.Post(func() { left-- }) }}
		h.Send(ctx, &client.Request{
			API: "completions", Model: server.Model(), Prompt: client.Prompt{Text: "Hello"}, Output: calibrationTokens,
		}, read[i])
	}
	// Wait for all streams. Each stream ends at its token limit, so the wait ends.
	if err := clock.Until(context.WithoutCancel(ctx), l.Clock, func() bool { return left == 0 }); err != nil {
		return nil, err
	}
	c := &metric.Calibration{Streams: calibrationStreams, CPU: health().CPU, Took: l.Clock.Now() - begin}
	var delays []time.Duration
	for i, a := range read {
		delays = append(delays, readDelays(emitted.times(strconv.Itoa(i)), a.at)...)
	}
	if len(delays) < calibrationStreams {
		return nil, fmt.Errorf("only %d chunks were read", len(delays))
	}
	slices.Sort(delays)
	c.Delay50, c.Delay99 = nearest(delays, 50), nearest(delays, 99)
	c.Rate = float64(len(delays)) / c.Took.Seconds()
	return c, nil
}

// Chunks that were not read are left out.
func readDelays(written, read []time.Duration) []time.Duration {
	var delays []time.Duration
	for i := range min(len(written), len(read)) {
		delays = append(delays, max(read[i]-written[i], 0))
	}
	return delays
}

// nearest returns the percentile p, from 1 to 100, by the nearest-rank method. The values must be
// ascending, with at least one value.
func nearest(ascending []time.Duration, p int) time.Duration {
	return ascending[(p*len(ascending)+99)/100-1]
}

type stamps struct {
	mu sync.Mutex
	at map[string][]time.Duration
}

func (s *stamps) add(id string, at time.Duration) {
	s.mu.Lock()
	s.at[id] = append(s.at[id], at)
	s.mu.Unlock()
}

func (s *stamps) times(id string) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[id]
}

type arrivals struct {
	at   []time.Duration
	done func()
}

func (a *arrivals) Sent(time.Duration)         {}
func (a *arrivals) Headers(time.Duration, int) {}
func (a *arrivals) End(time.Duration, error)   { a.done() }
func (a *arrivals) Event(at time.Duration, e *client.Event) {
	if e.Content {
		a.at = append(a.at, at)
	}
}

// calibrationProfile describes a server that sends one token of every stream at every step, and
// does nothing else.
func calibrationProfile() *sim.Profile {
	p := sim.DefaultProfile()
	p.OverheadMS = 0
	p.Prefill = sim.PrefillCost{USPerToken: 1}
	p.Decode = sim.DecodeCost{BaseMS: calibrationStepMS}
	p.Limits = sim.Limits{MaxBatchedTokens: 1 << 16}
	p.Noise = sim.Noise{}
	return p
}
