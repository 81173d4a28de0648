// Package load decides when requests are due and how long their answers are. It consists of
// pure functions and one small state machine, which gets events and returns the next step.
// Nothing here sleeps, reads a clock or sends.
//
// One round of a closed loop of N slots has these phases:
//
//  1. The slots start one after another, Stagger apart, each with a warm-up request, so
//     that they do not run in phase. Slots in phase prefill together and decode together.
//     That changes TTFT by half and more, while throughput stays the same.
//  2. From the moment at which all slots are busy, every request that a slot starts is a
//     measured request, until the number of requests due have started.
//  3. Slots that become free go on with filler requests, so that the last measured request
//     meets the same load as the first.
//  4. When the last measured request has ended, the fillers are cancelled. Fillers are never
//     judged, and an engine stops a request within one step after its client has left. The
//     next round has its own warm-up. To wait for the fillers would cost each round the
//     duration of one request and gain nothing.
//
// So every measured request sees N requests in flight from its start to its end. A burst has
// no such phases: all its requests are due at one instant, and the burst is the round.
package load
