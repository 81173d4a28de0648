package report

import (
	"bytes"
	"strings"
	"testing"
)

func TestTogether(t *testing.T) {
	a, b := passing(), document()
	a.Folder, b.Folder = "results/before/", `results\after`
	a.Simulated = true
	docs := []*Document{a, b, b}
	var out bytes.Buffer
	if err := TerminalTogether(&out, docs, 100, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "together.terminal.txt", out.Bytes())
	if strings.ContainsAny(out.String(), "\x1b\x07") || strings.Contains(out.String(), "<script>") {
		t.Error("foreign text came through")
	}
}

func TestMarkdownTogetherIsBounded(t *testing.T) {
	var out bytes.Buffer
	if err := MarkdownTogether(&out, []*Document{big(5000), big(5000)}); err != nil {
		t.Fatal(err)
	}
	if out.Len() > MarkdownBytes {
		t.Errorf("%d bytes, want at most %d", out.Len(), MarkdownBytes)
	}
	if !strings.Contains(out.String(), "left out here") {
		t.Error("nothing says that rows were left out")
	}
}
