// Package answers looks at what a server said: the form of every natural answer, and
// whether the answer of a task is right. It is pure: texts go in, findings come out.
package answers
