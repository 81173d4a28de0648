// Package traffic reads what production sends: data sets of prompts, and traces of
// requests, as rows that a plan checks and a run sends. It starts nothing and draws
// nothing at random but by a seed.
package traffic
