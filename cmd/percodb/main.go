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
	"strings"
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
	if err := execute(ctx, rootCommand()); err != nil {
		var silent *silentError
		if !errors.As(err, &silent) {
			fmt.Fprintln(os.Stderr, "percodb:", explain(err))
		}
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "percodb",
		Short:         "A transactional SQL database server that PostgreSQL clients connect to",
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err: err} })
	root.AddCommand(startCommand(), initCommand(), userCommand(), certCommand(), checkCommand(), storeCommand(), importCommand(), copyCommand(), sqllogicCommand(), benchCommand(), bigtableEmulatorCommand(), versionCommand())
	return root
}

// execute executes the command line. An error in the command line refers to the usage.
func execute(ctx context.Context, root *cobra.Command) error {
	cmd, err := root.ExecuteContextC(ctx)
	var usage *usageError
	if errors.As(err, &usage) || err != nil && strings.HasPrefix(err.Error(), "unknown command ") {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	return err
}

// usageError is an error in flags or arguments.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// arguments requires at least least arguments and at most most; what describes them.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return &usageError{err: errors.New(what + " is missing")}
		case len(args) > most:
			return &usageError{err: fmt.Errorf("too many arguments: %q", args[most])}
		}
		return nil
	}
}

// silentError ends the process with exit code 1 when everything has been printed.
type silentError struct{}

func (*silentError) Error() string { return "failed" }

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), versionText())
		},
	}
}

func versionText() string {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " (" + s.Value[:min(12, len(s.Value))] + ")"
			}
		}
	}
	return fmt.Sprintf("percodb %s%s, compatible with PostgreSQL %s clients", version, revision, postgresVersion)
}
