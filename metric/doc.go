// Package metric is the vocabulary of tokgate: what one request looked like to
// the client (Sample), how samples are grouped (Round, Level, Run), which
// quantities are derived from them (Def), and which statistic of a quantity a
// plan may bound (Stat).
//
// The words that the whole program uses:
//
//   - A level is one load: so many requests in flight, users or requests a second.
//   - A round is a part of a level with a seed of its own; rounds are compared with each other.
//   - A wave is as many requests as are in flight.
//   - A leg is one server's turn in a comparison: a round of a level on this server.
//   - A look is a planned judgement of a level that still runs, as in sequential tests.
//   - A probe is one measurement of a capacity search: a level that the search chose.
//
// Other packages use these words without explaining them again.
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
