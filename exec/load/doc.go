// Package load decides when requests are due and how long their answers are. It
// consists of pure functions and one small state machine, which is told what happened
// and asked what comes next. Nothing here sleeps, reads a clock or sends.
//
// One round of a closed loop of N slots runs like this:
//
//  1. the slots start one after another, Stagger apart, each with a warm-up
//     request, so that they do not run in phase: slots in lock-step prefill
//     together and decode together, which moves TTFT by half and more while
//     throughput stays what it is;
//  2. from the moment at which all slots are busy, every request that a slot
//     starts is a measured one, until as many as are due have started;
//  3. slots that become free go on with filler requests, so that the last
//     measured request meets the same load as the first;
//  4. when the last measured request has ended the fillers are cancelled.
//     They are never judged, and engines abort a request whose client left
//     within a step; the next round warms up again in any case. Letting them
//     drain would cost one request's duration a round and buy nothing.
//
// So every measured request sees N in flight from its start to its end. A
// burst has no such phases: all its requests are due at one instant, and the
// burst is the round.
package load
