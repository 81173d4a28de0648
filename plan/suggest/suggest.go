// Package suggest finds the name that a user most likely meant.
package suggest

import (
	"strings"

	"github.com/agext/levenshtein"
)

// Nearest returns the candidate that the user most likely meant by given; "" if none is near. It
// allows two edits in a word of six letters or more, one edit in a shorter word, and none in a
// single letter. Swapping two letters counts as one edit. If none is near, a word of three letters or
// more may be the beginning of exactly one candidate, as chat is of chatbot. The signs - and _ count as the same
// letter.
func Nearest(given string, candidates []string) string {
	if len(given) > 64 {
		return ""
	}
	fold := strings.NewReplacer("-", "_", " ", "_")
	g := fold.Replace(strings.ToLower(given))
	nearest, edits, alike := "", 1, 0
	switch {
	case len(g) >= 6:
		edits = 2
	case len(g) <= 1:
		edits = 0
	}
	for _, c := range candidates {
		folded := fold.Replace(strings.ToLower(c))
		n, same := distance(g, folded), prefix(g, folded)
		// Of two candidates with the same number of edits, take the one with the longer common
		// beginning.
		if n < edits || n == edits && (nearest == "" || same > alike) {
			nearest, edits, alike = c, n, same
		}
	}
	if nearest == "" && len(g) >= 3 {
		return only(candidates, func(c string) bool { return strings.HasPrefix(fold.Replace(strings.ToLower(c)), g) })
	}
	return nearest
}

// only returns the one candidate that fits; "" if none or several do.
func only(candidates []string, fits func(string) bool) string {
	found := ""
	for _, c := range candidates {
		if !fits(c) {
			continue
		}
		if found != "" {
			return ""
		}
		found = c
	}
	return found
}

// distance returns the Levenshtein distance of two names. Two swapped neighbouring letters count as
// one edit, not two, if they are the first difference.
func distance(a, b string) int {
	n := levenshtein.Distance(a, b, nil)
	if i := prefix(a, b); i+1 < min(len(a), len(b)) && a[i] == b[i+1] && a[i+1] == b[i] {
		return min(n, 1+distance(a[i+2:], b[i+2:]))
	}
	return n
}

// prefix returns the length of the common beginning of a and b, in bytes.
func prefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// DidYouMean returns " Did you mean …?", or "" if no candidate is near.
func DidYouMean(given string, candidates []string) string {
	if s := Nearest(given, candidates); s != "" {
		return ` Did you mean "` + s + `"?`
	}
	return ""
}
