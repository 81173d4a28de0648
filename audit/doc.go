// Package audit derives the figures of a run anew from its recording and compares
// them with its reports. It shares no code with what measured and judged: it is written
// from the definitions in docs/metrics.md, reads the files by types of its own, and
// imports nothing of the project, which a test holds it to. A mistake in the one is
// then not a mistake in the other.
package audit
