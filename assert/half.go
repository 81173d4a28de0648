package assert

import (
	"fmt"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/plan"
)

// mostHalf is the largest number of requirements that HalfWords names.
const mostHalf = 3

// HalfWords says which required thresholds half of the planned requests could still certify. It
// returns "" if there are none. Capacity searches and comparisons do not count: they end when they
// know enough.
func HalfWords(p *plan.Plan) string {
	type at struct{ workload, level, requirement string }
	half := map[at]Finding{}
	for _, f := range Certify(p.Halved()) {
		half[at{f.Workload, f.Level, f.Requirement}] = f
	}
	estimated := map[string]bool{}
	for _, w := range p.Workloads {
		estimated[w.Address()] = w.Policy.Estimates()
	}
	var lost []string
	n := 0
	for _, f := range Certify(p) {
		if f.Impossible || f.Implied || estimated[f.Workload] || f.Severity == verdict.SeverityWarn || f.Level == "capacity" ||
			f.Threshold.Stat.Exact() {
			continue
		}
		n++
		if h := half[at{f.Workload, f.Level, f.Requirement}]; h.Impossible {
			lost = append(lost, fmt.Sprintf("%s of %s at %s (needs %s)", f.Requirement, f.Workload, f.Level, h.Needed))
		}
	}
	switch more := len(lost) - mostHalf; {
	case n == 0:
		return ""
	case len(lost) == 0:
		return fmt.Sprintf("%s could still be certified, if farther from the limit", verdict.Count(n, "requirements"))
	case more > 0:
		return fmt.Sprintf("%d of %s could not be certified: %s and %d more", len(lost), verdict.Count(n, "requirements"), strings.Join(lost[:mostHalf], ", "), more)
	}
	return fmt.Sprintf("%d of %s could not be certified: %s", len(lost), verdict.Count(n, "requirements"), strings.Join(lost, ", "))
}
