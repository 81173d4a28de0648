// Package sim is the built-in server: something to try a plan on, to teach
// with and to test against, without a GPU. Three layers, apart from each
// other:
//
//  1. an Engine, the model of a continuous-batching inference engine: jobs
//     in, emissions out, no clock and no goroutine, so that the same model
//     runs in real time and as discrete events;
//  2. a Profile, the numbers that make the engine behave like one machine
//     and one model, in a JSON file;
//  3. a Server, an OpenAI-compatible HTTP server over an engine in real time,
//     with vLLM's wire format and metric names, and scripted faults for
//     everything that servers and networks do wrong.
//
// It models time and counts, not language: the answers are words drawn from a
// seed, and the tokenizer is a toy whose counts are exact. At temperature 0 they
// are the model's own, the same on every server of it, and each token of any text
// has a likelihood (prompt_logprobs), so that another server's answers can be read.
package sim
