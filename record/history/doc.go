// Package history keeps the nights of a control plan on disk: a folder with a
// file of JSON lines for each month, 2026-11.jsonl, to which lines are only ever
// added. It fits a git repository: nights that two branches added merge by
// keeping the lines of both (.gitattributes says so), and a night that is there
// twice counts once.
//
// Several processes may add to a folder at once: a line is added in one write
// under a lock on its file. A last line that a crash cut short is removed by the
// next writer and left out by every reader, and both say so.
package history
