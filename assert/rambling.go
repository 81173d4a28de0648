package assert

import (
	"fmt"
	"slices"

	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

const (
	// mostRambling is the largest share of a level's natural answers that may be empty or repeat
	// themselves.
	mostRambling = 0.5
	// leastRambling is the smallest number of natural answers that show it.
	leastRambling = 5
)

// rambling explains why the natural answers of a level on a single server show that the measurement
// is not valid: most of them are empty or repeat themselves. It returns "" if they are fine, if the
// plan allows it, or if the plan's last green run was so too. In a comparison, the control shows
// how many such answers are usual.
func (j *judge) rambling(server string, w *plan.Workload, l *metric.Level) string {
	if l == nil || !w.Output.Natural || w.Answers.Repeating == plan.RepeatingAllowed || j.promised.Compared(server, w) {
		return ""
	}
	n, bad := 0, 0
	for _, x := range l.MeasuredSamples() {
		if x.Completed() && x.Answer != nil {
			if n++; x.Answer.Empty || x.Answer.Repeats {
				bad++
			}
		}
	}
	if n < leastRambling || float64(bad) <= mostRambling*float64(n) || slices.ContainsFunc(j.ramblings, func(f metric.Figure) bool {
		return f.Server == l.Server && f.Workload == l.Workload && f.Level == l.Name && f.Value > mostRambling
	}) {
		return ""
	}
	return fmt.Sprintf("answers: %d of %d natural answers are empty or repeat themselves, so this is not what users would see. Look at the answers: is it the right model, and the right chat template? If this model is known to ramble, write answers { repeating = %q } in workload.%s",
		bad, n, plan.RepeatingAllowed, w.Name)
}
