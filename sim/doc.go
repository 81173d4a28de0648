// Package sim is a built-in LLM server for trying plans, teaching and testing without a GPU. It has
// three layers:
//
//  1. An Engine models a continuous-batching inference engine. Jobs go in and emissions come out.
//     It has no clock and no goroutine, so it runs in real time or in virtual time.
//  2. A Profile is a JSON file with numbers that make the engine behave like one machine and one
//     model.
//  3. A Server is an OpenAI-compatible HTTP server over an engine, in real time. It has vLLM's wire
//     format and metric names. It can also imitate the faults of servers and networks.
//
// The engine models times and counts, not language. Answers are random words from a seed. The
// tokenizer is simple, but its counts are exact. At temperature 0 every server of a model gives the
// same answers. Each token of a text has a likelihood (prompt_logprobs), so a server can score the
// answers of another server.
package sim
