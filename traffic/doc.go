// Package traffic reads recorded traffic: data sets of prompts, and traces of
// requests. It returns rows that a plan checks and a run sends. It starts nothing,
// and all its random draws come from a seed.
package traffic
