package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// isChanges reports whether a function in FROM is percodb.changes.
func isChanges(c *ast.Call) bool {
	return len(c.Name) == 2 && c.Name[0] == catalog.OwnSchema && c.Name[1] == "changes"
}

// changesArgs are the names of the arguments of percodb.changes, of which the first has none: it is the observer.
var changesArgs = [...]string{"", "max", "wait"}

// changesRel calls percodb.changes.
type changesRel struct {
	table     *catalog.TableDescriptor
	observer  *catalog.ObserverDescriptor
	max, wait expr.Scalar // nil: not given
	cols      []int
}

func (*changesRel) rel() {}

// changes binds percodb.changes(observer, max, wait). Its first argument decides its columns, and is a constant of the text.
func (b *binder) changes(sc *scope, t *ast.TableFunc) (rel, []int, error) {
	pos := int(t.Pos)
	var args [len(changesArgs)]ast.Expr
	for i, a := range t.Call.Args {
		at := i
		if name := argName(t.Call, i); name != "" {
			at = indexOfArg(name)
		}
		if at < 0 || at >= len(args) || args[at] != nil {
			return nil, nil, noChanges(pos)
		}
		args[at] = a
	}
	name, ok := args[0].(*ast.Literal)
	if !ok || name.Kind != ast.LiteralString || name.Slot >= 0 {
		return nil, nil, pgerror.New(pgerror.InvalidParameterValue, "the first argument of percodb.changes must be the name of an observer, as a constant").
			WithHint("The observed table decides the columns: percodb.changes('name').").At(pos)
	}
	if b.consumes {
		return nil, nil, pgerror.Unsupported("percodb.changes more than once in a statement", "").At(pos)
	}
	if t.Ordinality {
		return nil, nil, pgerror.Unsupported("WITH ORDINALITY of percodb.changes", "").At(pos)
	}
	table, observer, err := b.observer(name.Value)
	if err != nil {
		return nil, nil, at(err, int(name.Pos))
	}
	r := &changesRel{table: table, observer: observer}
	if r.max, err = sc.changesArg(args[1], types.TInt8); err != nil {
		return nil, nil, err
	}
	if r.wait, err = sc.changesArg(args[2], types.TInterval); err != nil {
		return nil, nil, err
	}
	b.consumes = true
	b.use(table)
	need := b.need(table, acl.Select)
	need.Observer = observer
	for i := range table.Columns {
		need.selectColumn(i)
	}
	if b.locks == "" {
		b.locks = "UPDATE"
	}
	relation := catalog.ChangedRelation(table, observer)
	for i := range relation.Columns {
		r.cols = append(r.cols, b.newColumn(relation.Columns[i].Name, relation.Columns[i].Type))
	}
	guarded, err := b.guardChanges(r)
	return guarded, r.cols, err
}

// observer finds an observer by a name as text, which may be qualified.
func (b *binder) observer(text string) (*catalog.TableDescriptor, *catalog.ObserverDescriptor, error) {
	schema, name, err := pgcatalog.SplitName(text)
	if err != nil {
		return nil, nil, err
	}
	table, observer, err := catalog.FindObserver(b.ctx, b.r, schema, name)
	if err == nil && observer == nil {
		err = pgerror.New(pgerror.UndefinedObject, "observer \"%s\" does not exist", text)
	}
	return table, observer, err
}

func argName(c *ast.Call, i int) string {
	if c.ArgNames == nil {
		return ""
	}
	return c.ArgNames[i]
}

func indexOfArg(name string) int {
	for i := range changesArgs {
		if changesArgs[i] == name {
			return i
		}
	}
	return -1
}

func noChanges(pos int) error {
	return pgerror.New(pgerror.UndefinedFunction, "no form of percodb.changes has these arguments").
		WithHint("Call percodb.changes('observer', max => 100, wait => '5s').").At(pos)
}

// changesArg binds an argument, which must be the same for the whole statement.
func (sc *scope) changesArg(e ast.Expr, t types.Type) (expr.Scalar, error) {
	if e == nil {
		return nil, nil
	}
	x, err := sc.expr(e)
	if err != nil {
		return nil, err
	}
	fixed := true
	expr.Walk(x, func(x expr.Scalar) bool {
		_, column := x.(*expr.Column)
		fixed = fixed && !column && expr.SubqueryOf(x) == nil
		return fixed
	})
	if !fixed {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "an argument of percodb.changes must not read rows").At(startOf(e))
	}
	return sc.b.coerce(x, t, castAssignment, startOf(e))
}
