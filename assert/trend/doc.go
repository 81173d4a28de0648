// Package trend finds changes in a series of nights: one number a night, of
// one metric of one workload, measured under the same plan.
//
//   - Watch says whether tonight is still what the reference nights were: a
//     prediction interval for tonight, and for the mean of the last two and
//     three nights, so that a small shift is found a little later and a large
//     one at once;
//   - Divisive looks back and says where a series changed.
//
// The reference is the first nights after the start, or after a change that
// somebody accepted; it then stays as it is. A reference that rolled along would
// follow a server that gets a little slower every night and never say so.
//
// Series are given so that a change means the same everywhere: the logarithm of
// times, speeds and limits, so that 0.05 is five percent, and shares as they
// are.
package trend
