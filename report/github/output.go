package github

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/text"
)

// Output is one output of a step.
type Output struct{ Name, Value string }

// Outputs returns the outputs of a command that ran or judged plans. If there are several plans,
// capacities or folders, an output has a line for each of them:
//
//	verdict        pass, fail, inconclusive, error, invalid or interrupted
//	exit-code      the exit code of the command
//	capacity       WORKLOAD=N; SERVER/WORKLOAD=N if a plan has several servers
//	capacity-kind  WORKLOAD=KIND or SERVER/WORKLOAD=KIND: exact, interpolated, at_least, …
//	results        the folders with the reports
//	junit          the JUnit files in these folders
//	recording      the SHA-256 sums of the recordings that were judged
//
// Paths are relative to the workspace, because later steps run there. A path outside the workspace
// is absolute.
func Outputs(docs []*report.Document, code int, at Workspace) []Output {
	var capacity, kind, results, junit, recording []string
	for _, d := range docs {
		for _, c := range d.Run.Capacities {
			name := c.Workload
			if len(d.Plan.Servers) > 1 || len(d.Run.Servers) > 1 {
				name = c.Server + "/" + name
			}
			capacity = append(capacity, name+"="+c.Amount(c.Pass))
			kind = append(kind, name+"="+string(c.Kind))
		}
		if d.Recording != "" {
			recording = append(recording, d.Recording)
		}
		if d.Folder != "" {
			results = append(results, at.path(d.Folder))
			junit = append(junit, at.path(filepath.Join(d.Folder, "junit.xml")))
		}
	}
	return []Output{
		{"verdict", Verdict(code)},
		{"exit-code", strconv.Itoa(code)},
		{"capacity", lines(capacity)},
		{"capacity-kind", lines(kind)},
		{"results", lines(results)},
		{"junit", lines(junit)},
		{"recording", lines(recording)},
	}
}

// Verdict returns the word that stands for an exit code in the outputs.
func Verdict(code int) string {
	switch code {
	case verdict.ExitPass:
		return "pass"
	case verdict.ExitFail:
		return "fail"
	case verdict.ExitPlan:
		return "invalid"
	case verdict.ExitInconclusive:
		return "inconclusive"
	case verdict.ExitInterrupted:
		return "interrupted"
	}
	return "error"
}

func lines(list []string) string {
	for i, s := range list {
		list[i] = text.Line(s)
	}
	return strings.Join(list, "\n")
}

// Encode writes outputs as lines for the file GITHUB_OUTPUT. token ends each value. The authors of
// the values must not be able to guess the token.
func Encode(outputs []Output, token string) (string, error) {
	var b strings.Builder
	for _, o := range outputs {
		if strings.Contains(o.Value, token) {
			return "", fmt.Errorf("the value of output %q contains the token that marks its end", o.Name)
		}
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", o.Name, token, o.Value, token)
	}
	return b.String(), nil
}
