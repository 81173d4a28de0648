package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tokgate/tokgate/assert/verdict"
)

// urgency orders the classes: first what failed, then what is not decided, then what became worse.
var urgency = []string{Missing, Failed, Unsure, Worse}

// outcomes are the words for the classes of rows that were left out.
var outcomes = map[string]string{Missing: "not measured", Failed: "failed", Unsure: "undecided or only warned", Worse: "became worse", Passed: "passed or improved"}

// rank is the place of a class in the order of a selection.
func rank(class string) int {
	if i := slices.Index(urgency, class); i >= 0 {
		return i
	}
	return len(urgency)
}

// class is the outcome that a row of a table shows: that of its first cell with one.
func class(row []Cell) string {
	for _, c := range row {
		if c.Class != "" {
			return c.Class
		}
	}
	return ""
}

// Select returns the sections with at most n rows of tables and checks together. It keeps the most
// urgent rows of all sections, so nothing that passed is kept while a failure is left out. Of rows
// that are as urgent, each table and list keeps its share. Each says how many rows of which outcome
// it lacks.
func Select(sections []Section, n int) []Section {
	type place struct{ rank, nth, at int } // nth: of its rank in its block
	var order []place
	each(sections, func(b *Block) {
		of := map[int]int{}
		for i := range b.rows() {
			k := rank(b.class(i))
			order = append(order, place{k, of[k], len(order)})
			of[k]++
		}
	})
	kept := make([]bool, len(order))
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.nth, b.nth), cmp.Compare(a.at, b.at))
	})
	for _, p := range order[:min(n, len(order))] {
		kept[p.at] = true
	}
	out := slices.Clone(sections)
	for i := range out {
		out[i].Blocks = slices.Clone(out[i].Blocks)
	}
	at := 0
	each(out, func(b *Block) {
		k := b.rows()
		b.keep(kept[at : at+k])
		at += k
	})
	return out
}

func each(sections []Section, f func(*Block)) {
	for i := range sections {
		for j := range sections[i].Blocks {
			f(&sections[i].Blocks[j])
		}
	}
}

// rows is the number of rows that a selection may leave out.
func (b *Block) rows() int {
	if b.Table != nil {
		return len(b.Table.Rows)
	}
	return len(b.Checks)
}

func (b *Block) class(i int) string {
	if b.Table != nil {
		return class(b.Table.Rows[i])
	}
	return b.Checks[i].Class
}

// keep drops the other rows, and says what was dropped. Of each urgency the order stays.
func (b *Block) keep(kept []bool) {
	left := map[string]int{}
	for i, ok := range kept {
		if !ok {
			left[b.class(i)]++
		}
	}
	i := -1
	drop := func() bool { i++; return !kept[i] }
	if b.Table != nil {
		t := *b.Table
		t.Rows, t.Left = slices.DeleteFunc(slices.Clone(t.Rows), func([]Cell) bool { return drop() }), leftOut(left)
		b.Table = &t
		return
	}
	b.Checks, b.Left = slices.DeleteFunc(slices.Clone(b.Checks), func(Check) bool { return drop() }), leftOut(left)
}

// leftOut says how many rows of which outcome were left out, such as "2 failed, 5 passed".
func leftOut(left map[string]int) string {
	var parts []string
	total := 0
	for _, c := range append(slices.Clone(urgency), Passed) {
		if n := left[c]; n > 0 {
			parts, total = append(parts, fmt.Sprintf("%d %s", n, outcomes[c])), total+n
		}
	}
	for c, n := range left {
		if outcomes[c] == "" {
			total += n
		}
	}
	if total == 0 {
		return ""
	}
	switch len(parts) {
	case 0:
		return verdict.Count(total, "more rows")
	case 1:
		return strings.Replace(parts[0], " ", " more ", 1)
	}
	return fmt.Sprintf("%d more: %s", total, strings.Join(parts, ", "))
}
