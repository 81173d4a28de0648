// Package stat provides the exact tests and intervals behind the verdicts. It has binomial tails,
// Clopper–Pearson bounds, distribution-free bounds of a percentile, and Student's t. It also
// computes the effective number of observations of dependent data. Every function names its
// source.
//
// The package approximates only if an exact answer is expensive. If the data give no bound, the
// bound is infinite or ok is false.
//
// The package imports only the standard library and has no state.
package stat
