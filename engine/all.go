package engine

import (
	"slices"
	"strings"
)

// All lists the engines in the order of the documentation; the plain engine is the last. To
// recognise a running server, tokgate tries their version pages from the last engine to the first.
// So if two engines have the same version page, the one with a Guess.Owner must come after the
// other.
var All = []Engine{vllm, sglang, llamaCpp, trtllm, dynamo, openai}

// Of returns the engine with the given name, as a plan writes it. For an unknown name it returns a
// plain server.
func Of(name string) Engine {
	i := slices.IndexFunc(All, func(e Engine) bool { return e.Name == name })
	if i < 0 {
		i = len(All) - 1
	}
	return All[i]
}

// Names lists the names of engines as a plan writes them. It includes the engines for which the
// function keep returns true, or all if keep is nil.
func Names(keep func(Engine) bool) []string {
	var names []string
	for _, e := range All {
		if keep == nil || keep(e) {
			names = append(names, e.Name)
		}
	}
	return names
}

// Guessed returns the name of the engine that the name of an image or a command suggests. It
// returns "" if the name suggests no engine.
func Guessed(name string) string {
	name = strings.ToLower(name)
	for _, e := range All {
		if slices.ContainsFunc(e.Guess.Words, func(w string) bool { return strings.Contains(name, w) }) {
			return e.Name
		}
	}
	return ""
}

// ScoreForms lists the requests that may return the log-probabilities of a text. A known engine has
// one at most: its own. If the engine is not known, the list has the requests of all engines, and
// the caller tries them in turn.
func (e Engine) ScoreForms() []Scores {
	var out []Scores
	for _, other := range All {
		if other.Scores.Path != "" && (other.Name == e.Name || !e.Known()) {
			out = append(out, other.Scores)
		}
	}
	return out
}
