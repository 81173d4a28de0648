// Package audit computes the figures of a run again from its recording, and compares
// them with its reports. It shares no code with the measurement and the judgement: it
// is written from the definitions in docs/metrics.md, reads the files with its own
// types, and imports nothing of the project, as a test checks. So a mistake in one is
// not repeated in the other.
package audit
