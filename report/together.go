package report

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/tokgate/tokgate/report/text"
)

// Names returns a different one-line name for each document. It is the last part of the document's
// folder, or the run's id if there is no folder. A name that repeats an earlier one gets a number.
func Names(docs []*Document) []string {
	out := make([]string, len(docs))
	seen := map[string]int{}
	for i, d := range docs {
		name := ""
		if d.Folder != "" {
			name = path.Base(strings.TrimRight(strings.ReplaceAll(d.Folder, "\\", "/"), "/"))
		}
		name = text.Line(text.Bytes(cmp.Or(name, d.Run.ID, d.Plan.Name, "run"), nameBytes))
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, seen[name])
		}
		out[i] = name
	}
	return out
}
