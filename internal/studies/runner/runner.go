// Package runner reads the log and the files of a workflow step as the runner of GitHub Actions
// does. It shares no code with the package github, so tests see what GitHub would see. Each
// function names its counterpart in the source of the runner (actions/runner).
package runner

import (
	"fmt"
	"strings"
	"unicode"
)

// Command is a workflow command in a line of the log.
type Command struct {
	Name       string
	Properties map[string]string
	Data       string
}

// registered lists the commands that the runner knows
// (src/Runner.Worker/ActionCommandManager.cs).
var registered = map[string]bool{
	"internal-set-repo-path": true, "set-env": true, "set-output": true, "save-state": true, "add-path": true,
	"add-mask": true, "add-matcher": true, "remove-matcher": true, "debug": true, "warning": true, "error": true,
	"notice": true, "group": true, "endgroup": true, "echo": true, "stop-commands": true,
}

// Commands returns the runner's commands in a log, in order. The result text holds the lines that
// the runner shows as text. These include the lines between the command stop-commands and its token
// (src/Runner.Worker/ActionCommandManager.cs, TryProcessCommand).
func Commands(log string) (list []Command, text []string) {
	token := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(log, "\n"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		c, ok := parse(line, token)
		switch {
		case ok && token != "" && strings.EqualFold(c.Name, token):
			token = ""
		case ok && token == "" && strings.EqualFold(c.Name, "stop-commands"):
			token = c.Data
		case ok && token == "":
			list = append(list, c)
		default:
			text = append(text, line)
		}
	}
	return list, text
}

// parse reads one line of a log as the runner does (src/Runner.Common/ActionCommand.cs, TryParseV2
// and TryParse).
func parse(line, token string) (Command, bool) {
	known := func(name string) bool {
		return registered[strings.ToLower(name)] || token != "" && strings.EqualFold(name, token)
	}
	if rest, ok := strings.CutPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "::"); ok {
		if info, data, ok := strings.Cut(rest, "::"); ok {
			name, list, _ := strings.Cut(info, " ")
			if known(name) {
				return Command{name, properties(list, ",", unescapeProperty), unescapeData(data)}, true
			}
		}
	}
	if _, rest, ok := strings.Cut(line, "##["); ok {
		if info, data, ok := strings.Cut(rest, "]"); ok {
			name, list, _ := strings.Cut(info, " ")
			if known(name) {
				return Command{name, properties(list, ";", unescapeOld), unescapeOld(data)}, true
			}
		}
	}
	return Command{}, false
}

func properties(list, separator string, unescape func(string) string) map[string]string {
	out := map[string]string{}
	for property := range strings.SplitSeq(strings.TrimSpace(list), separator) {
		if name, value, ok := strings.Cut(property, "="); ok && name != "" && value != "" {
			out[name] = unescape(value)
		}
	}
	return out
}

// unescapeData decodes the escapes of a command's message in the runner's order: "%25" comes last.
func unescapeData(s string) string { return unescape(s, "%0D", "\r", "%0A", "\n", "%25", "%") }
func unescapeProperty(s string) string {
	return unescape(s, "%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%")
}
func unescapeOld(s string) string {
	return unescape(s, "%3B", ";", "%0D", "\r", "%0A", "\n", "%5D", "]", "%25", "%")
}

func unescape(s string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		s = strings.ReplaceAll(s, pairs[i], pairs[i+1])
	}
	return s
}

// Pairs reads a file of outputs or of environment variables. An entry is NAME=VALUE, or NAME<<END,
// the lines of the value, and END (src/Runner.Worker/FileCommandManager.cs, EnvFileKeyValuePairs).
// If a name has several values, the last one counts.
func Pairs(file string) (map[string]string, error) {
	out := map[string]string{}
	lines := strings.Split(file, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSuffix(lines[i], "\r")
		if line == "" {
			continue
		}
		equals, heredoc := strings.Index(line, "="), strings.Index(line, "<<")
		if equals >= 0 && (heredoc < 0 || equals < heredoc) {
			out[line[:equals]] = line[equals+1:]
			continue
		}
		if heredoc < 1 || heredoc+2 == len(line) {
			return nil, fmt.Errorf("invalid format %q", line)
		}
		name, end := line[:heredoc], line[heredoc+2:]
		var value []string
		for i++; ; i++ {
			if i == len(lines) {
				return nil, fmt.Errorf("invalid value: no %q ends that of %q", end, name)
			}
			if strings.TrimSuffix(lines[i], "\r") == end {
				break
			}
			value = append(value, lines[i])
		}
		out[name] = strings.Join(value, "\n")
	}
	return out, nil
}

// summaryBytes is the largest size of a step's summary, in bytes. The runner drops a larger summary
// as a whole (src/Runner.Worker/FileCommandManager.cs, AttachmentSizeLimit).
const summaryBytes = 1024 * 1024

// MostAnnotations is the largest number of errors of a step that GitHub shows, and also the largest
// number of warnings (src/Runner.Worker/ExecutionContext.cs, _maxCountPerIssueType).
const MostAnnotations = 10
