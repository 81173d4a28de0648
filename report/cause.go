package report

import "github.com/tokgate/tokgate/assert/verdict"

// The cause of an error, in the report's Document and as the type of an error in JUnit.
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
