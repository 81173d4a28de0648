package assert

import (
	"fmt"
	"slices"
	"time"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// The server's count of tokens is compared with the text that came: every speed
// rests on it, and a gateway, a stop-string filter or a broken detokenizer may
// count what it never sent.
const (
	// leastText is the smallest number of bytes of text a token, by the median of answers. A token
	// of text has one or more bytes. Few tokens have none, such as an end of sequence, unless the
	// text is missing.
	leastText = 0.5
	// spareChunks of an answer may come beyond its tokens, and a tenth of them:
	// parsers of reasoning and tool calls split a token now and then.
	spareChunks = 2
	// fewAnswers is the share that may break the rule of chunks.
	fewAnswers = 0.05
)

// heldBack is the reason that is no fault: a model that reasons, behind what keeps its
// reasoning back.
const heldBack = ". A reasoning model must send its reasoning, or report it as reasoning_tokens in usage"

// keptBack says how many tokens rest on the server's word alone, because it kept
// reasoning back.
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
	return []string{fmt.Sprintf("reasoning: %.0f%% of the output tokens were counted as reasoning and not sent (%s): ttft ends at the first text after it, and throughput rests on the server's word",
		100*float64(tokens)/float64(of), verdict.Count(held, "answers"))}
}

// believable objects to a count of tokens that the text contradicts.
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
		invalid(verdict.CauseInvalid, "usage: %d of %d answers came in more chunks than they have tokens by the server's count, such as %d chunks and %d tokens", split, completed, many.Chunks, many.Usage.Output)
	}
	if len(texts) == 0 {
		return // simulated, or recorded by an earlier version
	}
	slices.Sort(texts)
	if median := texts[len(texts)/2]; median < leastText {
		invalid(verdict.CauseInvalid, "usage: the answers hold %.2g bytes of text for each token that the server counts, and a token has one or more: its count, or the text, is not what was generated%s", median, heldBack)
	}
}

const (
	// A sample of answers has leastTokens to mostTokens of the tokens that the server
	// counted for them when its own tokenizer counts their text again. Tokens that the
	// model drew need not be those that its text is cut into; of a byte-level BPE, drawn
	// at random, the text makes 1.0 to 1.6 times as many, because of characters that are
	// cut in two. Fewer are left only by tokens that have no text, such as ends of turns.
	leastTokens, mostTokens = 0.6, 2.0
	leastRecounts           = 3 // answers that say something

	// A prompt that is sent again has its answer within this share of the time that the
	// first one took to write only if nothing was generated, where that took long enough
	// to tell. Drafts that are guessed from earlier answers make it no tenth.
	replayed  = 0.1
	longWrite = 50 * time.Millisecond

	leastCompared = 4 // answers, of which half may not say the same
)

// generated objects to answers that hold another number of tokens than the server
// counted, and to those that it did not generate.
func generated(a *metric.Answers, invalid objection) {
	if a == nil {
		return
	}
	claimed, tokens := 0, 0
	for _, r := range a.Recounts {
		claimed, tokens = claimed+r.Claimed, tokens+r.Tokens
	}
	if ratio := float64(tokens) / float64(max(claimed, 1)); len(a.Recounts) >= leastRecounts && (ratio < leastTokens || ratio > mostTokens) {
		invalid(verdict.CauseInvalid, "usage: the server counted %d tokens for %d answers, and its own tokenizer makes %d of their text: its count, or the text, is not what was generated%s", claimed, len(a.Recounts), tokens, heldBack)
	}
	if a.Compared >= leastCompared && 2*a.Alike >= a.Compared {
		invalid(verdict.CauseInvalid, "answers: %d of %d answers to different prompts have the same text: they come from a cache, or are those of other requests", a.Alike, a.Compared)
	}
	if n := len(a.Again); n > 2 && a.Again[0] >= longWrite && slices.Max(a.Again[1:]) <= time.Duration(replayed*float64(a.Again[0])) {
		invalid(verdict.CauseInvalid, "answers: a prompt that was sent again had the same answer within %v, and it took %v the first time: it comes from a cache. Turn off caches of whole answers; caches of prompts do no harm", slices.Max(a.Again[1:]).Round(time.Millisecond), a.Again[0].Round(time.Millisecond))
	}
}
