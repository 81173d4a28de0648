package report

import "github.com/tokgate/tokgate/assert/verdict"

// These names of the causes of an error are in the document and in JUnit's error type.
const (
	CauseServer    = string(verdict.CauseServer)
	CauseGenerator = string(verdict.CauseGenerator)
	CauseInvalid   = string(verdict.CauseInvalid)
)

// cause returns the name of a cause, which is "invalid" for a check that was not run.
func cause(c verdict.Cause) string {
	switch c {
	case verdict.CauseServer, verdict.CauseGenerator:
		return string(c)
	}
	return CauseInvalid
}
