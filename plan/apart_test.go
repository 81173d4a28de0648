package plan

import (
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
	"github.com/tokgate/tokgate/metric"
)

// Two stacks whose commands differ are compared only if something else tells them apart.
func TestStacksAreToldApart(t *testing.T) {
	changed := []string{"up", "env", "declares"}
	for _, tt := range []struct {
		name               string
		control, candidate Stack
		facts              [2]metric.Fingerprint
		why                string
	}{
		{"a server beside itself", Stack{Up: []string{"up"}}, Stack{Up: []string{"up"}}, [2]metric.Fingerprint{}, ""},
		{"nothing tells", Stack{Up: []string{"up", "1"}}, Stack{Up: []string{"up", "2"}}, [2]metric.Fingerprint{{"version": "1"}, {"version": "1"}}, "started differently (up)"},
		{"folders", Stack{Up: []string{"up"}, Folder: "old"}, Stack{Up: []string{"up"}, Folder: "new"}, [2]metric.Fingerprint{}, "started differently (up.dir)"},
		{"environments", Stack{Up: []string{"up"}, Env: map[string]string{"TAG": "1"}}, Stack{Up: []string{"up"}, Env: map[string]string{"TAG": "2"}}, [2]metric.Fingerprint{}, "started differently (env.TAG)"},
		{"what varies tells nothing", Stack{Up: []string{"up", "1"}}, Stack{Up: []string{"up", "2"}}, [2]metric.Fingerprint{{"load_time": "1s"}, {"load_time": "2s"}}, "nothing shows that they differ"},
		{"a fact tells", Stack{Up: []string{"up", "1"}}, Stack{Up: []string{"up", "2"}}, [2]metric.Fingerprint{{"version": "1"}, {"version": "2"}}, ""},
		{"the plan tells", Stack{Up: []string{"up", "1"}, Declares: map[string]string{"image": "1"}}, Stack{Up: []string{"up", "2"}, Declares: map[string]string{"image": "2"}}, [2]metric.Fingerprint{}, ""},
		{"the same is declared", Stack{Up: []string{"up", "1"}, Declares: map[string]string{"image": "1"}}, Stack{Up: []string{"up", "2"}, Declares: map[string]string{"image": "1"}}, [2]metric.Fingerprint{}, "declare one in both"},
		{"a simulation has no facts", Stack{Up: []string{"up", "1"}}, Stack{Up: []string{"up", "2"}}, [2]metric.Fingerprint{{"simulated": "yes"}, {"simulated": "yes"}}, ""},
	} {
		a := &metric.ServerRun{Declared: (&Server{Stack: &tt.control}).Declared(), Fingerprint: tt.facts[0]}
		b := &metric.ServerRun{Declared: (&Server{Stack: &tt.candidate}).Declared(), Fingerprint: tt.facts[1]}
		why := Incomparable(changed, Apart(changed, a, b), a, b)
		must.Hold(t, (why == "") == (tt.why == "") && strings.Contains(why, tt.why), "%s: %q, want %q", tt.name, why, tt.why)
	}
}
