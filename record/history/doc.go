// Package history keeps the results of a plan's nightly runs on disk. The folder has a file of JSON
// lines for each month, such as 2026-11.jsonl. Lines are only appended, so the folder can be in a
// git repository: .gitattributes makes a merge of two branches keep the lines of both. A night with
// two lines counts once.
//
// Several processes may add to a folder at the same time. Each writes a line in one write, under a
// lock on the file. A crash may cut the last line short. A reader ignores a cut line, and the next
// writer removes it. Both report the line.
package history
