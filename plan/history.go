package plan

import "github.com/hashicorp/hcl/v2"

// HistoryIgnore is the default of History.Ignore, as a share.
const HistoryIgnore = 0.01

const (
	ImprovementAdopt = "adopt" // when it has lasted ten nights
	ImprovementWait  = "wait"  // when its run is pinned
)

// History says where the results of a plan's nightly runs are kept, and how a new night is compared
// with them.
type History struct {
	Folder   string   `plan:"folder"`   // absolute path, or relative to the working directory
	Severity Severity `plan:"severity"` // severity of a result that is worse than in earlier runs
	Ignore   float64  `plan:"ignore"`   // share below which changes are not reported; 0.01 is one percent
	Range    hcl.Range
	// Improvement says when a better level becomes the reference: ImprovementAdopt or
	// ImprovementWait.
	Improvement string `plan:"improvement"`
}
