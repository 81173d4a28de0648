package report

import "github.com/tokgate/tokgate/assert/verdict"

// The causes of an error, as in JUnit's error type and in the document.
const (
	CauseServer    = string(verdict.CauseServer)
	CauseGenerator = string(verdict.CauseGenerator)
	CauseInvalid   = string(verdict.CauseInvalid)
)

// cause returns one of the three causes: something that was not run counts as
// invalid.
func cause(c verdict.Cause) string {
	switch c {
	case verdict.CauseServer, verdict.CauseGenerator:
		return string(c)
	}
	return CauseInvalid
}
