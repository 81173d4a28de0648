// Package strength asks what a gate would notice: it plants one regression at a
// time in the server that a plan gates, has the plan judged, and counts how often
// the gate fails. It is mutation testing for gates.
//
// A regression is planted in a simulator's profile (Regression.Plant), and the
// plan is run anew, or in a recorded run (Regression.Stretch), which is judged
// anew. Measure counts; who runs and judges is the caller's.
package strength
