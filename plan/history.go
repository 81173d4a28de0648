package plan

import "github.com/hashicorp/hcl/v2"

// HistoryIgnore is the History.Ignore of a plan that sets none.
const HistoryIgnore = 0.01

// History sets where the nights of a plan are kept and how tonight is compared with
// them.
type History struct {
	Folder   string   `plan:"folder"` // absolute, or relative to the working directory
	Ignore   float64  // smaller changes are not reported: 0.01 is one percent; 0 reports all
	Severity Severity `plan:"severity"` // severity of a night that is worse than earlier nights
	Range    hcl.Range
}
