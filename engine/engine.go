// Package engine is what tokgate knows of each inference engine: how it is
// started, which pages it answers, what its requests may hold beyond the OpenAI
// API, the names of its metrics, and what its log says. An engine is one file
// with one value and one row of All; the program, the documentation and the
// built-in server read that value, and nothing else of tokgate names an engine.
package engine

import (
	"regexp"
	"slices"
	"strings"
)

// Phase is the key of a LogFact that says what a server does while it starts. It is not a fact of a
// running server.
const Phase = "phase"

// Engine is everything known about one engine. Requests to the zero Engine hold
// no engine's own fields.
type Engine struct {
	// Name is the engine's name in a plan, Title its name as its makers write
	// it.
	Name, Title string
	// Sources are the files and pages that this value was read from.
	Sources string
	Launch  Launch
	Flags   Flags
	Pages   Pages
	Dialect Dialect
	// Series are the series that are read from the engine's page of metrics. If several map to the
	// same name of ours, the first one that the page has counts.
	Series []Series
	// Log are the lines of its log that say something of the server. A later
	// line of the log takes the place of an earlier one.
	Log []LogFact
	// Died are the words of its log that say that the engine's own process has
	// ended, although the process that speaks HTTP may still run.
	Died []string
	// Labels are the facts of the server that its page of metrics reports as labels.
	Labels []LabelFact
	Guess  Guess
	Scores Scores
	Hints  Hints
	// Without says why a field is empty, by its name, such as "Pages.Reset"; a
	// struct's name stands for all its fields.
	Without map[string]string
}

// Launch is how a process or container without a command of its own is
// started.
type Launch struct {
	// Program are the first words of the command line. nil: a plan needs a
	// command.
	Program []string
	// Entrypoint is the container's program; "": the first word of Program, so
	// that images with and without an entrypoint are started alike.
	Entrypoint string
	// Model is the flag that names the model; "": the model is a word without a
	// flag.
	Model string
	// Hub is the flag, with dashes, for a model whose name does not end in
	// File; "": Model names those too.
	Hub, File string
	// Metrics are the flags that the engine needs to serve its page of metrics.
	Metrics []string
	// Env is set unless the plan sets it.
	Env map[string]string
	// Port is where it listens in a container unless the plan says otherwise.
	Port int
	// SharedMemory is the /dev/shm of its container: a bound, not a
	// reservation. "": the runtime's own, which is too small where the workers
	// of one server talk through it.
	SharedMemory string
}

// Flags are what the engine's own flags, written without dashes, mean.
type Flags struct {
	// Models are the flags by which a plan itself names the model to load.
	Models []string
	// Admission bound how many requests it works on at a time.
	Admission []string
	// Context bound the tokens of one request, prompt and answer together.
	Context []string
	// Slots share that bound evenly, unless one of Unified is on.
	Slots, Unified []string
	// Drafts ask for speculative decoding.
	Drafts []string
	// Negated have a --no- form; "*": all that switch something on or off.
	Negated []string
	// Equals: a text that starts with a dash is written --x=-v, since the
	// engine would take the word -v for another flag.
	Equals bool
}

// Pages are paths below the server's root; "": the engine has no such page.
type Pages struct {
	// Health answers 2xx once the server serves.
	Health string
	// Version are the pages that may report the version, tried in turn; VersionKey is the member of
	// their JSON object that has it.
	Version    []string
	VersionKey string
	// Tokenize turns text into token ids; how it is asked is the dialect's
	// Tokenizer. Template turns messages into text first.
	Tokenize, Template string
	// Reset empties the prefix cache, by POST.
	Reset string
	// Metrics is the page in Prometheus's text format.
	Metrics string
}

// Guess is how the engine is recognised.
type Guess struct {
	// Words are found in the names of its images and commands.
	Words []string
	// Owner is the owned_by of its models, asked where another engine has the
	// same page for its version; "": whoever answers that page is taken for it.
	Owner string
}

// Scores is how the engine reports the log-probabilities of a given text: the request holds a
// prompt of token ids and asks for one token; the answer has the values of all prompt tokens but
// the first.
type Scores struct {
	// Path is the path of the POST request, below the server's root.
	Path string
	// Fields are the body's members beside the prompt: the request for the
	// values, and what keeps the prefix cache out, which may hold none: a cache_salt is
	// filled in, another one each time.
	Fields map[string]any
	// Prompt is the member that holds the prompt's token ids, Values where the
	// answer has the values, from its root.
	Prompt, Values string
}

// ScoreForms are the ways in which the engine may be asked for them: its own, and of a
// plain server those of all others first. None: it has none.
func (e Engine) ScoreForms() []Scores {
	var out []Scores
	for _, other := range All {
		if other.Scores.Path != "" && (other.Name == e.Name || !e.Known()) {
			out = append(out, other.Scores)
		}
	}
	return out
}

// Hints are sentences for operators, in lower case and without a full stop.
type Hints struct {
	// NoPage says what to do where there is no page of metrics, NoSeries what
	// may keep the series from it.
	NoPage, NoSeries string
}

// LogFact finds one fact of the server in a line of its log.
type LogFact struct {
	Key string // of the fingerprint: metric.Facts
	Has string // what every such line holds: looked for first, since logs are long
	// Value takes the fact, as its first group; nil: the line itself means Is.
	Value *regexp.Regexp
	Is    string
}

// LabelFact finds one fact of the server in a label of its page of metrics; this works for an
// endpoint too.
type LabelFact struct {
	Series, Label string
	Key           string // of the fingerprint: metric.Facts
}

// Plain is the name of an engine of which nothing is known but that it speaks
// the OpenAI API.
const Plain = "openai"

// All are the engines, in the order of the documentation, the plain one last.
// A server that runs is recognised from the last to the first, by the page that
// tells its version: an engine whose page others have too stands before these,
// and one that has no page of its own is told by its Guess.Owner.
var All = []Engine{vllm, sglang, llamaCpp, trtllm, openai}

// Of returns the engine of that name in a plan; any other is a plain server.
func Of(name string) Engine {
	i := slices.IndexFunc(All, func(e Engine) bool { return e.Name == name })
	if i < 0 {
		i = len(All) - 1
	}
	return All[i]
}

// Names lists the engines for which keep is true (all when nil), as plans name
// them.
func Names(keep func(Engine) bool) []string {
	var names []string
	for _, e := range All {
		if keep == nil || keep(e) {
			names = append(names, e.Name)
		}
	}
	return names
}

// Starts reports whether tokgate knows how to start the engine.
func (e Engine) Starts() bool { return len(e.Launch.Program) > 0 }

// Known reports whether more is known of the engine than that it speaks the
// OpenAI API.
func (e Engine) Known() bool { return e.Name != Plain && e.Name != "" }

// Guessed is the engine that the name of an image or a command speaks of; "":
// none.
func Guessed(name string) string {
	name = strings.ToLower(name)
	for _, e := range All {
		if slices.ContainsFunc(e.Guess.Words, func(w string) bool { return strings.Contains(name, w) }) {
			return e.Name
		}
	}
	return ""
}

// Facts calls found with each fact that a line of the engine's log holds, by key of the
// fingerprint.
func (e Engine) Facts(line string, found func(key, value string)) {
	for _, f := range e.Log {
		if !strings.Contains(line, f.Has) {
			continue
		}
		if f.Value == nil {
			found(f.Key, f.Is)
		} else if m := f.Value.FindStringSubmatch(line); m != nil {
			found(f.Key, m[1])
		}
	}
}
