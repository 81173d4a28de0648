// Package metric is the vocabulary of tokgate: what one request looked like to
// the client (Sample), how samples are grouped (Round, Level, Run), which
// quantities are derived from them (Def), and which statistic of a quantity a
// plan may bound (Stat).
//
// The data flows one way:
//
//  1. exec sends requests and fills in Samples, grouped in Rounds and Levels;
//  2. record appends them to disk as they complete and reads them back;
//  3. assert reduces a Level to Summaries and judges them;
//  4. report prints what assert found.
//
// The package imports only the standard library, reads no clock and judges
// nothing. Its values are in seconds and tokens; the reports add units for people.
// A statistic without data is "no value" (ok == false), never zero.
package metric
