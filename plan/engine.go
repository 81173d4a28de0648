package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/tokgate/tokgate/engine"
)

// Launch returns the command line that starts the server on the given host and port. It contains
// the server's flags and args. A command in the plan replaces that of the engine; {port} in it
// becomes the port. For a container the first word may be the entrypoint; see Entrypoint.
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

// Entrypoint returns the program that replaces the entrypoint of the container's image; "" if
// nothing does. The plan's own entrypoint comes first. If the plan has no entrypoint and no
// command, it is that of the engine. Launch does not repeat the entrypoint.
func (s *Server) Entrypoint() string {
	_, own := s.command()
	launch := engine.Of(s.Engine).Launch
	entry, image := s.entrypoint()
	switch {
	case !image:
		return ""
	case entry != "" || own || len(launch.Program) == 0:
		return entry
	}
	return cmp.Or(launch.Entrypoint, launch.Program[0])
}

// entrypoint returns the entrypoint that the plan sets, and whether the server runs from an image.
func (s *Server) entrypoint() (entry string, image bool) {
	switch {
	case s.Container != nil:
		return s.Container.Entrypoint, true
	case s.Pod != nil:
		return s.Pod.Entrypoint, true
	}
	return "", false
}

func (s *Server) command() (words []string, own bool) {
	switch {
	case s.Process != nil:
		return s.Process.Command, len(s.Process.Command) > 0
	case s.Container != nil:
		return s.Container.Command, len(s.Container.Command) > 0
	case s.Pod != nil:
		return s.Pod.Command, len(s.Pod.Command) > 0
	}
	return nil, false
}

// A flag of the plan replaces the argument with the same meaning.
func (s *Server) program(host, port string) []string {
	e := engine.Of(s.Engine)
	if len(e.Launch.Program) == 0 {
		return nil
	}
	words := slices.Clone(e.Launch.Program)
	if _, image := s.entrypoint(); image {
		words = words[1:]
	}
	if s.Model != "" && !s.HasFlag(e.Flags.Models...) {
		flag := e.Launch.Model
		if !strings.HasSuffix(s.Model, e.Launch.File) {
			flag = e.Launch.Hub
		}
		if flag != "" {
			words = append(words, flag)
		}
		words = append(words, s.Model)
	}
	if !s.HasFlag("host") {
		words = append(words, "--host", host)
	}
	if !s.HasFlag("port") {
		words = append(words, "--port", port)
	}
	for _, f := range e.Launch.Metrics {
		if !s.HasFlag(f) {
			words = append(words, "--"+f)
		}
	}
	return words
}

// HasFlag reports whether the plan's flags or args contain one of the names.
func (s *Server) HasFlag(names ...string) bool {
	if _, ok := s.FirstFlag(names); ok {
		return true
	}
	return slices.ContainsFunc(s.Args, func(word string) bool {
		name, ok := strings.CutPrefix(word, "-")
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
		return ok && sameFlag(name, names)
	})
}

// FirstFlag returns the first flag of the plan with one of the given names.
func (s *Server) FirstFlag(names []string) (Flag, bool) {
	for _, f := range s.Flags {
		if sameFlag(f.Name, names) {
			return f, true
		}
	}
	return Flag{}, false
}

// sameFlag reports whether name is one of names. - and _ count as equal, because most engines
// accept both.
func sameFlag(name string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return strings.ReplaceAll(n, "_", "-") == strings.ReplaceAll(name, "_", "-")
	})
}

// Drafts returns the flag of the command line that turns on speculative decoding, such as
// "--speculative-config"; "" if there is none.
func (s *Server) Drafts() string {
	command, _ := s.command()
	rest, _ := CommandLine(s.Engine, s.Flags, s.Args)
	words := slices.Concat(command, rest)
	for i, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if i+1 < len(words) && value == "" {
			value = words[i+1]
		}
		if bare := strings.TrimLeft(name, "-"); bare != name && value != "none" && sameFlag(bare, engine.Of(s.Engine).Flags.Drafts) {
			return name
		}
	}
	return ""
}

// AdmissionCap returns the largest number of requests that the plan lets the server work on at a
// time; 0 if the plan sets none.
func (s *Server) AdmissionCap() int {
	n, _ := s.FlagNumber(engine.Of(s.Engine).Flags.Admission...)
	return n
}

// FlagNumber returns the whole number that the first flag with one of the given names has. The
// second result is false if there is no such flag or number.
func (s *Server) FlagNumber(names ...string) (int, bool) {
	f, _ := s.FirstFlag(names)
	return f.number()
}

// SwitchedOn reports whether one of the named flags is true.
func (s *Server) SwitchedOn(names []string) bool {
	return slices.ContainsFunc(s.Flags, func(f Flag) bool {
		v := f.Value
		return sameFlag(f.Name, names) && v.Type() == cty.Bool && v.IsKnown() && !v.IsNull() && v.True()
	})
}

func (f Flag) number() (int, bool) {
	if f.Value == cty.NilVal || !f.Value.IsKnown() || f.Value.IsNull() || f.Value.Type() != cty.Number {
		return 0, false
	}
	n, whole := WholeNumber(f.Value)
	return int(n), whole
}

// FixedPort returns the port on this machine that the plan sets for a process or
// container; 0 if it sets none.
func (s *Server) FixedPort() int {
	switch {
	case s.Pod != nil:
		return 0
	case s.Process != nil && s.Process.Port != 0:
		return s.Process.Port
	case s.Container != nil && (s.Container.Port != 0 || s.Container.Network != "host"):
		return s.Container.Port
	}
	n, _ := s.FlagNumber("port")
	return n
}
