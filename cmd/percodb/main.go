// Command percodb is a transactional SQL database server that PostgreSQL clients connect to.
//
// It reads flags, and hands over to package node; messages for people are made here.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// postgresVersion is the PostgreSQL release whose catalogs and behaviour clients find.
const postgresVersion = "15.0"

// version is percodb's own.
const version = "0.1.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "percodb",
		Short:         "A transactional SQL database server that PostgreSQL clients connect to",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(startCommand(), checkCommand(), storeCommand(), importCommand(), sqllogicCommand(), benchCommand(), versionCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		var silent *silentError
		if !errors.As(err, &silent) {
			fmt.Fprintln(os.Stderr, "percodb:", explain(err))
		}
		os.Exit(1)
	}
}

// silentError ends the process with exit code 1 after everything has been said.
type silentError struct{}

func (*silentError) Error() string { return "failed" }

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			revision := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = " (" + s.Value[:min(12, len(s.Value))] + ")"
					}
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "percodb %s%s, compatible with PostgreSQL %s clients\n", version, revision, postgresVersion)
		},
	}
}
