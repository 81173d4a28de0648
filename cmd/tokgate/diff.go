package main

import (
	"fmt"
	"strings"
)

// unifiedDiff shows how b differs from a, with three lines of context. Plans
// are small, so the quadratic longest common subsequence will do; past its
// limit the whole file is shown as replaced.
func unifiedDiff(name, a, b string) string {
	x, y := lines(a), lines(b)
	edits := diffLines(x, y)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s (formatted)\n", name, name)
	const context = 3
	for i := 0; i < len(edits); {
		if edits[i].op == ' ' {
			i++
			continue
		}
		// A hunk runs until more than twice the context is unchanged.
		from := max(i-context, 0)
		to, same := i, 0
		for ; to < len(edits) && same <= 2*context; to++ {
			if edits[to].op == ' ' {
				same++
			} else {
				same = 0
			}
		}
		to -= max(same-context, 0)
		hunk := edits[from:to]
		var nx, ny int
		for _, e := range hunk {
			if e.op != '+' {
				nx++
			}
			if e.op != '-' {
				ny++
			}
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", edits[from].x+1, nx, edits[from].y+1, ny)
		for _, e := range hunk {
			fmt.Fprintf(&out, "%c%s\n", e.op, e.line)
		}
		i = to
	}
	return out.String()
}

// edit is one line of a diff: ' ' kept, '-' removed, '+' added; x and y are
// the 0-based positions in the old and the new text at which it stands.
type edit struct {
	op   byte
	line string
	x, y int
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

func diffLines(x, y []string) []edit {
	var edits []edit
	const limit = 4 << 20 // cells of the table
	if len(x)*len(y) > limit {
		for i, l := range x {
			edits = append(edits, edit{'-', l, i, 0})
		}
		for j, l := range y {
			edits = append(edits, edit{'+', l, len(x), j})
		}
		return edits
	}
	// longest[i][j] is the length of the longest common subsequence of x[i:]
	// and y[j:].
	longest := make([][]int32, len(x)+1)
	for i := range longest {
		longest[i] = make([]int32, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			edits = append(edits, edit{' ', x[i], i, j})
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && longest[i+1][j] >= longest[i][j+1]:
			edits = append(edits, edit{'-', x[i], i, j})
			i++
		default:
			edits = append(edits, edit{'+', y[j], i, j})
			j++
		}
	}
	return edits
}
