package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tokgate/tokgate/assert"
)

var fencedPlan = regexp.MustCompile("(?s)```hcl\n(.*?)```")

// Every plan in the documentation is valid; one that shows a server or a
// workload alone is completed with the other.
func TestDocumentedPlans(t *testing.T) {
	docs, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, doc := range append(docs, filepath.Join("..", "..", "README.md")) {
		for i, m := range fencedPlan.FindAllStringSubmatch(read(t, doc), -1) {
			found++
			t.Run(fmt.Sprintf("%s %d", filepath.Base(doc), i+1), func(t *testing.T) {
				src := m[1]
				if !regexp.MustCompile(`(?m)^server "`).MatchString(src) {
					src += "\nserver \"any\" {\n  simulator {}\n}\n"
				}
				if !regexp.MustCompile(`(?m)^workload "`).MatchString(src) {
					src += "\nworkload \"any\" {\n  preset = \"short_form_chatbot\"\n  load {\n    concurrency = 1\n  }\n}\n"
				}
				tokgate(t, "validate", writePlan(t, src)).check(t, assert.ExitPass, "is valid")
			})
		}
	}
	if found == 0 {
		t.Fatal("the documentation shows no plan")
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)\)`)

// Every file that the documentation links to exists.
func TestDocumentedLinks(t *testing.T) {
	docs, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(docs, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "CONTRIBUTING.md")) {
		for _, m := range link.FindAllStringSubmatch(read(t, doc), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", doc, m[1], err)
			}
		}
	}
}
