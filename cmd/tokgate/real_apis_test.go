//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/record"
)

var realAPIsPage = flag.String("real-apis-page", "", "put what engines answer through Responses, Messages and embeddings into this `page`, docs/engines-tried.md")

// TestRealAPIs sends the same prompts through several APIs of each engine, at temperature 0, and asks
// for embeddings. `make real-apis` runs it. Its figures do not depend on the machine.
func TestRealAPIs(t *testing.T) {
	if *realAPIsPage == "" {
		t.Skip("make real-apis")
	}
	page := read(t, *realAPIsPage)
	for _, engine := range strings.Fields(*realEngines) {
		models, ok := map[string][2]string{"vllm": {"tiny", "embed"}, "llama.cpp": {"tiny.gguf", "tiny.gguf"}}[engine]
		if !ok {
			continue
		}
		r := newTrial(t, engine)
		texts := r.sent("same prompts by API", "apis.hcl", models[0])
		vectors := r.sent("embeddings", "embeddings.hcl", models[1])
		if texts == nil || vectors == nil {
			continue
		}
		row := fmt.Sprintf("| %s | %s | %s | %s | %s |\n", engine, texts.Servers[0].Fingerprint["version"],
			r.likeChat(texts, "responses"), r.likeChat(texts, "messages"), r.embedded(vectors))
		old := regexp.MustCompile(`(?m)(<!-- apis -->\n(?:\|.*\n)*?)\| ` + regexp.QuoteMeta(engine) + ` \|.*\n`)
		page = old.ReplaceAllString(page, "$1")
		must.Need(t, strings.Contains(page, "<!-- /apis -->"), "the page has no place for it")
		page = strings.Replace(page, "<!-- /apis -->", row+"<!-- /apis -->", 1)
		must.Do(t, os.WriteFile(*realAPIsPage, []byte(page), 0o644))
	}
}

// sent runs a plan, which must pass, and returns its recording; nil if it did not pass.
func (r *trial) sent(what, plan, model string) *metric.Run {
	cmd, out := r.command(what, plan, r.model(model), "TOKGATE_VAR_engine="+r.name)
	if code := r.run(what, cmd, out, nil); code != 0 {
		r.t.Errorf("%s: exit %d", what, code)
		return nil
	}
	run, _, err := record.Read(out)
	must.Do(r.t, err)
	return run
}

// likeChat compares the tokens of the prompts and answers of an API with those of the same rows by chat.
func (r *trial) likeChat(run *metric.Run, api string) string {
	chat, by := byRow(run, "chat"), byRow(run, api)
	n, prompts, answers, texts := 0, 0, 0, 0
	for row, s := range by {
		same := chat[row]
		if same == nil {
			continue // a batch that was measured again has other rows
		}
		n++
		must.Need(r.t, s.Usage != nil && same.Usage != nil, "%s: row %d has no usage by both", r.name, row)
		if sameCount(s.Usage.Input, same.Usage.Input) {
			prompts++
		}
		if sameCount(s.Usage.Output, same.Usage.Output) {
			answers++
		}
		if s.Said != nil && same.Said != nil && s.Said.Text == same.Said.Text {
			texts++
		}
	}
	must.Hold(r.t, n >= 10 && prompts == n && answers == n, "%s: by %s %d prompts and %d answers of %d have chat's tokens", r.name, api, prompts, answers, n)
	return fmt.Sprintf("prompts %d of %d, answers %d of %d; the same text in %d", prompts, n, answers, n, texts)
}

func sameCount(a, b int) bool { return max(a, b)-min(a, b) <= 1 }

// byRow returns the measured requests of an API by the row of the data set.
func byRow(run *metric.Run, api string) map[int]*metric.Sample {
	out := map[int]*metric.Sample{}
	for _, l := range run.Levels {
		if !strings.Contains(l.Workload, api) {
			continue
		}
		for _, round := range l.Rounds {
			for _, s := range round.MeasuredSamples() {
				if s.Completed() {
					out[s.Row] = s
				}
			}
		}
	}
	return out
}

// embedded says how many requests for embeddings were answered, and how far the vectors of two servers
// that are alike are from each other.
func (r *trial) embedded(run *metric.Run) string {
	requests, tokens := 0, 0
	for _, l := range run.Levels {
		for _, round := range l.Rounds {
			for _, s := range round.MeasuredSamples() {
				must.Need(r.t, s.Completed() && s.Usage != nil, "%s: %+v", r.name, s.Failure)
				requests, tokens = requests+1, tokens+s.Usage.Input
			}
		}
	}
	i := slices.IndexFunc(run.Comparisons, func(c *metric.Comparison) bool { return c.Answers != nil && c.Answers.Embedded != nil })
	must.Need(r.t, i >= 0, "%s: no embeddings were compared", r.name)
	far, pairs := 0.0, run.Comparisons[i].Answers.Embedded.Pairs
	for _, p := range pairs {
		far = max(far, *p.Candidate.Distance)
	}
	return fmt.Sprintf("%d requests of %d tokens; 1 − cosine to a server alike at most %.1g in %d", requests, tokens, far, len(pairs))
}
