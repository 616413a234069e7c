package auth

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/percodb/percodb/audit"
	"github.com/percodb/percodb/auth/verifier"
	"github.com/percodb/percodb/sql/pgerror"
)

// Goal: a flood of refusals is logged at a bounded rate, and none goes uncounted; one from elsewhere is listed still. The same holds of the
// audit log.
func TestFloodOfRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log, audited bytes.Buffer
		events, err := audit.Open(audit.Options{File: audit.Standard, Out: &audited, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		gate, err := NewGate(Options{Rules: "host all all all reject\n", Logger: slog.New(slog.NewTextHandler(&log, nil)), Audit: events})
		if err != nil {
			t.Fatal(err)
		}
		refuse := func(ip string, n int) {
			for range n {
				client := &Client{Addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 9}, User: "x"}
				_, err := gate.Admit(t.Context(), client, nil)
				gate.Report(client, err)
			}
		}
		refuse("192.0.2.1", 1000)
		refuse("192.0.2.2", 1)
		time.Sleep(countAfter + time.Second) // In the bubble's time, for the timer.
		synctest.Wait()
		refuse("192.0.2.1", 50)
		for i := range 1000 {
			refuse(fmt.Sprintf("198.51.%d.%d", i/250, i%250), 1)
		}
		gate.Close()
		events.Close()
		listed, last := strings.Count(log.String(), "client refused"), strings.Count(log.String(), "address=192.0.2.2")
		if listed > 2*addressBurst+allBurst+int(countAfter/allEvery) || last != 1 {
			t.Errorf("%d lines, %d of the second address", listed, last)
		}
		counted := 0
		for line := range strings.Lines(log.String()) {
			var n int
			if _, rest, ok := strings.Cut(line, "not listed\" count="); ok {
				if _, err := fmt.Sscan(rest, &n); err != nil {
					t.Fatal(err)
				}
				counted += n
			}
		}
		if listed+counted != 2051 {
			t.Errorf("%d listed and %d counted of 2051", listed, counted)
		}
		if n := strings.Count(audited.String(), `"login_failed"`); n != listed || !strings.Contains(audited.String(), `"login_failed_more"`) {
			t.Errorf("the audit log has %d of %d", n, listed)
		}
	})
}

// Goal: passwords in clear are judged by the rules; a verifier with many iterations costs nothing, few are checked at the same time, and
// failures delay.
func TestAdmitPassword(t *testing.T) {
	var log strings.Builder
	stored := verifier.New("secret").String()
	slow := strings.Replace(stored, "4096", "9000000", 1)
	gate, err := NewGate(Options{
		Rules:  "host all barred all reject\nhost all nobody,slow,alice,expired 192.0.2.0/24 scram-sha-256\nhost all open 192.0.2.0/24 trust\n",
		Roles:  someRoles{"alice": {Verifier: stored}, "open": {Verifier: stored}, "barred": {Verifier: stored}, "slow": {Verifier: slow}, "expired": {Verifier: stored, Expires: time.Unix(0, 0)}},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	try := func(user, password string, host byte) error {
		client := &Client{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, host), Port: 9}, User: user, Database: "percodb"}
		_, err := gate.AdmitPassword(context.Background(), client, password)
		if err != nil {
			gate.Report(client, err)
		}
		return err
	}
	const failed = `28P01 password authentication failed for user "`
	for i, c := range []struct{ user, password, want, logged string }{
		{"alice", "secret", "", ""},
		{"alice", "x", failed + `alice"`, "the password is wrong"},
		{"open", "secret", "", ""},
		{"open", "x", failed + `open"`, "the password is wrong"}, // A password is needed with trust as well.
		{"barred", "secret", `28000 pg_hba.conf rejects connection for host "192.0.2.5", user "barred", database "percodb", no encryption`, "line=1"},
		{"nobody", "secret", failed + `nobody"`, "does not exist"},
		{"expired", "secret", failed + `expired"`, "expired password"},
		{"slow", "secret", failed + `slow"`, "more than 1000000 iterations"},
	} {
		if got := describe(try(c.user, c.password, byte(i+1))); got != c.want || !strings.Contains(log.String(), c.logged) {
			t.Errorf("%s, %s: %q, want %q; logged %s", c.user, c.password, got, c.want, log.String())
		}
	}
	if err := try("alice", "secret", 1); err != nil {
		t.Error(err)
	}
	// The one check that is permitted at a time lasts: of one address, as many as may wait do, and another one is refused.
	gate.deriving <- struct{}{}
	done := make(chan error)
	for range maxWaiting + 1 {
		go func() { done <- try("alice", "secret", 77) }()
	}
	if err := <-done; describe(err) != string(pgerror.TooManyConnections)+" too many failed logins from this address" {
		t.Errorf("the check that is too much: %v", err)
	}
	<-gate.deriving
	for range maxWaiting {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
