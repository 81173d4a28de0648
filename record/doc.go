// Package record stores observations on disk, in a run folder. Its file samples.jsonl gets one line
// for each event. The package also reads the file back, even if the process that wrote it was
// killed. It does not depend on plans or verdicts.
package record
