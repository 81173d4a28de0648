// Package sim is the built-in server, for trying plans, teaching and testing without a GPU. It has
// three separate layers:
//
//  1. an Engine, the model of a continuous-batching inference engine: jobs
//     go in, emissions come out, without a clock or a goroutine, so that the model
//     runs in real time and as discrete events;
//  2. a Profile, the numbers that make the engine behave like one machine
//     and one model, in a JSON file;
//  3. a Server, an OpenAI-compatible HTTP server over an engine in real time,
//     with vLLM's wire format and metric names, and scripted faults for
//     everything that servers and networks do wrong.
//
// It models time and counts, not language: the answers are words drawn from a seed, and the
// tokenizer is a toy whose counts are exact. At temperature 0 every server of a model gives the
// same answers. Each token of any text has a likelihood (prompt_logprobs), so that a server can
// score another server's answers.
package sim
