package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/engine"
	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/metric"
	"github.com/tokgate/tokgate/plan"
)

// declared compares the plan's declarations with the facts that the server reports. The parameter
// told is the model in the server's list of models.
//
// If a server that was already running does not report a fact, the fact becomes unknown. If tokgate
// started the server, a missing fact is an error.
func declared(s *plan.Server, found metric.Fingerprint, told client.Model) error {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(s.Expect)) {
		want := s.Expect[key]
		got, ok := found[key]
		switch {
		case !ok && s.Endpoint != nil:
			found[key] = metric.Unknown
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s = %q cannot be checked: the server does not report it", key, want))
		case !meets(key, got, want):
			wrong = append(wrong, fmt.Sprintf("%s = %q was expected, but %q was found", key, want, got))
		}
	}
	wrong = append(wrong, undeclared(s, found, told)...)
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("this is not the declared server: %s", strings.Join(wrong, "; "))
}

// undeclared lists the facts that the server reports and that differ from the plan.
func undeclared(s *plan.Server, found metric.Fingerprint, told client.Model) []string {
	if s.BuiltIn() {
		return nil // a simulator may replace any server, so nothing is compared
	}
	var wrong []string
	// Compare names only if both have the form owner/name. Other names, such as a folder's, do not
	// say which model it is.
	if want, got := s.Model, found["model"]; told.Root != "" && hubName(want) && hubName(got) && want != got {
		wrong = append(wrong, fmt.Sprintf("model = %q was declared, but %q was found", want, got))
	}
	// Compare the context length in the plan's flag with the one in the server's list of models.
	// Skip engines whose slots share the context, because they round it.
	known := engine.Of(s.Engine).Flags
	if want, ok := s.FlagNumber(known.Context...); ok && len(known.Slots) == 0 && told.Context > 0 && told.Context != want {
		wrong = append(wrong, fmt.Sprintf("a context of %d tokens was declared, but one of %d was found", want, told.Context))
	}
	return wrong
}

// hubName reports whether the name of a model has the form owner/name, as on a model hub.
func hubName(s string) bool {
	owner, name, ok := strings.Cut(s, "/")
	return ok && owner != "" && owner != "." && owner != ".." && name != "" && !strings.Contains(name, "/") && !strings.HasSuffix(name, ".gguf")
}

// meets reports whether the value that was found is the value that the plan expects. The plan may
// shorten a GPU's name: "1 x RTX PRO 6000" for "1 x NVIDIA RTX PRO 6000 Blackwell Server Edition".
func meets(key, got, want string) bool {
	if got == want {
		return true
	}
	if key != "gpu" || strings.Contains(got, " + ") {
		return false
	}
	gotN, gotName, ok1 := strings.Cut(got, " x ")
	wantN, wantName, ok2 := strings.Cut(want, " x ")
	if !ok1 || !ok2 || strings.TrimSpace(gotN) != strings.TrimSpace(wantN) {
		return false
	}
	have, need := strings.Fields(strings.ToLower(gotName)), strings.Fields(strings.ToLower(wantName))
	for i := 0; len(need) > 0 && i+len(need) <= len(have); i++ {
		if slices.Equal(have[i:i+len(need)], need) {
			return true
		}
	}
	return false
}
