package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/plan"
	"github.com/tokgate/tokgate/record/history"
	"github.com/tokgate/tokgate/sim"
)

func completePlans(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"hcl", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeHistoryAndFile completes the folder of a history, then a file.
func completeHistoryAndFile(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeFolders(cmd, args, prefix)
	}
	return []string{"csv", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeNights completes the folder of a history or a file.
func completeNights(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// completeRuns completes the folder of a history, then one of its runs, the latest first.
func completeRuns(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeFolders(cmd, args, prefix)
	}
	h, _, err := history.Read(args[0])
	if err != nil || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, n := range slices.Backward(h.Nights) {
		if strings.HasPrefix(n.Run, prefix) {
			out = append(out, n.Run)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func (a *app) fromPlans(in *inputs, names func(*plan.Plan) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		files, err := planFiles(args, false)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, path := range files {
			p, _ := a.load(path, *in, false)
			for _, name := range names(p) {
				if strings.HasPrefix(name, prefix) {
					out = append(out, name)
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func caseNames(p *plan.Plan) []string {
	var out []string
	seen := map[string]bool{}
	for _, c := range exec.Cases(p) {
		for _, name := range []string{c.Workload.Address(), c.Workload.Address() + "/" + c.Level.Name} {
			if !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
		}
	}
	return out
}

func endpointNames(p *plan.Plan) []string {
	var out []string
	for _, s := range p.Servers {
		out = append(out, s.Address()+"=")
	}
	return out
}

func completeProfiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return sim.Profiles(), cobra.ShellCompDirectiveDefault
}

func completeFaults(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, f := range sim.Faults() {
		out = append(out, f.Name+"\t"+f.Doc)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
