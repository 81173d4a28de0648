package shape

import "github.com/tokgate/tokgate/exec/load"

// stages is a rate that changes. Each unit of the window is a stage with a rate of its own, and a
// level of its own.
var stages = &Kind{
	New: func(e Env) Shape {
		var of []load.Stage
		for i, s := range e.Stages {
			of = append(of, load.Stage{Due: e.Parts[i], From: s.From, To: s.To})
		}
		return newSchedule(e, of)
	},
	Windowed: true, Takes: rates.Takes,
}
