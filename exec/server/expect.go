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

// declared compares what the plan declares with what was found. For a server that was already
// running, a fact that it does not report is marked as unknown. For a server that tokgate started,
// a missing fact is an error. told is the model in the server's list; if it has no Root, its name
// may come from a gateway.
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

// undeclared lists what the server reports differently from the plan.
func undeclared(s *plan.Server, found metric.Fingerprint, told client.Model) []string {
	if s.Simulator != nil && !s.Local() && s.Endpoint == nil {
		return nil // a simulator may take the place of any server, so nothing is compared
	}
	var wrong []string
	// Compare names only if both have the form owner/name. The name of a folder does not say which
	// model is in it.
	if want, got := s.Model, found["model"]; told.Root != "" && hubName(want) && hubName(got) && want != got {
		wrong = append(wrong, fmt.Sprintf("model = %q was declared, but %q was found", want, got))
	}
	// Compare only the context in the list of models with the plan's flag. Leave out engines whose
	// slots share the context, because these engines round it.
	known := engine.Of(s.Engine).Flags
	if want, ok := s.FlagNumber(known.Context...); ok && len(known.Slots) == 0 && told.Context > 0 && told.Context != want {
		wrong = append(wrong, fmt.Sprintf("a context of %d tokens was declared, but one of %d was found", want, told.Context))
	}
	return wrong
}

// hubName reports whether a model is named as on a hub: owner/name.
func hubName(s string) bool {
	owner, name, ok := strings.Cut(s, "/")
	return ok && owner != "" && owner != "." && owner != ".." && name != "" && !strings.Contains(name, "/") && !strings.HasSuffix(name, ".gguf")
}

// meets reports whether a found value meets the value that the plan expects. The plan may shorten
// the name of a GPU: "1 x NVIDIA RTX PRO 6000 Blackwell Server Edition" meets "1 x RTX PRO 6000".
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
