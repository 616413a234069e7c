package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/node"
	"github.com/percodb/percodb/server"
)

func checkCommand() *cobra.Command {
	var data, live []string
	var operator operatorFlags
	var table engineFlags
	cmd := &cobra.Command{
		Use:   "check [--data DIR]… | --engine bigtable --project PROJECT --instance INSTANCE | --live HOST:PORT…",
		Short: "Verify the data of a stopped or a running server",
		Long: `Verify the data of a stopped or a running server: that records can be read and
timestamps could have been issued; that no transaction is both committed and
rolled back, or committed at two timestamps; locks against the outcome of their
transactions; long values against their versions; ranges; rows against their
tables, and index entries against rows in both directions. It repairs nothing.

A stopped cluster is verified whole when the directories of all its processes
are given. Of a running one, each process verifies what it holds: give the
--admin-listen addresses of all stores and of one SQL process; what was not
given, or does not answer, is listed. A running server goes on serving, more
slowly.

A table of Bigtable is verified by --engine bigtable while no process runs over it.

The exit code is 1 when something is wrong, or could not be verified.`,
		Example: `  percodb check --data ./percodb-data
  percodb check --data tso-data --data kv1-data --data kv2-data
  percodb check --engine bigtable --project PROJECT --instance INSTANCE
  percodb check --live 127.0.0.1:8001,127.0.0.1:8002,127.0.0.1:8003`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := newCheckPrinter(cmd.OutOrStdout())
			err := table.check(cmd.Flags(), node.RoleAll)
			if err != nil {
				return err
			}
			if len(live) > 0 {
				err = checkAllLive(cmd.Context(), operator, live, p)
			} else if options := table.options(); options != nil {
				if err = node.CheckTable(cmd.Context(), node.Options{Role: node.RoleAll, Bigtable: options}, p.report("")); err != nil {
					err = &startError{flags: startFlags{engine: table}, err: err}
				}
			} else if err = node.CheckStopped(cmd.Context(), node.Options{Role: node.RoleAll}, data, p.report("")); err != nil {
				err = &startError{flags: startFlags{data: strings.Join(data, ", ")}, err: err}
			}
			return p.finish(err)
		},
	}
	cmd.Flags().StringSliceVar(&data, "data", []string{"./percodb-data"}, "directory of the data of a stopped server; of a cluster, give all of them")
	table.add(cmd.Flags(), "must exist")
	cmd.Flags().StringSliceVar(&live, "live", nil, "HOST:PORT, the --admin-listen address of a running server; of a cluster, give those of all stores and of one SQL process")
	clusterTLSFlags(cmd.Flags(), &operator.files, "the operator; for --live with addresses beyond this machine (percodb cert makes one)")
	cmd.Flags().StringVar(&operator.user, "user", "", "superuser whose password, in $PGPASSWORD, is given to --live addresses beyond this machine, in place of a certificate")
	cmd.Flags().StringVar(&operator.ca, "tls-ca", "", "PEM file: the authorities of the server's certificate, with --user (default: the system's)")
	cmd.MarkFlagsMutuallyExclusive("data", "live", "engine")
	return cmd
}

// checkPrinter prints findings as they come, and shows on a terminal how far the check is.
type checkPrinter struct {
	out      io.Writer
	bar      *progressbar.ProgressBar // nil without a terminal
	begun    time.Time
	findings int
	expected map[string]bool // parts of the data; true: verified
}

func newCheckPrinter(out io.Writer) *checkPrinter {
	p := &checkPrinter{out: out, begun: time.Now(), expected: map[string]bool{}}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		p.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetWidth(10), progressbar.OptionShowCount(),
			progressbar.OptionSetItsString("records"), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return p
}

// line prints a line where the bar was.
func (p *checkPrinter) line(text string) {
	if p.bar != nil {
		_ = p.bar.Clear() // a terminal that cannot be cleared shows the bar before the line
	}
	fmt.Fprintln(p.out, text)
}

// report returns a CheckReport that prints each line after prefix.
func (p *checkPrinter) report(prefix string) server.CheckReport {
	return server.CheckReport{
		Finding: func(text string) {
			p.findings++
			p.line(prefix + text)
		},
		Note: func(text string) { p.line(prefix + text) },
		Expect: func(part string) {
			if _, known := p.expected[part]; !known {
				p.expected[part] = false
			}
		},
		Verified: func(part string) { p.expected[part] = true },
		Progress: func(what string, records int64) {
			if p.bar != nil {
				p.bar.Describe(prefix + what)
				_ = p.bar.Set64(records) // it has no upper bound to be passed
			}
		},
	}
}

// unseen lists the parts of the data that were not verified.
func (p *checkPrinter) unseen() (parts []string) {
	for part, verified := range p.expected {
		if !verified {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return parts
}

// finish prints the verdict.
func (p *checkPrinter) finish(err error) error {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
	took := time.Since(p.begun).Round(time.Millisecond)
	switch {
	case err != nil:
		if p.findings > 0 {
			p.line(fmt.Sprintf("%s until the check was cut short after %v", plural.Count(p.findings, "finding"), took))
		}
		return err
	}
	unseen := p.unseen()
	for _, part := range unseen {
		p.line("not verified: " + part)
	}
	if p.findings > 0 || len(unseen) > 0 {
		p.line(fmt.Sprintf("%s in %v, %s of the data not verified", plural.Count(p.findings, "finding"), took, plural.Count(len(unseen), "part")))
		return &silentError{}
	}
	p.line(fmt.Sprintf("no findings in %v", took))
	return nil
}

// checkAllLive requests a check of their data from running processes. If one fails the others continue; an error means
// that all have failed.
func checkAllLive(ctx context.Context, flags operatorFlags, addrs []string, p *checkPrinter) error {
	operator, err := flags.client()
	if err != nil {
		return err
	}
	var failed []error
	for _, addr := range addrs {
		if err := checkLive(ctx, operator, addr, p.report(addr+": ")); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == len(addrs) {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		p.expected[err.Error()] = false
	}
	return nil
}

// operatorFlags are by what an admin endpoint beyond this machine knows who asks.
type operatorFlags struct {
	files    tlsfiles.Files // of the cluster
	user, ca string
}

// client returns a client with the operator's certificate or password; nil if there is neither.
func (f *operatorFlags) client() (*http.Client, error) {
	if err := checkClusterTLS(f.files); err != nil {
		return nil, err
	}
	switch {
	case f.files != (tlsfiles.Files{}) && f.user != "":
		return nil, errors.New("--user has no effect with --cluster-tls-cert: give one of them")
	case f.files != (tlsfiles.Files{}):
		return node.OperatorClient(f.files)
	case f.user == "":
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, err
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--tls-ca %s: there is no certificate in PEM format", f.ca)
		}
	}
	return &http.Client{Transport: &withPassword{user: f.user, password: os.Getenv("PGPASSWORD"), next: &http.Transport{TLSClientConfig: config}}}, nil
}

// withPassword adds a role's name and password to requests.
type withPassword struct {
	user, password string
	next           http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p *withPassword) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.SetBasicAuth(p.user, p.password)
	return p.next.RoundTrip(r)
}

// checkLive requests a check of its data from a running process: over HTTP on this machine, elsewhere over HTTPS by operator,
// which is nil if there is no certificate.
func checkLive(ctx context.Context, operator *http.Client, addr string, r server.CheckReport) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fmt.Errorf("--live %s: use HOST:PORT, the --admin-listen address of a running server", addr)
	}
	client, scheme := http.DefaultClient, "http"
	if !isLoopback(addr) {
		if operator == nil {
			return fmt.Errorf("%s is beyond this machine and serves operators only: give --cluster-tls-cert, --cluster-tls-key and --cluster-tls-ca, or --user", addr)
		}
		client, scheme = operator, "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://"+addr+"/check", nil)
	if err != nil {
		return fmt.Errorf("--live %s: use HOST:PORT, the --admin-listen address of a running server", addr)
	}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no answer from %s: is it the --admin-listen address of a running server? (%w)", addr, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 200)) // the status suffices
		return fmt.Errorf("%s refuses: %s (%s)", addr, strings.TrimSpace(string(said)), res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e server.CheckEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s: not the answer of a check: %w", addr, err)
		}
		switch {
		case e.Done && e.Error != "":
			return fmt.Errorf("%s: %s", addr, e.Error)
		case e.Done:
			return nil
		case e.Finding != "":
			r.Finding(e.Finding)
		case e.Note != "":
			r.Note(e.Note)
		case e.Expect != "":
			r.Expect(e.Expect)
		case e.Verified != "":
			r.Verified(e.Verified)
		default:
			r.Progress(e.What, e.Records)
		}
	}
	return fmt.Errorf("%s ended before the check did: %w", addr, errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}
