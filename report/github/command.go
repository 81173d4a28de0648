// Package github writes the result of a run for GitHub Actions: annotations at lines of the plan,
// foldable groups in the log, the job summary, and the outputs of a step. It uses only documents
// and diagnostics. Its callers handle the files and the environment.
//
// The limits are from the source of the runner (actions/runner):
//
//   - src/Runner.Common/ActionCommand.cs: which lines of the log are commands
//   - src/Runner.Worker/ExecutionContext.cs: how many annotations a step may have
//   - src/Runner.Worker/FileCommandManager.cs: how large a summary may be
package github

import "strings"

// property is one property of a workflow command.
type property struct{ name, value string }

// command writes one workflow command as a line of the log, without the line break. It leaves out
// properties without a value.
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

// Stop returns the line after which the runner ignores commands, until a Resume with the same
// token. The lines after Stop may contain text that tokgate did not write. The authors of that text
// must not be able to guess the token.
func Stop(token string) string { return command("stop-commands", nil, token) + "\n" }

// Resume ends a Stop.
func Resume(token string) string { return "::" + token + "::\n" }

// Folds returns a function that makes each phase of a run a foldable group in the log. Call that
// function with the title of a phase when the phase begins, and with "" after the last phase. It
// returns the lines to print. Groups do not nest.
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
