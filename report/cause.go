package report

import "github.com/tokgate/tokgate/assert/verdict"

// The causes of an error, as the document and JUnit's error type name them.
const (
	CauseServer    = string(verdict.CauseServer)
	CauseGenerator = string(verdict.CauseGenerator)
	CauseInvalid   = string(verdict.CauseInvalid)
)

// cause returns the name of a cause. The cause of a check that was not run is "invalid".
func cause(c verdict.Cause) string {
	switch c {
	case verdict.CauseServer, verdict.CauseGenerator:
		return string(c)
	}
	return CauseInvalid
}
