package plan

// Severity decides whether what is not met fails the gate.
type Severity string

const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
)
