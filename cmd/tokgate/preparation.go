package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/plan"
)

// preparation prints the requests that prepare a measurement, and about how long they take.
func (x *expansion) preparation() {
	type asks struct{ servers, lines []string }
	var all []*asks
	for _, s := range x.p.Servers {
		lines := x.asks(s)
		i := slices.IndexFunc(all, func(a *asks) bool { return slices.Equal(a.lines, lines) })
		switch {
		case len(lines) == 0:
		case i >= 0:
			all[i].servers = append(all[i].servers, s.Address())
		default:
			all = append(all, &asks{[]string{s.Address()}, lines})
		}
	}
	if len(all) == 0 {
		return
	}
	x.title("Before the load")
	for _, a := range all {
		x.para("  ", strings.Join(a.servers, ", ")+": "+strings.Join(a.lines, " "))
	}
	x.para("  ", "The load generator: it reads 64 streams of the built-in server for 0.6s, to measure how fast this machine is. It does so once after each boot, while a server starts or after the load.")
}

func (x *expansion) asks(s *plan.Server) (lines []string) {
	var sent []*plan.Workload
	kinds := map[string]bool{} // kinds of requests whose prompt tokens are counted differently
	onlyIDs, warm := true, 0
	for _, c := range append(exec.Cases(x.p), exec.Searches(x.p)...) {
		if c.Server != s {
			continue
		}
		for _, w := range c.Workload.Sent() {
			if w.Prompt.Warm && c.Load != nil {
				warm += w.Prompt.Prefixes()
			}
			if slices.Contains(sent, w) {
				continue
			}
			sent = append(sent, w)
			if w.Prompt.Dataset == nil || w.Prompt.Task != "" && w.Input > 0 {
				fields, _ := w.Fields() // the decoder has already reported errors in these fields
				kinds[fmt.Sprintf("%s %s %v", w.API, w.Request.Model, fields)] = true
				onlyIDs = onlyIDs && w.API == plan.Completions
			}
		}
	}
	if len(sent) == 0 {
		return nil
	}
	ready := "one request for a token when it is ready."
	if n := exec.Starts(x.p, s); n > 1 {
		ready = fmt.Sprintf("at each of its starts, at most %d, one request for a token when it is ready.", n)
	}
	lines = append(lines, ready)
	if len(kinds) > 0 {
		lines = append(lines, learning(s, len(kinds), onlyIDs))
	}
	for _, w := range sent {
		if line := rowsAsked(w); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if warm > 0 {
		lines = append(lines, fmt.Sprintf("%s for a token, so that the cache has the shared prefixes.", verdict.Count(warm, "requests")))
	}
	return lines
}

func learning(s *plan.Server, kinds int, onlyIDs bool) string {
	d := engine.Of(s.Engine).Dialect
	if s.Simulator != nil {
		d = engine.Of("vllm").Dialect
	}
	asked, took, pieces := "6 requests for a token", "three", " If common words are several tokens, about 25 questions are needed; if some are five or more tokens, more are needed."
	switch {
	case d.Tokenizer == engine.AnyTokenizer:
		asked = "8 questions if it has a tokenizer, or 6 requests for a token,"
	case d.Tokenizer != engine.NoTokenizer && d.PromptIDs && onlyIDs:
		asked, took, pieces = "3 questions, 2 of them requests for a token,", "two", ""
	case d.Tokenizer != engine.NoTokenizer:
		asked, took = "8 questions, 2 of them requests for a token,", "two"
	}
	each := ""
	if kinds > 1 {
		each = fmt.Sprintf(" for each of %d kinds of request", kinds)
	}
	return fmt.Sprintf("Then %s to learn how it counts tokens%s. Together they take about as long as %s short requests. If tokgate knows the model from an earlier run, 2 requests are enough.%s", asked, each, took, pieces)
}

func rowsAsked(w *plan.Workload) string {
	switch set := w.Prompt.Dataset; {
	case set == nil && w.Prompt.System.Groups > 0:
		return fmt.Sprintf("Up to 4 requests for a token, to learn what the system prompt of %s adds.", w.Address())
	case set == nil:
		return ""
	case w.Prompt.Task != "" && w.Input > 0:
		return fmt.Sprintf("One question to the tokenizer for each of %s of %s.", verdict.Count(len(set.Rows), "items"), w.Prompt.Name)
	case w.Input > 0:
		return fmt.Sprintf("A few questions to the tokenizer for each of %s of %s.", verdict.Count(min(w.Rows(), len(set.Rows)), "rows"), w.Prompt.Name)
	}
	return fmt.Sprintf("One question to the tokenizer for each row of %s that may not fit the context, 256 at most.", w.Prompt.Name)
}
