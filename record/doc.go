// Package record stores observations on disk, in a run folder whose samples.jsonl gets one line for
// each event. It also reads them back, even if the process that wrote them was killed. It does not
// depend on plans or verdicts.
package record
