package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/sql/keyword"
)

func certCommand() *cobra.Command {
	var dir string
	var trial certs.Trial
	cmd := &cobra.Command{
		Use:   "cert",
		Short: "Make certificates for a trial",
		Long: `Make an authority and the certificates that it issues: for the server of SQL clients, for
clients, and for each role of the processes of a cluster; and hba.conf, rules by which clients
need a certificate. Keys are ECDSA P-256. The certificates are valid for a year, the authority
for ten.

Whoever has ca.key can make certificates that percodb trusts: keep it away from servers, or
delete it when no more certificates are needed. Files that exist are not overwritten.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hosts := trial.Hosts
			if len(hosts) == 0 {
				trial.Hosts = certs.Loopback
			}
			if slices.Contains(trial.Hosts, "") {
				return &usageError{err: errors.New("--host: the name is empty")}
			}
			users := trial.Users
			if !slices.Contains(users, catalog.BootstrapSuperuserName) {
				trial.Users = append([]string{catalog.BootstrapSuperuserName}, users...) // Somebody has to create the roles.
			}
			if err := certs.WriteTrial(dir, trial); err != nil {
				return err
			}
			printTrial(cmd.OutOrStdout(), dir, hosts, users)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "certs", "directory for the files; it is created if it is missing")
	cmd.Flags().StringSliceVar(&trial.Hosts, "host", nil, "names and IP addresses by which clients and processes reach the servers (default: this machine alone, "+strings.Join(certs.Loopback, ",")+")")
	cmd.Flags().StringSliceVar(&trial.Users, "user", []string{catalog.BootstrapSuperuserName}, "roles of the database that get client certificates, beside "+catalog.BootstrapSuperuserName)
	return cmd
}

// printTrial prints how to use the certificates in dir; without hosts they are for this machine.
func printTrial(out io.Writer, dir string, hosts, users []string) {
	host, name := "127.0.0.1", "localhost" // libpq before 15 finds no addresses in certificates
	if len(hosts) > 0 {
		host, name = hosts[0], hosts[0]
	}
	server := certs.ServerFiles(dir)
	fmt.Fprintf(out, `Certificates for a year are in %s. Keep ca.key away from servers.

A server, for clients with a certificate:
  percodb start --listen %s --tls-cert %s --tls-key %s --tls-ca %s --hba %s
`, filepath.Clean(dir), net.JoinHostPort(host, "5433"), shellQuote(server.Cert), shellQuote(server.Key), shellQuote(server.CA), shellQuote(certs.RulesFile(dir)))
	psql := func(user string) string {
		f := certs.ClientFiles(dir, user)
		return "  psql " + shellQuote(fmt.Sprintf("host=%s port=5433 dbname=percodb user=%s sslmode=verify-full sslrootcert=%s sslcert=%s sslkey=%s",
			conninfoQuote(name), conninfoQuote(user), conninfoQuote(f.CA), conninfoQuote(f.Cert), conninfoQuote(f.Key)))
	}
	for _, user := range users {
		if user != catalog.BootstrapSuperuserName {
			fmt.Fprintf(out, "%s -c %s\n", psql(catalog.BootstrapSuperuserName), shellQuote("CREATE ROLE "+keyword.QuoteIdent(user)+" LOGIN"))
		}
		fmt.Fprintln(out, psql(user))
	}
	files := func(f tlsfiles.Files) string {
		return fmt.Sprintf("--cluster-tls-cert %s --cluster-tls-key %s --cluster-tls-ca %s", shellQuote(f.Cert), shellQuote(f.Key), shellQuote(f.CA))
	}
	process := func(role certs.Role) string { return files(certs.ProcessFiles(dir, role)) }
	oracle := net.JoinHostPort(host, "7000")
	fmt.Fprintf(out, `
A cluster, each process with the certificate of its role:
  percodb start --role=tso --rpc-listen %s --data tso-data %s
  percodb start --role=kv --rpc-listen %s --data kv1-data --join %s %s
  percodb start --role=sql --listen 127.0.0.1:5433 --join %s %s
`, oracle, process(certs.TSO), net.JoinHostPort(host, "7001"), oracle, process(certs.KV), oracle, process(certs.SQL))
}

// conninfoQuote returns text as a value in a connection string of libpq.
func conninfoQuote(text string) string {
	if text != "" && !strings.ContainsAny(text, ` '\\`+"\t\n") {
		return text
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// shellQuote returns text as one word of a shell.
func shellQuote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@,+%"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
