package session

import (
	"bytes"
	"context"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/percolator/observe"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/tso"
)

// observerWait is WAIT FOR OBSERVER: it returns when the observer has handled everything that was committed before the call.
type observerWait struct {
	db       *percolator.DB
	catalog  *catalog.Catalog
	table    *catalog.TableDescriptor
	id       uint64
	observer *observe.Observer
	now      tso.Timestamp // of the call
}

// Between two looks at changes that are not handled yet.
const (
	handledPollMin = time.Millisecond
	handledPollMax = 100 * time.Millisecond
)

// handledPage is the number of notify cells that are read together, awaitedPage of those that are waited for, and read again and again.
const (
	handledPage = 1000
	awaitedPage = 128
)

// run waits until every change of the table that is committed now is handled.
func (o *observerWait) run(ctx context.Context) error {
	if err := o.seeded(ctx); err != nil {
		return err
	}
	var err error
	if o.now, err = o.db.Timestamp(ctx); err != nil {
		return err
	}
	if err := o.observer.Cells.Settle(ctx, rowSpan(o.table), o.now); err != nil {
		return err
	}
	end, err := o.lastPending(ctx)
	if err != nil || end == nil {
		return err
	}
	for from := []byte(nil); ; {
		cells, next, err := o.observer.Pending(ctx, awaitedPage, from)
		if err != nil {
			return err
		}
		for len(cells) > 0 && bytes.Compare(cells[len(cells)-1].Key, end) > 0 { // Rows that were added since.
			cells, next = cells[:len(cells)-1], nil
		}
		if err := o.await(ctx, cells); err != nil || next == nil {
			return err
		}
		from = next
	}
}

// lastPending returns the last key whose changes may not be handled; nil: there is none.
func (o *observerWait) lastPending(ctx context.Context) (last []byte, err error) {
	for from := []byte(nil); ; {
		cells, next, err := o.observer.Pending(ctx, handledPage, from)
		if err != nil {
			return nil, err
		}
		if len(cells) > 0 {
			last = cells[len(cells)-1].Key
		}
		if from = next; from == nil {
			return last, nil
		}
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

// unhandled returns those of cells with a change from before the call that is not handled: neither is the cell cleared, nor is the change
// acknowledged.
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
	var rows [][]byte
	for i := range cells {
		if there[string(cells[i].Key)] {
			open, rows = append(open, cells[i]), append(rows, cells[i].Key)
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
	handled, err := o.observer.Acknowledged(ctx, txn, rows)
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range open {
		if handled[i] < min(open[i].Latest, o.now) {
			open[n] = open[i]
			n++
		}
	}
	return open[:n], nil
}
