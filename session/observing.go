package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/percolator/observe"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Observing is a session of the server itself, which runs the body of one observer. One goroutine's.
type Observing struct {
	s        *Session
	table    uint64
	observer uint64
	body     *observerBody // as of the schema that was used last
}

// ErrNoObserver says that an observer does not exist any more, is disabled or has no body.
var ErrNoObserver = errors.New("there is no such observer, or it does not run")

// NewObserving makes a session that runs the body of an observer of a table. Statements end when ctx does.
func NewObserving(ctx context.Context, deps Deps, tableID, observerID uint64) (*Observing, error) {
	if deps.Sessions == nil {
		deps.Sessions = func(func(*Session)) {}
	}
	s, err := New(ctx, deps, 0, Client{}, map[string]string{"user": Database, "database": Database, "application_name": "observer"})
	if err != nil {
		return nil, err
	}
	return &Observing{s: s, table: tableID, observer: observerID}, nil
}

// Close frees the session.
func (o *Observing) Close() { o.s.Close() }

// Handling is what became of the cells that Handle was called with.
type Handling struct {
	// Changes are those that the transaction has handled, ascending by key.
	Changes []observe.Change
	// Locked and Later are the numbers of cells that other transactions have claimed, and that are newer than this one. Further cells
	// were handled before.
	Locked, Later int
}

// Handle claims the rows of notify cells, which ascend by key, and runs the observer's body for them in one transaction.
// asideKnown: rows are set aside (percodb.observer_errors), and handled ones are taken off that list.
//
// Errors: ErrNoObserver; *HopError, of the first cell with a chain that is too long; those of the transaction and of the body's
// statements, with the kinds of errkind. After an error nothing has changed, except that after one of kind Undetermined the
// cells may have been handled.
func (o *Observing) Handle(ctx context.Context, cells []kv.NotifyCell, asideKnown bool) (h Handling, err error) {
	err = o.transact(ctx, func(ctx context.Context) error {
		var rows []types.Row
		c, err := o.claim(ctx, cells, func(ctx context.Context, changes []observe.Change) (err error) {
			rows, err = readChanged(ctx, o.s.tx.txn, o.body.table, changes, &o.s.tx.claimed)
			return err
		})
		if err != nil {
			return err
		}
		h = Handling{Changes: c.Changes, Locked: c.Locked, Later: c.Later}
		if len(c.Changes) == 0 {
			return c.Clear(ctx)
		}
		for i := range c.Changes {
			if c.Changes[i].Hop >= observe.MaxHop {
				return &HopError{pgerror.New(pgerror.ProgramLimitExceeded, "observer %q was notified by a chain of more than %d observers: %s",
					o.body.observer.Name, observe.MaxHop, o.chain(ctx))}
			}
		}
		if asideKnown {
			if err := o.takeBack(ctx, c.Changes); err != nil {
				return err
			}
		}
		if err := o.body.prepare(ctx, o.s); err != nil {
			return err
		}
		o.s.runner.hop = c.Hop()
		if err := o.body.run(ctx, o.s, rows); err != nil {
			return err
		}
		return o.s.tx.acknowledge(c, o.body.table)
	})
	return h, err
}

// SetAside acknowledges a change that cannot be handled, and records why (percodb.observer_errors).
func (o *Observing) SetAside(ctx context.Context, cell kv.NotifyCell, attempts int, cause error) (h Handling, err error) {
	err = o.transact(ctx, func(ctx context.Context) error {
		c, err := o.claim(ctx, []kv.NotifyCell{cell}, o.markGone)
		if err != nil {
			return err
		}
		h = Handling{Changes: c.Changes, Locked: c.Locked, Later: c.Later}
		if len(c.Changes) == 0 {
			return nil
		}
		e := ToPGError(cause)
		err = catalog.PutObserverError(o.s.tx.txn, &catalog.ObserverError{
			Observer: o.observer, Key: cell.Key, Code: string(e.Code), Message: e.Message, Attempts: attempts,
			At: c.Snapshot, CommitTS: c.Changes[0].CommitTS, Hop: c.Changes[0].Hop,
		})
		if err != nil {
			return err
		}
		return o.s.tx.acknowledge(c, o.body.table)
	})
	return h, err
}

// takeBack removes the records of rows that were set aside and are handled now.
func (o *Observing) takeBack(ctx context.Context, changes []observe.Change) error {
	txn := o.s.tx.txn
	for i := range changes {
		e, err := catalog.ObserverErrorOf(ctx, txn, o.observer, changes[i].Key)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		if err := catalog.DeleteObserverError(txn, o.observer, changes[i].Key); err != nil {
			return err
		}
	}
	return nil
}

// transact runs f in a transaction under the present schema.
func (o *Observing) transact(ctx context.Context, f func(ctx context.Context) error) (err error) {
	s := o.s
	s.env.Ctx = s.interrupts.begin(0) // statement_timeout is that of the body's statements
	s.meter.Begin(s.env.Ctx)
	stop := context.AfterFunc(ctx, s.Cancel)
	defer func() {
		stop()
		if p := recover(); p != nil {
			err = ReportPanic(s.log, p)
		}
		if err != nil {
			resolver := s.tx.resolver
			s.tx.abort()
			err = explainError(s.env.Ctx, err, errorContext{resolver: resolver, format: &s.settings.Format})
		}
		s.endMessage()
	}()
	startStatement(&s.env)
	s.runner.hop = 0
	s.tx.phase.on(begin)
	if err := s.tx.use(s.env.Ctx); err != nil {
		return err
	}
	if err := o.refresh(s.env.Ctx); err != nil {
		return err
	}
	if err := f(s.env.Ctx); err != nil {
		return err
	}
	s.settings.EndTransaction(false) // What a body sets does not outlive its transaction.
	return s.tx.commit(s.env.Ctx)
}

// markGone marks the changes whose rows are gone. Unlike readChanged it draws no memory: a row that is too large can be set aside.
func (o *Observing) markGone(ctx context.Context, changes []observe.Change) error {
	for i := range changes {
		value, err := o.s.tx.txn.Get(ctx, changes[i].Key)
		if err != nil {
			return err
		}
		changes[i].Gone = value == nil
	}
	return nil
}

// claim claims the rows of cells, and has read read them. It starts over when the snapshot moves.
func (o *Observing) claim(ctx context.Context, cells []kv.NotifyCell, read func(context.Context, []observe.Change) error) (d delivery, err error) {
	txn := o.s.tx.txn
	start := txn.Savepoint()
	for range maxAttempts {
		d.of = Delivery(o.s.tx.db, o.body.table, o.body.observer)
		if d.Claim, err = d.of.Claim(ctx, txn, cells); err == nil {
			return d, read(ctx, d.Changes)
		}
		if !errors.Is(err, percolator.ErrRestartStatement) {
			return d, err
		}
		txn.RestartStatement(start)
		if err = o.s.tx.beginStatement(ctx); err != nil {
			return d, err
		}
		if err = o.refresh(ctx); err != nil {
			return d, err
		}
	}
	return d, err
}

// refresh makes the body that of the transaction's schema.
func (o *Observing) refresh(ctx context.Context) error {
	table, err := o.s.tx.resolver.RelationByID(ctx, o.table)
	if err != nil {
		return err
	}
	if table == nil {
		return ErrNoObserver
	}
	d := table.ObserverByID(o.observer)
	if d == nil || d.State == catalog.ObserverDisabled || d.Body == "" {
		return ErrNoObserver
	}
	if o.body == nil || o.body.table.Version != table.Version {
		o.body = &observerBody{table: table, observer: d, rows: planner.ObserverRows(table), changed: catalog.ChangedRelation(table, d)}
	}
	return nil
}

// Transient reports whether what Handle has failed with goes by: a conflict with another transaction, a store that does not answer, or
// the end of the process. Other errors, among them a timeout of statements, are those of the body.
func Transient(err error) bool {
	if errors.Is(err, errStatementTimeout) {
		return false
	}
	switch ToPGError(err).Code {
	case pgerror.SerializationFailure, pgerror.DeadlockDetected, pgerror.LockNotAvailable, pgerror.ConnectionFailure, pgerror.AdminShutdown,
		pgerror.QueryCanceled, pgerror.DiskFull, pgerror.TxnResolutionUnknown, pgerror.SnapshotTooOld:
		return true
	}
	return false
}

// HopError says that a change continues a chain of observers that is too long: they change what they observe.
type HopError struct{ err *pgerror.Error }

func (e *HopError) Error() string { return e.err.Error() }

// Unwrap returns the error for clients.
func (e *HopError) Unwrap() error { return e.err }

// chain names a cycle of observers that the observer is part of, by what their bodies change; its own name if there is none.
func (o *Observing) chain(ctx context.Context) string {
	all, err := o.s.tx.resolver.Relations(ctx)
	if err != nil {
		return o.body.observer.Name
	}
	path := findCycle(all, o.observer)
	names := make([]string, 0, len(path)+1)
	for _, d := range append(path, o.body.observer) {
		names = append(names, d.Name)
	}
	return strings.Join(names, " → ")
}

// findCycle returns the observers of a shortest cycle through one of them, which is the first; nil if there is none. An observer
// is followed by those of the tables that its body changes.
func findCycle(tables []*catalog.TableDescriptor, observer uint64) []*catalog.ObserverDescriptor {
	byName := map[ast.TableName]*catalog.TableDescriptor{}
	var paths [][]*catalog.ObserverDescriptor
	for _, t := range tables {
		byName[ast.TableName{Schema: t.Schema, Name: t.Name}] = t
		if d := t.ObserverByID(observer); d != nil {
			paths = append(paths, []*catalog.ObserverDescriptor{d})
		}
	}
	for seen := map[uint64]bool{}; len(paths) > 0; paths = paths[1:] {
		path := paths[0]
		for _, name := range changedTables(path[len(path)-1].Body) {
			t := byName[name]
			if t == nil {
				continue
			}
			for i := range t.Observers {
				next := &t.Observers[i]
				if next.ID == observer {
					return path
				}
				if !seen[next.ID] {
					seen[next.ID] = true
					paths = append(paths, append(slices.Clone(path), next))
				}
			}
		}
	}
	return nil
}

// changedTables returns the tables that the statements of a body change, by their qualified names.
func changedTables(body string) (names []ast.TableName) {
	statements, err := ddl.ParseObserverBody(body)
	if err != nil { // There is no body.
		return nil
	}
	add := func(name *ast.TableName) { names = append(names, ast.TableName{Schema: name.Schema, Name: name.Name}) }
	for _, tree := range statements {
		ast.InspectStatement(tree, ast.Visitor{Target: add})
	}
	return names
}

// observerBody is an observer's condition and statements under one schema.
type observerBody struct {
	table    *catalog.TableDescriptor
	observer *catalog.ObserverDescriptor
	rows     []planner.InputRow
	changed  *catalog.TableDescriptor // the relation changed
	when     expr.Scalar              // nil: every change
	plans    []*cachedPlan            // by statement; nil: to be made
	params   types.Row                // scratch
}

// prepare makes sure that condition and statements are planned, and that the plans hold under the transaction's schema.
func (b *observerBody) prepare(ctx context.Context, s *Session) error {
	r := catalog.WithLocal(s.tx.resolver, b.changed)
	for _, p := range b.plans {
		if ok, err := p.holds(ctx, r); err != nil {
			return err
		} else if !ok {
			b.plans = nil
			break
		}
	}
	if b.plans != nil {
		return nil
	}
	if err := b.prepareWhen(ctx, r, &s.env); err != nil {
		return err
	}
	statements, err := ddl.ParseObserverBody(b.observer.Body)
	if err != nil {
		return err
	}
	opts := planner.Options{SearchPath: s.settings.SearchPath, NoSlots: true}
	if b.observer.Batch == 1 {
		opts.Rows = b.rows
	}
	plans := make([]*cachedPlan, len(statements))
	for i, tree := range statements {
		plan, err := planner.Build(ctx, tree, r, &s.env, opts)
		if err != nil {
			return err
		}
		plans[i] = &cachedPlan{Plan: plan, version: plan.SchemaVersion}
	}
	b.plans = plans
	return nil
}

// prepareWhen binds the condition.
func (b *observerBody) prepareWhen(ctx context.Context, r catalog.Resolver, env *builtin.Env) error {
	if b.observer.When == "" {
		return nil
	}
	x, err := sql.ParseExpr(b.observer.When)
	if err == nil {
		b.when, err = planner.BindRows(ctx, x, b.rows, r, env, types.TBool, "WHEN conditions")
	}
	return err
}

// inputs returns the values of NEW and KEY for a row of catalog.ChangedRelation. They are valid until the next call.
func (b *observerBody) inputs(row types.Row) types.Row {
	columns, gone := row[changedColumns:], row[1].Bool()
	b.params = b.params[:0]
	for i := range columns {
		if gone {
			b.params = append(b.params, types.Null)
			continue
		}
		b.params = append(b.params, columns[i])
	}
	for i := range b.table.Primary.Columns {
		b.params = append(b.params, columns[b.table.Ordinal(b.table.Primary.Columns[i].ColumnID)])
	}
	return b.params
}

// holds reports whether the observer's condition holds for a row.
func (b *observerBody) holds(ev *expr.Context, row types.Row) (bool, error) {
	if b.when == nil {
		return true, nil
	}
	d, err := b.when.Eval(ev, b.inputs(row))
	return err == nil && !d.IsNull() && d.Bool(), err
}

// accepted returns the rows for which the observer's condition holds.
func (b *observerBody) accepted(ctx context.Context, env *builtin.Env, rows []types.Row) (accepted []types.Row, _ error) {
	if b.when == nil {
		return rows, nil
	}
	ev := expr.Context{Env: env, Ctx: ctx}
	for _, row := range rows {
		ok, err := b.holds(&ev, row)
		if err != nil {
			return nil, err
		}
		if ok {
			accepted = append(accepted, row)
		}
	}
	return accepted, nil
}

// wanted reports which of the rows a client gets: those for which the condition holds, and those for which it fails, so that one such
// row holds up no other.
func (b *observerBody) wanted(ctx context.Context, env *builtin.Env, rows []types.Row) ([]bool, error) {
	wanted := make([]bool, len(rows))
	ev := expr.Context{Env: env, Ctx: ctx}
	for i := range rows {
		ok, err := b.holds(&ev, rows[i])
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		wanted[i] = ok || err != nil
	}
	return wanted, nil
}

// run runs the statements: for each row, or once for all if the observer takes batches.
func (b *observerBody) run(ctx context.Context, s *Session, rows []types.Row) error {
	accepted, err := b.accepted(ctx, &s.env, rows)
	if err != nil {
		return err
	}
	if b.observer.Batch > 1 && len(accepted) > 0 {
		return b.runStatements(ctx, s, accepted, nil)
	}
	for i := range accepted {
		if err := b.runStatements(ctx, s, accepted[i:i+1], b.inputs(accepted[i])); err != nil {
			return err
		}
	}
	return nil
}

// runStatements runs the statements once, with the rows of the relation changed, and the values of NEW and KEY.
func (b *observerBody) runStatements(ctx context.Context, s *Session, changed []types.Row, params types.Row) error {
	s.view.changed = changed
	defer func() { s.view.changed = nil }()
	defer s.interrupts.next(0)
	for _, plan := range b.plans {
		startStatement(&s.env)
		s.tx.txn.KeepReads() // A lock may move the snapshot, but not away from what was claimed and read before.
		s.interrupts.next(s.settings.StatementTimeout)
		if _, err := s.runner.executePlan(ctx, &run{plan: plan, params: params}, &rowCollector{discard: true}); err != nil {
			return err
		}
	}
	return nil
}
