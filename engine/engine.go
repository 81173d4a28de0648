// Package engine describes each inference engine: how it is started, its pages, what its requests
// may contain beyond the OpenAI API, the names of its metrics, and the meaning of its log. An
// engine is one file with one value, and one element of All. The program, the documentation and the
// built-in server read that value. No other code names an engine.
package engine

import (
	"regexp"
	"strings"
)

// Phase is the key of a LogFact that says what a server does while it starts. It is no fact about a
// running server.
const Phase = "phase"

// Engine describes one inference engine. A request to the zero Engine has only fields of the OpenAI
// API.
type Engine struct {
	// Name is the engine's name in a plan. Title is the name as the engine's makers write it.
	Name, Title string
	// Sources lists the files and pages from which the facts about this engine were taken.
	Sources string
	Launch  Launch
	Flags   Flags
	Pages   Pages
	Dialect Dialect
	// Series lists the series that are read from the engine's metrics page. If several series map
	// to the same tokgate name, the first series on the page counts.
	Series []Series
	// KVCached means that the page's usage of the KV cache counts blocks that only hold earlier
	// prompts, so it does not return after a load.
	KVCached bool
	// Log describes the lines of the engine's log that state facts about the server. If several
	// lines state the same fact, the last line counts.
	Log []LogFact
	// Died lists words in the engine's log which say that the engine's own process has ended. The
	// process that serves HTTP may still run.
	Died []string
	// Labels describes the facts that the engine reports as labels on its metrics page.
	Labels []LabelFact
	Guess  Guess
	Scores Scores
	Hints  Hints
	// Without explains why a field is empty. The key is the name of the field, such as
	// "Pages.Reset". The name of a struct stands for all fields of the struct.
	Without map[string]string
}

// Launch says how tokgate starts a process or a container if the plan sets no command.
type Launch struct {
	// Program holds the first words of the command line. It is nil if a plan must set the command.
	Program []string
	// Entrypoint is the program that the container starts instead of the image's entrypoint. ""
	// means the first word of Program.
	Entrypoint string
	// Model is the flag that names the model. It is "" if the model is a word of its own on the
	// command line, without a flag.
	Model string
	// Hub and File are for engines with two flags for the model. A model whose name ends in File,
	// such as ".gguf", gets the flag Model. Any other model gets the flag Hub, written with dashes.
	// If Hub is "", every model gets the flag Model.
	Hub, File string
	// Metrics lists the flags that turn on the metrics page of the engine.
	Metrics []string
	// Env holds environment variables of the engine. A value in the plan replaces the value here.
	Env map[string]string
	// Port is the port on which the engine listens inside a container, if the plan sets none.
	Port int
	// SharedMemory is the size limit of /dev/shm in the container; no memory is reserved. "" keeps
	// the default of the container runtime. That default is too small if the workers of one server
	// communicate through /dev/shm.
	SharedMemory string
}

// Flags holds the meaning of the engine's own flags, written without dashes.
type Flags struct {
	// Models lists flags that name the model to load. A plan may use them instead of its attribute
	// model.
	Models []string
	// Admission lists flags that limit how many requests the engine works on at a time.
	Admission []string
	// Context lists flags that limit the tokens of one request: prompt and answer together.
	Context []string
	// Slots lists flags for the number of slots. The engine divides the context limit evenly among
	// the slots, unless a flag of Unified is on.
	Slots, Unified []string
	// Drafts lists flags that turn on speculative decoding.
	Drafts []string
	// Negated lists flags that also have a --no- form. "*" stands for all flags that switch
	// something on or off.
	Negated []string
	// Equals means that a value which starts with a dash is written as part of the flag: --x=-v.
	// The engine would take a separate -v for another flag.
	Equals bool
}

// Pages holds paths of the engine's pages, below the server's root. A path is "" if the engine has
// no such page.
type Pages struct {
	// Health is the path of a page that answers with a status 2xx once the server is up.
	Health string
	// Version lists pages that may report the engine's version. They are tried in turn. Such a page
	// returns a JSON object, in which the member VersionKey is the version.
	Version    []string
	VersionKey string
	// Tokenize is the path of the page that turns text into token ids. The engine's field Dialect
	// sets the form of the request. Template is the path of the page that turns chat messages into
	// such a text.
	Tokenize, Template string
	// Reset is the path of the page that clears the prefix cache, by POST.
	Reset string
	// Metrics is the path of the metrics page, which is in the text format of Prometheus.
	Metrics string
}

// Guess says how tokgate recognises the engine.
type Guess struct {
	// Words lists words that occur in names of the engine's images and commands.
	Words []string
	// Owner is the value of owned_by in the engine's list of models. If it is set, a server with
	// the engine's version page counts as this engine only if its owned_by has this value.
	Owner string
}

// Scores is how an engine reports the log-probabilities of a given text. The request has a prompt
// of token ids, and asks for one token. The answer has the log-probabilities of all prompt tokens
// except the first.
type Scores struct {
	// Path is the path to which the request is posted, below the server's root.
	Path string
	// Fields are the members of the body besides the prompt. They request the log-probabilities.
	// They also bypass the prefix cache, because a cached prefix may have no log-probabilities. A
	// member cache_salt gets a new value in each request.
	Fields map[string]any
	// Prompt is the name of the body's member that holds the prompt's token ids. Values is the path
	// to the log-probabilities in the answer, from the root of the answer.
	Prompt, Values string
}

// Hints holds advice for operators. A sentence begins in lower case and has no full stop.
type Hints struct {
	// NoPage suggests what to do if the engine shows no metrics page. NoSeries says why some
	// metrics may be missing on the page.
	NoPage, NoSeries string
}

// LogFact finds one fact about the server in a line of its log.
type LogFact struct {
	Key string // key of the fact in the fingerprint; see metric.Facts
	Has string // text that every line with the fact contains; searched first, because that is fast
	// Value is an expression whose first group captures the value of the fact. If Value is nil,
	// every line that contains Has means that the value is Is.
	Value *regexp.Regexp
	Is    string
}

// LabelFact finds one fact about the server in a label on its metrics page. This also works for a
// server that tokgate did not start.
type LabelFact struct {
	Series, Label string
	Key           string // key of the fact in the fingerprint; see metric.Facts
}

// Plain is the name of an engine of which only the OpenAI API is known.
const Plain = "openai"

// Starts reports whether tokgate can start the engine itself, without a command in the plan.
func (e Engine) Starts() bool { return len(e.Launch.Program) > 0 }

// Known reports whether e is a real engine, such as vLLM. A server of an unknown engine is known
// only to have the OpenAI API.
func (e Engine) Known() bool { return e.Name != Plain && e.Name != "" }

// Facts looks for facts in a line of the engine's log. For each fact it calls the function found,
// with the fact's key in the fingerprint.
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
