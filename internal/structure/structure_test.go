// Package structure checks that each package is readable: short functions, short files, and few
// files that depend on each other in a circle.
package structure

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

const module = "github.com/tokgate/tokgate/"

// most holds the largest allowed values for a package, without its tests. The complexity of a
// function is McCabe's: 1, plus 1 for each if, for, case, && and ||.
var most = struct {
	cycle      int // largest number of files that depend on each other in a circle
	lines      int // of a function
	complexity int // of a function
	file       int // lines of a file
	shadows    int // fields with the name of a package that the file imports
}{cycle: 6, lines: 60, complexity: 20, file: 500}

var show = flag.String("show", "", "list the arrows between the files of this `package`, such as assert")

func TestLongPackagesInside(t *testing.T) {
	fset := token.NewFileSet()
	packages := load(t, fset)
	must.Need(t, len(packages) >= 20, "%d packages", len(packages))
	t.Run("mix", func(t *testing.T) { fewKnowAMix(t, fset, packages) })
	for _, p := range packages {
		t.Run(p.name, func(t *testing.T) {
			over := func(what string, is, bound int) {
				must.Hold(t, is <= bound, "%s: %d, at most %d", what, is, bound)
			}
			for name, file := range p.files {
				over(name+", lines", fset.Position(file.FileEnd).Line, most.file)
				functions(file, func(f string, n ast.Node) {
					lines := fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
					over(name+", "+f+", lines", lines, most.lines)
					over(name+", "+f+", complexity", complexity(n), most.complexity)
				})
			}
			hidden := shadows(p.files)
			over(fmt.Sprintf("fields that shadow a package %q", hidden), len(hidden), most.shadows)
			arrows := p.arrows(fset)
			circle := largest(arrows)
			over(fmt.Sprintf("files in one circle (go test ./internal/structure -v -show %s lists its arrows)\n%s\n", p.name, strings.Join(circle, " ")), len(circle), most.cycle)
			if p.name == *show {
				for _, from := range circle {
					for _, to := range circle {
						if names := arrows[from][to]; len(names) > 0 {
							t.Logf("%s → %s: %s", from, to, strings.Join(slices.Sorted(maps.Keys(names)), " "))
						}
					}
				}
			}
		})
	}
}

// pkg is a package of this project, without its tests.
type pkg struct {
	name  string
	files map[string]*ast.File // files by base name; files for other platforms are left out
	info  *types.Info
}

// load type-checks the project's packages. The packages that they import are read in compiled form.
func load(t *testing.T, fset *token.FileSet) []pkg {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export", "./...")
	list.Dir = filepath.Join("..", "..")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	raw := must.Get(list.Output())(t)
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
	}
	exports := map[string]string{}
	var ours []listed
	for dec := json.NewDecoder(bytes.NewReader(raw)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[l.ImportPath] = l.Export
		if strings.HasPrefix(l.ImportPath, module) && len(l.GoFiles) > 0 {
			ours = append(ours, l)
		}
	}
	gc := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var out []pkg
	for _, l := range ours {
		p := pkg{strings.TrimPrefix(l.ImportPath, module), map[string]*ast.File{}, &types.Info{Uses: map[*ast.Ident]types.Object{}}}
		var files []*ast.File
		for _, name := range l.GoFiles {
			file := must.Get(parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, 0))(t)
			files = append(files, file)
			p.files[name] = file
		}
		must.Get((&types.Config{Importer: gc}).Check(l.ImportPath, fset, files, p.info))(t)
		out = append(out, p)
	}
	return out
}

// arrows returns which top-level declarations and methods each file uses from the other files of
// its package. It ignores struct fields, because a file that uses a field also depends on the
// field's type.
func (p *pkg) arrows(fset *token.FileSet) map[string]map[string]map[string]bool {
	out := map[string]map[string]map[string]bool{}
	for from, file := range p.files {
		out[from] = map[string]map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			ident, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			used := p.info.Uses[ident]
			if used == nil || used.Pkg() == nil || used.Pkg().Path() != module+p.name || !topLevel(used) {
				return true // name of another package, or declared inside a function
			}
			to := filepath.Base(fset.Position(used.Pos()).Filename)
			if p.files[to] == nil || to == from {
				return true
			}
			if out[from][to] == nil {
				out[from][to] = map[string]bool{}
			}
			out[from][to][used.Name()] = true
			return true
		})
	}
	return out
}

// topLevel reports whether an object is a method, or is declared outside of functions.
func topLevel(o types.Object) bool {
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		return true
	}
	return o.Parent() == o.Pkg().Scope()
}

// largest returns the largest strongly connected component of the files, sorted.
func largest(arrows map[string]map[string]map[string]bool) []string {
	reach := map[string]map[string]bool{}
	for from := range arrows {
		seen := map[string]bool{}
		var visit func(string)
		visit = func(at string) {
			for to := range arrows[at] {
				if !seen[to] {
					seen[to] = true
					visit(to)
				}
			}
		}
		visit(from)
		reach[from] = seen
	}
	var biggest []string
	for _, from := range slices.Sorted(maps.Keys(arrows)) {
		var circle []string
		for to := range reach[from] {
			if reach[to][from] {
				circle = append(circle, to)
			}
		}
		if len(circle) > len(biggest) {
			biggest = circle
		}
	}
	slices.Sort(biggest)
	return biggest
}

// functions calls the function tell for each function of a file. Methods, and function literals in
// variables, count too.
func functions(file *ast.File, tell func(name string, n ast.Node)) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			tell(f.Name.Name, f)
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			literal, ok := n.(*ast.FuncLit)
			if ok {
				tell("a literal", literal)
			}
			return !ok
		})
	}
}

func complexity(n ast.Node) int {
	c := 1
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			c++
		case *ast.CaseClause:
			if n.List != nil {
				c++
			}
		case *ast.CommClause:
			if n.Comm != nil {
				c++
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				c++
			}
		}
		return true
	})
	return c
}

// shadows lists the fields with the name of a package that their file imports.
func shadows(files map[string]*ast.File) []string {
	var out []string
	for name, file := range files {
		imported := map[string]bool{}
		for _, spec := range file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			local := path[strings.LastIndex(path, "/")+1:]
			if spec.Name != nil {
				local = spec.Name.Name
			}
			imported[local] = true
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range s.Fields.List {
				for _, id := range f.Names {
					if imported[id.Name] {
						out = append(out, name+": "+id.Name)
					}
				}
			}
			return true
		})
	}
	slices.Sort(out)
	return out
}
