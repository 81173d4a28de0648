// Package audit computes the figures of a run again from its recording, and compares them with the
// run's reports. It follows the definitions in docs/metrics.md, reads the files with its own types,
// and imports nothing of the project. So it does not repeat a mistake of the measurement or the
// judgement.
package audit
