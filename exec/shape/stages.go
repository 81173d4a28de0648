package shape

import "github.com/tokgate/tokgate/exec/load"

// stages is a rate that changes. Each unit of the window is a stage with a rate of its own, and a
// level of its own.
var stages = &Kind{
	New: func(e Env) Shape {
		of := e.open()
		for i, s := range e.Stages {
			of.Stages = append(of.Stages, load.Stage{Due: e.Parts[i], From: s.From, To: s.To})
		}
		return newWindow(e, &schedule{env: &e, of: of})
	},
	Windowed: true, Takes: rates.Takes, Requests: planned,
}
