package types

// Goal: the text and binary forms and the input errors of every type are PostgreSQL's.
// Method: transcripts under testdata/forms contain inputs and PostgreSQL 15's outputs. The package
// is compared with them, and, with PERCODB_TEST_PG_DSN set, so is a live PostgreSQL, whose outputs
// "go test -run Forms -rewrite" then records.

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/sql/pgerror"
)

// testNow is the transaction time for the transcripts' session-dependent inputs, which are not compared with
// PostgreSQL.
const testNow = 773_416_800_123_456 // 2024-07-04

func rewriting() bool {
	f := flag.Lookup("rewrite")
	return f != nil && f.Value.String() == "true"
}

func TestForms(t *testing.T) {
	dsn := os.Getenv("PERCODB_TEST_PG_DSN")
	if rewriting() && dsn == "" {
		t.Fatal("set PERCODB_TEST_PG_DSN: only PostgreSQL's answers are recorded")
	}
	if dsn != "" {
		conn, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		t.Run("postgresql", func(t *testing.T) {
			runForms(t, func(typ, in string, set []datadriven.CmdArg) string {
				return pgForm(t, conn.PgConn(), typ, in, set)
			})
		})
		if rewriting() {
			return
		}
	}
	runForms(t, ourForm)
}

// runForms runs answer for each input line of each command; the first line is the type.
func runForms(t *testing.T, answer func(typ, in string, set []datadriven.CmdArg) string) {
	datadriven.Walk(t, "testdata/forms", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			typ, lines, _ := strings.Cut(d.Input, "\n")
			expected := strings.Split(d.Expected, "\n")
			for i, line := range strings.Split(lines, "\n") {
				got := answer(typ, unquote(t, line), d.CmdArgs)
				fmt.Fprintln(&out, got)
				if !rewriting() && (i >= len(expected) || got != expected[i]) {
					t.Errorf("%s: %s %v: %s\n got %s\nwant %s", d.Pos, typ, d.CmdArgs, line, got, expected[min(i, len(expected)-1)])
				}
			}
			if !rewriting() {
				return d.Expected // differences were reported line by line
			}
			return out.String()
		})
	})
}

// unquote decodes a transcript's line, which may be quoted to contain blanks and control characters.
func unquote(t *testing.T, line string) string {
	if len(line) < 2 || line[0] != '"' || line[len(line)-1] != '"' {
		return line
	}
	s, err := strconv.Unquote(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return s
}

func describe(code, message, detail, hint string) string {
	s := "ERROR " + code + ": " + message
	if detail != "" {
		s += " DETAIL: " + detail
	}
	if hint != "" {
		s += " HINT: " + hint
	}
	return s
}

// dump formats a text form and its binary form; text is quoted if blanks or control characters would
// be lost.
func dump(text string, binary []byte) string {
	if text != strings.TrimSpace(text) || strings.ContainsAny(text, "\n\t") || text == "" {
		text = strconv.Quote(text)
	}
	return text + " | " + hex.EncodeToString(binary)
}

func pgForm(t *testing.T, conn *pgconn.PgConn, typ, in string, set []datadriven.CmdArg) string {
	ctx := context.Background()
	for _, s := range set {
		if _, err := conn.Exec(ctx, "SET "+s.Key+" = '"+strings.Join(s.Vals, ",")+"'").ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if _, err := conn.Exec(ctx, "RESET ALL").ReadAll(); err != nil {
			t.Fatal(err)
		}
	}()
	query := "SELECT '" + strings.ReplaceAll(in, "'", "''") + "'::" + typ
	var form [2]string
	for format := range form {
		r := conn.ExecParams(ctx, query, nil, nil, nil, []int16{int16(format)}).Read()
		var pgErr *pgconn.PgError
		if errors.As(r.Err, &pgErr) {
			return describe(pgErr.Code, pgErr.Message, pgErr.Detail, pgErr.Hint)
		}
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		form[format] = string(r.Rows[0][0])
	}
	return dump(form[0], []byte(form[1]))
}

func testFormat(set []datadriven.CmdArg) *Format {
	f := &Format{Now: testNow}
	for _, s := range set {
		value := strings.Join(s.Vals, ",")
		switch s.Key {
		case "timezone":
			f.Location, _ = LoadLocation(value)
		case "extra_float_digits":
			n, _ := strconv.Atoi(value)
			f.SetExtraFloatDigits(n)
		case "bytea_output":
			f.ByteaText = value == "escape"
		case "intervalstyle":
			f.Interval = map[string]IntervalStyle{"postgres": IntervalPostgres, "postgres_verbose": IntervalPostgresVerbose,
				"sql_standard": IntervalSQLStandard, "iso_8601": IntervalISO8601}[value]
		case "datestyle":
			style, order, _ := strings.Cut(value, ",")
			f.DateStyle = map[string]DateStyle{"iso": DateISO, "sql": DateSQL, "postgres": DatePostgres, "german": DateGerman}[style]
			f.DateOrder = map[string]DateOrder{"mdy": OrderMDY, "dmy": OrderDMY, "ymd": OrderYMD}[order]
		}
	}
	return f
}

func ourForm(typ, in string, set []datadriven.CmdArg) string {
	f := testFormat(set)
	t, err := ParseTypeName(typ, nil)
	var d Datum
	if err == nil {
		d, err = ParseText(t, in, f)
		if t.IsString() && t.Mod >= 0 { // PostgreSQL's parser converts it to a cast, which truncates
			d, err = ParseText(t.Base(), in, f)
		}
	}
	var e *pgerror.Error
	if errors.As(err, &e) {
		return describe(string(e.Code), e.Message, e.Detail, e.Hint)
	}
	if err != nil {
		return "not a client's error: " + err.Error()
	}
	if t.Mod >= 0 {
		switch t.OID {
		case OIDVarchar:
			d, _ = LimitVarchar(d.Text(), t.Mod, true)
		case OIDBPChar:
			d, _ = LimitBPChar(d.Text(), t.Mod, true)
		}
	}
	text := string(AppendText(nil, d, t, f))
	binary := AppendBinary(nil, d, t)
	if again, err := ParseBinary(t, binary, f); err != nil {
		return "binary form does not read back: " + err.Error()
	} else if !Equal(d, again, t) || Hash(d, t) != Hash(again, t) {
		return "binary form reads back as " + string(AppendText(nil, again, t, f))
	}
	return dump(text, binary)
}

func TestCalendarRoundTrip(t *testing.T) {
	// Goal: every day of the range is converted to the calendar and back. Method: compare with package time in its
	// range, and step through the whole range.
	for days := minDate; days < 40_000_000; days += 997 {
		y, m, d := CivilFromDays(days)
		if DaysFromCivil(y, m, d) != days || d < 1 || d > DaysInMonth(y, m) {
			t.Fatalf("day %d is %d-%d-%d", days, y, m, d)
		}
		want := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(days))
		if want.Year() != y || int(want.Month()) != m || want.Day() != d {
			t.Fatalf("day %d is %d-%d-%d, want %s", days, y, m, d, want)
		}
	}
}
