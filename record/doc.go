// Package record keeps what was observed on disk: a run folder whose
// samples.jsonl grows by one line with each thing that happened, and reads it
// back, also when the process that wrote it was killed in between. It knows
// neither plans nor verdicts.
package record
