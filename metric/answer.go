package metric

import "slices"

// Answer holds the findings on the text of one natural answer, without the text itself. Package
// answers makes the findings when the answer ends.
type Answer struct {
	Empty   bool  `json:"empty,omitempty"`   // the answer has no visible text and no tool call
	Repeats bool  `json:"repeats,omitempty"` // the text repeats the same few words
	Invalid bool  `json:"invalid,omitempty"` // the text has U+FFFD, NUL or half a surrogate pair
	JSON    Found `json:"json,omitempty"`    // whether the answer is the JSON that was asked for
	Call    Found `json:"call,omitempty"`    // whether the answer's tool calls are valid
	Right   Found `json:"right,omitempty"`   // whether the answer solves its task
	// Item identifies the item of a task, so that two requests for the same item count once. It is
	// "" if the request is not from a task.
	Item string `json:"item,omitempty"`
}

// Found says whether an answer has a property, such as valid JSON. It is Unasked if the request did
// not ask for the property.
type Found string

const (
	Unasked Found = "" // the request did not ask for the property
	Yes     Found = "yes"
	No      Found = "no"
)

// FoundIf returns Yes if ok is true, and No if it is false.
func FoundIf(ok bool) Found {
	if ok {
		return Yes
	}
	return No
}

// Says returns whether the answer has the property that a metric counts, such as "is valid JSON"
// (see Def.OfAnswers). It returns Unasked if the request did not ask for the property, or not for a
// natural answer. A failed request counts as bad.
func (s *Sample) Says(def Def) Found {
	a := s.Answer
	if a == nil {
		return Unasked
	}
	found := Unasked
	switch def.Name {
	case "stop_rate":
		found = FoundIf(s.Finish == "stop" || s.Finish == "tool_calls")
	case "empty":
		found = FoundIf(a.Empty)
	case "repetition":
		found = FoundIf(a.Repeats)
	case "invalid_text":
		found = FoundIf(a.Invalid)
	case "valid_json":
		found = a.JSON
	case "valid_tool_call":
		found = a.Call
	case "accuracy":
		found = a.Right
	}
	if found != Unasked && !s.Completed() {
		return FoundIf(def.Better == LowerIsBetter)
	}
	return found
}

// answerValue returns the request's value of a metric of natural answers. A yes-or-no property has
// the value 1 or 0.
func (s *Sample) answerValue(name string) (v float64, ok bool) {
	if name == "answer_tokens" {
		if s.Answer == nil || s.Failure != nil || s.Usage == nil {
			return 0, false
		}
		return float64(s.Usage.Output), true
	}
	def, known := Lookup(name)
	if !known || !def.OfAnswers {
		return 0, false
	}
	found := s.Says(def)
	return map[Found]float64{Yes: 1}[found], found != Unasked
}

// Bad reports whether the request makes the metric of answers worse.
func (s *Sample) Bad(def Def) bool {
	found := s.Says(def)
	return found == Yes && def.Better == LowerIsBetter || found == No && def.Better == HigherIsBetter
}

// AnswerShare returns the share of a level's natural answers with the property of a metric. Only
// requests that asked for the property count. In a complete round, a request without a sample
// counts as failed.
func (l *Level) AnswerShare(def Def) Value {
	bad, n := 0, 0
	for _, r := range l.Rounds {
		samples, seen := 0, 0
		for _, s := range r.All() {
			if s.Phase != Measured {
				continue
			}
			samples++
			if s.Answer == nil || s.Canceled() || s.Says(def) == Unasked {
				continue
			}
			seen++
			if s.Bad(def) {
				bad++
			}
		}
		n += seen
		if lost := r.Due - samples; r.Complete && lost > 0 && seen > 0 {
			bad, n = bad+lost, n+lost
		}
	}
	if n == 0 {
		return None(def.NoValue)
	}
	if share := float64(bad) / float64(n); def.Better == LowerIsBetter {
		return Some(share)
	} else {
		return Some(1 - share)
	}
}

// AskedFor returns the samples whose requests ask for the property of a metric of
// answers.
func AskedFor(def Def, samples []*Sample) []*Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s *Sample) bool { return s.Says(def) == Unasked })
}
