package metric

import "slices"

// Fingerprint identifies what was measured: "version" → "0.19.1". A key that
// could not be observed is absent and printed as unknown; one that a plan
// expects and that could not be observed is Unknown.
type Fingerprint map[string]string

// Unknown is the value of what was asked for and could not be observed.
const Unknown = "unknown"

// Fact is one key of a Fingerprint.
type Fact struct {
	Key, Doc string
	// Varies: two starts of one and the same server need not agree in it, so
	// that a difference says nothing about what was measured.
	Varies bool
}

// Facts are the keys that exec knows, in the order in which they are shown.
var Facts = []Fact{
	{Key: "engine", Doc: "the engine, where the server answers as only it does"},
	{Key: "version", Doc: "the engine's version"},
	{Key: "model", Doc: "the model that was loaded"},
	{Key: "revision", Doc: "its revision"},
	{Key: "served_as", Doc: "the model id that is sent"},
	{Key: "max_model_len", Doc: "the served context, in tokens"},
	{Key: "architecture", Doc: "the model class that the engine chose"},
	{Key: "quantization", Doc: "of the weights, as the engine names it"},
	{Key: "flags", Doc: "the engine's flags as they were sent"},
	{Key: "admission_cap", Doc: "the most requests that it works on at a time"},
	{Key: "cudagraph_mode", Doc: "how CUDA graphs are used; NONE: not"},
	{Key: "gpu_layers", Doc: "layers on the GPU, of all (llama.cpp)"},
	{Key: "threads", Doc: "threads of the engine (llama.cpp)"},
	{Key: "image", Doc: "the container's image as the plan names it"},
	{Key: "image_digest", Doc: "the digest that ran"},
	{Key: "runtime", Doc: "the container runtime and its version"},
	{Key: "profile", Doc: "the built-in server's profile"},
	{Key: "gpu", Doc: "number and names of the GPUs that it may use; none"},
	{Key: "gpu_ids", Doc: "which of the machine's they are", Varies: true},
	{Key: "gpu_driver", Doc: "the GPUs' driver"},
	{Key: "cuda", Doc: "the newest CUDA that the driver runs, or the ROCm"},
	{Key: "gpu_limits", Doc: "the highest clocks and the power limit"},
	{Key: "gpu_used_before", Doc: "memory that something else kept on the GPUs at the start", Varies: true},
	{Key: "cpu", Doc: "logical processors, and their name"},
	{Key: "memory", Doc: "of the machine"},
	{Key: "kernel", Doc: "the operating system's kernel"},
	{Key: "kv_cache_tokens", Doc: "tokens that the KV cache holds", Varies: true},
	{Key: "max_concurrency", Doc: "requests of the longest context that it holds", Varies: true},
	{Key: "weights_memory", Doc: "memory that the weights take", Varies: true},
	{Key: "weights_time", Doc: "time that loading the weights took", Varies: true},
	{Key: "load_time", Doc: "time from the start to the first completion", Varies: true},
}

// FactOf returns the description of a key; ok is false for one that is not
// known.
func FactOf(key string) (fact Fact, ok bool) {
	i := slices.IndexFunc(Facts, func(f Fact) bool { return f.Key == key })
	if i < 0 {
		return Fact{}, false
	}
	return Facts[i], true
}
