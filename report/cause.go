package report

import (
	"strings"

	"github.com/tokgate/tokgate/assert"
)

// The causes of an error, as JUnit's error type and the document name them.
const (
	CauseServer    = "server"    // it did not start, died, or completed nothing
	CauseGenerator = "generator" // this side was too slow to measure
	CauseInvalid   = "invalid"   // what was measured is not what the plan asked for
)

// cause sorts an error by who has to act on it.
func (b *builder) cause(v *assert.Verdict) string {
	if v.Kind == assert.KindServer {
		return CauseServer
	}
	for _, s := range b.run.Servers {
		if s.Address == v.Server && s.Error != "" {
			return CauseServer
		}
	}
	for _, l := range b.run.Levels {
		if l.Server != v.Server || l.Workload != v.Workload || l.Name != v.Level || v.Level == "" {
			continue
		}
		completed := false
		samples := l.MeasuredSamples()
		for _, s := range samples {
			completed = completed || s.Completed()
		}
		if len(samples) > 0 && !completed {
			return CauseServer
		}
	}
	if strings.HasPrefix(v.Message, CauseGenerator+":") {
		return CauseGenerator
	}
	return CauseInvalid
}
