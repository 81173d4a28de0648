package structure

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

// Packages outside cmd must read requests through the methods of metric.Round, because the requests
// of a long recording are not in memory.
func TestRequestsAreAskedFor(t *testing.T) {
	direct := regexp.MustCompile(`range (l\.Rounds\[\w+\]|\w+\.round|r|round)\.Samples\b|len\(r\.Samples\)`)
	for _, room := range []string{"metric", "assert", "report", "strength"} {
		must.Do(t, filepath.WalkDir(filepath.Join("..", "..", room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			src, err := os.ReadFile(path)
			if at := direct.FindIndex(src); at != nil {
				t.Errorf("%s:%d reads the Samples of a round, which are empty in a long recording; ask for All()", path, 1+bytes.Count(src[:at[0]], []byte("\n")))
			}
			return err
		}))
	}
}
