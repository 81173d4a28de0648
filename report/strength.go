package report

// Strength reports which regressions the gate would notice. tokgate planted regressions in the
// recorded run, and judged the run again each time.
type Strength struct {
	// Says describes the worst regression that passes unnoticed, in one sentence. It may say
	// instead why no regression was planted.
	Says    string    `json:"says"`
	Basis   string    `json:"basis,omitempty"` // how the numbers were obtained; "" if there are no numbers
	Planted []Planted `json:"planted"`
}

// Planted is one planted regression. It counts how often the gate passed, was undecided and failed.
type Planted struct {
	Regression string `json:"regression"` // "decode × 1.25"
	Passed     int    `json:"passed"`
	Undecided  int    `json:"undecided"`
	Failed     int    `json:"failed"`
}

// StrengthTitle is the title of the section about planted regressions, in every output.
const StrengthTitle = "What this gate would notice"

// Word returns the gate's most frequent result: "fails", "is undecided" or "passes".
func (p Planted) Word() string {
	switch {
	case p.Failed > p.Passed+p.Undecided:
		return "fails"
	case p.Passed > p.Failed+p.Undecided:
		return "passes"
	}
	return "is undecided"
}
