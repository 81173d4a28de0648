package sim

import "fmt"

// didYouMean is `, did you mean "x"?` for the closest known name, or "".
func didYouMean(name string, known []string) string {
	best, distance := "", 1+len(name)/3
	for _, k := range known {
		if d := editDistance(name, k); d < distance || d == distance && best == "" {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// editDistance is Levenshtein's, in bytes: all names are ASCII.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}
