package builtin

// Goal: operators, functions, aggregates and casts return PostgreSQL's values and errors. Method: with
// PERCODB_TEST_PG_DSN set, call every overload with random arguments from pools of edge cases and
// compare; PERCODB_TEST_PG_ROUNDS multiplies the number of calls.

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// pools are the literals to choose from, by type.
var pools = map[types.OID][]string{
	types.OIDBool:      {"t", "f"},
	types.OIDInt2:      {"0", "1", "-1", "2", "3", "7", "-7", "100", "32767", "-32768", "5", "10"},
	types.OIDInt4:      {"0", "1", "-1", "2", "3", "4", "5", "-2", "-3", "10", "12", "31", "32", "64", "1000", "99999", "2147483647", "-2147483648", "46341", "65536"},
	types.OIDInt8:      {"0", "1", "-1", "2", "3", "-5", "10", "63", "64", "4294967296", "9223372036854775807", "-9223372036854775808", "3037000500", "1000000007", "1234567890123"},
	types.OIDFloat4:    {"0", "-0", "1", "-1", "0.5", "2.5", "-2.5", "1e-20", "1e20", "3.4e38", "1e-38", "NaN", "Infinity", "-Infinity", "0.1", "123456.78", "7", "100"},
	types.OIDFloat8:    {"0", "-0", "1", "-1", "0.5", "1.5", "2.5", "-2.5", "3", "10", "0.1", "-0.7", "1e-200", "1e200", "1.7e308", "NaN", "Infinity", "-Infinity", "30", "45", "90", "180", "270", "-30", "123456789.123456", "1e15", "2147483647.5", "0.0001", "720"},
	types.OIDNumeric:   {"0", "0.00", "1", "-1", "1.0", "1.50", "-1.5", "2", "2.5", "-2.5", "3", "10", "100", "0.1", "0.001", "0.9", "1.05", "-0.7", "12345.678", "99999999999999999999.9999", "1e-20", "1e30", "NaN", "Infinity", "-Infinity", "123456789012345678901234567890.123456789", "0.333333333333333333333", "7", "1e10", "10000", "9999.9999", "0.5", "1000000007", "2147483647.5", "9223372036854775807.5"},
	types.OIDText:      {"", "a", "abc", "ABC", "Hello World", "äöü", "日本語", "  pad  ", "a,b,c", "a.b", "%", "a%", "_b_", "%b%", "a\\%", "aaa", "abcabc", "x1y22z333", "hello_World 9ABC", "O'Reilly", "back\\slash", "foo bar baz", "(a)(b)", "[a-c]+", "b+", "^a", "c$", "\\d+", "(b)(c)", "a|b", "x*", ".", "year", "month", "hex", "base64", "escape", "YWJj", "616263", "g", "i", "UTC", "America/New_York", "1", "-1", "1.5", "true", "2024-02-29", "1 day", "12:30", "NaN", "ß", "İ", "é", "\t\n"},
	types.OIDName:      {"abcd", "Name", "", "UTF8"},
	types.OIDBPChar:    {"abc", "abc   ", "", "  x ", "ä "},
	types.OIDVarchar:   {"abc", "xyz  ", ""},
	types.OIDChar:      {"a", "", "z", "A"},
	types.OIDBytea:     {"", "\\x00", "\\x616263", "\\xdeadbeef", "\\xff00ff", "\\x61", "\\x5c25", "abc%", "\\xc3a4"},
	types.OIDDate:      {"2000-01-01", "1999-12-31", "2024-02-29", "2023-03-31", "1970-01-01", "0001-01-01", "0044-03-15 BC", "4713-01-01 BC", "infinity", "-infinity", "5874897-12-31", "2024-12-30", "2021-01-03", "2001-01-01", "300000-01-01"},
	types.OIDTime:      {"00:00", "04:05:06.789", "23:59:59.999999", "24:00:00", "12:00", "01:02:03"},
	types.OIDTimestamp: {"2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "2024-02-29 12:34:56.789", "2023-03-31 04:05:06", "1970-01-01 00:00:00", "0001-01-01 00:00:00", "0044-03-15 10:00:00 BC", "infinity", "-infinity", "294276-12-31 23:59:59", "4713-01-01 00:00:00 BC", "2024-12-30 01:02:03.000001", "2001-01-01 00:00:00", "1900-01-01 12:00:00"},
	types.OIDInterval:  {"0", "1 day", "-1 day", "1 month", "1 year 2 mons 3 days 04:05:06.789", "-1 year -2 mons +3 days -04:05:06", "30 days", "24:00:00", "36:30:00", "-00:00:00.5", "1 mon -1 day", "100 years", "1.5 days", "178000000 years", "2147483647 days", "15 minutes", "2 weeks 1 hour", "-1 mon 31 days", "720:00:00", "1 decade 5 centuries"},
	types.OIDUUID:      {"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"},
	types.OIDOid:       {"0", "23", "1043", "4294967295", "1009", "1700"},
}

func init() {
	pools[types.OIDTimestamptz] = pools[types.OIDTimestamp]
}

// elementPool are the types that polymorphic arguments may get.
var elementPool = []types.Type{types.TInt4, types.TText, types.TNumeric, types.TFloat8, types.TDate, types.TBool, types.TInt8, types.TInterval}

type exprFuzzer struct {
	rng *rand.Rand
}

// literal returns a random literal of a type, sometimes NULL.
func (f *exprFuzzer) literal(t types.Type) string {
	name := sqlName(t)
	if f.rng.IntN(25) == 0 {
		return "NULL::" + name
	}
	if elem := t.Elem(); elem.Valid() {
		var elems []string
		for range f.rng.IntN(5) {
			elems = append(elems, f.literal(elem))
		}
		if len(elems) == 0 {
			return "'{}'::" + name
		}
		return "ARRAY[" + strings.Join(elems, ", ") + "]"
	}
	pool := pools[t.OID]
	if len(pool) == 0 {
		return ""
	}
	return "'" + strings.ReplaceAll(pool[f.rng.IntN(len(pool))], "'", "''") + "'::" + name
}

func sqlName(t types.Type) string {
	if t.OID == types.OIDChar {
		return `"char"`
	}
	if elem := t.Elem(); elem.Valid() {
		return sqlName(elem) + "[]"
	}
	return t.Info().Name
}

// args returns literals for an overload's declared types; false if a type has no pool.
func (f *exprFuzzer) args(o *Overload) ([]string, bool) {
	elem := elementPool[f.rng.IntN(len(elementPool))]
	declared := o.Args
	for o.variadic && f.rng.IntN(2) == 0 {
		declared = append(slices.Clone(declared), declared[len(declared)-1])
	}
	out := make([]string, len(declared))
	for i, t := range declared {
		switch t.OID {
		case types.OIDAnyArray, types.OIDAnyCompatibleArray:
			t = elem.ArrayOf()
		case types.OIDAny:
			t = elementPool[f.rng.IntN(len(elementPool))]
		default:
			if t.IsPolymorphic() {
				t = elem
			}
		}
		if out[i] = f.literal(t); out[i] == "" {
			return nil, false
		}
	}
	return out, true
}

// rounds returns the number of calls of each overload to compare.
func rounds(t *testing.T, base int) int {
	if s := os.Getenv("PERCODB_TEST_PG_ROUNDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return base * n
	}
	return base
}

var floatResult = regexp.MustCompile(`^(double precision|real): (.*)$`)

// alike reports whether results are equal, floats within a few units in the last place, because the transcendental
// functions of C and Go differ there.
func alike(got, want string) bool {
	if got == want {
		return true
	}
	g, w := floatResult.FindStringSubmatch(got), floatResult.FindStringSubmatch(want)
	if g == nil || w == nil || g[1] != w[1] {
		return false
	}
	a, errA := strconv.ParseFloat(g[2], 64)
	b, errB := strconv.ParseFloat(w[2], 64)
	return errA == nil && errB == nil && (math.Abs(a-b) <= 4e-15*math.Max(math.Abs(a), math.Abs(b)) || math.Abs(a-b) < 1e-15)
}

// notComparable are functions whose results are not specified, or depend on the server.
var notComparable = map[string]bool{
	"hashtext": true, "pg_column_size": true, "version": true, "pg_get_expr": true, "pg_has_role": true, "to_regclass": true, "regclass": true,
	"pg_size_pretty": false, "age": false, "pg_sleep": true, "pg_sleep_for": true, "now": true, "pi": false, "transaction_timestamp": true,
	"statement_timestamp": true, "current_timestamp": true, "localtimestamp": true, "localtime": true, "current_date": true, "timeofday": true,
	"set_config": true, "current_setting": true, "pg_typeof": false, "factorial": true,
	"inet_client_addr": true, "inet_client_port": true, "inet_server_addr": true, "inet_server_port": true, "convert_from": true, "convert_to": true,
	"pg_postmaster_start_time": true, "pg_backend_pid": true,
}

// shorten truncates a result for a report: numerics may have thousands of digits.
func shorten(s string) string {
	if len(s) > 300 {
		return s[:150] + "…" + s[len(s)-100:] + " (" + strconv.Itoa(len(s)) + " bytes)"
	}
	return s
}

// excused reports whether a difference is intended, or an error of PostgreSQL.
func excused(expr, got, want string) bool {
	wantsError := strings.HasPrefix(want, "ERROR")
	switch {
	case strings.Contains(want, "syntax error"), strings.Contains(want, "out of memory"):
		return true
	case strings.Contains(got, "is not available here"), strings.HasPrefix(got, "ERROR 0A000: regular expressions with"),
		strings.HasPrefix(got, "ERROR 0A000: an array with more than one dimension"):
		return true
	case got == "ERROR 22008: interval out of range" && (strings.HasPrefix(expr, "make_interval") || strings.Contains(expr, "timestamp")):
		return true // PostgreSQL 15 wraps around
	case strings.HasPrefix(expr, "to_char") && strings.Contains(expr, "interval") && strings.Contains(strings.ToUpper(expr[strings.LastIndex(expr, ","):]), "I"):
		return true // ISO weeks of intervals mean nothing
	case strings.HasPrefix(expr, "age(") && strings.Contains(expr, "infinity"):
		return true // an accident of the representation
	case strings.HasPrefix(expr, "to_char") && (strings.Contains(expr, "178000000 years") || strings.Contains(expr, "2147483647 days")):
		return true // days are counted in 32 bits
	case strings.Contains(expr, "-2147483648") && (strings.HasPrefix(expr, "right(") || strings.HasPrefix(expr, "make_")):
		return true // negated, it overflows in PostgreSQL
	case strings.HasPrefix(got, "ERROR 22023: time zone") && (!wantsError || strings.Contains(want, "unit") || strings.Contains(want, "out of range") || strings.Contains(want, "numeric time zone")):
		return true // a POSIX zone with a daylight-saving rule
	case strings.HasPrefix(expr, "width_bucket") && strings.HasSuffix(want, "-2147483648"):
		return true // PostgreSQL overflows
	case strings.HasPrefix(expr, `''::"char"::bpchar(`):
		return true // PostgreSQL pads with zero bytes, which its client then does not get
	case strings.Contains(want, "invalid value \"\xef\xbf\xbd\""), strings.Contains(want, "invalid value \"") && !utf8.ValidString(want):
		return true // PostgreSQL cuts within a character
	case strings.HasPrefix(expr, "to_regtype") && wantsError:
		return true // percodb returns NULL, as PostgreSQL does for other names that are not types
	case strings.HasPrefix(expr, "regtype"):
		return true // types that percodb does not have
	case strings.Contains(expr, "~*") && strings.Contains(expr, "İ"):
		return true // the engine folds case by Unicode's simple rules
	}
	return false
}

func compareExpr(d *differences, env *Env, pg func(string) string, expr, pgExpr string) {
	want := pg(pgExpr)
	start := time.Now()
	v, err := evalSQL(env, expr)
	got := show(env, v, err)
	if took := time.Since(start); took > time.Second {
		d.t.Logf("slow: %s took %v", expr, took)
	}
	if !excused(expr, got, want) && !alike(got, want) {
		d.check(pgExpr, shorten(got), shorten(want))
	}
}

func TestFuzzAgainstPostgreSQL(t *testing.T) {
	conn := connectPG(t)
	if conn == nil {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	pg := func(expr string) string { return askPG(t, conn, expr) }
	f := &exprFuzzer{rng: rand.New(rand.NewPCG(rand.Uint64(), 1))}
	d := &differences{t: t, limit: 100}
	total := 0
	env := &Env{}
	for _, name := range sortedNames(functions()) {
		for _, o := range functions()[name] {
			if name == "age" && len(o.Args) == 1 || // depends on the day
				o.Volatility == Volatile || notComparable[name] || strings.HasPrefix(name, "has_") || strings.HasPrefix(name, "pg_") && name != "pg_size_pretty" || name == "interval" {
				continue
			}
			quoted := name
			if keyword.Lookup([]byte(name)).Category() > keyword.Unreserved || name == "char" {
				quoted = `"` + name + `"`
			}
			if _, err := types.Lookup(name, nil, 0); err == nil {
				quoted = `"` + name + `"`
			}
			for range rounds(t, 15) {
				args, ok := f.args(o)
				if !ok {
					break
				}
				list := "(" + strings.Join(args, ", ") + ")"
				compareExpr(d, env, pg, name+list, quoted+list)
				total++
			}
		}
	}
	for _, op := range sortedNames(operators()) {
		for _, o := range operators()[op] {
			for range rounds(t, 10) {
				args, ok := f.args(o)
				if !ok {
					break
				}
				expr := op + " " + args[len(args)-1]
				if len(args) == 2 {
					expr = args[0] + " " + expr
				}
				compareExpr(d, env, pg, expr, expr)
				total++
			}
		}
	}
	d.report(total)
}

func TestZoneFuzzAgainstPostgreSQL(t *testing.T) {
	// Goal: functions that depend on the session's time zone agree in zones with daylight-saving time. Method: as
	// above, with every overload of timestamptz, in each zone.
	conn := connectPG(t)
	if conn == nil {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	pg := func(expr string) string { return askPG(t, conn, expr) }
	f := &exprFuzzer{rng: rand.New(rand.NewPCG(rand.Uint64(), 1))}
	d := &differences{t: t, limit: 100}
	total := 0
	hasZone := func(o *Overload) bool {
		return slices.Contains(o.Args, types.TTimestamptz) || o.Ret == types.TTimestamptz
	}
	for _, zone := range []string{"America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"} {
		loc, ok := types.LoadLocation(zone)
		if !ok {
			t.Fatal(zone)
		}
		env := &Env{Format: types.Format{Location: loc}}
		if _, err := conn.Exec(context.Background(), "SET timezone = '"+zone+"'").ReadAll(); err != nil {
			t.Fatal(err)
		}
		run := func(o *Overload, write func(args []string) string) {
			for range rounds(t, 12) {
				if args, ok := f.args(o); ok {
					expr := write(args)
					compareExpr(d, env, pg, expr, strings.Replace(expr, "overlaps(", `"overlaps"(`, 1))
					total++
				}
			}
		}
		for _, name := range sortedNames(functions()) {
			for _, o := range functions()[name] {
				_, err := types.Lookup(name, nil, 0)
				if hasZone(o) && err != nil && !notComparable[name] && o.Volatility != Volatile && !(name == "age" && len(o.Args) == 1) && name != "extract" {
					run(o, func(args []string) string { return name + "(" + strings.Join(args, ", ") + ")" })
				}
			}
		}
		for _, op := range sortedNames(operators()) {
			for _, o := range operators()[op] {
				if hasZone(o) && len(o.Args) == 2 {
					run(o, func(args []string) string { return args[0] + " " + op + " " + args[1] })
				}
			}
		}
		for _, from := range []types.Type{types.TTimestamp, types.TDate, types.TText} {
			for _, lit := range append(slices.Clone(pools[from.OID]), "2024-03-10 02:30", "2024-11-03 01:30", "2024-03-31 02:30:00", "1850-01-01") {
				expr := quoteSQL(lit) + "::" + sqlName(from) + "::timestamptz"
				compareExpr(d, env, pg, expr, expr)
				expr += "::time"
				compareExpr(d, env, pg, expr, expr)
				total += 2
			}
		}
	}
	d.report(total)
}

// rows returns random rows of literals of the types.
func (f *exprFuzzer) rows(ts []types.Type, n int) [][]string {
	out := make([][]string, n)
	for i := range out {
		for _, t := range ts {
			out[i] = append(out[i], f.literal(t))
		}
	}
	return out
}

func TestAggregateFuzzAgainstPostgreSQL(t *testing.T) {
	conn := connectPG(t)
	if conn == nil {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	f := &exprFuzzer{rng: rand.New(rand.NewPCG(rand.Uint64(), 1))}
	d := &differences{t: t, limit: 100}
	env := &Env{}
	total := 0
	for name, list := range aggregates() {
		for _, a := range list {
			if len(a.o.Args) == 0 || strings.Contains(a.decl.sig, "array_agg(anyarray") {
				continue
			}
			for range rounds(t, 20) {
				ts := slices.Clone(a.o.Args)
				elem := elementPool[f.rng.IntN(len(elementPool))]
				for i, at := range ts {
					switch {
					case at.OID == types.OIDAnyArray:
						ts[i] = elem.ArrayOf()
					case at.IsPolymorphic() || at.OID == types.OIDAny:
						ts[i] = elem
					}
				}
				rows := f.rows(ts, 1+f.rng.IntN(6))
				total++
				compareAggregate(d, env, func(expr string) string { return askPG(t, conn, expr) }, name, ts, rows)
			}
		}
	}
	d.report(total)
}

// compareAggregate compares an aggregate over rows with PostgreSQL's.
func compareAggregate(d *differences, env *Env, pg func(string) string, name string, ts []types.Type, rows [][]string) {
	var values []string
	for _, row := range rows {
		values = append(values, "("+strings.Join(row, ", ")+")")
	}
	columns := []string{"a", "b"}[:len(ts)]
	query := name + "(" + strings.Join(columns, ", ") + ") FROM (VALUES " + strings.Join(values, ", ") + ") v(" + strings.Join(columns, ", ") + ")"
	v, err := aggregateRows(env, name, ts, rows)
	got, want := show(env, v, err), pg(query)
	if name == "avg" && strings.HasPrefix(want, "ERROR 22003: value out of range: overflow") {
		return // PostgreSQL also computes the sum of squares, which may overflow first
	}
	if !alike(got, want) {
		d.check(query, shorten(got), shorten(want))
	}
}

func aggregateRows(env *Env, name string, ts []types.Type, rows [][]string) (value, error) {
	agg, err := ResolveAggregate(name, ts)
	if err != nil {
		return value{}, err
	}
	acc := agg.NewAccumulator()
	for _, row := range rows {
		args := make([]types.Datum, len(row))
		for i, expr := range row {
			v, err := evalSQL(env, expr)
			if err != nil {
				return v, err
			}
			c, _ := FindCast(v.t, agg.Args[i], Implicit)
			if args[i], err = c.Apply(env, v.d); err != nil {
				return v, err
			}
		}
		if err := acc.Add(env, args); err != nil {
			return value{}, err
		}
	}
	r, err := acc.Result(env)
	return value{agg.Ret, r}, err
}

func TestCastFuzzAgainstPostgreSQL(t *testing.T) {
	conn := connectPG(t)
	if conn == nil {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	pg := func(expr string) string { return askPG(t, conn, expr) }
	f := &exprFuzzer{rng: rand.New(rand.NewPCG(rand.Uint64(), 1))}
	d := &differences{t: t, limit: 100}
	total := 0
	env := &Env{}
	targets := append(slices.Clone(scalarNames[1:]), "varchar(3)", "bpchar(5)", "numeric(6,2)", "numeric(5)", "timestamp(1)", "timestamptz(0)", "time(2)",
		"interval(0)", "varchar(2)[]", "numeric(4,1)[]", "float8[]", "date[]", "bool[]")
	for oid, pool := range pools {
		from := types.Type{OID: oid, Mod: -1}
		for _, to := range targets {
			if to == "regclass" || to == "interval(0)" {
				continue
			}
			for _, lit := range pool {
				expr := "'" + strings.ReplaceAll(lit, "'", "''") + "'::" + sqlName(from) + "::" + to
				compareExpr(d, env, pg, expr, expr)
				total++
			}
		}
	}
	for range rounds(t, 300) {
		elem := elementPool[f.rng.IntN(len(elementPool))]
		// ARRAY[…]::t[] would cast each element.
		expr := "array_cat(" + f.literal(elem.ArrayOf()) + ", '{}')::" + targets[f.rng.IntN(len(targets))]
		if strings.HasSuffix(expr, "regclass") || strings.HasSuffix(expr, "interval(0)") {
			continue
		}
		compareExpr(d, env, pg, expr, expr)
		total++
	}
	d.report(total)
}

func sortedNames(m overloads) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
