// Package stat holds the exact tests and intervals on which verdicts rest:
// binomial tails and Clopper–Pearson bounds, distribution-free bounds of a
// percentile, Student's t, and the effective number of observations of
// dependent data. Every function names its source.
//
// It does not approximate if an exact answer is cheap. If the data give no bound, the
// bound is infinite or ok is false.
//
// The package imports only the standard library and holds no state.
package stat
