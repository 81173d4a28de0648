// Package answers examines what a server answered: the form of every natural answer,
// and whether the answer to a task is right. It is pure: texts go in, findings come
// out.
package answers
