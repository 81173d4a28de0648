package traffic

import "time"

const mostSteps = 60

// Rates returns the rates of the trace, in requests per second, in equal intervals. step is the
// length of an interval, a round number. The last interval may be shorter.
func (r *Replay) Rates() (rates []float64, step time.Duration) {
	for _, n := range []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600} {
		if step = n * time.Second; r.Length()/step < mostSteps {
			break
		}
	}
	step *= (r.Length()/step + mostSteps) / mostSteps
	rates = make([]float64, max((r.Length()+step-1)/step, 1))
	for _, row := range r.Measured() {
		// A request exactly at the end belongs to the last interval.
		i := min(int((row.At-r.From)/step), len(rates)-1)
		rates[i] += 1 / min(step, max(r.Length()-step*time.Duration(i), time.Second)).Seconds()
	}
	return rates, step
}

// Sessions returns the number of sessions in the measured part of the trace. waiting is the number
// of rows that are sent only after the answer to an earlier row.
func (r *Replay) Sessions() (sessions, waiting int) {
	seen := map[int]bool{}
	for _, row := range r.Measured() {
		if row.Session > 0 {
			seen[row.Session] = true
		}
		if row.Parent >= r.First {
			waiting++
		}
	}
	return len(seen), waiting
}

// Quantum returns the unit to which the times of the trace are rounded, as published traces often
// are. All times are then multiples of the unit, to within a millisecond. The unit is from one
// second to one minute, or 0 if the times are not rounded.
func (t *Trace) Quantum() time.Duration {
	for _, q := range []time.Duration{time.Minute, 30 * time.Second, 10 * time.Second, 5 * time.Second,
		3 * time.Second, 2 * time.Second, time.Second} {
		whole := len(t.Rows) >= 20
		for i := range t.Rows {
			off := t.Rows[i].At % q
			if off > time.Millisecond && off < q-time.Millisecond {
				whole = false
				break
			}
		}
		if whole {
			return q
		}
	}
	return 0
}

// Types returns the number of measured requests of each type.
func (r *Replay) Types() map[string]int {
	out := map[string]int{}
	for _, row := range r.Measured() {
		if row.Type != "" {
			out[row.Type]++
		}
	}
	return out
}
