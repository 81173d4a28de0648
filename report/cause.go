package report

import "github.com/tokgate/tokgate/assert/verdict"

// The causes of an error, as JUnit's error type and the document name them.
const (
	CauseServer    = string(verdict.CauseServer)
	CauseGenerator = string(verdict.CauseGenerator)
	CauseInvalid   = string(verdict.CauseInvalid)
)

// cause is one of the three: what was not run is not what the plan asked for.
func cause(c verdict.Cause) string {
	switch c {
	case verdict.CauseServer, verdict.CauseGenerator:
		return string(c)
	}
	return CauseInvalid
}
