package server

import (
	"testing"
	"time"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/server/lease"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// While a server starts, its state shows the phase, the duration of the last start, and the last
// line of the log.
func TestStarting(t *testing.T) {
	l := &Launcher{Options: Options{State: lease.Folder(t.TempDir())}}
	s := &plan.Server{Engine: "vllm", Model: "tiny", Process: &plan.Process{}}
	key := startKey(s)
	other := *s
	other.Model = "large"
	if startKey(&other) == key || l.took(key) != 0 {
		t.Error("two models are one start, or one is known that never was")
	}
	l.State.Remember(lease.Starts, key, 72400*time.Millisecond)
	facts := &logFacts{read: engine.Of("vllm").Facts}
	said := ""
	say := l.starting(func(words string) { said = words }, facts, l.took(key))
	for _, tt := range []struct{ line, want string }{
		{"INFO 11-22 07:24:50 [__init__.py:248] No platform detected", "waiting (the last start took 1m12s)"},
		{"INFO 11-22 07:24:50 [cpu_model_runner.py:60] Starting to load model /models/tiny...", "loading the weights (the last start took 1m12s): waiting"},
		{"(EngineCore pid=1) INFO 11-22 07:25:01 [kv_cache_utils.py:2327] CPU KV cache size: 2,097,152 tokens", "making the KV cache (the last start took 1m12s): waiting"},
	} {
		facts.line(tt.line)
		if say("waiting"); said != tt.want {
			t.Errorf("after %q it says %q, want %q", tt.line, said, tt.want)
		}
	}
	found := metric.Fingerprint{}
	if facts.add(found); found["phase"] != "" || found["kv_cache_tokens"] != "2097152" {
		t.Errorf("found %v", found)
	}
	// If the last start was short, its duration is not mentioned.
	l.starting(func(words string) { said = words }, &logFacts{}, time.Second)("waiting")
	if said != "waiting" {
		t.Errorf("it says %q", said)
	}
}
