// Package fleet lets several processes, the workers, send the load of one run.
//
//   - The controller runs the plan as ever: levels, shapes, looks, search and judging. Only its
//     Transport differs: a Fleet hands each request to the worker that owns its slot, its user or its
//     arrival, by index modulo their number. So the requests of a run, and in virtual time its results, do not
//     depend on the number of workers.
//   - An order says what is known of a request: its sample before it is sent, its fields, and the recipe
//     of its prompt. The worker makes the prompt. Only a prompt that is no recipe travels: a row
//     of a data set, or a conversation.
//   - A request with a time of its own is ordered a lead ahead, and its worker sends it on that time. A
//     slot waits one round trip between its requests, which its busy share shows.
//   - What comes back is the line of the recording, as package record seals it: each checksum covers all
//     lines of that worker. The controller acknowledges a line when it is recorded.
//   - Both directions are numbered lines that are kept until they are acknowledged. A worker whose link
//     breaks dials again and both go on from what the other has. See mail.
//   - Each worker measures the offset of its clock to the controller's by round trips, and bounds its error
//     by half the shortest one and by drift. It converts all times; latencies never leave its clock.
//   - Before each window the workers meet at a barrier: a time at which all must report.
//   - Health is the worst of all workers. A worker that was silent stood still: what was measured meanwhile
//     is disturbed, and measured again if it can be. A worker that is lost ends the run, without a verdict.
//   - Workers dial in over HTTPS, with a token, to a certificate made for the run whose fingerprint they
//     know. Who places and starts them is not the business of this package.
package fleet
