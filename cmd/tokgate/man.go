package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes the man pages of a release from the help texts, so that both agree.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages, one for each command",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b := buildInfo()
			// Date the pages like the commit, so that one commit always gives the same pages. If
			// the commit's date is unknown, use 1970-01-01.
			date, err := time.Parse(time.RFC3339, b.Date)
			if err != nil {
				date = time.Unix(0, 0).UTC()
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return measureError(err)
			}
			root := cmd.Root()
			withoutFooter(root)
			err = doc.GenManTree(root, &doc.GenManHeader{
				Section: "1", Date: &date, Source: "tokgate " + strings.TrimPrefix(b.Version, "v"), Manual: "tokgate",
			}, args[0])
			if err != nil {
				return measureError(err)
			}
			return nil
		},
	}
}

// withoutFooter removes the date from the page, and the line about the library that made the page.
func withoutFooter(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	for _, c := range cmd.Commands() {
		withoutFooter(c)
	}
}
