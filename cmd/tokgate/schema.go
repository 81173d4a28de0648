package main

import (
	"github.com/spf13/cobra"

	"github.com/tokgate/tokgate/plan/decode"
	"github.com/tokgate/tokgate/report"
)

func (a *app) schemaCommand() *cobra.Command {
	schemas := map[string]func() []byte{
		"plan":    decode.JSONSchema,
		"results": func() []byte { return report.SchemaJSON },
	}
	return &cobra.Command{
		Use:   "schema plan|results",
		Short: "Print a JSON Schema: of plans in JSON syntax, or of results.json",
		Long: `Prints a JSON Schema (draft 2020-12): plan for plans in JSON syntax (.hcl.json), in
editors; results for programs that read results.json.`,
		Example: `  tokgate schema plan > plan.schema.json
  tokgate schema results > results.schema.json`,
		ValidArgs: []string{"plan", "results"},
		Args: func(_ *cobra.Command, args []string) error {
			const hint = "tokgate schema plan, or tokgate schema results"
			if len(args) != 1 {
				return usageError(hint, "schema takes one name")
			}
			if schemas[args[0]] == nil {
				return usageError(hint, "there is no schema %q", args[0])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := a.Out.Write(schemas[args[0]]()); err != nil {
				return measureError(err)
			}
			return nil
		},
	}
}
