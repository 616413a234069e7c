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

// NewObserving makes a session, in the database of deps.Catalog, that runs the body of an observer of a table. Statements end when ctx does.
func NewObserving(ctx context.Context, deps Deps, tableID, observerID uint64) (*Observing, error) {
	if deps.Sessions == nil {
		deps.Sessions = func(func(*Session)) {}
	}
	present, err := deps.Catalog.Present(ctx)
	if err != nil {
		return nil, err
	}
	startup := map[string]string{"application_name": "observer"}
	s, err := open(ctx, deps, 0, Client{}, startup, present, catalog.NewRoles().ByOID(catalog.BootstrapSuperuser))
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
	// Done are the cells to clear, ascending by key: those of the changes, and of others that were handled before.
	Done []kv.NotifyUpTo
	// Locked and Later are the numbers of cells that other transactions have claimed, and that are newer than this one. Further cells
	// were handled before.
	Locked, Later int
}

// HandleOptions say how Handle works.
type HandleOptions struct {
	// RemoveRecords: rows are set aside (percodb.observer_errors), and the records of handled ones are removed.
	RemoveRecords bool
	// Lock has the transaction lock what it claims, and what its statements change, before it does. Otherwise a conflict shows when it
	// commits, which is cheaper as long as there are few.
	Lock bool
}

// Handle claims the rows of notify cells, which ascend by key, and runs the observer's body for them in one transaction.
//
// Errors: ErrNoObserver; *HopError, of the first cell with a chain that is too long; those of the transaction and of the body's
// statements, with the kinds of errkind. After an error nothing has changed, except that after one of kind Undetermined the
// cells may have been handled.
func (o *Observing) Handle(ctx context.Context, cells []kv.NotifyCell, opts HandleOptions) (h Handling, err error) {
	err = o.transact(ctx, opts.Lock || !o.body.optimistic(), func(ctx context.Context) error {
		c, err := o.claim(ctx, cells)
		if err != nil {
			return err
		}
		h = handlingOf(c)
		if len(c.Changes) == 0 {
			return nil
		}
		for i := range c.Changes {
			if c.Changes[i].Hop >= observe.MaxHop {
				return &HopError{pgerror.New(pgerror.ProgramLimitExceeded, "observer %q was notified by a chain of more than %d observers: %s",
					o.body.observer.Name, observe.MaxHop, o.chain(ctx))}
			}
		}
		if opts.RemoveRecords {
			if err := o.removeRecords(ctx, c.Changes); err != nil {
				return err
			}
		}
		if err := o.body.prepare(ctx, o.s); err != nil {
			return err
		}
		rows, err := changedRows(o.body.table, c.Changes, &o.s.tx.claimed)
		if err != nil {
			return err
		}
		o.s.runner.hop = c.Hop()
		if err := o.body.run(ctx, o.s, rows); err != nil {
			return err
		}
		return o.acknowledge(c)
	})
	return h, err
}

func handlingOf(c *observe.Claim) Handling {
	return Handling{Changes: c.Changes, Done: c.Done(), Locked: c.Locked, Later: c.Later}
}

// acknowledge makes the transaction's commit acknowledge a claim. Nothing follows it that could take the acknowledgements back, so that
// all cells of the claim may be cleared after the commit.
func (o *Observing) acknowledge(c *observe.Claim) error {
	o.s.tx.guard.Writes(o.body.table, 0)
	return c.Acknowledge(o.s.tx.txn)
}

// SetAside acknowledges a change that cannot be handled, and records why (percodb.observer_errors).
func (o *Observing) SetAside(ctx context.Context, cell kv.NotifyCell, attempts int, cause error) (h Handling, err error) {
	err = o.transact(ctx, true, func(ctx context.Context) error {
		c, err := o.claim(ctx, []kv.NotifyCell{cell})
		if err != nil {
			return err
		}
		h = handlingOf(c)
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
		return o.acknowledge(c)
	})
	return h, err
}

// removeRecords removes the records of rows that were set aside and are handled now.
func (o *Observing) removeRecords(ctx context.Context, changes []observe.Change) error {
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

// transact runs f in a transaction under the present schema, which locks what it changes before it does, or else is optimistic.
func (o *Observing) transact(ctx context.Context, locks bool, f func(ctx context.Context) error) (err error) {
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
	s.tx.optimistic = !locks
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

// claim claims the rows of cells. It starts over when the snapshot moves.
func (o *Observing) claim(ctx context.Context, cells []kv.NotifyCell) (c *observe.Claim, err error) {
	txn := o.s.tx.txn
	start := txn.Savepoint()
	for range maxAttempts {
		c, err = Delivery(o.s.tx.db, o.body.table, o.body.observer).Claim(ctx, txn, cells)
		if !errors.Is(err, percolator.ErrRestartStatement) {
			return c, err
		}
		txn.RestartStatement(start)
		if err = o.s.tx.beginStatement(ctx); err != nil {
			return nil, err
		}
		if err = o.refresh(ctx); err != nil {
			return nil, err
		}
	}
	return nil, err
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
	if owner := d.OwnerOID(); o.s.acting.current != owner || o.s.acting.within == "" {
		o.s.acting.actAs(owner)
		o.s.tx.setResolver(o.s.tx.resolver)
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
	// condition is a plan of when that is never run: it has the privileges that the owner needs for it. nil: there is no condition.
	condition *cachedPlan
	plans     []*cachedPlan // by statement; nil: to be made
	// visible is a plan that yields a row if the owner's policies let it see the row; nil: it may see all. roles are those for which it was
	// made.
	visible *cachedPlan
	roles   *catalog.Roles
	locks   bool      // one of plans is of a statement that locks rows by itself: FOR UPDATE and its kind
	params  types.Row // scratch
}

// optimistic reports whether the statements, as they were planned last, may run in an optimistic transaction: they do not lock rows by
// themselves. nil: it is not known.
func (b *observerBody) optimistic() bool { return b != nil && b.plans != nil && !b.locks }

// prepare makes sure that condition and statements are planned, and that the plans hold under the transaction's schema.
func (b *observerBody) prepare(ctx context.Context, s *Session) error {
	if err := b.plan(ctx, s); err != nil {
		return err
	}
	if b.locks && !s.tx.txn.Pessimistic() { // The next transaction locks.
		return pgerror.New(pgerror.SerializationFailure, "the observer's body has changed")
	}
	if a, t, err := s.tx.accessNow(ctx, b.table); err != nil {
		return err
	} else if !a.ReadsKey(t, &t.Primary) {
		return planner.RelationDenied(t)
	}
	if b.condition == nil {
		return nil
	}
	if _, err := b.condition.holds(ctx, &s.tx, catalog.WithLocal(s.tx.resolver, b.changed)); err != nil {
		return err
	}
	return s.tx.authorize(ctx, b.condition)
}

func (b *observerBody) plan(ctx context.Context, s *Session) error {
	r := catalog.WithLocal(s.tx.resolver, b.changed)
	plans := b.plans
	if b.visible != nil {
		plans = append(slices.Clip(plans), b.visible)
	}
	if b.roles != r.Roles() {
		b.plans, plans = nil, nil
	}
	for _, p := range plans {
		if ok, err := p.holds(ctx, &s.tx, r); err != nil {
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
	opts := planner.Options{SearchPath: s.settings.SearchPath, NoSlots: true, Access: s.tx.acting.accessTo(r)}
	if b.observer.Batch == 1 {
		opts.Rows, opts.RowsOf = b.rows, b.table
	}
	visible, err := planner.BuildVisible(ctx, b.table, r, &s.env, opts)
	if err != nil {
		return err
	}
	if b.roles, b.visible = r.Roles(), nil; visible != nil {
		b.visible = &cachedPlan{Plan: visible, version: visible.SchemaVersion}
	}
	plans = make([]*cachedPlan, len(statements))
	b.locks = false
	for i, tree := range statements {
		plan, err := planner.Build(ctx, tree, r, &s.env, opts)
		if err != nil {
			return err
		}
		plans[i] = &cachedPlan{Plan: plan, version: plan.SchemaVersion}
		b.locks = b.locks || plan.Locks != ""
	}
	if b.condition, err = b.planCondition(ctx, r, s, opts); err != nil {
		return err
	}
	b.plans = plans
	return nil
}

// planCondition plans a query of the condition, for the privileges that the condition needs; nil if there is none.
func (b *observerBody) planCondition(ctx context.Context, r catalog.Resolver, s *Session, opts planner.Options) (*cachedPlan, error) {
	if b.observer.When == "" {
		return nil, nil
	}
	x, err := sql.ParseExpr(b.observer.When)
	if err != nil {
		return nil, err
	}
	opts.Rows, opts.RowsOf = b.rows, b.table
	plan, err := planner.Build(ctx, &ast.Query{Body: &ast.Select{Columns: []ast.SelectItem{{Expr: x}}}}, r, &s.env, opts)
	if err != nil {
		return nil, err
	}
	return &cachedPlan{Plan: plan, version: plan.SchemaVersion}, nil
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
	if err == nil {
		err = planner.AuthorizeCalls(env, b.when)
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
	rows, err := b.seen(ctx, s, rows)
	if err != nil {
		return err
	}
	accepted, err := b.accepted(ctx, &s.env, rows)
	if err != nil {
		return err
	}
	if b.observer.Batch > 1 && len(accepted) > 0 {
		return b.runStatements(ctx, s, accepted, nil, true)
	}
	for i := range accepted {
		if err := b.runStatements(ctx, s, accepted[i:i+1], b.inputs(accepted[i]), i == len(accepted)-1); err != nil {
			return err
		}
	}
	return nil
}

// seen returns the rows that the owner's policies let it see.
func (b *observerBody) seen(ctx context.Context, s *Session, rows []types.Row) (seen []types.Row, _ error) {
	if b.visible == nil {
		return rows, nil
	}
	for _, row := range rows {
		startStatement(&s.env)
		s.tx.txn.KeepReads()
		var found rowCollector
		if _, err := s.runner.executePlan(ctx, &run{plan: b.visible, params: b.inputs(row)}, &found); err != nil {
			return nil, err
		}
		if len(found.rows) > 0 {
			seen = append(seen, row)
		}
	}
	return seen, nil
}

// runStatements runs the statements once, with the rows of the relation changed, and the values of NEW and KEY. last: none follow in
// the transaction.
func (b *observerBody) runStatements(ctx context.Context, s *Session, changed []types.Row, params types.Row, last bool) error {
	s.view.changed = changed
	defer func() { s.view.changed, s.runner.last = nil, false }()
	defer s.interrupts.next(0)
	for i, plan := range b.plans {
		startStatement(&s.env)
		s.tx.txn.KeepReads() // A lock may move the snapshot, but not away from what was claimed and read before.
		s.interrupts.next(s.settings.StatementTimeout)
		s.runner.last = last && i == len(b.plans)-1 && s.tx.optimistic
		if _, err := s.runner.executePlan(ctx, &run{plan: plan, params: params}, &rowCollector{discard: true}); err != nil {
			return err
		}
	}
	return nil
}
