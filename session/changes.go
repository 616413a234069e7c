package session

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/percolator/ack"
	"github.com/percodb/percodb/percolator/observe"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The changes that one call of percodb.changes returns, by default and at most.
const (
	defaultChanges = 100
	maxChanges     = catalog.MaxObserverBatch
)

// Between two attempts of a statement that waits for changes, unless a hint comes first.
const (
	changesPollMin = 5 * time.Millisecond
	changesPollMax = time.Second
)

// maxChangesWait bounds the argument wait.
const maxChangesWait = 24 * time.Hour

// errNoChanges says that there is no change to claim, and that the statement waits for one.
var errNoChanges = errors.New("there are no changes yet")

// changesWait is the wait of a statement for changes.
type changesWait struct {
	// used: other statements have run in the transaction, whose snapshot therefore stays, or the run is a part of a statement
	// (EXPLAIN ANALYZE, COPY, CREATE TABLE AS, a cursor), which planned it.
	used     bool
	deadline time.Time // zero: it has not waited
	pause    time.Duration
	hint     <-chan struct{} // of a change since the last attempt; nil: there are no hints
}

// changeSource returns the source of percodb.changes for a run.
func (x *statementRunner) changeSource(r *run) executor.ChangeSource {
	return func(ctx context.Context, n *planner.Changes, limit, wait types.Datum) ([]types.Row, error) {
		bound, patience, err := changesArgs(limit, wait)
		if err != nil {
			return nil, err
		}
		if err := consumable(n.Observer); err != nil {
			return nil, err
		}
		if x.deps.Hints != nil && patience > 0 {
			r.wait.hint = x.deps.Hints(n.Observer.ID)
		}
		rows, err := x.claimChanges(ctx, n, bound)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 && x.mayWait(r, patience) {
			return nil, errNoChanges
		}
		if n.Observer.When == "" {
			return rows, nil
		}
		body := observerBody{table: n.Table, observer: n.Observer, rows: planner.ObserverRows(n.Table)}
		if err := body.prepareWhen(ctx, x.tx.resolver, x.env); err != nil {
			return nil, err
		}
		return body.wanted(ctx, x.env, rows) // The others are acknowledged with them.
	}
}

// consumable returns an error if clients cannot consume an observer's changes.
func consumable(o *catalog.ObserverDescriptor) error {
	switch {
	case o.Body != "":
		return pgerror.New(pgerror.WrongObjectType, "observer %q has a body", o.Name).
			WithHint("The server handles its changes. Create an observer without AS for clients.")
	case o.State == catalog.ObserverDisabled:
		return disabledObserver(o)
	}
	return nil
}

func disabledObserver(o *catalog.ObserverDescriptor) error {
	return pgerror.New(pgerror.ObjectNotInPrerequisite, "observer %q is disabled", o.Name).
		WithHint("ALTER OBSERVER … ENABLE has its changes handled.")
}

// changesArgs evaluates the arguments max and wait.
func changesArgs(limit, wait types.Datum) (int, time.Duration, error) {
	bound, patience := int64(defaultChanges), time.Duration(0)
	if !limit.IsNull() {
		bound = limit.Int()
	}
	if bound < 1 || bound > maxChanges {
		return 0, 0, pgerror.New(pgerror.InvalidParameterValue, "max of percodb.changes must lie between 1 and %d", maxChanges)
	}
	if !wait.IsNull() {
		iv := wait.Interval()
		days := int64(iv.Months)*30 + int64(iv.Days)
		if days > 1 || days == 1 && iv.Micros > 0 || iv.Micros > maxChangesWait.Microseconds() {
			return 0, 0, pgerror.New(pgerror.InvalidParameterValue, "wait of percodb.changes must not be longer than a day")
		}
		patience = time.Duration(days)*maxChangesWait + time.Duration(iv.Micros)*time.Microsecond
	}
	return int(bound), patience, nil
}

// claimChanges claims up to bound changed rows in the open transaction, and acknowledges them there.
func (x *statementRunner) claimChanges(ctx context.Context, n *planner.Changes, bound int) (rows []types.Row, err error) {
	o := Delivery(x.tx.db, n.Table, n.Observer)
	for from := []byte(nil); len(rows) < bound; {
		cells, next, err := o.Pending(ctx, bound-len(rows), from)
		if err != nil {
			return nil, err
		}
		claim, err := o.Claim(ctx, x.tx.txn, cells)
		if err != nil {
			return nil, err
		}
		some, err := readChanged(ctx, x.tx.txn, n.Table, claim.Changes, &x.tx.claimed)
		if err != nil {
			return nil, err
		}
		if err := x.tx.acknowledge(delivery{claim, o}, n.Table); err != nil {
			return nil, err
		}
		if rows = append(rows, some...); next == nil {
			break
		}
		from = next
	}
	return rows, nil
}

// mayWait reports whether a statement that has found nothing tries again later. One that shares a snapshot with statements
// before it does not wait: newer changes are not in its snapshot.
func (x *statementRunner) mayWait(r *run, patience time.Duration) bool {
	if patience <= 0 || r.wait.used && !x.tx.modes.Isolation.PerStatement() {
		return false
	}
	if r.wait.deadline.IsZero() {
		r.wait.deadline, r.wait.pause = time.Now().Add(patience), changesPollMin
	}
	return time.Now().Before(r.wait.deadline)
}

// awaitChanges waits between two attempts of a statement, without a snapshot unless statements have run before it in its
// transaction. It returns the error for the client.
func (x *statementRunner) awaitChanges(ctx context.Context, r *run, w ResultWriter) error {
	if !w.Revoke() {
		return sentConflict()
	}
	if r.wait.used {
		x.tx.txn.RestartStatement(r.start)
	} else {
		x.tx.forgetStatement()
	}
	timer := time.NewTimer(min(r.wait.pause, time.Until(r.wait.deadline)))
	defer timer.Stop()
	select {
	case <-r.wait.hint:
		r.wait.pause = changesPollMin
	case <-timer.C:
		r.wait.pause = min(2*r.wait.pause, changesPollMax)
	case <-ctx.Done():
		return ctx.Err()
	}
	if !r.wait.used {
		r.repeat()
		return nil
	}
	if err := x.tx.beginStatement(ctx); err != nil {
		return err
	}
	if ok, err := r.plan.stands(ctx, x.tx.resolver); err != nil || !ok {
		return errors.Join(err, r.plan.changedError())
	}
	return nil
}

// forgetStatement drops the percolator transaction of a block whose only statement has done nothing and runs again.
func (t *transaction) forgetStatement() {
	t.queried = false
	t.forgetUnused()
	t.forgetDelivered()
}

// observerWait is WAIT FOR OBSERVER: it returns when the observer has handled everything that was committed before the call.
type observerWait struct {
	db       *percolator.DB
	catalog  *catalog.Catalog
	table    *catalog.TableDescriptor
	id       uint64
	observer *observe.Observer
}

// Between two looks at changes that are not handled yet.
const (
	handledPollMin = time.Millisecond
	handledPollMax = 100 * time.Millisecond
)

// handledPage is the number of notify cells that are waited for together.
const handledPage = 1000

// run waits until every change of the table that is committed now is handled.
func (o *observerWait) run(ctx context.Context) error {
	if err := o.seeded(ctx); err != nil {
		return err
	}
	now, err := o.db.Timestamp(ctx)
	if err != nil {
		return err
	}
	if err := o.observer.Cells.Settle(ctx, rowSpan(o.table), now); err != nil {
		return err
	}
	for from := []byte(nil); ; {
		cells, next, err := o.observer.Pending(ctx, handledPage, from)
		if err != nil {
			return err
		}
		if err := o.await(ctx, cells); err != nil || next == nil {
			return err
		}
		from = next
	}
}

// await waits until the changes of some cells are handled.
func (o *observerWait) await(ctx context.Context, cells []kv.NotifyCell) (err error) {
	for pause := handledPollMin; ; pause = min(2*pause, handledPollMax) {
		if cells, err = o.unhandled(ctx, cells); err != nil || len(cells) == 0 {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		if _, err := o.state(ctx); err != nil {
			return err
		}
	}
}

// seeded waits until the rows from before the observer was created are notified.
func (o *observerWait) seeded(ctx context.Context) error {
	for {
		state, err := o.state(ctx)
		if err != nil || state != catalog.ObserverSeeding {
			return err
		}
		if err := sleep(ctx, handledPollMax); err != nil {
			return err
		}
	}
}

// state returns the observer's state now. An observer that is disabled or dropped handles nothing: that is an error.
func (o *observerWait) state(ctx context.Context) (catalog.ObserverState, error) {
	r := o.catalog.Latest()
	if r == nil { // It is changing.
		return catalog.ObserverSeeding, nil
	}
	t, err := r.RelationByID(ctx, o.table.ID)
	if err != nil {
		return 0, err
	}
	if t == nil || t.ObserverByID(o.id) == nil {
		return 0, pgerror.New(pgerror.UndefinedObject, "the observer was dropped while a statement waited for it")
	}
	if d := t.ObserverByID(o.id); d.State != catalog.ObserverDisabled {
		return d.State, nil
	}
	return 0, disabledObserver(t.ObserverByID(o.id))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unhandled returns those of cells whose change is not handled: neither is the cell cleared, nor is the change acknowledged.
func (o *observerWait) unhandled(ctx context.Context, cells []kv.NotifyCell) (open []kv.NotifyCell, err error) {
	if len(cells) == 0 {
		return nil, nil
	}
	there := map[string]bool{}
	span := kv.Span{Start: cells[0].Key, End: append(bytes.Clone(cells[len(cells)-1].Key), 0)}
	for from := span.Start; from != nil; {
		var page []kv.NotifyCell
		if page, from, err = o.observer.Cells.Scan(ctx, o.observer.ID, span, handledPage, from); err != nil {
			return nil, err
		}
		for i := range page {
			there[string(page[i].Key)] = true
		}
	}
	var acks [][]byte
	for i := range cells {
		if key := cells[i].Key; there[string(key)] {
			open, acks = append(open, cells[i]), append(acks, append(bytes.Clone(o.observer.Acks), key[len(o.observer.Rows):]...))
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	txn, err := o.db.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer txn.Close()
	values, err := txn.BatchGet(ctx, acks)
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range open {
		if a, err := ack.Parse(values[i]); err != nil || a.Snapshot < open[i].Latest {
			open[n] = open[i]
			n++
		}
	}
	return open[:n], nil
}
