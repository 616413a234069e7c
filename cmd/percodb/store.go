package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/node"
)

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Administer the stores of a cluster"}
	cmd.AddCommand(forgetCommand())
	return cmd
}

func forgetCommand() *cobra.Command {
	var join string
	var files tlsfiles.Files
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget ID --join HOST:PORT",
		Short: "Exclude a store that is gone for good from its cluster",
		Long: `Exclude a store from its cluster when its process and its data are gone for good.

An oracle that has lost its data directory, or has an older one, serves only when
every store has told its newest timestamp; garbage collection and some views need
every store as well. A forgotten store is no longer waited for.

What the store had is lost: its ranges begin anew, empty, on other stores.
Transactions that were committing at the time, and whose first key lay there, are
rolled back on the other stores. Afterwards percodb check --live lists index
entries without rows and the like; restore the tables from a backup, or drop them.
The store's data directory cannot be used in the cluster again.

A store that still answers is not forgotten.`,
		Args: arguments(1, 1, "the ID of the store, the column shard of percodb.ranges,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			confirm := func(what string) error { return askToConfirm(cmd.InOrStdin(), cmd.OutOrStdout(), args[0], what) }
			if yes {
				confirm = func(string) error { return nil }
			}
			if err := checkClusterTLS(files); err != nil {
				return err
			}
			return forgetStore(cmd.Context(), join, args[0], files, confirm, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&join, "join", "127.0.0.1:7000", "HOST:PORT of the tso process")
	clusterTLSFlags(cmd.Flags(), &files, "the operator (percodb cert makes one)")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// forgetStore excludes a store once confirm has returned nil.
func forgetStore(ctx context.Context, join, id string, files tlsfiles.Files, confirm func(what string) error, out io.Writer) error {
	would, err := node.ForgetStore(ctx, join, id, files, true)
	if unavailable, ok := errkind.As[*kv.UnavailableError](err); ok {
		return fmt.Errorf("no answer from %s: give --join the address of the tso process, its --rpc-listen (%w)", join, unavailable.Err)
	}
	if err != nil {
		return err
	}
	what := fmt.Sprintf("Store %s has not registered with this oracle: the ranges that it had, if any, will be lost and created again, empty, on other stores.", id)
	if would.Registered {
		what = fmt.Sprintf("Store %s was last at %s. %s will be lost and created again, empty, on other stores.", id, would.Addr, plural.Count(would.Ranges, "range"))
	}
	if err := confirm(what); err != nil {
		return err
	}
	if _, err := node.ForgetStore(ctx, join, id, files, false); err != nil {
		return err
	}
	fmt.Fprintf(out, "store %s is forgotten\n", id)
	return nil
}

// askToConfirm prints the consequences and requires the operator to type the store's name.
func askToConfirm(in io.Reader, out io.Writer, id, what string) error {
	fmt.Fprintln(out, what)
	if file, ok := in.(*os.File); ok && !term.IsTerminal(int(file.Fd())) {
		return fmt.Errorf("nothing was changed: confirm with --yes")
	}
	fmt.Fprintf(out, "This cannot be undone. Type %s to go on: ", id)
	line, err := bufio.NewReader(in).ReadString('\n')
	if strings.TrimSpace(line) != id {
		if err != nil && err != io.EOF {
			return err
		}
		return fmt.Errorf("nothing was changed")
	}
	return nil
}
