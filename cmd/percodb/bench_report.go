package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/percodb/percodb/bench/tpce/report"
)

func tpceMergeCommand() *cobra.Command {
	var jsonFile, htmlFile, label string
	cmd := &cobra.Command{
		Use:   "merge RESULT.json...",
		Short: "Add up the results of several drivers",
		Long: `Add up the results of drivers that ran at the same time against the same database, each with --json and its
own --instance. Counts and histograms add up; a percentile of the sum is that of all transactions.`,
		Example: `  percodb bench tpce merge run0.json run1.json --json both.json --html both.html`,
		Args:    arguments(1, math.MaxInt, "the FILE of a result"),
		RunE: func(cmd *cobra.Command, args []string) error {
			results, err := readResults(args)
			if err != nil {
				return err
			}
			merged, err := report.Merge(results...)
			if err != nil {
				return err
			}
			if label != "" {
				merged.Label = label
			}
			if jsonFile != "" {
				if err := merged.WriteFile(jsonFile); err != nil {
					return err
				}
			}
			if htmlFile != "" {
				if err := report.WritePageFile(htmlFile, merged); err != nil {
					return err
				}
			}
			return merged.WriteTable(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&jsonFile, "json", "", "write the sum to this file")
	cmd.Flags().StringVar(&htmlFile, "html", "", "write a page that shows it to this file")
	cmd.Flags().StringVar(&label, "label", "", "the sum's name in tables and pages")
	return cmd
}

func tpceCompareCommand() *cobra.Command {
	var htmlFile string
	var labels []string
	cmd := &cobra.Command{
		Use:   "compare RESULT.json [RESULT.json]",
		Short: "Show one result, or two against each other",
		Long: `Show the main figures of one result, or of two against each other, and with --html draw them on a page that
needs no network: rates, response times, conflicts and processors over time, and the distribution of response times
of every transaction.`,
		Example: `  percodb bench tpce compare postgres.json percodb.json --label PostgreSQL --label percodb --html compare.html`,
		Args:    arguments(1, 2, "the FILE of a result"),
		RunE: func(cmd *cobra.Command, args []string) error {
			results, err := readResults(args)
			if err != nil {
				return err
			}
			if len(labels) > len(results) {
				return fmt.Errorf("there are %d labels for %d results", len(labels), len(results))
			}
			for i, label := range labels {
				results[i].Label = label
			}
			if htmlFile != "" {
				if err := report.WritePageFile(htmlFile, results...); err != nil {
					return err
				}
			}
			return report.WriteSummary(cmd.OutOrStdout(), results...)
		},
	}
	cmd.Flags().StringVar(&htmlFile, "html", "", "write the page to this file")
	cmd.Flags().StringArrayVar(&labels, "label", nil, "a result's name in tables and pages; once for each")
	return cmd
}

// readResults reads files that --json wrote.
func readResults(paths []string) ([]*report.Result, error) {
	var results []*report.Result
	for _, path := range paths {
		r, err := report.ReadFile(path)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}
