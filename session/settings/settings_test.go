package settings

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
)

func newSettings() *Settings { return New(map[string]string{"server_version": "15.8"}) }

// Goal: a session reports the settings that clients track once each, and after that those that have changed.
func TestReport(t *testing.T) {
	s := newSettings()
	report := func() string {
		var all []string
		s.Report(func(name, value string) { all = append(all, name+"="+value) })
		return strings.Join(all, " ")
	}
	if first := report(); strings.Count(first, "=") != 13 || !strings.Contains(first, "server_version=15.8") {
		t.Errorf("at first: %s", first)
	}
	if again := report(); again != "" || s.Changed() {
		t.Errorf("reported twice: %s", again)
	}
	for name, value := range map[string]string{"timezone": "UTC+1", "work_mem": "1MB"} {
		if err := s.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if changed := report(); !strings.HasPrefix(changed, "TimeZone=") || strings.Contains(changed, "work_mem") {
		t.Errorf("changed: %s", changed)
	}
	s.EndTransaction(false)
	if back := report(); back != "TimeZone=UTC" {
		t.Errorf("rolled back: %s", back)
	}
}

// Goal: SET, SET LOCAL, RESET, savepoints and the end of a transaction change values as in PostgreSQL. Method: scripts of one
// parameter; each line of a script shows its value afterwards.
func TestTransactions(t *testing.T) {
	for _, script := range []string{
		"set SQL: SQL; commit: SQL; set German: German; rollback: SQL; reset: ISO; commit: ISO",
		"local SQL: SQL; commit: ISO",
		"local SQL: SQL; rollback: ISO",
		"local SQL: SQL; set German: German; commit: German",
		"set SQL: SQL; local German: German; commit: SQL",
		"set SQL: SQL; mark: SQL; set German: German; back: SQL; commit: SQL",
		"local SQL: SQL; mark: SQL; local German: German; back: SQL; commit: ISO",
		"set SQL: SQL; commit: SQL; reset local: ISO; commit: SQL",
		"set SQL: SQL; commit: SQL; local German: German; reset all: ISO; commit: ISO",
		"local SQL: SQL; reset all: ISO; rollback: ISO",
	} {
		s := newSettings()
		var mark Mark
		for step := range strings.SplitSeq(script, "; ") {
			what, want, _ := strings.Cut(step, ": ")
			word, value, _ := strings.Cut(what, " ")
			var err error
			switch {
			case word == "set":
				err = s.Set("datestyle", value)
			case word == "local":
				err = s.SetLocal("DateStyle", value)
			case what == "reset":
				err = s.Reset("datestyle")
			case what == "reset local":
				err = s.ResetLocal("datestyle")
			case what == "reset all":
				err = s.ResetAll()
			case word == "mark":
				mark = s.Mark()
			case word == "back":
				s.RollbackTo(mark)
			default:
				s.EndTransaction(word == "commit")
			}
			if err != nil {
				t.Errorf("%s, %s: %v", script, step, err)
			}
			got, _ := s.Get("datestyle")
			if style, _, _ := strings.Cut(got, ","); style != want || !strings.HasPrefix(want, dateStyles[s.Format.DateStyle]) {
				t.Errorf("%s, %s: %s, decoded %v", script, step, got, s.Format.DateStyle)
			}
		}
	}
}

// Goal: the values that statements read are decoded, those that RESET returns to are of the startup packet, and callers learn
// of changes.
func TestDecoded(t *testing.T) {
	s := newSettings()
	changes := 0
	s.OnChange(func() { changes++ })
	err := s.Start(map[string]string{
		"user": "someone", "database": "x", "statement_timeout": "2s",
		"options": `-c search_path=a,\ "B"  --default-transaction-read-only=on`,
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.StatementTimeout != 2*time.Second || fmt.Sprint(s.SearchPath) != "[a B]" || !s.Modes.ReadOnly {
		t.Errorf("%v %v %v", s.StatementTimeout, s.SearchPath, s.Modes)
	}
	if err := s.Set("statement_timeout", "0"); err != nil || s.StatementTimeout != 0 || changes != 1 {
		t.Errorf("%v: %v, %d changes", err, s.StatementTimeout, changes)
	}
	if err := s.Reset("statement_timeout"); err != nil || s.StatementTimeout != 2*time.Second || changes != 2 {
		t.Errorf("%v: %v, %d changes", err, s.StatementTimeout, changes)
	}
}

// Goal: values and names that do not exist are refused with PostgreSQL's SQLSTATE, and change nothing.
func TestRefused(t *testing.T) {
	s := newSettings()
	for _, c := range []struct {
		name, value string
		code        pgerror.Code
	}{
		{"nothing", "1", "42704"},
		{"server_version", "1", "55P02"},
		{"max_connections", "1", "55P02"},
		{"lock_timeout", "soon", "22023"},
		{"lock_timeout", "-1", "22023"},
		{"default_transaction_isolation", "none", "22023"},
		{"datestyle", "ISO, SQL", "22023"},
		{"timezone", "Atlantis", "22023"},
		{"client_encoding", "LATIN1", "22023"},
		{"default_with_oids", "on", "0A000"},
		{"synchronize_seqscans", "sometimes", "22023"},
	} {
		before := fmt.Sprint(s.All())
		err := s.Set(c.name, c.value)
		pg, ok := err.(*pgerror.Error)
		if !ok || pg.Code != c.code {
			t.Errorf("%s = %s: %v", c.name, c.value, err)
		}
		if after := fmt.Sprint(s.All()); after != before {
			t.Errorf("%s = %s has changed something", c.name, c.value)
		}
	}
	if _, err := s.Get("my.own"); err == nil {
		t.Error("a custom parameter that was never set has a value")
	}
	if err := s.Set("my.own", "x"); err != nil {
		t.Error(err)
	}
	if value, err := s.Get("My.Own"); err != nil || value != "x" {
		t.Errorf("my.own is %q, %v", value, err)
	}
}

// Goal: SHOW, SET and RESET of a parameter that is kept elsewhere reach that place; rollbacks and RESET ALL do not.
func TestLive(t *testing.T) {
	s := newSettings()
	value := "serializable"
	var assigned []string
	s.Live("transaction_isolation", func() string { return value }, func(v string) error {
		assigned = append(assigned, v)
		value = v
		return nil
	})
	for name, f := range map[string]func() error{
		"SET": func() error { return s.Set("transaction_isolation", "READ committed") }, "SET LOCAL": func() error { return s.SetLocal("transaction_isolation", "read committed") },
	} {
		value, assigned = "serializable", nil
		if err := f(); err != nil || value != "read committed" || len(assigned) != 1 {
			t.Errorf("%s: %v, assigned %v", name, err, assigned)
		}
		s.EndTransaction(false)
		if err := s.ResetAll(); err != nil || len(assigned) != 1 {
			t.Errorf("after %s: %v, assigned %v", name, err, assigned)
		}
		if got, err := s.Get("Transaction_Isolation"); err != nil || got != "read committed" {
			t.Errorf("after %s: %s, %v", name, got, err)
		}
		s.EndTransaction(true)
	}
	if err := s.Set("default_transaction_isolation", "serializable"); err != nil {
		t.Fatal(err)
	}
	if err := s.Reset("transaction_isolation"); err != nil || value != "serializable" {
		t.Errorf("RESET: %v, %s", err, value)
	}
}

// Goal: the settings at the beginning of a pg_dump of PostgreSQL 15, and of the scripts that it and older ones write, are accepted.
func TestSettingsOfPgDump(t *testing.T) {
	s := newSettings()
	for _, assignment := range strings.Fields(`DateStyle=ISO IntervalStyle=POSTGRES extra_float_digits=3 synchronize_seqscans=off
		statement_timeout=0 lock_timeout=0 idle_in_transaction_session_timeout=0 quote_all_identifiers=true row_security=off
		client_encoding=UTF8 standard_conforming_strings=on search_path= check_function_bodies=false xmloption=content
		client_min_messages=warning escape_string_warning=off default_tablespace= default_table_access_method=heap
		default_with_oids=false`) {
		name, value, _ := strings.Cut(assignment, "=")
		if err := s.Set(name, value); err != nil {
			t.Error(err)
		}
	}
	if value, err := s.Get("synchronize_seqscans"); err != nil || value != "off" {
		t.Errorf("synchronize_seqscans is %q, %v", value, err)
	}
}

// Goal: a connection does not allocate the definitions of the settings.
func TestNewAllocates(t *testing.T) {
	server := map[string]string{"server_version": "15.8"}
	startup := map[string]string{"user": "u", "database": "d", "application_name": "psql", "client_encoding": "UTF8"}
	allocs := testing.AllocsPerRun(100, func() {
		s := New(server)
		if err := s.Start(startup); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 16 {
		t.Errorf("%v allocations", allocs)
	}
}

// Goal: sessions share no values. Method: one session sets, connects and reports; another begins afterwards.
func TestSessionsShareNoValues(t *testing.T) {
	s := New(map[string]string{"server_version": "1"})
	s.Live("transaction_isolation", func() string { return "serializable" }, func(string) error { return nil })
	for name, value := range map[string]string{"search_path": "a", "timezone": "UTC+1", "lock_timeout": "7", "default_transaction_read_only": "on"} {
		if err := s.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"server_version": "15.8", "transaction_isolation": "repeatable read", "search_path": `"$user", public`, "timezone": "UTC", "lock_timeout": "0",
	} {
		if got, err := newSettings().Get(name); got != want || err != nil {
			t.Errorf("%s = %s, %v", name, got, err)
		}
	}
	if other := newSettings(); !other.DefaultPath() || other.LockTimeout != 0 || other.Modes.ReadOnly || other.IsLive("transaction_isolation") {
		t.Errorf("another session has %+v", other)
	}
}

// Goal: the messages about values that a parameter cannot have are PostgreSQL 15's.
func TestMessagesOfValues(t *testing.T) {
	s := newSettings()
	for _, c := range []struct{ name, value, message, hint string }{
		{"work_mem", "1", `1 kB is outside the valid range for parameter "work_mem" (64 .. 2147483647)`, ""},
		{"work_mem", "9999999GB", `invalid value for parameter "work_mem": "9999999GB"`, "Value exceeds integer range."},
		{"work_mem", "abc", `invalid value for parameter "work_mem": "abc"`, ""},
		{"work_mem", "1 xx", `invalid value for parameter "work_mem": "1 xx"`, `Valid units for this parameter are "B", "kB", "MB", "GB", and "TB".`},
		{"temp_buffers", "1", `1 8kB is outside the valid range for parameter "temp_buffers" (100 .. 1073741823)`, ""},
		{"statement_timeout", "-5", `-5 ms is outside the valid range for parameter "statement_timeout" (0 .. 2147483647)`, ""},
		{"statement_timeout", "30d", `invalid value for parameter "statement_timeout": "30d"`, "Value exceeds integer range."},
		{"statement_timeout", "x", `invalid value for parameter "statement_timeout": "x"`, ""},
		{"tcp_keepalives_idle", "-1", `-1 s is outside the valid range for parameter "tcp_keepalives_idle" (0 .. 2147483647)`, ""},
		{"random_page_cost", "-1", `-1 is outside the valid range for parameter "random_page_cost" (0 .. 1.79769e+308)`, ""},
		{"geqo_seed", "2", `2 is outside the valid range for parameter "geqo_seed" (0 .. 1)`, ""},
		{"extra_float_digits", "9", `9 is outside the valid range for parameter "extra_float_digits" (-15 .. 3)`, ""},
		{"row_security", "x", `parameter "row_security" requires a Boolean value`, ""},
	} {
		err := s.Set(c.name, c.value)
		if pg, ok := err.(*pgerror.Error); !ok || pg.Code != "22023" || pg.Message != c.message || pg.Hint != c.hint {
			t.Errorf("%s = %s: %v", c.name, c.value, err)
		}
	}
	for _, c := range [][3]string{{"statement_timeout", "0x10", "16ms"}, {"statement_timeout", "1.5", "2ms"}, {"statement_timeout", "1.5s", "1500ms"}, {"work_mem", "1.5MB", "1536kB"}} {
		if err := s.Set(c[0], c[1]); err != nil {
			t.Error(err)
		}
		if got, err := s.Get(c[0]); err != nil || got != c[2] {
			t.Errorf("%s = %s: %s, %v", c[0], c[1], got, err)
		}
	}
}
