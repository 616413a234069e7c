package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/percodb/percodb/bench/bigtable"
)

func benchBigtableCommand() *cobra.Command {
	var o bigtable.Options
	var file string
	cmd := &cobra.Command{
		Use:   "bigtable",
		Short: "Requests, ratios and processor time of percodb on Bigtable's emulator",
		Long: `Measure percodb on Google's emulator of Bigtable, which runs as a process of its own: the requests of statements and
transactions, the Percolator paper's figure 8 over bare requests, the processor time of a transaction with 1, 2 and 4 SQL processes, and what the others see when one is killed. Counts and
ratios say something about Google's service; the rates of the emulator do not. Takes about a minute.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, part := range o.Parts {
				if !slices.Contains(bigtable.Parts, part) {
					return &usageError{err: fmt.Errorf("--only %s: the parts are %s", part, strings.Join(bigtable.Parts, ", "))}
				}
			}
			var err error
			if o.Binary, err = os.Executable(); err != nil {
				return err
			}
			o.Notice = noticeTo(cmd.ErrOrStderr())
			res, err := bigtable.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			for _, t := range res.Tables() {
				if err := t.WriteText(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			if file == "" {
				return nil
			}
			text, err := json.MarshalIndent(res, "", " ")
			if err != nil {
				return err
			}
			return os.WriteFile(file, append(text, '\n'), 0o644)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Ops, "ops", 50, "operations of each count of requests")
	flags.DurationVar(&o.TurnFor, "turn", 5*time.Second, "time of each measurement")
	flags.StringSliceVar(&o.Parts, "only", nil, "parts to be measured: "+strings.Join(bigtable.Parts, ", "))
	flags.StringVar(&file, "json", "", "file for the figures as JSON")
	return cmd
}
