package session

import (
	"context"
	"errors"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
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
	// changesPollOn is the longest if the next attempt looks at further rows, because the last one has found unwanted ones.
	changesPollOn = 50 * time.Millisecond
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
	// unwanted is the first row that the last attempt has claimed and for which the observer's condition does not hold; nil: none.
	unwanted []byte
	node     *planner.Changes
}

// changeSource returns the source of percodb.changes for a run.
func (x *statementRunner) changeSource(r *run) executor.ChangeSource {
	return func(ctx context.Context, n *planner.Changes, limit, wait types.Datum) ([]types.Row, error) {
		rows, timeout, err := changesArgs(limit, wait)
		if err != nil {
			return nil, err
		}
		if err := consumable(n.Observer); err != nil {
			return nil, err
		}
		if x.deps.Hints != nil && timeout > 0 {
			r.wait.hint = x.deps.Hints(n.Observer.ID)
		}
		c, err := x.claimChanges(ctx, n, rows)
		if err != nil {
			return nil, err
		}
		if len(c.rows) == 0 && x.mayWait(r, timeout) {
			r.wait.node, r.wait.unwanted = n, c.unwanted
			return nil, errNoChanges
		}
		return c.rows, nil
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
func changesArgs(limit, wait types.Datum) (rows int, timeout time.Duration, err error) {
	rows = defaultChanges
	if !limit.IsNull() {
		if limit.Int() < 1 || limit.Int() > maxChanges {
			return 0, 0, pgerror.New(pgerror.InvalidParameterValue, "max of percodb.changes must lie between 1 and %d", maxChanges)
		}
		rows = int(limit.Int())
	}
	if !wait.IsNull() {
		iv := wait.Interval()
		days := int64(iv.Months)*30 + int64(iv.Days)
		if days > 1 || days == 1 && iv.Micros > 0 || iv.Micros > maxChangesWait.Microseconds() {
			return 0, 0, pgerror.New(pgerror.InvalidParameterValue, "wait of percodb.changes must not be longer than a day")
		}
		timeout = time.Duration(days)*maxChangesWait + time.Duration(iv.Micros)*time.Microsecond
	}
	return rows, timeout, nil
}

// mayWait reports whether a statement that has found nothing tries again later. One that shares a snapshot with statements
// before it does not wait: newer changes are not in its snapshot.
func (x *statementRunner) mayWait(r *run, timeout time.Duration) bool {
	if timeout <= 0 || r.wait.used && !x.tx.modes.Isolation.PerStatement() {
		return false
	}
	if r.wait.deadline.IsZero() {
		r.wait.deadline, r.wait.pause = time.Now().Add(timeout), changesPollMin
	}
	return time.Now().Before(r.wait.deadline)
}

// awaitChanges waits between two attempts of a statement, without a snapshot unless statements have run before it in its
// transaction. It returns the error for the client.
func (x *statementRunner) awaitChanges(ctx context.Context, r *run, w ResultWriter) error {
	if !w.Revoke() {
		return sentConflict()
	}
	r.restarts = 0
	if r.wait.used {
		x.undo(r)
	} else {
		x.tx.forgetStatement()
		if r.wait.unwanted != nil {
			if done, err := x.acknowledgeUnwanted(ctx, &r.wait); err != nil {
				return err
			} else if done {
				r.repeat()
				return nil
			}
		}
	}
	if r.wait.unwanted != nil {
		r.wait.pause = min(r.wait.pause, changesPollOn)
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
