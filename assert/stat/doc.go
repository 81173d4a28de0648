// Package stat holds the exact tests and intervals on which verdicts rest:
// binomial tails and Clopper–Pearson bounds, distribution-free bounds of a
// percentile, Student's t, and the effective number of observations of
// dependent data. Every function names its source.
//
// It declines to approximate where an exact answer is cheap, and to answer
// where there is none: bounds that the data cannot give are infinite or
// ok == false, never a number made up.
//
// The package imports only the standard library and holds no state.
package stat
