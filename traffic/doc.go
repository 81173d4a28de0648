// Package traffic reads recorded traffic: data sets of prompts, and traces of requests. It returns
// rows, which a plan checks and a run sends. It sends nothing. Everything random in it depends on a
// seed.
package traffic
