package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tokgate/tokgate/assert"
	"github.com/tokgate/tokgate/plan/suggest"
)

// flagError turns pflag's errors into ours, with the nearest flag.
func flagError(cmd *cobra.Command, err error) error {
	exit := &exitError{code: assert.ExitPlan, err: err}
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		name, _, _ = strings.Cut(name, "=")
		exit.err = fmt.Errorf("unknown flag --%s for `%s`", name, cmd.CommandPath())
		if near := nearestFlag(cmd, name); near != "" {
			exit.hints = append(exit.hints, fmt.Sprintf("did you mean --%s?", near))
		}
	}
	exit.hints = append(exit.hints, fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath()))
	return exit
}

func nearestFlag(cmd *cobra.Command, name string) string {
	var names []string
	collect := func(f *pflag.Flag) { names = append(names, f.Name) }
	cmd.Flags().VisitAll(collect)
	cmd.InheritedFlags().VisitAll(collect)
	return suggest.Nearest(name, names)
}
