// Package history keeps the nights of a control plan on disk. The folder has a file of JSON lines
// for each month, such as 2026-11.jsonl. Lines are only ever added. So the folder suits a git
// repository: if two branches added nights, a merge keeps the lines of both branches
// (.gitattributes says so). A night with two lines counts once.
//
// Several processes may add to a folder at once: a line is added in one write under a lock on its
// file. A crash may cut the last line short. Every reader leaves such a line out, and the next
// writer removes it. Both report the line.
package history
