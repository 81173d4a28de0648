package exec

import (
	"cmp"
	"context"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
)

// Warm is the phase of requests that only fill the server's cache with shared prefixes. Their
// samples are not recorded. The Order of such a prompt is the number of its prefix group.
const Warm metric.Phase = "warm"

// warmAtOnce is the largest number of requests in flight that fill the cache with prefixes.
const warmAtOnce = 8

// warm fills the server's cache with the shared prefixes of the level's prompts. It does so once
// after each start of the server, before the first round.
func (s *levelRun) warm() {
	if s.warmed {
		return
	}
	s.warmed = true
	for _, a := range s.asks {
		if a.workload.Prompt.Warm {
			s.warmBy(a)
		}
	}
}

func (s *levelRun) warmBy(a *asking) {
	ctx, cancel := context.WithCancel(s.flying)
	defer cancel()
	open := 0
	for group := range a.workload.Prompt.Prefixes() {
		id := PromptID{Level: s.level.Name, Phase: Warm, Order: group}
		if !s.check() || s.unrecorded(ctx, a, id, 1, func(*metric.Sample) { open-- }) != nil {
			break // the round will meet the same problem and report it
		}
		open++
		s.runUntil(func() bool { return open < warmAtOnce })
	}
	s.runUntil(func() bool { return open == 0 })
}

// unrecorded sends a request whose sample is not recorded, for so many tokens. The function ended gets
// the sample when the request has ended.
func (s *levelRun) unrecorded(ctx context.Context, a *asking, id PromptID, tokens int, ended func(*metric.Sample)) error {
	p, err := a.prompts.Prompt(id)
	if err != nil {
		return err
	}
	request := a.request
	request.Prompt, request.Output, request.Natural = p, tokens, tokens > 1 && request.Natural
	request.Input = cmp.Or(p.Tokens, request.Input)
	s.aside++
	s.target.Transport.Send(ctx, &request, client.NewAnswer(&metric.Sample{OutputAsked: tokens}, func(x *metric.Sample) {
		s.Clock.Post(func() { ended(x) })
	}))
	return nil
}
