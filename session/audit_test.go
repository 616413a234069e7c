package session

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/percodb/percodb/audit"
	"github.com/percodb/percodb/internal/invariants"
)

// Goal: statements that are not written to the audit log allocate as much with one as without, and those that would be written allocate no more
// without one than a statement that never is.
func TestAuditCostsNothing(t *testing.T) {
	allocations := func(log *audit.Log, sql ...string) float64 {
		s := newTestServer(t)
		s.deps.Audit = log
		c := s.connect()
		c.query("create table t (a int primary key)")
		c.query("insert into t values (1)")
		return testing.AllocsPerRun(100, func() {
			for _, text := range sql {
				c.query(text)
			}
		})
	}
	log, err := audit.Open(audit.Options{File: audit.Standard, Out: io.Discard, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	block := []string{"begin", "select a from t where a = 1", "set work_mem = '5MB'", "commit"}
	with, without := allocations(log, block...), allocations(nil, block...)
	if with > without+1 && !invariants.Enabled { // Background work may allocate.
		t.Errorf("%v allocations with an audit log, %v without", with, without)
	}
}

// Goal: the log has the text of every statement that has a password without it, in whatever form it is written.
func TestAuditMasksPasswords(t *testing.T) {
	var out bytes.Buffer
	log, err := audit.Open(audit.Options{File: audit.Standard, Out: &out, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := newTestServer(t)
	s.deps.Audit = log
	c := s.connect()
	statements := []string{
		"create role a login password 'hidden'", "create user b encrypted password $$hidden$$ superuser", `alter role a with password E'hid\x64en' valid until '2030-01-01'`,
		"alter user b password 'hidden' -- hidden", "/* hidden */ create group c password U&'hidden'", "alter role nobody password 'hidden'",
		"create role d password 'hidden'; create role d password 'hidden'", "alter role a password null",
	}
	for _, text := range statements {
		c.query(text)
	}
	log.Close()
	if got := out.String(); strings.Contains(got, "hid") || strings.Count(got, "'********'") != 8 || !strings.Contains(got, "alter role a password null") {
		t.Error(got)
	}
}
