// Package github says the result of a run in the ways that GitHub Actions
// reads: annotations at lines of the plan, foldable groups in the log, the job
// summary, and the outputs of a step. Everything here is made from documents
// and diagnostics alone; who calls it owns the files and the environment.
//
// The limits are those of the runner's source (actions/runner): where a line
// of the log is taken for a command (src/Runner.Common/ActionCommand.cs), how
// many annotations a step may have (src/Runner.Worker/ExecutionContext.cs), how
// large a summary may be (src/Runner.Worker/FileCommandManager.cs).
package github

import "strings"

// property is one property of a workflow command.
type property struct{ name, value string }

// command is one workflow command as a line of the log, without its end. A
// property without a value is left out.
func command(name string, properties []property, data string) string {
	var b strings.Builder
	b.WriteString("::" + name)
	lead := " "
	for _, p := range properties {
		if p.value != "" {
			b.WriteString(lead + p.name + "=" + escapeProperty.Replace(p.value))
			lead = ","
		}
	}
	return b.String() + "::" + escapeData.Replace(data)
}

var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// Stop is the line after which the runner takes no line for a command until it
// reads Resume of the same token. Around text that others wrote, the token must
// be one that they cannot guess.
func Stop(token string) string { return command("stop-commands", nil, token) + "\n" }

// Resume ends what Stop began.
func Resume(token string) string { return "::" + token + "::\n" }

// Folds gives the lines around the phases of a run, so that each is a group
// of the log that can be folded: called with the title of the phase that
// begins, and with "" when the last one ends. Groups do not nest.
func Folds() func(title string) string {
	open := false
	return func(title string) string {
		out := ""
		if open {
			out = "::endgroup::\n"
		}
		if open = title != ""; open {
			out += command("group", nil, title) + "\n"
		}
		return out
	}
}
