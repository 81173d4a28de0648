package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnifiedDiff(t *testing.T) {
	tests := []struct {
		name, a, b, want string
	}{
		{"one line changed, three lines of context",
			"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
			"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"added at the end", "1\n", "1\n2\n", "@@ -1,1 +1,2 @@\n 1\n+2\n"},
		{"everything removed", "1\n2\n", "", "@@ -1,2 +1,0 @@\n-1\n-2\n"},
		// Seven unchanged lines lie between: more than twice the context.
		{"two hunks",
			"a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
			"@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n"},
		{"equal", "1\n", "1\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := "--- f\n+++ f (formatted)\n" + tt.want
			if d := cmp.Diff(want, unifiedDiff("f", tt.a, tt.b)); d != "" {
				t.Errorf("unifiedDiff (-want +got):\n%s", d)
			}
		})
	}
}

// Applying a diff's kept and added lines must give the new text.
func TestDiffLinesRebuildsBoth(t *testing.T) {
	texts := []string{"", "a", "a b c", "c b a", "a a a b", "b a a", "x y z a b c", "a b c x y z"}
	for _, a := range texts {
		for _, b := range texts {
			x, y := strings.Fields(a), strings.Fields(b)
			var gotX, gotY []string
			for _, e := range diffLines(x, y) {
				if e.op != '+' {
					gotX = append(gotX, e.line)
				}
				if e.op != '-' {
					gotY = append(gotY, e.line)
				}
			}
			if d := cmp.Diff(x, append([]string{}, gotX...)); d != "" {
				t.Errorf("%q → %q loses the old text:\n%s", a, b, d)
			}
			if d := cmp.Diff(y, append([]string{}, gotY...)); d != "" {
				t.Errorf("%q → %q loses the new text:\n%s", a, b, d)
			}
		}
	}
}
