package metric

import "fmt"

// Departures counts the requests of clients that leave.
type Departures struct {
	All  int `json:"all"`  // requests that were due, of clients that stay or leave
	Left int `json:"left"` // whose client left before the answer ended
	// Ended and Failed ended before their client left.
	Ended  int `json:"ended,omitempty"`
	Failed int `json:"failed,omitempty"`
}

// Departures returns the clients that left the level; nil if the plan has none.
func (l *Level) Departures() *Departures {
	out := Departures{}
	for _, r := range l.Rounds {
		for _, s := range r.All() {
			switch {
			case s.Phase != Left:
			case s.Canceled():
				out.Left++
			case s.Completed():
				out.Ended++
			default:
				out.Failed++
			}
		}
	}
	sent := out.Left + out.Ended + out.Failed
	if out.All = sent + l.Due(); sent == 0 {
		return nil
	}
	return &out
}

// MostEnded is the share of clients that leave whose answer may end before, without a warning.
const MostEnded = 0.1

// TooLate reports whether too many answers ended before their client left.
func (d *Departures) TooLate() bool {
	return float64(d.Ended) > MostEnded*float64(d.Left+d.Ended+d.Failed)
}

// String describes the departures in a sentence.
func (d *Departures) String() string {
	said := fmt.Sprintf("%d of %d clients left (%s); they count nowhere else", d.Left, d.All, Format(Ratio, float64(d.Left)/float64(d.All)))
	if d.Ended > 0 {
		said += fmt.Sprintf("; %d more had their whole answer before", d.Ended)
		if d.TooLate() {
			said += ", so let clients leave earlier"
		}
	}
	if d.Failed > 0 {
		said += fmt.Sprintf("; %d more failed before", d.Failed)
	}
	return said
}

// Take counts the tokens of the requests that were sent during the level, and of others of one token
// each. How long an answer would have been that ends by itself is not known, so it counts as the mean.
func (r *Residue) Take(sent []*Sample, others int) {
	tokens, answers, chunks := 0.0, 0.0, 0.0
	for _, s := range sent {
		if s.Completed() && s.Usage != nil {
			tokens, answers, chunks = tokens+float64(s.Usage.Output), answers+1, chunks+float64(s.Chunks)
		}
	}
	r.Taken = tokens + float64(others)
	for _, s := range sent {
		if s.Completed() && s.Usage != nil {
			continue
		}
		taken := float64(s.Chunks)
		if s.Usage != nil {
			taken = float64(s.Usage.Output)
		} else if chunks > 0 {
			taken *= tokens / chunks
		}
		r.Taken += taken
		if s.Canceled() && s.Sent != 0 {
			r.Left++
			asked := float64(s.OutputAsked)
			if answers > 0 {
				asked = min(asked, tokens/answers)
			}
			r.Owed += max(asked-taken-stopsWithin, 0)
		}
	}
}
