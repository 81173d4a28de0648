package assert

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// Limits on the difference between the server's token count and the text that arrived. Every speed
// depends on this count. A gateway, a filter for stop strings or a broken detokenizer may count
// tokens that were never sent.
const (
	// leastText is the smallest allowed number of bytes of text per token, as the median of the
	// answers. Nearly every token has at least one byte, unless text is missing.
	leastText = 0.5
	// spareChunks is how many chunks an answer may have beyond 1.1 times its token count. Servers
	// that parse reasoning or tool calls sometimes split a token into several chunks.
	spareChunks = 2
	// fewAnswers is the share of answers that may have too many chunks.
	fewAnswers = 0.05
)

// heldBack is the end of a message about missing text. It names a harmless cause: the model may not
// send its reasoning.
const heldBack = ". A reasoning model must send its reasoning, or report it as reasoning_tokens in usage"

// keptBack returns a note if the server counted reasoning tokens but did not send them.
func keptBack(samples []*metric.Sample) []string {
	held, tokens, of := 0, 0, 0
	for _, x := range samples {
		if x.Completed() && x.Usage != nil {
			of += x.Usage.Output
			if x.Usage.Hidden > 0 {
				held, tokens = held+1, tokens+x.Usage.Hidden
			}
		}
	}
	if held == 0 {
		return nil
	}
	return []string{fmt.Sprintf("reasoning: the server counted %.0f%% of the output tokens as reasoning and did not send them (%s). So ttft ends at the first text after the reasoning, and throughput relies on the server's count",
		100*float64(tokens)/float64(of), verdict.Count(held, "answers"))}
}

// believable makes a measurement invalid if the answers' texts contradict the server's token
// counts.
func believable(samples []*metric.Sample, invalid objection) {
	var texts []float64
	var many *metric.Sample
	split, completed := 0, 0
	for _, x := range samples {
		if !x.Completed() || x.Usage == nil || x.Usage.Output <= x.Usage.Hidden {
			continue
		}
		completed++
		sent := float64(x.Usage.Output - x.Usage.Hidden)
		if float64(x.Chunks) > 1.1*sent+spareChunks {
			split, many = split+1, x
		}
		if x.Text > 0 {
			texts = append(texts, float64(x.Text)/sent)
		}
	}
	if float64(split) > fewAnswers*float64(completed) {
		invalid(verdict.CauseInvalid, "usage: by the server's count, %d of %d answers have more chunks than tokens that were sent, such as %d chunks but %d tokens", split, completed, many.Chunks, many.Usage.Output-many.Usage.Hidden)
	}
	if len(texts) == 0 {
		return // answers have no text lengths in a simulated run or an older recording
	}
	slices.Sort(texts)
	if median := texts[len(texts)/2]; median < leastText {
		invalid(verdict.CauseInvalid, "usage: the answers hold %.2g bytes of text for each token that the server counts, but a token has at least one byte: either the count or the text is not what the model generated%s", median, heldBack)
	}
}

const (
	// leastTokens and mostTokens bound a ratio of two token counts of the same answers. The
	// tokenizer's count is divided by the count in the server's usage. With random tokens of a
	// byte-level BPE the ratio is 1.0 to 1.6, because characters are cut in two. Only tokens
	// without text, such as ends of turns, make it less than 1.
	leastTokens, mostTokens = 0.6, 2.0
	leastRecounts           = 3 // fewest answers whose tokens must be counted again

	// A repeated answer counts as coming from a cache if the whole request takes at most the share
	// replayed of the time that the server took to write an answer to a new prompt, both before and
	// after. Speculative decoding alone is never ten times faster. The check needs answers that took
	// at least longWrite from the first chunk to the last, so answers in one piece show nothing.
	replayed  = 0.1
	longWrite = 50 * time.Millisecond

	leastCompared = 10 // fewest answers to compare; if half of them are equal, the run is invalid
)

// generated makes a measurement invalid if the server did not generate its answers, or if it
// counted their tokens wrongly.
func generated(a *metric.Answers, invalid objection) {
	if a == nil {
		return
	}
	claimed, tokens := 0, 0
	for _, r := range a.Recounts {
		claimed, tokens = claimed+r.Claimed, tokens+r.Tokens
	}
	if ratio := float64(tokens) / float64(max(claimed, 1)); len(a.Recounts) >= leastRecounts &&
		(ratio < leastTokens || ratio > mostTokens) {
		invalid(verdict.CauseInvalid, "usage: the server counted %d tokens for %d answers, but its own tokenizer makes %d tokens of their text: either the count or the text is not what the model generated%s", claimed, len(a.Recounts), tokens, heldBack)
	}
	if a.Compared >= leastCompared && 2*a.Alike >= a.Compared {
		invalid(verdict.CauseInvalid, "answers: %d of %d answers to different prompts have the same text: the answers come from a cache, or belong to other requests", a.Alike, a.Compared)
	}
	if c := a.Cache; c != nil && len(c.Again) > 1 && min(c.First, c.Fresh) >= longWrite &&
		slices.Max(c.Again) <= time.Duration(replayed*float64(min(c.First, c.Fresh))) {
		invalid(verdict.CauseInvalid, "answers: a prompt that was sent again had the same answer within %v, but the server took %v to write the first answer, and %v to write the answer to the next new prompt: the repeated answers come from a cache. Turn off caches of whole answers; caches of prompts do no harm",
			slices.Max(c.Again).Round(time.Millisecond), c.First.Round(time.Millisecond), c.Fresh.Round(time.Millisecond))
	}
}
