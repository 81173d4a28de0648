package github

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tokgate/tokgate/report"
	"github.com/tokgate/tokgate/report/text"
)

const (
	// mostAnnotations is the number of annotations for each severity. One more annotation says how
	// many are left out. The runner drops all annotations after the tenth error and after the tenth
	// warning of a step (ExecutionContext.cs, _maxCountPerIssueType).
	mostAnnotations = 9
	// messageBytes is the largest length of a message. The runner cuts messages at 4,096 characters
	// (ExecutionContext.cs, _maxIssueMessageLength).
	messageBytes = 3500
	titleBytes   = 250
)

// Annotation is a note that GitHub shows next to a line of a file and in the summary
// of the job.
type Annotation struct {
	Warning bool // false: an error
	Title   string
	Message string
	File    string // path from the root of the repository, with slashes; "" without a file
	Line    int    // 1-based; 0: unknown
}

// Annotations returns the problems of a run as annotations.
func Annotations(d *report.Document, at Workspace) []Annotation {
	var list []Annotation
	for _, p := range report.Problems(d) {
		list = append(list, at.Annotation(p))
	}
	return list
}

// Write formats annotations as lines of the log. For each severity it writes at most nine
// annotations, and the number of all others.
func Write(list []Annotation) string {
	var b strings.Builder
	for _, level := range []struct {
		name    string
		warning bool
	}{{"error", false}, {"warning", true}} {
		written, left := 0, 0
		for _, a := range list {
			if a.Warning != level.warning {
				continue
			}
			if written == mostAnnotations {
				left++
				continue
			}
			written++
			b.WriteString(a.line(level.name) + "\n")
		}
		if left > 0 {
			b.WriteString(command(level.name, []property{{"title", "tokgate"}}, fmt.Sprintf("%d more annotations are left out here: see the summary of the job", left)) + "\n")
		}
	}
	return b.String()
}

func (a Annotation) line(level string) string {
	line := ""
	if a.File != "" && a.Line > 0 {
		line = strconv.Itoa(a.Line)
	}
	return command(level, []property{
		{"title", text.Bytes(text.Line(a.Title), titleBytes)},
		{"file", a.File},
		{"line", line},
	}, text.Bytes(text.Line(a.Message), messageBytes))
}

// Workspace is the checkout. GitHub can only show files in it.
type Workspace struct {
	Root string // GITHUB_WORKSPACE, an absolute path; "" leaves all paths unchanged
	Dir  string // the working directory, absolute
}

// Annotation converts a problem of a run into an annotation. If the problem's file is outside the
// workspace, the message names the file and the line instead.
func (w Workspace) Annotation(p report.Problem) Annotation {
	a := Annotation{Warning: p.Warning, Title: p.Title, Message: p.Message}
	if p.File == "" {
		return a
	}
	if file, ok := w.relative(p.File); ok {
		a.File, a.Line = file, p.Line
		return a
	}
	place := p.File
	if p.Line > 0 {
		place += ":" + strconv.Itoa(p.Line)
	}
	a.Message = strings.TrimSpace(place + ": " + a.Message)
	return a
}

// path returns the path of a file relative to the workspace, or an absolute path for a file outside
// of it. Later steps of a job need this form.
func (w Workspace) path(file string) string {
	if path, ok := w.relative(file); ok {
		return path
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(w.Dir, file)
	}
	return filepath.ToSlash(file)
}

func (w Workspace) relative(file string) (path string, ok bool) {
	file = filepath.FromSlash(file)
	if !filepath.IsAbs(file) {
		if w.Root == "" {
			return filepath.ToSlash(filepath.Clean(file)), true
		}
		file = filepath.Join(w.Dir, file)
	}
	if w.Root == "" {
		return filepath.ToSlash(file), true
	}
	rel, err := filepath.Rel(w.Root, file)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}
