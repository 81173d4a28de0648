package html

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tokgate/tokgate/report"
)

var update = flag.Bool("update", false, "write the golden files")

// recorded reads a document that the tests of package report keep: "pass" is a
// small one in which everything is fine, "rich" has all that a run may hold,
// hostile text included.
func recorded(t testing.TB, name string) *report.Document {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", name+".results.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := report.ReadDocument(f)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func render(t testing.TB, docs ...*report.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, docs...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	got := render(t, recorded(t, "pass"))
	file := filepath.Join("testdata", "pass.html")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got; run with -update to accept):\n%s", file, diff)
	}
}

// The page asks for nothing: no script, no style attribute (its own policy
// would block it), no address but anchors of its own.
func TestSelfContained(t *testing.T) {
	for _, docs := range [][]*report.Document{{recorded(t, "pass")}, {recorded(t, "rich")}, {recorded(t, "pass"), recorded(t, "rich")}} {
		out := render(t, docs...)
		for _, bad := range []string{`<script`, `<link`, `<img`, `<iframe`, `<object`, `<[^>]* style=`, `<[^>]* src=`, `<[^>]*javascript:`, `<[^>]*\son[a-z]+=`} {
			if m := regexp.MustCompile(`(?i)` + bad).FindString(out); m != "" {
				t.Errorf("the page holds %s: %.80q", bad, m)
			}
		}
		if strings.Contains(styleSource, "url(") || strings.Contains(styleSource, "@import") {
			t.Error("the style sheet loads something")
		}
		ids := map[string]bool{}
		for _, m := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(out, -1) {
			if ids[m[1]] {
				t.Errorf("the id %q is there twice", m[1])
			}
			ids[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`\shref="([^"]*)"`).FindAllStringSubmatch(out, -1) {
			if !strings.HasPrefix(m[1], "#") || !ids[m[1][1:]] {
				t.Errorf("a link to %q, which is not on the page", m[1])
			}
		}
	}
}
