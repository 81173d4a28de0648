// Package strength measures which regressions a gate would notice. It plants one regression at a
// time in the server that a plan tests, runs the plan, and counts how often the gate fails. It is
// mutation testing for gates.
//
// There are two ways. Regression.Plant changes the profile of a simulated server, and the plan is
// run again. Recording.Stretch changes a recorded run, which is judged again. Measure counts the
// results; its caller runs and judges.
package strength
