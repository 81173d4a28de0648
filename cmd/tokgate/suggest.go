package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tokgate/tokgate/assert/verdict"
	"github.com/tokgate/tokgate/plan/suggest"
)

func flagError(cmd *cobra.Command, err error) error {
	exit := &exitError{code: verdict.ExitPlan, err: err}
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

func (a *app) unknownCommand(root *cobra.Command, name string) error {
	if !root.HasParent() && name == "audit" {
		return usageError("`tokgate judge RESULTS PLAN` computes every figure again; it refuses changed samples, and `tokgate report` a changed results.json", "the command audit was removed")
	}
	root.SuggestionsMinimumDistance = 2
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return usageError(fmt.Sprintf("did you mean `%s %s`?", root.CommandPath(), near[0]), "unknown command %q", name)
	}
	if _, err := os.Stat(name); err == nil {
		return usageError(fmt.Sprintf("to run a plan: tokgate run %s", name), "unknown command %q", name)
	}
	return usageError(root.CommandPath()+" --help lists the commands", "unknown command %q", name)
}
