package server

import (
	"maps"
	"strings"
	"sync"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

// logFacts collects what an engine's log tells.
type logFacts struct {
	read func(line string, tell func(key, value string)) // of the engine

	mu    sync.Mutex
	found metric.Fingerprint
}

// line reads one line.
func (f *logFacts) line(line string) {
	f.read(line, func(key, value string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.found == nil {
			f.found = metric.Fingerprint{}
		}
		if key == "kv_cache_tokens" { // vLLM's has commas
			value = strings.ReplaceAll(value, ",", "")
		}
		f.found[key] = value
	})
}

// phase is what the server does while it starts, as far as its log tells; "".
func (f *logFacts) phase() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.found[engine.Phase]
}

// add puts what was found into a fingerprint; "None" is Python's way to say
// nothing.
func (f *logFacts) add(to metric.Fingerprint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, value := range maps.All(f.found) {
		if value != "None" && key != engine.Phase {
			to[key] = value
		}
	}
}
