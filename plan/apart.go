package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/metric"
)

// Difference is one setting or fact in which two servers differ.
type Difference struct {
	Key       string `json:"key"`       // "version", "flags.max-model-len"
	Control   string `json:"control"`   // "" if not set or unknown
	Candidate string `json:"candidate"` // likewise
	Allowed   bool   `json:"allowed"`   // named in changed
}

// Apart lists the settings and facts in which two servers differ. It compares all declared
// settings, but only those facts that were observed on both servers.
//
// If a difference is allowed, its consequences are allowed too. For example, a flag may change the
// served context.
func Apart(changed []string, control, candidate *metric.ServerRun) []Difference {
	var out []Difference
	declared := control.Declared != nil && candidate.Declared != nil
	if declared {
		for _, key := range Differences(control.Declared, candidate.Declared) {
			out = append(out, Difference{key, control.Declared[key], candidate.Declared[key], Allows(changed, key)})
		}
	}
	if declared && control.Fingerprint["simulated"] != "" && control.Declared["profile"] == "" && candidate.Declared["profile"] == "" {
		return out // a simulation tells nothing about the real server
	}
	for _, key := range control.Fingerprint.Keys() {
		is, other := control.Fingerprint[key], candidate.Fingerprint[key]
		if other == "" || !metric.Differs(key, is, other) || declared && key == "flags" ||
			slices.ContainsFunc(out, func(d Difference) bool { return d.Key == key }) {
			continue
		}
		out = append(out, Difference{key, is, other, Allows(changed, key)})
	}
	return out
}

// Incomparable says why two servers with these differences cannot be compared; "" if they can. The
// commands of two stacks may differ and still start the same server, such as the one that was there.
func Incomparable(changed []string, differences []Difference, control, candidate *metric.ServerRun) string {
	if why := unnamed(changed, differences); why != "" {
		return why
	}
	stacks := control.Declared["up"] != "" && candidate.Declared["up"] != ""
	told := slices.ContainsFunc(differences, func(d Difference) bool { return !ofStart(d.Key) })
	if !stacks || len(differences) == 0 || told || control.Fingerprint["simulated"] != "" {
		return ""
	}
	return fmt.Sprintf("the servers are started differently (%s), but nothing shows that they differ, so both may be the same server; "+
		`if they report no difference, declare one in both: declares = { image = "…" }`, differences[0].Key)
}

// ofStart reports whether a key says how a stack is started.
func ofStart(key string) bool {
	return key == "up" || key == "up.dir" || strings.HasPrefix(key, "env.")
}

// unnamed describes the differences that changed does not list; "" if there are none.
func unnamed(changed []string, differences []Difference) string {
	var more []string
	keys := slices.Clone(changed)
	for _, d := range differences {
		if !d.Allowed {
			key, _, _ := strings.Cut(d.Key, ".")
			more, keys = append(more, d.Key), append(keys, key)
		}
	}
	if len(more) == 0 {
		return ""
	}
	slices.Sort(keys)
	return fmt.Sprintf("the servers differ in %s, but `changed` does not list it; if you want to compare this difference, add %s to `changed`",
		strings.Join(more, ", "), strings.Join(slices.Compact(keys), ", "))
}
