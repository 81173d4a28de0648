package report

import "github.com/tokgate/tokgate/assert/verdict"

// The causes of an error, as in JUnit's error type and in the document.
const (
	CauseServer    = string(verdict.CauseServer)
	CauseGenerator = string(verdict.CauseGenerator)
	CauseInvalid   = string(verdict.CauseInvalid)
)

// cause returns the name of a cause. A check that was not run has the cause "invalid".
func cause(c verdict.Cause) string {
	switch c {
	case verdict.CauseServer, verdict.CauseGenerator:
		return string(c)
	}
	return CauseInvalid
}
