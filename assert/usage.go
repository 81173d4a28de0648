package assert

import (
	"slices"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/metric"
)

// The server's count of tokens is held against the text that came: every speed
// rests on it, and a gateway, a stop-string filter or a broken detokenizer may
// count what it never sent.
const (
	// leastText is how many bytes of text a token has at least, by the median of
	// answers. A token of text has one or more; those that have none, such as an
	// end of sequence that is passed over, are few unless the text is missing.
	leastText = 0.5
	// spareChunks of an answer may come beyond its tokens, and a tenth of them:
	// parsers of reasoning and tool calls split a token now and then.
	spareChunks = 2
	// fewAnswers is the share that may break the rule of chunks.
	fewAnswers = 0.05
)

// believable objects to a count of tokens that the text contradicts.
func believable(samples []*metric.Sample, invalid objection) {
	var texts []float64
	var many *metric.Sample
	split, completed := 0, 0
	for _, x := range samples {
		if !x.Completed() || x.Usage == nil || x.Usage.Output == 0 {
			continue
		}
		completed++
		if float64(x.Chunks) > 1.1*float64(x.Usage.Output)+spareChunks {
			split, many = split+1, x
		}
		if x.Text > 0 {
			texts = append(texts, float64(x.Text)/float64(x.Usage.Output))
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
		invalid(verdict.CauseInvalid, "usage: the answers hold %.2g bytes of text for each token that the server counts, and a token has one or more: its count, or the text, is not what was generated", median)
	}
}
