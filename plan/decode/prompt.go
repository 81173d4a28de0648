package decode

import (
	"path/filepath"

	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/traffic"
)

// readPrompt reads where the prompts come from.
func readPrompt(b *body, w *plan.Workload) plan.Prompt {
	p := b.child("prompt")
	if p == nil {
		return plan.Prompt{}
	}
	out := plan.Prompt{Range: p.rng}
	if !p.given("dataset") {
		for _, name := range []string{"order", "column"} {
			if p.given(name) {
				b.d.errorf(p.attrs[name].NameRange, sumConflict, `%s belongs to a data set: dataset = "prompts.jsonl".`, name)
			}
		}
		return out
	}
	p.bind(&out)
	if v, ok := p.value("dataset"); !ok || p.isUnknown(p.rangeOf("dataset"), "dataset", v) {
		return out
	}
	out.Name = p.text("dataset")
	out.Dataset = b.d.dataset(p, p.file("dataset"))
	if out.Dataset != nil {
		checkRows(p, w, out.Dataset)
	}
	return out
}

// dataset reads a data set, each once.
func (d *decoder) dataset(b *body, path string) *traffic.Dataset {
	column := b.text("column")
	key := [2]string{path, column}
	if set, ok := d.datasets[key]; ok {
		return set
	}
	set, err := traffic.Read(path, traffic.Options{Column: column})
	if err != nil {
		d.errorf(b.rangeOf("dataset"), sumDataset, "The data set cannot be sent: %v.", err)
	} else {
		d.hash.add("data set", filepath.Base(path), []byte(set.Hash))
	}
	d.datasets[key] = set
	return set
}

// checkRows refuses rows that the workload's API cannot be sent.
func checkRows(b *body, w *plan.Workload, set *traffic.Dataset) {
	if w.API == plan.Chat {
		return
	}
	for _, row := range set.Rows {
		what := ""
		switch {
		case row.Messages != nil:
			what = "messages"
		case row.Tools != nil:
			what = "tools"
		case row.ResponseFormat != nil:
			what = "a response_format"
		default:
			continue
		}
		b.d.errorf(b.rangeOf("dataset"), sumDataset, `%s:%d has %s, which api = "completions" does not take: use api = "chat".`, set.Path, row.Line, what)
		return
	}
}

// hasDataset says whether the workload means to send a data set.
func (b *body) hasDataset() bool {
	p := b.child("prompt")
	return p != nil && p.given("dataset")
}
