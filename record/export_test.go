package record

import "strings"

// ReadFrom is Read without the disk, ReadAnswers that of the answers.
var (
	ReadFrom    = read
	ReadAnswers = readAnswers
)

// Reseal is Seal for lines that have checks, right or wrong.
func Reseal(lines string) string {
	var bare strings.Builder
	for l := range strings.Lines(lines) {
		l, _, _ = strings.Cut(strings.TrimSuffix(l, "\n"), checkHead)
		if l = strings.TrimSuffix(l, "}"); l != "" {
			bare.WriteString(l + "}\n")
		}
	}
	return Seal(bare.String())
}

// Seal makes a recording of lines without checks.
func Seal(lines string) string {
	var c chain
	var out strings.Builder
	for l := range strings.Lines(lines) {
		out.Write(c.seal([]byte(strings.TrimSuffix(l, "\n"))))
		out.WriteByte('\n')
	}
	return out.String()
}
