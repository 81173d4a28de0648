// Package strength measures which regressions a gate would notice. It plants one regression at a
// time, and counts how often the gate then fails. It is mutation testing for gates.
//
// A regression is planted in one of two ways. Regression.Plant changes the profile of a simulated
// server, and the caller runs the plan again. Recording.Stretch changes a recorded run, and the
// caller judges it again. Measure counts the results.
package strength
