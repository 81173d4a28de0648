package report

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

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
