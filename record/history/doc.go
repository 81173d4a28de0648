// Package history keeps the nights of a control plan on disk. The folder has a file of JSON lines
// for each month, such as 2026-11.jsonl. Lines are only added. So the folder can be in a git
// repository: a merge of two branches keeps the lines of both (.gitattributes says so). A night
// with two lines counts once.
//
// Several processes may add to a folder at the same time. Each writes a line in one write, under a
// lock on the file. A crash may cut the last line short. A reader ignores a cut line, and the next
// writer removes it. Both report the line.
package history
