package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/percodb/percodb/node"
)

func checkCommand() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Verify a stopped server's data directory",
		Long: `Verify a stopped server's data directory: locks against records, write records against their data,
rows against their tables, index entries against rows in both directions. Changes nothing.
Exit code 1 when something is wrong.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := node.Check(cmd.Context(), node.Options{Role: node.RoleAll, Data: data})
			if err != nil {
				return &startError{flags: startFlags{data: data}, err: err}
			}
			for _, f := range findings {
				fmt.Fprintln(cmd.OutOrStdout(), f)
			}
			if len(findings) > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%d findings\n", len(findings))
				return &silentError{}
			}
			fmt.Fprintln(cmd.OutOrStdout(), "no findings")
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", "./percodb-data", "directory of the data")
	return cmd
}
