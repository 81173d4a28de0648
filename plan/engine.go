package plan

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Engine is how one engine is started: what a process or container without a
// command of its own runs, and what an engine of its kind needs besides.
type Engine struct {
	Name string
	// Program starts it as a process; in a container its first word is the
	// entrypoint, so that images with and without one are started alike. nil:
	// nothing is known, and a command is needed.
	Program []string
	// ModelFlag names the model; "": it is the next word.
	ModelFlag string
	// Models are the flags by which a plan says itself what is loaded.
	Models []string
	// Port is where it listens in a container unless the plan says otherwise.
	Port int
	// Metrics are flags without which it tells no metrics.
	Metrics []string
	// Env is set unless the plan sets it.
	Env map[string]string
	// Admission are the flags that bound how many requests it works on at a
	// time.
	Admission []string
	// SharedMemory is the /dev/shm of its container: a bound, not a
	// reservation. "": the runtime's own, which is too small for the workers
	// of one server to talk through.
	SharedMemory string
	// Health, Version, Tokenize and Reset are the paths that it answers
	// besides the OpenAI API; "": it has none.
	Health, Version, Tokenize, Reset string
}

// engines is the table. Sources: vLLM's `vllm serve --help`, its Dockerfile
// and docs/serving; SGLang's docs/advanced_features/server_arguments.md and
// docker/Dockerfile; llama.cpp's tools/server/README.md and .devops.
var engines = []Engine{
	{
		Name: "vllm", Program: []string{"vllm", "serve"}, Models: []string{"model"}, Port: 8000,
		// Without it there is no /reset_prefix_cache.
		Env:          map[string]string{"VLLM_SERVER_DEV_MODE": "1"},
		Admission:    []string{"max-num-seqs"},
		SharedMemory: "16g",
		Health:       "/health", Version: "/version", Tokenize: "/tokenize", Reset: "/reset_prefix_cache",
	},
	{
		Name: "sglang", Program: []string{"python3", "-m", "sglang.launch_server"}, ModelFlag: "--model-path",
		Models: []string{"model-path", "model"}, Port: 30000,
		Metrics: []string{"enable-metrics"}, Admission: []string{"max-running-requests"}, SharedMemory: "16g",
		Health: "/health", Version: "/server_info", Tokenize: "/tokenize", Reset: "/flush_cache",
	},
	{
		Name: "llama.cpp", Program: []string{"llama-server"}, ModelFlag: "--model",
		Models: []string{"model", "m", "model-url", "mu", "hf-repo", "hf", "hfr", "docker-repo", "dr"}, Port: 8080,
		Metrics: []string{"metrics"}, Admission: []string{"parallel", "np"},
		Health: "/health", Version: "/props", Tokenize: "/tokenize",
	},
	{Name: "openai", Port: 8000, Health: "/health"},
}

// EngineOf returns an engine of the language; any other name is that of a
// plain server.
func EngineOf(name string) Engine {
	for _, e := range engines {
		if e.Name == name {
			return e
		}
	}
	return engines[len(engines)-1]
}

// llamaInContainer is where the images of llama.cpp keep the program, which is
// not on their PATH.
const llamaInContainer = "/app/llama-server"

// Launch returns the words that start the server s, its flags and args
// included, told to listen on host and port; of a container the first may be
// its entrypoint, see Entrypoint. Where the plan has a command, that is what
// runs, with the port in place of {port}.
func (s *Server) Launch(host, port string) []string {
	var words []string
	if command, own := s.command(); own {
		words = append(words, command...)
	} else {
		words = append(words, s.program(host, port)...)
	}
	rest, _ := CommandLine(s.Engine, s.Flags, s.Args)
	words = append(words, rest...)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], PortPlaceholder, port)
	}
	return words
}

// Entrypoint is the program that replaces that of the container's image, ""
// when it stays: the plan's, or the engine's where the plan has no command.
// Launch does not hold it.
func (s *Server) Entrypoint() string {
	_, own := s.command()
	e := EngineOf(s.Engine)
	switch {
	case s.Container == nil:
		return ""
	case s.Container.Entrypoint != "" || own || len(e.Program) == 0:
		return s.Container.Entrypoint
	case e.Name == "llama.cpp":
		return llamaInContainer
	}
	return e.Program[0]
}

// command is the plan's own, if it has one.
func (s *Server) command() (words []string, own bool) {
	switch {
	case s.Process != nil:
		return s.Process.Command, len(s.Process.Command) > 0
	case s.Container != nil:
		return s.Container.Command, len(s.Container.Command) > 0
	}
	return nil, false
}

// program is the engine's launcher with model, address and the switch for its
// metrics, each unless a flag of the plan says it.
func (s *Server) program(host, port string) []string {
	e := EngineOf(s.Engine)
	if len(e.Program) == 0 {
		return nil
	}
	words := slices.Clone(e.Program)
	if s.Container != nil {
		words = words[1:]
	}
	if s.Model != "" && !s.HasFlag(e.Models...) {
		switch {
		case e.Name == "llama.cpp" && !strings.HasSuffix(s.Model, ".gguf"):
			words = append(words, "--hf-repo", s.Model)
		case e.ModelFlag == "":
			words = append(words, s.Model)
		default:
			words = append(words, e.ModelFlag, s.Model)
		}
	}
	if !s.HasFlag("host") {
		words = append(words, "--host", host)
	}
	if !s.HasFlag("port") {
		words = append(words, "--port", port)
	}
	for _, f := range e.Metrics {
		if !s.HasFlag(f) {
			words = append(words, "--"+f)
		}
	}
	return words
}

// hasFlag says whether the plan's flags or raw words set one of the names.
// Engines take - and _ alike.
func (s *Server) HasFlag(names ...string) bool {
	has := func(name string) bool {
		return slices.Contains(names, strings.ReplaceAll(name, "_", "-"))
	}
	if slices.ContainsFunc(s.Flags, func(f Flag) bool { return has(f.Name) }) {
		return true
	}
	return slices.ContainsFunc(s.Args, func(word string) bool {
		name, ok := strings.CutPrefix(word, "-")
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
		return ok && has(name)
	})
}

// AdmissionCap is the most requests that the server was told to work on at a
// time; 0: its own default.
func (s *Server) AdmissionCap() int {
	n, _ := s.FlagNumber(EngineOf(s.Engine).Admission...)
	return n
}

// FlagNumber is the value of the first of the named flags, if it is a whole
// number.
func (s *Server) FlagNumber(names ...string) (int, bool) {
	for _, f := range s.Flags {
		if slices.Contains(names, strings.ReplaceAll(f.Name, "_", "-")) {
			return f.number()
		}
	}
	return 0, false
}

func (f Flag) number() (int, bool) {
	if f.Value == cty.NilVal || !f.Value.IsKnown() || f.Value.IsNull() || f.Value.Type() != cty.Number {
		return 0, false
	}
	n, whole := WholeNumber(f.Value)
	return int(n), whole
}
