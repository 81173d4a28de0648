// Package strength measures what a gate would notice. It plants one regression at a
// time in the server that a plan gates, has the plan judged, and counts how often the
// gate fails. It is mutation testing for gates.
//
// A regression is planted in a simulator's profile (Regression.Plant), and the plan
// is run again. Or it is planted in a recorded run (Regression.Stretch), which is
// judged again. Measure counts the results; the caller runs and judges.
package strength
