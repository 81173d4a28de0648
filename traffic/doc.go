// Package traffic reads recorded traffic: data sets of prompts, and traces of requests. It returns
// their rows, and sends nothing.
package traffic
