package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/mysqlimport"
	"github.com/percodb/percodb/node"
)

// Goal: an error in the command line, and of a process that is not there, says what to do next. Method: run the command
// lines that a newcomer types.
func TestErrorsSayWhatToDo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	stopNode(startNode(t, node.Options{Role: node.RoleAll, Data: dir, Listen: "127.0.0.1:0"}))
	nobody := "127.0.0.1:1"
	table := "start --engine bigtable --project p --instance i --emulator " + nobody
	for _, c := range []struct {
		line string
		want []string
	}{
		{"bogus", []string{`unknown command "bogus"`, "see percodb --help"}},
		{"start bogus", []string{`unknown command "bogus"`, "see percodb start --help"}},
		{"start --bogus", []string{"unknown flag: --bogus", "see percodb start --help"}},
		{"start --memory 1", []string{`"1" is no size`, "such as 2GB", "see percodb start --help"}},
		{"start --join " + nobody, []string{"--join has no effect with --role=all", "give --role=kv or --role=sql"}},
		{"start --role=tso --listen " + nobody, []string{"--listen has no effect with --role=tso"}},
		{"start --role=sql --join " + nobody + " --data d", []string{"--data has no effect with --role=sql"}},
		{"start --role=tso --rpc-listen 127.0.0.1:0 --data " + dir, []string{dir, "of a server on its own (--role=all)", "give --data another directory, or the --role that it belongs to"}},
		{"start --gc-life 1ms --data " + dir, []string{"--gc-life 1ms: use 1s to 8760h"}},
		{"start --gc-life 0s", []string{"--gc-life 0s: use 1s to 8760h", "see percodb start --help"}},
		{"start --gc-interval -1s", []string{"--gc-interval -1s: use 10ms to 24h"}},
		{"start --gc-lease 1ns", []string{"--gc-lease 1ns: use 100ms to 1h"}},
		{"start --authentication-timeout 0s", []string{"--authentication-timeout 0s: use 1s to 10m"}},
		{"start --authentication-timeout 2562047h", []string{"--authentication-timeout 2562047h0m0s: use 1s to 10m"}},
		{"start --max-connections 262144", []string{"--max-connections 262144: use 1 to 262143"}},
		{"start --role=tso --timestamps-above 18446744073709551615", []string{"--timestamps-above 18446744073709551615: use the largest number that a store has named"}},
		{table + " --request-timeout 0s", []string{"--request-timeout 0s: use 100ms to 5m", "see percodb start --help"}},
		{table + " --request-timeout 1ns", []string{"--request-timeout 1ns: use 100ms to 5m"}},
		{table + " --request-timeout -1s", []string{"--request-timeout -1s: use 100ms to 5m"}},
		{table + " --request-timeout 2562047h", []string{"use 100ms to 5m"}},
		{table + " --rows-per-second -1", []string{"--rows-per-second -1: use a positive number", "see percodb start --help"}},
		{table + " --table a/b", []string{`--table "a/b": Bigtable permits 1 to 50 letters, digits, _, - and ., not beginning with - or .`, "see percodb start --help"}},
		{table + " --table=", []string{`--table "": Bigtable permits`}},
		{table + " --app-profile ä", []string{`--app-profile "ä": Bigtable permits`}},
		{"init --engine bigtable --project My-Project --instance my-instance", []string{`--project "My-Project": Bigtable permits 6 to 30 lowercase letters`, "see percodb init --help"}},
		{"check --engine bigtable --project my-project --instance i", []string{`--instance "i": Bigtable permits 6 to 33`, "see percodb check --help"}},
		{"init --engine bigtable --project my-project", []string{"needs --project and --instance", "see percodb init --help"}},
		{"check --live localhost", []string{"--live localhost: use HOST:PORT, the --admin-listen address"}},
		{"store forget", []string{"the ID of the store, the column shard of percodb.ranges, is missing", "see percodb store forget --help"}},
		{"store forget kv-1 kv-2", []string{`too many arguments: "kv-2"`}},
		{"store forget kv-1 --join " + nobody, []string{"no answer from " + nobody, "give --join the address of the tso process"}},
		{"import mysql", []string{"the PATH of the dump is missing"}},
	} {
		root := rootCommand()
		root.SetArgs(strings.Fields(c.line))
		err := execute(t.Context(), root)
		if err == nil {
			t.Errorf("percodb %s: no error", c.line)
			continue
		}
		for _, want := range c.want {
			if said := explain(err); !strings.Contains(said, want) {
				t.Errorf("percodb %s: no %q in %q", c.line, want, said)
			}
		}
	}
}

// Goal: percodb sqllogic names its server with --url, as the other commands do, and with that flag's earlier name, --dsn.
func TestServerOfSQLLogic(t *testing.T) {
	for _, flag := range []string{"--url", "--dsn"} {
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetArgs([]string{"sqllogic", flag, "postgres://127.0.0.1:1/percodb", "../../test/sqllogic/testdata/pgbench.slt"})
		if err := execute(t.Context(), root); err == nil || !strings.Contains(out.String(), "127.0.0.1:1") {
			t.Errorf("%s: %v, %s", flag, err, out.String())
		}
	}
}

func TestVersionFlag(t *testing.T) {
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs([]string{"--version"})
	if err := execute(t.Context(), root); err != nil || !strings.HasPrefix(out.String(), "percodb "+version) {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// Goal: a process that waits for the tso process says so while it waits. Method: start one without a tso process, until
// its log names the address.
func TestWaitingForTheOracleIsLogged(t *testing.T) {
	said := make(chan string, 1)
	logger := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		select {
		case said <- string(p):
		default:
		}
		return len(p), nil
	}), nil))
	failed := make(chan error, 1)
	ctx := t.Context()
	go func() {
		n, err := node.Start(ctx, node.Options{Role: node.RoleSQL, Listen: "127.0.0.1:0", Join: "127.0.0.1:1", Logger: logger})
		if err == nil {
			stopNode(n)
			err = errors.New("it started")
		}
		failed <- err
	}()
	select {
	case text := <-said:
		if !strings.Contains(text, "waiting for the tso process") || !strings.Contains(text, "127.0.0.1:1") {
			t.Error(text)
		}
	case err := <-failed:
		t.Errorf("ended before: %v", err)
	case <-time.After(time.Minute):
		t.Error("nothing was logged")
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Goal: the error of an import keeps its lines, and does not advise to go on where nothing was begun.
func TestImportErrorsAreReadable(t *testing.T) {
	broken := fmt.Errorf("dump.sql:6: %w", &pgconn.PgError{Message: "it exists", Severity: "ERROR", Code: "42P07"})
	if got, want := explain(importError(false, &mysqlimport.Report{}, broken)), "dump.sql:6: ERROR: it exists (SQLSTATE 42P07)\nThis command has imported nothing."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := explain(importError(false, &mysqlimport.Report{}, io.ErrUnexpectedEOF)); !strings.Contains(got, "\nThe import is not complete") || !strings.Contains(got, "same command continues") {
		t.Errorf("%q", got)
	}
	some := &mysqlimport.Report{Tables: make([]mysqlimport.TableReport, 1)}
	if got := explain(importError(true, some, broken)); !strings.HasPrefix(got, "interrupted\nThe import is not complete: 0 rows of 1 table imported") {
		t.Errorf("%q", got)
	}
}
