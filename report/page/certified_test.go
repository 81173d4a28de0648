package page

import (
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/report"
)

// After a search for the largest rate, the page says which threshold limits the estimated rate, and
// that the certified rate was measured with new requests.
func TestCertifiedRate(t *testing.T) {
	c := &metric.Capacity{Over: metric.OpenLoop, Bracket: metric.Bracket{Pass: 8960, Binding: "ttft p95", AtPass: "68 ms"}, Step: 0.001}
	got, want := binding(c), " TTFT p95 limits the estimate."
	must.Hold(t, got == want, "%q, want %q", got, want)
	if got, want := trust(Run{Document: &report.Document{}}, c), "certified on fresh requests"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
