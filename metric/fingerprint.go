package metric

import (
	"maps"
	"slices"
)

// Fingerprint maps facts about a measured server to their values, such as "version" to "0.19.1". A
// fact that the server does not report is missing. If the plan expects such a fact, its value is
// Unknown.
type Fingerprint map[string]string

// Unknown is the value of a key that the plan expects but the server does not report.
const Unknown = "unknown"

// Fact is one key of a Fingerprint.
type Fact struct {
	Key, Doc string
	// Varies means that the fact may differ between two starts of the same server.
	Varies bool
	// Follows lists the settings of a plan, such as "flags" and "image", that can change this fact.
	// If a comparison allows a difference in such a setting, the fact may differ too.
	Follows []string
	// Detail means that one-line summaries leave out this fact.
	Detail bool
}

// byStart and byModel list settings of a plan that can change most facts about a server.
var (
	byStart = []string{"engine", "model", "image", "command", "entrypoint", "flags", "args", "env"}
	byModel = []string{"model", "command", "flags", "args"}
)

// Facts lists the keys of a fingerprint, in the order in which reports show them.
var Facts = []Fact{
	{Key: "engine", Doc: "the engine, if the server's answers identify it"},
	{Key: "gateway", Doc: "the gateway before the server, if the headers of answers name it"},
	{Key: "replicas", Doc: "the number of servers behind the gateway, if the plan names them"},
	{Key: "version", Doc: "the engine's version", Follows: []string{"engine", "image", "command"}},
	{Key: "model", Doc: "the model that was loaded", Follows: byModel},
	{Key: "revision", Doc: "the revision of the model", Follows: byModel, Detail: true},
	{Key: "served_as", Doc: "the model id that requests name", Follows: byModel, Detail: true},
	{Key: "max_model_len", Doc: "the served context, in tokens", Follows: byStart},
	{Key: "architecture", Doc: "the model class that the engine chose", Follows: byStart, Detail: true},
	{Key: "quantization", Doc: "the quantization of the weights, in the engine's words", Follows: byStart, Detail: true},
	{Key: "flags", Doc: "the flags that the engine was started with", Follows: []string{"flags", "args"}, Detail: true},
	{Key: "admission_cap", Doc: "the most requests that the engine works on at a time", Follows: byStart, Detail: true},
	{Key: "cudagraph_mode", Doc: "how the engine uses CUDA graphs; NONE means that it uses none", Follows: byStart, Detail: true},
	{Key: "prefix_caching", Doc: "whether the engine reuses the KV cache of prompts that begin alike", Follows: byStart, Detail: true},
	{Key: "block_size", Doc: "tokens in one block of the KV cache", Follows: byStart, Detail: true},
	{Key: "gpu_layers", Doc: "number of layers on the GPU, out of all layers (llama.cpp)", Follows: byStart, Detail: true},
	{Key: "threads", Doc: "threads of the engine (llama.cpp)", Follows: byStart, Detail: true},
	{Key: "image", Doc: "the container's image as the plan names it"},
	{Key: "image_digest", Doc: "the digest of the container's image", Follows: []string{"image"}, Detail: true},
	{Key: "node", Doc: "the node of the pod", Varies: true},
	{Key: "template", Doc: "the pod's template, and what the plan replaced", Detail: true},
	{Key: "reached", Doc: "how requests reach the pod", Detail: true},
	{Key: "runtime", Doc: "the container runtime and its version", Detail: true},
	{Key: "profile", Doc: "the built-in server's profile"},
	{Key: "gpu", Doc: "number and names of the GPUs that the server may use, or none", Follows: []string{"gpus"}},
	{Key: "gpu_ids", Doc: "which of the machine's GPUs the server may use", Varies: true, Detail: true},
	{Key: "gpu_driver", Doc: "the GPUs' driver"},
	{Key: "cuda", Doc: "the newest CUDA version that the driver supports, or the ROCm version", Detail: true},
	{Key: "gpu_limits", Doc: "highest clocks and power limit of the GPUs", Follows: []string{"gpus"}, Detail: true},
	{Key: "gpu_modes", Doc: "persistence mode, MIG mode and ECC mode of the GPUs", Follows: []string{"gpus"}, Detail: true},
	{Key: "gpu_used_before", Doc: "GPU memory in use before the server started", Varies: true},
	{Key: "cpu", Doc: "number and name of the machine's logical processors", Detail: true},
	{Key: "memory", Doc: "memory of the machine", Detail: true},
	{Key: "kernel", Doc: "the operating system's kernel", Detail: true},
	{Key: "kv_cache_tokens", Doc: "tokens that the KV cache holds", Varies: true, Detail: true},
	{Key: "max_concurrency", Doc: "number of requests of full context length that fit into the KV cache", Varies: true, Detail: true},
	{Key: "weights_memory", Doc: "memory that the weights take", Varies: true, Detail: true},
	{Key: "weights_time", Doc: "time that loading the weights took", Varies: true, Detail: true},
	{Key: "listener", Doc: "who listens on the server's port, if that is not known to be the server that tokgate started", Varies: true},
	{Key: "leftover", Doc: "what a killed run may have left running, if this run does not know how to end it", Varies: true},
	{Key: "load_time", Doc: "time from the server's start to its first completion", Varies: true},
}

// Keys returns the keys of the fingerprint in the order of reports: first the keys in Facts, then
// all other keys by name.
func (f Fingerprint) Keys() []string {
	place := func(key string) int {
		i := slices.IndexFunc(Facts, func(f Fact) bool { return f.Key == key })
		if i < 0 {
			return len(Facts)
		}
		return i
	}
	keys := slices.Sorted(maps.Keys(f))
	slices.SortStableFunc(keys, func(a, b string) int { return place(a) - place(b) })
	return keys
}

// Differs reports whether two servers differ in one fact. The parameters a and b are their values
// under this key. The result is false if a value is unknown, or if the fact may vary between two
// starts of the same server.
func Differs(key, a, b string) bool {
	fact, _ := FactOf(key)
	return a != b && !fact.Varies && a != Unknown && b != Unknown
}

// FactOf returns the Fact about a key of a fingerprint; ok is false if the key is not known.
func FactOf(key string) (fact Fact, ok bool) {
	i := slices.IndexFunc(Facts, func(f Fact) bool { return f.Key == key })
	if i < 0 {
		return Fact{}, false
	}
	return Facts[i], true
}
