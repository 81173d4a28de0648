package structure

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// glosses match explanations of a word that the glossary of package metric explains.
var glosses = map[string]*regexp.Regexp{
	"leg":   regexp.MustCompile(`one server's turn|[Ll]egs? \((a |one |turns?\b)`),
	"look":  regexp.MustCompile(`[Ll]ooks? \((an? )?(early |planned |interim )?judgements?\)`),
	"round": regexp.MustCompile(`[Rr]ounds? \((an? )?(part|repetition)s?\b`),
	"probe": regexp.MustCompile(`[Pp]robes? \((an? )?(measurement|measured level)s?\b`),
}

// A word of the glossary is explained once, in package metric.
func TestWordsAreExplainedOnce(t *testing.T) {
	glossary, err := os.ReadFile(filepath.Join("..", "..", "metric", "doc.go"))
	must.Do(t, err)
	for word := range glosses {
		must.Hold(t, strings.Contains(string(glossary), "//   - A "+word+" is "), "the glossary lacks %s", word)
	}
	files := 0
	err = filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "metric" || d.Name() == "internal" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, c := range file.Comments {
			text := strings.ReplaceAll(c.Text(), "\n", " ")
			for word, gloss := range glosses {
				must.Same(t, fmt.Sprintf("%s explains %s again", path, word), "", gloss.FindString(text))
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatal(files, err)
	}
}
