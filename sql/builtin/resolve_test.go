package builtin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

func TestTablesBuild(t *testing.T) {
	// Goal: every declared signature is valid and unique. Method: build the tables, which panics on
	// invalid signatures, and compare signatures.
	for what, table := range map[string]overloads{"function": functions(), "operator": operators()} {
		for name, list := range table {
			seen := map[string]bool{}
			for _, o := range list {
				s := CallSignature(name, o.Args) + fmt.Sprint(len(o.Args))
				if seen[s] {
					t.Errorf("%s %s is declared twice", what, s)
				}
				seen[s] = true
				if (o.Fn == nil) == (o.bind == nil) {
					t.Errorf("%s %s has not one of Fn and bind", what, s)
				}
			}
		}
	}
	if _, err := ResolveAggregate("count", nil); err != nil {
		t.Error(err)
	}
	if _, err := ResolveSetFunc("generate_series", []types.Type{types.TInt4, types.TInt4}); err != nil {
		t.Error(err)
	}
}

// scalarNames are the types over which resolution is compared with PostgreSQL.
var scalarNames = []string{"unknown", "bool", "bytea", `"char"`, "name", "int8", "int2", "int4", "text", "oid", "float4", "float8",
	"bpchar", "varchar", "date", "time", "timestamp", "timestamptz", "interval", "numeric", "regclass", "uuid", "int4[]", "text[]", "varchar[]"}

func nullOf(name string) string {
	if name == "unknown" {
		return "NULL"
	}
	return "NULL::" + name
}

// differences collects and reports the first mismatches of a comparison.
type differences struct {
	t     *testing.T
	n     int
	limit int
}

func (d *differences) check(expr, got, want string) {
	if got == want {
		return
	}
	if d.n++; d.n <= d.limit {
		d.t.Errorf("%s\n  got %s\n want %s", expr, got, want)
	}
}

func (d *differences) report(total int) {
	d.t.Logf("%d differences in %d", d.n, total)
}

func TestOperatorResolutionAgainstPostgreSQL(t *testing.T) {
	// Goal: every operator applied to every pair of types resolves to PostgreSQL's result type or
	// error. Method: compare all of them with PostgreSQL, with NULLs.
	conn := connectPG(t)
	if conn == nil {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	d := &differences{t: t, limit: 400}
	total := 0
	var ops []string
	for op := range operators() {
		ops = append(ops, op)
	}
	slices.Sort(ops)
	for _, op := range ops {
		for _, r := range scalarNames {
			for _, l := range append([]string{""}, scalarNames...) {
				expr := op + " " + nullOf(r)
				if l != "" {
					expr = nullOf(l) + " " + expr
				}
				want := askPG(t, conn, expr)
				if strings.Contains(want, "syntax error") || strings.Contains(want, "???") {
					continue // a type that percodb does not have
				}
				env := &Env{}
				v, err := evalSQL(env, expr)
				got := show(env, v, err)
				if strings.HasPrefix(want, "ERROR 42725") && strings.HasPrefix(got, "ERROR") && slices.Contains(beyond, op) {
					continue
				}
				d.check(expr, got, want)
				total++
			}
		}
	}
	d.report(total)
}

// beyond are operators that PostgreSQL also has on types that percodb does not have.
var beyond = []string{"#", "&&", "<@", "@>"}

func TestFunctionResolutionAgainstPostgreSQL(t *testing.T) {
	// Goal as for operators. Method: every function of one and two arguments over all types, of more
	// arguments over the types of the declared overloads and their neighbours.
	conn := connectPG(t)
	if conn == nil {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	d := &differences{t: t, limit: 400}
	total := 0
	var names []string
	for name, list := range functions() {
		if !slices.ContainsFunc(list, func(o *Overload) bool { return o.Volatility == Volatile }) && !strings.HasPrefix(name, "has_") &&
			!strings.HasPrefix(name, "current_") && !strings.HasPrefix(name, "localtime") {
			names = append(names, name)
		}
	}
	for name := range aggregates() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var tuples [][]string
		for _, a := range scalarNames {
			tuples = append(tuples, []string{a})
			for _, b := range scalarNames {
				tuples = append(tuples, []string{a, b})
			}
		}
		for _, o := range functions()[name] {
			if len(o.Args) > 2 && len(o.Args) < 6 {
				tuples = append(tuples, neighbours(o)...)
			}
		}
		if overloadedBeyond[name] {
			continue
		}
		for _, args := range tuples {
			if _, err := types.Lookup(name, nil, 0); err == nil && len(args) > 1 {
				continue // PostgreSQL's functions that apply modifiers
			}
			nulls := make([]string, len(args))
			for i, a := range args {
				nulls[i] = nullOf(a)
			}
			quoted := name
			if keyword.Lookup([]byte(name)).Category() > keyword.Unreserved {
				quoted = `"` + name + `"`
			}
			want := askPG(t, conn, quoted+"("+strings.Join(nulls, ", ")+")")
			if strings.Contains(want, "syntax error") {
				continue
			}
			env := &Env{}
			expr := name + "(" + strings.Join(nulls, ", ") + ")"
			v, err := evalSQL(env, expr)
			got := show(env, v, err)
			if strings.Contains(got, "is not available here") || strings.Contains(want, "???") {
				continue
			}
			d.check(expr, got, want)
			total++
		}
	}
	d.report(total)
}

// overloadedBeyond are functions that PostgreSQL also has on types that percodb does not have, so that calls with
// untyped literals are ambiguous in PostgreSQL only.
var overloadedBeyond = map[string]bool{"age": true, "bit_count": true, "get_bit": true, "trunc": true, "pg_get_expr": true}

// neighbours returns an overload's argument types and, for each argument, the variants with every other type.
func neighbours(o *Overload) [][]string {
	base := make([]string, len(o.Args))
	for i, a := range o.Args {
		switch {
		case a.IsPolymorphic() && (a.OID == types.OIDAnyArray || a.OID == types.OIDAnyCompatibleArray):
			base[i] = "int4[]"
		case a.IsPolymorphic() || a.OID == types.OIDAny:
			base[i] = "int4"
		case a.OID == types.OIDChar:
			base[i] = `"char"`
		default:
			base[i] = strings.ReplaceAll(a.Info().Name, "_", "")
			if a.IsArray() {
				base[i] += "[]"
			}
		}
	}
	out := [][]string{base}
	for i := range base {
		for _, t := range scalarNames {
			n := slices.Clone(base)
			n[i] = t
			out = append(out, n)
		}
	}
	return out
}

// Goal: an operator that has been found before is the one that a search finds, and operators of one extension are not those of others.
// Method: resolve each operator for pairs of types twice, with and without extensions, in two orders.
func TestOperatorsFoundAgain(t *testing.T) {
	ts := []types.Type{types.TUnknown, types.TInt2, types.TInt4, types.TInt8, types.TFloat8, types.TNumeric, types.TText, types.TBool, types.TDate}
	all := Sources(^uint32(0))
	for op := range operators() {
		for _, l := range ts {
			for _, r := range ts {
				for _, s := range []Sources{System, all, System, 0} {
					var want *Overload
					var candidates []*Overload
					for _, o := range operatorsNamed(op, s) {
						if len(o.Args) == 2 {
							candidates = append(candidates, o)
						}
					}
					if want = exactOperator(candidates, []types.Type{l, r}); want == nil {
						want, _ = choose(nil, candidates, []types.Type{l, r})
					}
					for range 2 {
						if got, _ := s.chosenOperator(op, []types.Type{l, r}); got != want {
							t.Fatalf("%s %s %s of %b: %v, want %v", l, op, r, s, got, want)
						}
					}
				}
			}
		}
	}
}
