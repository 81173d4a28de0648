// Package history keeps the nights of a control plan on disk: a folder with a file of JSON lines
// for each month, 2026-11.jsonl, to which lines are only ever added. The folder suits a git
// repository: if two branches added nights, a merge keeps the lines of both (.gitattributes says
// so). A night with two lines counts once.
//
// Several processes may add to a folder at once: a line is added in one write under a lock on its
// file. If a crash cut the last line short, the next writer removes it and every reader leaves it
// out, and both report this.
package history
