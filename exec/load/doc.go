// Package load draws when requests are due and how long their answers are, and measures the time in
// which a load was whole. Package shape decides what is sent when.
package load
