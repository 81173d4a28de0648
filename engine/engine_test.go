package engine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// Every field of every engine has a value, or Without explains why it is empty. Only a boolean
// field may be false without an explanation.
func TestEverythingIsKnown(t *testing.T) {
	for _, e := range All {
		reasons := map[string]bool{}
		var look func(name string, v reflect.Value)
		look = func(name string, v reflect.Value) {
			_, excused := e.Without[name]
			reasons[name] = excused
			switch {
			case excused && name != "Launch" && name != "Flags" && !v.IsZero():
				t.Errorf("%s: %s is there, and Without says why it is not", e.Name, name)
			case v.Kind() == reflect.Struct && (!excused || !v.IsZero()):
				for i := range v.NumField() {
					if f := v.Type().Field(i); f.Name != "Without" {
						look(strings.TrimPrefix(name+"."+f.Name, "."), v.Field(i))
					}
				}
			case v.IsZero() && v.Kind() != reflect.Bool && !excused && e.Without[strings.Split(name, ".")[0]] == "":
				t.Errorf("%s: %s is empty, and Without does not say why", e.Name, name)
			}
		}
		look("", reflect.ValueOf(e))
		for name, why := range e.Without {
			must.Hold(t, reasons[name] && why != "", "%s: Without has %q: %q", e.Name, name, why)
		}
	}
}

// The engines use names of facts, metrics and counters that package metric knows.
func TestNames(t *testing.T) {
	got := Names(nil)
	must.Hold(t, len(got) == len(All) && got[len(got)-1] == Plain && len(slices.Compact(slices.Sorted(slices.Values(got)))) == len(All), "names %v", got)
	for _, e := range All {
		must.Hold(t, Of(e.Name).Name == e.Name, "%s is not found", e.Name)
		for _, f := range e.Log {
			_, ok := metric.FactOf(f.Key)
			must.Hold(t, ok || f.Key == Phase, "%s: the log tells %q, which is no fact", e.Name, f.Key)
			if f.Value != nil && (f.Value.NumSubexp() != 1 || f.Is != "") || f.Value == nil && f.Is == "" {
				t.Errorf("%s: the fact %q has not one value", e.Name, f.Key)
			}
		}
		pages := append([]string{e.Pages.Health, e.Pages.Tokenize, e.Pages.Template, e.Pages.Reset, e.Pages.Metrics, e.Scores.Path}, e.Pages.Version...)
		for _, path := range pages {
			must.Hold(t, path == "" || path[0] == '/', "%s: %q is no path", e.Name, path)
		}
	}
	must.Hold(t, Of("another").Name == Plain && !Of("another").Known() && !(Engine{}).Known() && Of("vllm").Known(), "another engine is known")
}

func TestGuessed(t *testing.T) {
	for name, want := range map[string]string{
		"vllm/vllm-openai:v0.19.1": "vllm", "lmsysorg/sglang:v0.5.4": "sglang", "ghcr.io/ggml-org/llama.cpp:server": "llama.cpp",
		"/usr/bin/llama-server -m x": "llama.cpp", "nvcr.io/nvidia/tensorrt-llm/release:1.1.0": "trtllm", "python3 serve.py": "",
	} {
		must.Same(t, fmt.Sprintf("%q", name), want, Guessed(name))
	}
}

// This example shows facts about TensorRT-LLM's server.
func ExampleOf() {
	e := Of("trtllm")
	fmt.Println(strings.Join(e.Launch.Program, " "), "listens on", e.Launch.Port)
	fmt.Println("metrics at", e.Pages.Metrics)
	fmt.Println("no page empties its caches:", e.Without["Pages.Reset"])
	// Output:
	// trtllm-serve listens on 8000
	// metrics at /prometheus/metrics
	// no page empties its caches: it has none
}
