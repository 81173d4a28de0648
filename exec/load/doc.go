// Package load decides when requests are due, and how long their answers are. It consists of pure
// functions and one small state machine, which gets events and returns the next step. Nothing here
// sleeps, reads a clock or sends.
//
// A closed loop keeps a request in flight in each of N slots. One round of it has these phases:
//
//  1. The slots start one after another, Stagger apart, each with a warm-up request. Slots
//     that start together would also prefill together, which changes TTFT by half or more.
//  2. Once all slots are busy, each new request is a measured request, until the number of
//     requests due have started.
//  3. Then slots that become free send filler requests. So the last measured request meets
//     the same load as the first.
//  4. When the last measured request has ended, the fillers are cancelled. They are never
//     judged, and an engine stops a cancelled request within one step. To wait for their end
//     would cost each round the duration of one request.
//
// So every measured request sees N requests in flight from its start to its end. The next round has
// its own warm-up. A burst has no such phases: all its requests are due at the same time.
package load
