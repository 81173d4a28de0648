package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tokgate/tokgate/plan/movein"
	"github.com/tokgate/tokgate/record"
)

func (a *app) initFrom(o initOptions) error {
	w := o.answers
	if w.Command != "" || w.Upgrade || o.measure || o.github || o.gitlab || w.Rates != nil || w.UseCases != nil {
		return usageError("write the plan first; `tokgate init --help`", "--from can be combined with --url, --image, --engine, --model, --plan and --force only")
	}
	if _, err := os.Stat(o.file); err == nil && !o.force {
		return usageError("--force overwrites it, --plan names another file", "%s already exists", o.file)
	}
	b, err := movein.Read(o.from, o.file)
	if err != nil {
		return usageError("docs/recipes.md lists what --from reads", "cannot make a plan of it: %v", err)
	}
	if w.URL != "" {
		b.URL, b.Image = w.URL, ""
	}
	b.Image = cmp.Or(w.Image, b.Image)
	b.URL, b.Engine, b.Model = cmp.Or(b.URL, "http://127.0.0.1:8000"), cmp.Or(w.Engine, b.Engine), cmp.Or(w.Model, b.Model)
	text, err := b.Plan(filepath.ToSlash(o.file))
	if err != nil {
		return measureError(err)
	}
	if err := o.valid(text); err != nil {
		return err
	}
	if err := record.WriteFile(o.file, text); err != nil {
		return measureError(err)
	}
	fmt.Fprintf(a.Out, "wrote %s from %s\n", o.file, b.Origin)
	for _, lost := range b.Lost {
		fmt.Fprintf(a.Out, "not carried over: %s\n", lost)
	}
	a.sayNext(o)
	return nil
}
