package session

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/percolator/observe"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// observerCommands runs WAIT FOR OBSERVER and NOTIFY OBSERVER.
type observerCommands struct {
	deps   *Deps
	tx     *transaction
	plans  *plans
	runner *statementRunner
}

// find finds an observer by name.
func (c *observerCommands) find(ctx context.Context, name ast.TableName) (*catalog.TableDescriptor, *catalog.ObserverDescriptor, error) {
	if err := c.tx.begin(ctx); err != nil {
		return nil, nil, err
	}
	t, o, err := catalog.FindObserver(ctx, c.tx.resolver, name.Schema, name.Name)
	if err == nil && o == nil {
		full := name.Name
		if name.Schema != "" {
			full = name.Schema + "." + name.Name
		}
		err = pgerror.New(pgerror.UndefinedObject, "observer %q does not exist", full).At(name.Position())
	}
	return t, o, err
}

// wait is WAIT FOR OBSERVER. Outside of a transaction that has run statements it holds no snapshot.
func (c *observerCommands) wait(ctx context.Context, n *ast.WaitObserver, w ResultWriter) error {
	t, o, err := c.find(ctx, n.Name)
	if err != nil {
		return err
	}
	if o.State == catalog.ObserverDisabled {
		return disabledObserver(o)
	}
	if len(c.tx.savepoints) == 0 {
		c.tx.forgetUnused()
	}
	wait := observerWait{db: c.deps.DB, catalog: c.deps.Catalog, table: t, id: o.ID, observer: Delivery(c.deps.DB, t, o)}
	if err := wait.run(ctx); err != nil {
		return err
	}
	aside, err := countAside(ctx, c.deps, o.ID)
	if err != nil || aside == 0 {
		return err
	}
	w.Notice(pgerror.New(pgerror.Warning, "observer %q has not handled %s", o.Name, plural.Count(aside, "row")).
		WithDetail("Its statements failed for them; percodb.observer_errors has the errors.").
		WithHint("ALTER OBSERVER … RETRY has them handled again."))
	return nil
}

// countAside returns the number of rows that an observer has set aside.
func countAside(ctx context.Context, deps *Deps, observer uint64) (n int, err error) {
	txn, err := deps.DB.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer txn.Close()
	err = catalog.ObserverErrors(ctx, txn, observer, func(*catalog.ObserverError) error {
		n++
		return nil
	})
	return n, err
}

// notify is NOTIFY OBSERVER: it writes notify cells for rows of the session's snapshot. They are no part of the transaction. The
// tag counts the rows.
func (c *observerCommands) notify(ctx context.Context, n *ast.NotifyObserver) (Tag, error) {
	if c.tx.activeModes().ReadOnly {
		return Tag{}, readOnlyError("NOTIFY OBSERVER")
	}
	t, o, err := c.find(ctx, n.Name)
	if err != nil {
		return Tag{}, err
	}
	plan, err := c.plans.planTree(ctx, keysQuery(t, n.Where), nil, nil)
	if err != nil {
		return Tag{}, err
	}
	k := &keyNotifier{table: t, observer: Delivery(c.deps.DB, t, o), ctx: ctx}
	if k.ts, err = c.deps.DB.Timestamp(ctx); err != nil {
		return Tag{}, err
	}
	if _, err := c.runner.executePlan(ctx, &run{plan: plan, keeps: true}, k); err != nil {
		return Tag{}, err
	}
	if err := k.flush(); err != nil {
		return Tag{}, err
	}
	return Tag{Verb: "NOTIFY", Rows: k.rows}, nil
}

// keysQuery selects the primary keys of a table's rows.
func keysQuery(t *catalog.TableDescriptor, where ast.Expr) *ast.Query {
	sel := &ast.Select{
		From:  []ast.TableExpr{&ast.TableRef{Name: ast.TableName{Schema: t.Schema, Name: t.Name}}},
		Where: where,
	}
	for i := range t.Primary.Columns {
		name := t.Columns[t.Ordinal(t.Primary.Columns[i].ColumnID)].Name
		sel.Columns = append(sel.Columns, ast.SelectItem{Expr: &ast.ColumnRef{Parts: []string{name}}})
	}
	return &ast.Query{Body: sel}
}

// notifiedKeys is the number of rows that are notified together.
const notifiedKeys = 1000

// keyNotifier notifies an observer of the rows whose primary keys it is sent.
type keyNotifier struct {
	rowCollector
	ctx      context.Context // of the statement
	table    *catalog.TableDescriptor
	observer *observe.Observer
	ts       tso.Timestamp
	keys     [][]byte
	rows     int64
}

// Row implements ResultWriter.
func (k *keyNotifier) Row(row types.Row) error {
	key, err := rowenc.AppendKeyPrefix(nil, k.table, &k.table.Primary, row...)
	if err != nil {
		return err
	}
	k.rows++
	if k.keys = append(k.keys, key); len(k.keys) < notifiedKeys {
		return nil
	}
	return k.flush()
}

func (k *keyNotifier) flush() error {
	slices.SortFunc(k.keys, bytes.Compare)
	err := k.observer.Cells.Put(k.ctx, k.observer.ID, k.keys, k.ts, 0)
	k.keys = k.keys[:0]
	return err
}
