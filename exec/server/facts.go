package server

import (
	"maps"
	"strings"
	"sync"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/metric"
)

type logFacts struct {
	read func(line string, tell func(key, value string)) // of the engine

	mu    sync.Mutex
	found metric.Fingerprint
}

func (f *logFacts) line(line string) {
	f.read(line, func(key, value string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.found == nil {
			f.found = metric.Fingerprint{}
		}
		if key == "kv_cache_tokens" { // vLLM writes this number with commas
			value = strings.ReplaceAll(value, ",", "")
		}
		f.found[key] = value
	})
}

func (f *logFacts) phase() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.found[engine.Phase]
}

// add copies the facts from the log into a fingerprint. It leaves out facts with the value "None",
// which is how Python writes a missing value.
func (f *logFacts) add(to metric.Fingerprint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, value := range maps.All(f.found) {
		if value != "None" && key != engine.Phase {
			to[key] = value
		}
	}
}
