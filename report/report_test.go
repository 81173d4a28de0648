package report

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file in testdata. With -update it writes the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; run with -update to accept):\n%s", name, diff)
	}
}

// written lists the outputs that are tested besides those in formats.All, with their golden files.
var written = []struct {
	file  string
	write func(io.Writer, *Document) error
}{
	{"results.json", func(w io.Writer, d *Document) error { return d.Write(w) }},
	{"terminal-80.txt", func(w io.Writer, d *Document) error { return Terminal(w, d, 80, false) }},
	{"terminal-120-color.txt", func(w io.Writer, d *Document) error { return Terminal(w, d, 120, true) }},
}

func TestGolden(t *testing.T) {
	for _, doc := range []struct {
		name string
		doc  *Document
	}{{"rich", document()}, {"pass", passing()}, {"mix", mixed()}} {
		for _, f := range written {
			t.Run(doc.name+"/"+f.file, func(t *testing.T) {
				var b bytes.Buffer
				if err := f.write(&b, doc.doc); err != nil {
					t.Fatal(err)
				}
				golden(t, doc.name+"."+f.file, b.Bytes())
			})
		}
	}
}

// The heads of all tables begin with a capital letter.
func TestHeads(t *testing.T) {
	for _, doc := range []*Document{document(), passing(), compared()} {
		var b bytes.Buffer
		if err := Markdown(&b, doc); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		n := 0
		for i, line := range lines[1:] {
			if !strings.HasPrefix(line, "|---") && !strings.HasPrefix(line, "|--:") {
				continue
			}
			n++
			for cell := range strings.SplitSeq(lines[i], "|") {
				if cell = strings.TrimSpace(cell); cell != "" && unicode.IsLower([]rune(cell)[0]) {
					t.Errorf("a table has the head %q", cell)
				}
			}
		}
		if n == 0 {
			t.Error("no table")
		}
	}
}

// No output contains a secret of the plan, even if a server's message does.
func TestSecretsAreInNoOutput(t *testing.T) {
	for _, f := range written {
		var b bytes.Buffer
		if err := f.write(&b, document()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), secret) {
			t.Errorf("%s holds the secret", f.file)
		}
	}
}
