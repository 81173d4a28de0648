package exec

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/clock"
	"github.com/tokgate/tokgate/metric"
)

// examine checks the answers that were kept. No request is in flight meanwhile.
func (s *levelRun) examine() {
	for _, of := range s.asks {
		s.examineOf(of)
	}
}

func (s *levelRun) examineOf(of *asking) {
	a := of.kept
	if len(a.texts) == 0 || s.target == nil || s.target.Tokens == nil || !s.check() {
		return
	}
	compared, same := countEqual(a.texts)
	a.found.Compared, a.found.Alike = a.before.Compared+compared, a.before.Alike+same
	s.recount(of)
	if key := [2]string{of.level.Server, of.level.Workload}; of.workload.Prompt.Dataset == nil && !s.repeated[key] && s.yield == nil {
		s.repeated[key] = true
		a.found.Cache = s.testCache(of)
	}
	found := a.found
	of.level.Answers = &found
}

func (s *levelRun) recount(of *asking) {
	a := of.kept
	ctx, cancel := clock.WithTimeout(s.starting, s.Clock, recountTime)
	defer cancel()
	for ; a.counted < len(a.texts) && a.found.Note == "" && s.check(); a.counted++ {
		k := a.texts[a.counted]
		if !k.whole {
			continue
		}
		n, err := s.target.Tokens(ctx, of.request.Model, k.text)
		if errors.Is(err, client.ErrNoTokenizer) && !of.level.Exact {
			return // the server has no tokenizer, which was reported when the prompts were made
		}
		if err == nil && n == 0 {
			err = errors.New("it made no token of an answer")
		}
		if err != nil {
			a.found.Note = s.secrets.Text("the tokens of the answers could not be counted again by the server's tokenizer: " + err.Error())
			continue
		}
		a.found.Recounts = append(a.found.Recounts, metric.Recount{Round: k.round, Order: k.order, Claimed: k.claimed, Tokens: n})
	}
}

// countEqual returns how many answers can be compared, and how many of these equal another answer.
// Two answers are compared only up to the end of the shorter one.
func countEqual(kept []keptAnswer) (compared, same int) {
	kept = slices.DeleteFunc(slices.Clone(kept), func(k keptAnswer) bool {
		words := strings.Fields(k.text)
		slices.Sort(words)
		return k.claimed < comparedTokens || len(slices.Compact(words)) < comparedWords
	})
	for i, k := range kept {
		if slices.ContainsFunc(slices.Delete(slices.Clone(kept), i, i+1), func(o keptAnswer) bool {
			return (k.row == 0 || k.row != o.row) && (strings.HasPrefix(k.text, o.text) || strings.HasPrefix(o.text, k.text))
		}) {
			same++
		}
	}
	return len(kept), same
}

// testCache tests whether the server caches whole answers. The result is nil if the test shows
// nothing: a request failed, the answers differ, or the generator stood still meanwhile.
func (s *levelRun) testCache(of *asking) *metric.CacheTest {
	stop := watchBeats(s.Clock)
	test := s.sendAgain(of)
	if len(stop().health.Standstills) > 0 {
		return nil
	}
	return test
}

// sendAgain sends one new prompt several times, and then another one. The next request is sent after
// the answer to the last. The server may read the prompt from its prefix cache, but must generate
// every answer anew. The result is nil if a request failed or the answers differ.
func (s *levelRun) sendAgain(of *asking) *metric.CacheTest {
	request := of.request
	request.Output, request.Timeout = min(of.workload.Output.Mean, againTokens), againTime
	if request.Output < againTokens/3 {
		return nil
	}
	var test metric.CacheTest
	first := ""
	for i := range againTimes + 1 {
		var err error
		if i == 0 || i == againTimes {
			request.Prompt, err = of.prompts.Prompt(PromptID{Level: s.level.Name, Phase: "again", Order: i})
		}
		if err != nil {
			return nil
		}
		sample, text := s.sendAlone(&request)
		if !sample.Completed() || text == "" || !s.check() {
			return nil
		}
		switch {
		case i == 0:
			first, test.First = text, sample.Last-sample.First
		case i == againTimes:
			test.Fresh = sample.Last - sample.First
		case text != first:
			return nil
		default:
			test.Again = append(test.Again, sample.End-sample.Sent)
		}
	}
	return &test
}

func (s *levelRun) sendAlone(request *client.Request) (*metric.Sample, string) {
	sample, over := &metric.Sample{OutputAsked: request.Output}, false
	answer := client.NewAnswer(sample, func(*metric.Sample) { s.Clock.Post(func() { over = true }) })
	answer.Keep(keptBytes)
	ctx, cancel := context.WithCancel(s.flying)
	defer cancel()
	s.target.Transport.Send(ctx, request, answer)
	s.runUntil(func() bool { return over })
	text := answer.Said().String()
	if !over { // the clock was stopped, and the transport may still write to the sample
		return &metric.Sample{Failure: &metric.Failure{Kind: metric.FailCanceled}}, ""
	}
	return sample, text
}
