package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// allowed lists for each top-level package the packages that it may import; tests are not
// checked. A package below a top-level one may import the same packages, and its siblings.
var allowed = map[string][]string{
	"metric":       {},
	"engine":       {"metric"},
	"traffic":      {"metric"},
	"plan":         {"metric", "engine", "traffic", "answers"},
	"plan/suggest": {},
	"record":       {"metric"},
	"search":       {"metric"},
	"answers":      {"metric"},
	"sim":          {"metric", "engine", "answers", "plan/suggest"},
	"exec":         {"plan", "record", "metric", "engine", "traffic", "answers", "search"},
	"exec/server":  {"plan", "record", "metric", "engine", "traffic", "answers", "sim"},
	"assert":       {"plan", "metric", "answers", "search"},
	"assert/stat":  {},
	"report":       {"assert", "plan", "metric"},
	"strength":     {"assert", "sim", "plan", "metric"},
	"internal":     {}, // only tests import it
	"cmd":          {"metric", "traffic", "engine", "plan", "record", "search", "sim", "exec", "assert", "strength", "report"},
}

func TestImportsRunOneWay(t *testing.T) {
	const module = "github.com/tokgate/tokgate/"
	root := filepath.Join("..", "..")
	checked := 0
	must.Do(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, _ := filepath.Rel(root, filepath.Dir(path))
		rel = filepath.ToSlash(rel)
		room, rules := room(rel)
		if rules == nil {
			t.Errorf("%s: folder %q is no room of the layout", path, rel)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			imported, ours := strings.CutPrefix(imported, module)
			if !ours {
				if room == "metric" && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
					t.Errorf("%s imports %s: metric imports the standard library only", path, imported)
				}
				continue
			}
			checked++
			top, _, _ := strings.Cut(imported, "/")
			own, _, _ := strings.Cut(rel, "/")
			if top != own && !slices.Contains(rules, top) && !slices.Contains(rules, imported) {
				t.Errorf("%s imports %s: %s may import only %v", path, imported, room, rules)
			}
		}
		return nil
	}))
	must.Need(t, checked != 0, "no import was checked")
}

// room returns the rules in `allowed` that apply to a folder, and their key. They are those of the
// folder itself, or else of the nearest folder above it.
func room(dir string) (string, []string) {
	for dir != "." && dir != "" {
		if rules, ok := allowed[dir]; ok {
			return dir, rules
		}
		dir = filepath.ToSlash(filepath.Dir(dir))
	}
	return "", nil
}
