// Package record stores observations in a run folder on disk. The file samples.jsonl gets one line
// for each event. The package reads this file back, even if the process that wrote it was killed.
// It does not depend on plans or verdicts.
package record
