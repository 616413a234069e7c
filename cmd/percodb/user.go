package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/percodb/percodb/auth/verifier"
)

// defaultURL is where a command finds the server of this machine, as its superuser.
const defaultURL = "postgres://postgres@127.0.0.1:5433/percodb"

func userCommand() *cobra.Command {
	var url string
	var grant userGrant
	cmd := &cobra.Command{
		Use:   "user NAME",
		Short: "Create a user with a password, or set a user's password",
		Long: `Create a user with a password, or set the password of a user who exists.

The password is asked for, or read as the first line of the standard input if that
is no terminal. The server is sent a verifier, from which the password does not
follow. A new user has the privileges that are granted to it, or all with
--superuser:

  percodb user admin --superuser

A role that exists and may not log in is left as it is, unless --login permits it.

The same with psql: CREATE ROLE admin LOGIN SUPERUSER; \password admin`,
		Args: arguments(1, 1, "the NAME of the user"),
		RunE: func(cmd *cobra.Command, args []string) error {
			password, err := readPassword(cmd.InOrStdin(), cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			return setPassword(cmd.Context(), url, args[0], password, grant, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&url, "url", defaultURL, "URL of the server")
	cmd.Flags().BoolVar(&grant.superuser, "superuser", false, "the user may do everything")
	cmd.Flags().BoolVar(&grant.login, "login", false, "permit a role that exists and may not log in to do so")
	return cmd
}

// readPassword asks for a password, twice on a terminal.
func readPassword(in io.Reader, out io.Writer, name string) (string, error) {
	file, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && err != io.EOF {
			return "", err
		}
		return checkPassword(strings.TrimRight(line, "\r\n"))
	}
	ask := func(prompt string) (string, error) {
		fmt.Fprint(out, prompt)
		password, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(out)
		return string(password), err
	}
	first, err := ask("Password for " + name + ": ")
	if err != nil {
		return "", err
	}
	second, err := ask("The same again: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", errors.New("the passwords differ; nothing was changed")
	}
	return checkPassword(first)
}

func checkPassword(password string) (string, error) {
	if password == "" {
		return "", errors.New("the password is empty; nothing was changed")
	}
	return password, nil
}

// userGrant is what a user gets beside the password.
type userGrant struct{ superuser, login bool }

// setPassword creates a user, or changes one.
func setPassword(ctx context.Context, url, name, password string, grant userGrant, out io.Writer) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return connectError(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	verb, did, mayLogIn := "ALTER", "changed", false
	err = conn.QueryRow(ctx, "SELECT rolcanlogin FROM pg_roles WHERE rolname = $1", name).Scan(&mayLogIn)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		verb, did, grant.login = "CREATE", "created", true
	case err != nil:
		return err
	case !mayLogIn && !grant.login:
		return fmt.Errorf("role %s may not log in (NOLOGIN), so a password has no use; nothing was changed: give --login to permit it", name)
	}
	options := ""
	if grant.login {
		options += " LOGIN"
	}
	if grant.superuser {
		options += " SUPERUSER"
	}
	// A verifier contains no quotation mark.
	_, err = conn.Exec(ctx, verb+" ROLE "+pgx.Identifier{name}.Sanitize()+options+" PASSWORD '"+verifier.New(password).String()+"'")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "user %s is %s\n", name, did)
	return nil
}

// connectError says why there is no connection, once: the client library lists each of its attempts, with and without TLS.
func connectError(err error) error {
	why := err.Error()
	var server *pgconn.PgError
	var parse *pgconn.ParseConfigError
	switch {
	case errors.As(err, &server):
		why = server.Message
		if server.Hint != "" {
			why += " (" + server.Hint + ")"
		}
	case errors.As(err, &parse):
		return fmt.Errorf("--url: %w", err)
	default:
		lines := strings.Split(why, "\n")
		why = strings.TrimSpace(lines[len(lines)-1])
	}
	return fmt.Errorf("no connection to the server: %s; give --url the address of a server that lets you in without a password, or with one you know (PGPASSWORD)", why)
}
