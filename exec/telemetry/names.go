package telemetry

import (
	"slices"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// Tells reports whether the metrics page of an engine may have a server metric, in any known
// version of the engine. For a plain OpenAI server it returns true, because its page is unknown.
func Tells(name, wanted string) bool {
	sources := map[string][]string{
		"accept_rate":   {"accept_rate", metric.AcceptedTokens},
		"accept_length": {"accept_length", metric.AcceptedTokens},
		"preemptions":   {metric.Preempted},
	}[wanted]
	if sources == nil {
		sources = []string{wanted}
	}
	series := engine.Of(name).Series
	return len(series) == 0 || slices.ContainsFunc(series, func(s engine.Series) bool { return slices.Contains(sources, s.Ours) })
}
