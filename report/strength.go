package report

// Strength is what the gate would notice: regressions that were planted in the
// run that is reported, which was then judged again.
type Strength struct {
	// Says is the worst of it in a sentence, or why nothing was planted.
	Says    string    `json:"says"`
	Basis   string    `json:"basis,omitempty"` // what it rests on; "": nothing was planted
	Planted []Planted `json:"planted"`
}

// Planted is one regression, and how often the gate said what.
type Planted struct {
	Regression string `json:"regression"` // "decode × 1.25"
	Passed     int    `json:"passed"`
	Undecided  int    `json:"undecided"`
	Failed     int    `json:"failed"`
}

// StrengthTitle heads the section in every output.
const StrengthTitle = "What this gate would notice"

// Word is what the gate does, mostly: "fails", "is undecided", "passes".
func (p Planted) Word() string {
	switch {
	case p.Failed > p.Passed+p.Undecided:
		return "fails"
	case p.Passed > p.Failed+p.Undecided:
		return "passes"
	}
	return "is undecided"
}
