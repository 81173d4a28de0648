// Package answers examines what a server answered: the form of every natural answer, and whether
// the answer to a task is right. It only takes texts and returns findings.
package answers
