package report

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tokgate/tokgate/internal/must"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file in testdata. With -update it writes the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.WriteFile(file, got, 0o644))
		return
	}
	want := must.Get(os.ReadFile(file))(t)
	must.Same(t, name+" (-want +got; run with -update to accept)", string(want), string(got))
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
				must.Do(t, f.write(&b, doc.doc))
				golden(t, doc.name+"."+f.file, b.Bytes())
			})
		}
	}
}
