package plan

import (
	"slices"
	"strings"
)

// Nearest returns the candidate that given was most likely meant to be, or "".
// Two edits are forgiven in a word of six letters or more, one in a shorter
// one, none in a single letter; - and _ count as the same letter.
func Nearest(given string, candidates []string) string {
	if len(given) > 64 {
		return ""
	}
	fold := strings.NewReplacer("-", "_", " ", "_")
	g := fold.Replace(strings.ToLower(given))
	best, bestDistance := "", 2
	switch {
	case len(g) >= 6:
		bestDistance = 3
	case len(g) <= 1:
		bestDistance = 1
	}
	for _, c := range candidates {
		folded := fold.Replace(strings.ToLower(c))
		// Of two as near, the one that begins more alike.
		if d := editDistance(g, folded, bestDistance+1); d < bestDistance || best != "" && d == bestDistance && alike(g, folded) > alike(g, fold.Replace(strings.ToLower(best))) {
			best, bestDistance = c, d
		}
	}
	return best
}

// alike is how many bytes two words have in common at their beginning.
func alike(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// editDistance is the number of insertions, deletions, replacements and swaps
// of neighbours that turn a into b (Damerau's, restricted); limit when it is
// at least that.
func editDistance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) >= limit || len(y)-len(x) >= limit {
		return limit
	}
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(y)], limit)
}

// didYouMean is " Did you mean …?", or "" when nothing is near.
func didYouMean(given string, candidates []string) string {
	if s := Nearest(given, candidates); s != "" {
		return ` Did you mean "` + s + `"?`
	}
	return ""
}

// choices lists names for a message: at most twelve of them.
func choices(names []string) string {
	names = slices.Clone(names)
	if len(names) > 12 {
		names = append(names[:12], "…")
	}
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
