package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/internal/studies/memnet"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/sim"
)

// greedy returns a request at temperature 0.
func greedy(prompt string, input, output int) *client.Request {
	zero := 0.0
	return &client.Request{API: "chat", Model: "tokgate-sim", Prompt: client.Prompt{Text: prompt}, Input: input, Output: output, Natural: true, Temperature: &zero}
}

// heardFrom sends a request and waits for the text of its answer.
func heardFrom(t *testing.T, c clock.Clock, transport client.Transport, r *client.Request) string {
	t.Helper()
	over := false
	answer := client.NewAnswer(&metric.Sample{OutputAsked: r.Output}, func(*metric.Sample) { c.Post(func() { over = true }) })
	answer.Keep(1 << 16)
	transport.Send(t.Context(), r, answer)
	if err := clock.Until(t.Context(), c, func() bool { return over }); err != nil || answer.Sample().Failure != nil {
		t.Fatalf("no answer: %v, %v", err, answer.Sample().Failure)
	}
	return answer.Said().Visible
}

// lossOf returns the mean loss of a text as the answer to a request, in nats per token.
func lossOf(t *testing.T, c clock.Clock, scorer client.Scorer, r *client.Request, said string) float64 {
	t.Helper()
	loss, over := 0.0, false
	var failed error
	scorer.Score(t.Context(), r, said, "salt", func(values []float64, err error) {
		c.Post(func() {
			for _, v := range values {
				loss -= v / float64(len(values))
			}
			failed, over = err, true
		})
	})
	err := clock.Until(t.Context(), c, func() bool { return over })
	must.Need(t, err == nil && failed == nil, "no score: %v, %v", err, failed)
	return loss
}

// TestScores checks that the built-in server gives a high likelihood to its own answer, and a low
// likelihood to an answer to another prompt. It does so over HTTP and in virtual time.
func TestScores(t *testing.T) {
	check := func(t *testing.T, c clock.Clock, transport client.Transport) {
		t.Helper()
		one, two := greedy("Tell me of the sea.", 20, 40), greedy("Tell me of the sky.", 20, 40)
		own, other := heardFrom(t, c, transport, one), heardFrom(t, c, transport, two)
		scorer := transport.(client.Scorer)
		got := lossOf(t, c, scorer, one, own)
		must.Hold(t, got > 0 && got < 0.5, "its own answer %q costs %v nats a token", own, got)
		if got := lossOf(t, c, scorer, one, other); got < 5 {
			t.Errorf("an answer to another prompt, %q, costs %v nats a token", other, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		s := must.Get(sim.New(sim.Options{}))(t)
		l := memnet.Listen()
		go s.Serve(l)
		h := must.Get(client.New(client.Config{BaseURL: "http://memory.test", Engine: engine.Of("vllm"), Now: c.Now, Dial: l.DialContext}))(t)
		check(t, c, h)
		h.Close()
		s.Close()
		synctest.Wait()
	})
	c := clock.NewVirtual()
	server := must.Get(sim.NewVirtual(sim.Options{}, 0))(t)
	v := newVirtual(c, server)
	defer c.Settled(v.settle)()
	check(t, c, v)
}

// TestLongScoringTakesNoLonger requires that scoring 200 answers of 64 tokens takes no longer than
// generating them. Scoring and generating use the same number of requests in flight.
func TestLongScoringTakesNoLonger(t *testing.T) {
	for _, tt := range []struct{ input, atOnce int }{{32, 1}, {256, 16}, {256, 64}, {8192, 8}} {
		c := clock.NewVirtual()
		server := must.Get(sim.NewVirtual(sim.Options{}, 0))(t)
		v := newVirtual(c, server)
		leave := c.Settled(v.settle)
		took := func(begin func(i int, over func())) time.Duration {
			from, open := c.Now(), 0
			for i := range 200 {
				open++
				begin(i, func() { c.Post(func() { open-- }) })
				must.Do(t, clock.Until(t.Context(), c, func() bool { return open < tt.atOnce }))
			}
			must.Do(t, clock.Until(t.Context(), c, func() bool { return open == 0 }))
			return c.Now() - from
		}
		var said [200]string
		request := func(i int) *client.Request { return greedy(fmt.Sprint("prompt ", i), tt.input, 64) }
		answering := took(func(i int, over func()) {
			var answer *client.Answer
			answer = client.NewAnswer(&metric.Sample{OutputAsked: 64}, func(*metric.Sample) {
				said[i] = answer.Said().Visible
				over()
			})
			answer.Keep(1 << 16)
			v.Send(t.Context(), request(i), answer)
		})
		scoring := took(func(i int, over func()) {
			v.Score(t.Context(), request(i), said[i], fmt.Sprint(i), func(values []float64, err error) {
				must.Hold(t, err == nil && (len(values) == 64 || len(values) >= 20), "%d values: %v", len(values), err)
				over()
			})
		})
		t.Logf("prompts of %d, %d in flight: answering %v, reading %v", tt.input, tt.atOnce, answering, scoring)
		must.Hold(t, scoring <= answering, "prompts of %d, %d in flight: reading took %v, answering %v", tt.input, tt.atOnce, scoring, answering)
		leave()
	}
}
