package builtin

// Goal: to_char, to_date, to_timestamp and to_number interpret templates as PostgreSQL does. Method: with
// PERCODB_TEST_PG_DSN set, compare random templates over random values.

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/types"
)

var timeKeys = strings.Fields(`AD A.D. bc AM p.m. CC D DAY Day day DD DDD DY Dy FF1 FF3 FF6 HH HH12 HH24 ID IDDD IW IYYY IYY IY I J MI MM MON Mon mon
	MONTH Month month MS Q RM rm SS SSSS SSSSS US W WW Y YY YYY YYYY Y,YYY TZ TZH TZM OF hh24 mi ss yyyy`)
var numKeys = []string{"9", "9", "9", "0", "0", ".", "D", ",", "G", "S", "MI", "PL", "SG", "PR", "FM", "L", "TH", "th", "V", "99", "000", "999", "RN", "EEEE", "B"}

func (f *exprFuzzer) timeTemplate() string {
	var b strings.Builder
	for range 1 + f.rng.IntN(5) {
		if f.rng.IntN(5) == 0 {
			b.WriteString("FM")
		}
		b.WriteString(timeKeys[f.rng.IntN(len(timeKeys))])
		if f.rng.IntN(8) == 0 {
			b.WriteString([]string{"TH", "th"}[f.rng.IntN(2)])
		}
		b.WriteString([]string{" ", "-", "/", ":", "", ", ", `"of"`, "x "}[f.rng.IntN(8)])
	}
	return b.String()
}

func (f *exprFuzzer) numTemplate() string {
	var b strings.Builder
	for range 1 + f.rng.IntN(7) {
		b.WriteString(numKeys[f.rng.IntN(len(numKeys))])
	}
	return b.String()
}

func quoteSQL(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func TestToCharAgainstPostgreSQL(t *testing.T) {
	conn := connectPG(t)
	if conn == nil {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	pg := func(expr string) string { return askPG(t, conn, expr) }
	f := &exprFuzzer{rng: rand.New(rand.NewPCG(rand.Uint64(), 1))}
	d := &differences{t: t, limit: 60}
	env := &Env{}
	total := 0
	for range rounds(t, 800) {
		for _, typ := range []types.Type{types.TTimestamp, types.TTimestamptz, types.TInterval} {
			template := f.timeTemplate()
			if typ == types.TInterval && strings.Contains(template, "I") {
				continue // ISO weeks of intervals mean nothing
			}
			expr := "to_char(" + f.literal(typ) + ", " + quoteSQL(template) + ")"
			compareExpr(d, env, pg, expr, expr)
			total++
		}
		for _, typ := range []types.Type{types.TInt4, types.TInt8, types.TNumeric, types.TFloat8, types.TFloat4} {
			expr := "to_char(" + f.literal(typ) + ", " + quoteSQL(f.numTemplate()) + ")"
			compareExpr(d, env, pg, expr, expr)
			total++
		}
	}
	d.report(total)
}

// timeInputs are texts with templates that match them more or less.
var timeInputs = [][2]string{
	{"2024-02-29", "YYYY-MM-DD"}, {"2024-02-30", "YYYY-MM-DD"}, {"20240229", "YYYYMMDD"}, {"29 Feb 2024", "DD Mon YYYY"}, {"29 February 2024", "DD Month YYYY"},
	{"2024 02 29 12:34:56", "YYYY MM DD HH24:MI:SS"}, {"2024/02/29 12:34:56.789", "YYYY/MM/DD HH24:MI:SS.MS"}, {"12:34 PM", "HH:MI AM"}, {"13:34 PM", "HH:MI AM"},
	{"12:34 am", "HH12:MI am"}, {"2024-060", "YYYY-DDD"}, {"060", "DDD"}, {"2024-09-4", "IYYY-IW-ID"}, {"2024-W09-4", `IYYY-"W"IW-ID`}, {"2024 Q1", `YYYY "Q"Q`},
	{"J2451187", `"J"J`}, {"2451187", "J"}, {"44-03-15 BC", "YYYY-MM-DD BC"}, {"0044-03-15 B.C.", "YYYY-MM-DD B.C."}, {"99-1-2", "YY-MM-DD"}, {"1-1-2", "Y-MM-DD"},
	{"024-1-2", "YYY-MM-DD"}, {"2,024-01-02", "Y,YYY-MM-DD"}, {"21 5", "CC YY"}, {"XII 2024", "RM YYYY"}, {"viii 2024", "rm YYYY"}, {"Thursday 2024-02-29", "Day YYYY-MM-DD"},
	{"2024-02-29 12:34:56 +05:30", "YYYY-MM-DD HH24:MI:SS TZH:TZM"}, {"2024-02-29 12:34:56-03", "YYYY-MM-DD HH24:MI:SSTZH"}, {"45296", "SSSS"}, {"2024-02-29 45296", "YYYY-MM-DD SSSSS"},
	{"2024  -  02-29", "YYYY-MM-DD"}, {"2024-02-29", "YYYY MM DD"}, {"2024 02 29", "FXYYYY MM DD"}, {"2024  02 29", "FXYYYY MM DD"}, {"24-2-9", "FMYY-FMMM-FMDD"}, {"abc", "YYYY"},
	{"2024-xx", "YYYY-MM"}, {"2024-02", "YYYYMM"}, {"2024-13-01", "YYYY-MM-DD"}, {"", "YYYY"}, {"2024", ""}, {"99999-01-01", "YYYY-MM-DD"}, {"12.5", "SS.MS"}, {"12.123456", "SS.US"},
	{"12.12", "SS.FF3"}, {"2nd", "DDth"}, {"Foo 2024", "Mon YYYY"}, {"2024-02-29 25:00", "YYYY-MM-DD HH24:MI"}, {"2024 9", "YYYY WW"}, {"2024-02-3", "YYYY-MM-W"}, {"5874898-01-01", "YYYY-MM-DD"},
	{"2024 2024", "YYYY YYYY"}, {"2024 2025", "YYYY YYYY"}, {"2024 tz", "YYYY TZ"}, {"2024-02 9", "YYYY-MM IW"}, {"1 2 3", "DD MM YYYY"}, {"01022003", "DDMMYYYY"}, {"010203", "DDMMYY"},
}

func TestTemplateInputAgainstPostgreSQL(t *testing.T) {
	conn := connectPG(t)
	if conn == nil {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	pg := func(expr string) string { return askPG(t, conn, expr) }
	d := &differences{t: t, limit: 60}
	env := &Env{}
	total := 0
	for _, in := range timeInputs {
		for _, fn := range []string{"to_date", "to_timestamp"} {
			expr := fn + "(" + quoteSQL(in[0]) + ", " + quoteSQL(in[1]) + ")"
			compareExpr(d, env, pg, expr, expr)
			total++
		}
	}
	for _, in := range []string{"123", "-123", "1,234.56", "12.5", " 12", "12-", "+7", "<12>", "$1,234.50", "abc", "", "0.5", ".5", "1 2", "1234567", "12th", "-0.001", "1e5"} {
		for _, template := range []string{"999", "9,999.99", "99.9", "S999", "999S", "999MI", "MI999", "999PR", "L9,999.99", "FM999.9", "0000", "9G999D99", "999th", "SG99.9", "9V99", "", "EEEE", "PL99", "9999999"} {
			expr := "to_number(" + quoteSQL(in) + ", " + quoteSQL(template) + ")"
			compareExpr(d, env, pg, expr, expr)
			total++
		}
	}
	d.report(total)
}
