package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/node"
)

// The engines that keep the data.
const (
	enginePebble   = "pebble"
	engineBigtable = "bigtable"
)

// engineFlags are the flags of start about where the data is.
type engineFlags struct {
	engine                                         string
	project, instance, table, appProfile, emulator string
	requestTimeout                                 time.Duration
	rowsPerSecond                                  int
}

// add adds the flags. missing says what becomes of a table that does not exist.
func (f *engineFlags) add(flags *pflag.FlagSet, missing string) {
	flags.StringVar(&f.engine, "engine", enginePebble, "what keeps the data: pebble, in --data, or bigtable, in a table of Google's Bigtable")
	flags.StringVar(&f.project, "project", "", "Google Cloud project of the instance (engine bigtable)")
	flags.StringVar(&f.instance, "instance", "", "instance of Bigtable (engine bigtable)")
	flags.StringVar(&f.table, "table", "percodb", "table, which "+missing+" (engine bigtable)")
	flags.StringVar(&f.appProfile, "app-profile", "", "application profile, which must route to a single cluster (engine bigtable; default: the instance's default profile)")
	flags.StringVar(&f.emulator, "emulator", "", "HOST:PORT of an emulator, such as percodb bigtable-emulator, in the place of Google's service (engine bigtable)")
	flags.DurationVar(&f.requestTimeout, "request-timeout", bigtable.DefaultRequestTimeout, "how long Bigtable may be silent about a request before it is repeated or given up (engine bigtable)")
}

// addLimits adds the flags of start alone.
func (f *engineFlags) addLimits(flags *pflag.FlagSet) {
	flags.IntVar(&f.rowsPerSecond, "rows-per-second", 0,
		"rows that this process reads and locks in the table in a second at most, a row that is locked counted twice; what exceeds it waits (engine bigtable; 0: no limit)")
}

// Flags that belong to one engine.
var (
	bigtableFlags = []string{"project", "instance", "table", "app-profile", "emulator", "request-timeout", "rows-per-second"}
	pebbleFlags   = []string{"data", "join", "accept-data-loss", "timestamps-above", "cache-mb"}
)

// check refuses flags that have no effect with the engine.
func (f *engineFlags) check(flags *pflag.FlagSet, role node.Role) error {
	others := bigtableFlags
	switch f.engine {
	case enginePebble:
	case engineBigtable:
		others = pebbleFlags
		if role != node.RoleAll {
			return fmt.Errorf("--role=%s has no effect with --engine bigtable: every process has sessions, and one of them issues the timestamps", role)
		}
		if err := f.checkTable(); err != nil {
			return &usageError{err: err}
		}
	default:
		return fmt.Errorf("--engine %s: use %s or %s", f.engine, enginePebble, engineBigtable)
	}
	for _, name := range others {
		if flags.Changed(name) {
			return fmt.Errorf("--%s has no effect with --engine %s", name, f.engine)
		}
	}
	return nil
}

// The least and the longest --request-timeout.
const (
	leastRequestTimeout = 100 * time.Millisecond
	mostRequestTimeout  = 5 * time.Minute // less than history is kept: a late request brings nothing back
)

// checkTable refuses values of flags that Bigtable, or percodb, could not work with.
func (f *engineFlags) checkTable() error {
	switch {
	case f.project == "" || f.instance == "":
		return errors.New("--engine bigtable needs --project and --instance; with --emulator they may be p and i")
	case f.requestTimeout < leastRequestTimeout || f.requestTimeout > mostRequestTimeout:
		return fmt.Errorf("--request-timeout %v: use 100ms to 5m", f.requestTimeout)
	case f.rowsPerSecond < 0:
		return fmt.Errorf("--rows-per-second %d: use a positive number, or 0 for no limit", f.rowsPerSecond)
	}
	err := f.options().CheckNames()
	if name := (*bigtable.NameError)(nil); errors.As(err, &name) {
		return fmt.Errorf("--%w", name)
	}
	return err
}

// options are those of the table, nil with another engine.
func (f *engineFlags) options() *bigtable.Options {
	if f.engine != engineBigtable {
		return nil
	}
	return &bigtable.Options{Project: f.project, Instance: f.instance, Table: f.table, AppProfile: f.appProfile, Emulator: f.emulator,
		RequestTimeout: f.requestTimeout, RowsPerSecond: f.rowsPerSecond}
}

func initCommand() *cobra.Command {
	var f engineFlags
	cmd := &cobra.Command{
		Use:   "init --engine bigtable --project PROJECT --instance INSTANCE [flags]",
		Short: "Prepare an instance of Bigtable: create the table, check the application profile",
		Long: `Prepare an instance of Google's Bigtable for percodb start: create the table with its families unless they exist,
and check that the application profile routes to a single cluster and allows single-row transactions.

It needs the role roles/bigtable.admin; percodb start over a table that exists needs roles/bigtable.user. The
credentials are those that Google's libraries find. With the engine pebble there is nothing to prepare: percodb start
makes the directory.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.engine != engineBigtable {
				return &usageError{err: errors.New("--engine bigtable is missing: with the engine pebble, percodb start prepares the directory")}
			}
			if err := f.check(cmd.Flags(), node.RoleAll); err != nil {
				return err
			}
			setup, err := bigtable.CreateTable(cmd.Context(), *f.options())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			switch {
			case setup.Created:
				fmt.Fprintf(out, "created the table %s with the families %s\n", f.table, strings.Join(setup.Families, ", "))
			case len(setup.Families) > 0:
				fmt.Fprintf(out, "the table %s exists; added the families %s\n", f.table, strings.Join(setup.Families, ", "))
			default:
				fmt.Fprintf(out, "the table %s exists, with all its families\n", f.table)
			}
			fmt.Fprintln(out, cmp.Or(setup.Profile, "the application profile cannot be read here; percodb start finds out whether it permits conditional requests"))
			return nil
		},
	}
	f.add(cmd.Flags(), "is created if there is none")
	return cmd
}

// rpcListen is where other processes reach the coordinator, by default at any free port of this machine.
func (f *engineFlags) rpcListen(given string) string {
	if f.engine != engineBigtable {
		return given
	}
	return cmp.Or(given, "127.0.0.1:0")
}

// flagUsable reports whether a flag that belongs to other roles has an effect with the engine.
func (f *engineFlags) flagUsable(name string) bool {
	return f.engine == engineBigtable && slices.Contains([]string{"rpc-listen", "rpc-advertise", "cluster-tls-cert", "cluster-tls-key", "cluster-tls-ca"}, name)
}

// emulatorGCPercent is how much the emulator's memory grows before garbage is collected: it makes much of it for every row, and
// keeps little.
const emulatorGCPercent = 400

func bigtableEmulatorCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "bigtable-emulator",
		Short: "Run Google's emulator of Bigtable, for a trial without an account",
		Long: `Run Google's emulator of Bigtable. Its rows are in memory, and end with it:

  percodb bigtable-emulator
  percodb start --engine bigtable --project p --instance i --emulator 127.0.0.1:8086`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !isLoopback(listen) {
				return fmt.Errorf("--listen %s can be reached from other machines, and the emulator lets everyone in: listen on 127.0.0.1", listen)
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(emulatorGCPercent)
			}
			emulator, err := bigtable.StartEmulator(listen)
			if err != nil {
				return err
			}
			defer emulator.Close()
			fmt.Fprintf(cmd.OutOrStdout(), "percodb bigtable-emulator is ready on %s: percodb start --engine bigtable --project p --instance i --emulator %[1]s\n"+
				"Its rows are in memory, and end with it.\n", emulator.Addr())
			<-cmd.Context().Done()
			return nil
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8086", "HOST:PORT for percodb start --emulator")
	return cmd
}
