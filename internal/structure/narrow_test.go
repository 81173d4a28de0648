package structure

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tokgate/tokgate/internal/must"
)

const (
	mostFields = 20  // fields of a type
	mostWidth  = 140 // columns of a line besides its texts: a message stays in one piece, so that it can be searched for
)

// tables lists files whose long lines are rows of a table.
var tables = map[string]bool{"plan/decode/schema.go": true, "plan/decode/schema_server.go": true}

// flat lists types that are one line of a recording or a file that people write, so their fields stand side by side. Grouped, each
// of the hundreds of literals of a request or a level would name the groups.
var flat = map[string]bool{"metric/run.go Level": true, "metric/run.go Run": true, "metric/sample.go Sample": true,
	"sim/profile.go Profile": true}

// TestNarrow holds the bounds in every package, but for those of tests.
func TestNarrow(t *testing.T) {
	checked := 0
	root := os.DirFS("../..")
	must.Do(t, fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (file == "internal" || strings.HasPrefix(file, ".") && file != ".") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		checked++
		src := must.Get(fs.ReadFile(root, file))(t)
		if !tables[file] {
			for i, n := range widths(src) {
				must.Hold(t, n <= mostWidth, "%s:%d is %d wide, at most %d", file, i+1, n, mostWidth)
			}
		}
		tree := must.Get(parser.ParseFile(token.NewFileSet(), file, src, 0))(t)
		ast.Inspect(tree, func(n ast.Node) bool {
			if of, ok := n.(*ast.TypeSpec); ok {
				if n := fields(of.Type); n > mostFields && !flat[file+" "+of.Name.Name] {
					t.Errorf("%s: %s has %d fields, at most %d", file, of.Name.Name, n, mostFields)
				}
			}
			return true
		})
		return nil
	}))
	must.Hold(t, checked > 500, "only %d files were found", checked)
}

// widths returns the width of each line of a source without the texts in it.
func widths(src []byte) []int {
	var out []int
	for line := range bytes.SplitSeq(src, []byte("\n")) {
		out = append(out, utf8.RuneCount(bytes.ReplaceAll(line, []byte("\t"), []byte("    "))))
	}
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return out
		}
		if tok == token.STRING && !strings.Contains(lit, "\n") {
			out[file.Line(pos)-1] -= utf8.RuneCountInString(lit) - 2
		}
	}
}

// fields counts the fields of a struct; an embedded struct is one field.
func fields(of ast.Expr) (n int) {
	if s, ok := of.(*ast.StructType); ok {
		for _, f := range s.Fields.List {
			n += max(1, len(f.Names))
		}
	}
	return n
}

func TestWidthsLeaveOutTexts(t *testing.T) {
	got := widths([]byte("package x\n\nvar y = \"" + strings.Repeat("é", 300) + "\"\n\tvar z = `a`\n"))
	for i, want := range []int{9, 0, 10, 14, 0} { // var y = "" is 10 wide; four columns for the tab, and var z = ``
		must.Hold(t, got[i] == want, "line %d: %d, want %d", i+1, got[i], want)
	}
}
