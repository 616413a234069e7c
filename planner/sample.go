package planner

import (
	"math"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// SQLSTATEs of TABLESAMPLE.
const (
	invalidSampleArgument pgerror.Code = "2202H"
	invalidSampleRepeat   pgerror.Code = "2202G"
)

// sample is TABLESAMPLE over a scan: a filter that keeps a row if the hash of its key and of the seed lies below the percentage. With
// REPEATABLE the same rows are kept as long as they are the same; without it the seed is another one in each statement. percodb has no pages
// of rows, so that SYSTEM chooses row by row, as BERNOULLI does.
func (b *binder) sample(sc *scope, s *scanRel, input rel, t *ast.Sample) (rel, error) {
	method := t.Method[len(t.Method)-1]
	if len(t.Method) == 2 && t.Method[0] != "pg_catalog" || method != "bernoulli" && method != "system" {
		return nil, pgerror.New(pgerror.UndefinedObject, "tablesample method %s does not exist", method).At(int(t.Pos))
	}
	if len(t.Args) != 1 {
		return nil, pgerror.New(invalidSampleArgument, "tablesample method %s requires 1 argument, not %d", method, len(t.Args)).At(int(t.Pos))
	}
	around := newScope(b, sc.outer)
	around.ctes = sc.ctes
	around.in("functions in FROM", false, false)
	percent, err := around.sampleArgument(t.Args[0], types.TFloat4, "TABLESAMPLE")
	if err != nil {
		return nil, err
	}
	seed, err := around.sampleSeed(t.Seed)
	if err != nil {
		return nil, err
	}
	args := []expr.Scalar{percent, seed}
	for _, ord := range sampleKey(s.table) {
		args = append(args, b.column(s.cols[ord], 0))
	}
	if s.table.IsPartitioned() { // Rows of two partitions may have one key, if that is hidden.
		args = append(args, b.column(s.originColumn(b), 0))
	}
	fn := &builtin.Overload{Name: "tablesample_" + method, Ret: types.TBool, Volatility: builtin.Stable}
	for _, a := range args {
		fn.Args = append(fn.Args, a.Type())
	}
	fn.Fn = func(_ *builtin.Env, a []types.Datum) (types.Datum, error) { return keepSample(a, fn.Args) }
	return &filterRel{input: input, conds: []expr.Scalar{expr.NewCall(fn, args)}}, nil
}

func unsampled(t *ast.TableRef) error {
	return pgerror.New(pgerror.FeatureNotSupported, "TABLESAMPLE clause can only be applied to tables and materialized views").At(int(t.Pos))
}

// sampleKey returns the ordinals of the columns that tell the rows of a table apart.
func sampleKey(t *catalog.TableDescriptor) []int {
	var ords []int
	for i := range t.Primary.Columns {
		if ord := t.Ordinal(t.Primary.Columns[i].ColumnID); ord >= 0 {
			ords = append(ords, ord)
		}
	}
	if len(ords) == 0 { // A system table.
		for i := range t.Columns {
			ords = append(ords, i)
		}
	}
	return ords
}

// sampleArgument binds an argument of TABLESAMPLE or REPEATABLE, which may name columns of enclosing queries.
func (sc *scope) sampleArgument(e ast.Expr, t types.Type, clause string) (expr.Scalar, error) {
	x, err := sc.expr(e)
	if err != nil {
		return nil, err
	}
	from := x.Type()
	if from.OID != types.OIDUnknown && from.OID != t.OID {
		if _, ok := sc.b.casts().Find(from.Underlying(), t, castAssignment); !ok {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "argument of %s must be type %s, not type %s", clause, builtin.TypeName(t), builtin.TypeName(from)).At(startOf(e))
		}
	}
	return sc.b.coerce(x, t, castAssignment, startOf(e))
}

// sampleSeed binds REPEATABLE; without it the seed is a random number, computed once for each run of the statement.
func (sc *scope) sampleSeed(e ast.Expr) (expr.Scalar, error) {
	if e != nil {
		return sc.sampleArgument(e, types.TFloat8, "REPEATABLE")
	}
	random := &ast.Call{Name: []string{"pg_catalog", "random"}}
	q, err := sc.b.bindQuery(&ast.Query{Body: &ast.Select{Columns: []ast.SelectItem{{Expr: random, Name: "random"}}}}, sc, true)
	if err != nil {
		return nil, err
	}
	return &expr.ScalarSubquery{Sub: sc.b.newSubquery(q)}, nil
}

// keepSample decides of a row: a are the percentage, the seed and the key.
func keepSample(a []types.Datum, ts []types.Type) (types.Datum, error) {
	switch {
	case a[0].IsNull():
		return types.Null, pgerror.New(invalidSampleArgument, "TABLESAMPLE parameter cannot be null")
	case a[1].IsNull():
		return types.Null, pgerror.New(invalidSampleRepeat, "TABLESAMPLE REPEATABLE parameter cannot be null")
	}
	percent := a[0].Float()
	if math.IsNaN(percent) || percent < 0 || percent > 100 {
		return types.Null, pgerror.New(invalidSampleArgument, "sample percentage must be between 0 and 100")
	}
	h := types.Hash(a[1], ts[1])
	for i := 2; i < len(a); i++ {
		// Multiplication and shift mix each value with those before.
		h = (h ^ types.Hash(a[i], ts[i])) * 0xff51afd7ed558ccd
		h ^= h >> 33
	}
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return types.Bool(float64(h>>11)/(1<<53)*100 < percent), nil
}
