package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/percolator/observe"
	"github.com/percodb/percodb/test/history"
)

// derived has data that observers keep up to date: of each of two tables the sum of its rows, with the last contribution
// of every row. A table, its acknowledgements and its sum are far apart, so that mostly they are on several nodes.
// Clients write rows and deliver changes, which they find by scans, or by hints that are late, repeated and mostly lost.
// Each delivery leaves a mark of its own, so that two for one change do not conflict by it.
type derived struct {
	w     *world
	mu    sync.Mutex
	hints [observedTables][]kv.NotifyCell
	rows  map[string]string
}

const (
	observedTables = 2
	observedRows   = 4
)

// observedKey returns the key of a thing of table n.
func observedKey(n int, what string) string { return observedPlaces[n][what] + what }

var observedPlaces = [observedTables]map[string]string{
	{"row/": "b-", "ack/": "y-", "last/": "o-", "sum": "h-", "mark/": "u-"},
	{"row/": "t-", "ack/": "d-", "last/": "m-", "sum": "w-", "mark/": "f-"},
}

func (d *derived) observer(c *client, n int) *observe.Observer {
	return &observe.Observer{ID: uint64(n + 1), Cells: c.db.Observers(), Rows: []byte(observedKey(n, "row/")), Acks: []byte(observedKey(n, "ack/"))}
}

func observedRow(n, i int) string { return fmt.Sprint(observedKey(n, "row/"), i) }

func (d *derived) setup(*percolator.Txn) error { return nil }

func (d *derived) step(c *client) {
	n := c.rng.IntN(observedTables)
	switch kind := c.rng.IntN(12); {
	case kind < 5:
		d.write(c)
	case kind == 5:
		_, _, err := d.observer(c, n).Collect(context.Background(), c.db, 1+c.rng.IntN(4), nil)
		d.expect(c, err)
	default:
		d.deliver(c, n, d.find)
	}
}

// expect reports an error that may not occur in a world like this one.
func (d *derived) expect(c *client, err error) {
	if err != nil && !expected(err) && errkind.Of(err) != errkind.Undetermined && !(d.w.plan.collects && tooOld(err)) {
		d.w.problem("c%d: unexpected error %v", c.id, err)
	}
}

// observedWrite is a write of a row: the value, or -1 to delete it.
type observedWrite struct {
	table  int
	key    string
	value  int64
	undone bool
}

// write changes one to three rows.
func (d *derived) write(c *client) {
	writes := make([]observedWrite, 1+c.rng.IntN(3))
	for i := range writes {
		n := c.rng.IntN(observedTables)
		writes[i] = observedWrite{n, observedRow(n, c.rng.IntN(observedRows)), c.rng.Int64N(40) - 10, c.rng.IntN(8) == 0}
	}
	a := c.transact(c.options(), func(ctx context.Context, x *txn) error {
		for i := range writes {
			run := func() error {
				return x.statement(ctx, func() error { return writes[i].run(ctx, x) })
			}
			if writes[i].undone {
				if err := x.undo(ctx, run); err != nil {
					return err
				}
			} else if err := run(); err != nil {
				return err
			}
		}
		if len(writes) == 3 && writes[0].value == 7 {
			return errBusiness
		}
		return nil
	})
	if a.Outcome != history.Committed {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range writes {
		if !w.undone {
			d.hints[w.table] = append(d.hints[w.table], kv.NotifyCell{Key: []byte(w.key), Latest: a.commitTS})
		}
	}
}

func (w *observedWrite) run(ctx context.Context, x *txn) error {
	if err := x.lock(ctx, w.key); err != nil {
		return err
	}
	var err error
	if w.value < 0 {
		err = x.Delete([]byte(w.key))
	} else {
		err = x.putInt(w.key, w.value)
	}
	if err == nil {
		x.Notify(&mvcc.NotifySet{Observers: []uint64{uint64(w.table + 1)}})
	}
	return err
}

// find returns cells of a table, as a scan from a random row on finds them, or as hints report them.
func (d *derived) find(c *client, n int) ([]kv.NotifyCell, error) {
	if c.rng.IntN(3) == 0 || d.w.plan.bug == onlyHints {
		return d.hinted(c, n), nil
	}
	cells, _, err := d.observer(c, n).Pending(context.Background(), 1+c.rng.IntN(observedRows), []byte(observedRow(n, c.rng.IntN(observedRows))))
	return cells, err
}

// hinted draws a few hints, in key order.
func (d *derived) hinted(c *client, n int) (cells []kv.NotifyCell) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range 1 + c.rng.IntN(2) {
		if all := d.hints[n]; len(all) > 0 {
			cells = append(cells, all[c.rng.IntN(len(all))])
		}
	}
	slices.SortFunc(cells, func(a, b kv.NotifyCell) int { return bytes.Compare(a.Key, b.Key) })
	return slices.CompactFunc(cells, func(a, b kv.NotifyCell) bool { return bytes.Equal(a.Key, b.Key) })
}

// deliver delivers changes of a table that find finds, and reports whether there are any.
func (d *derived) deliver(c *client, n int, find func(*client, int) ([]kv.NotifyCell, error)) bool {
	cells, err := find(c, n)
	if d.expect(c, err); err != nil || len(cells) == 0 {
		return err != nil
	}
	o := d.observer(c, n)
	var claim *observe.Claim
	a := c.transact(c.options(), func(ctx context.Context, x *txn) error {
		return x.statement(ctx, func() (err error) {
			if claim, err = o.Claim(ctx, x.Txn, cells); err != nil || len(claim.Changes) == 0 {
				return err
			}
			if err = d.project(ctx, x, n, claim); err == nil && d.w.plan.bug == clearFirst {
				err = claim.Clear(ctx)
			}
			return err
		})
	})
	if a.Outcome == history.Committed && c.rng.IntN(4) > 0 {
		d.expect(c, claim.Clear(context.Background()))
	}
	return true
}

// project brings the derived data of a table up to date with claimed rows.
func (d *derived) project(ctx context.Context, x *txn, n int, claim *observe.Claim) error {
	sumKey := observedKey(n, "sum")
	if err := x.lock(ctx, sumKey); err != nil {
		return err
	}
	sum, _, err := x.getInt(ctx, sumKey)
	if err != nil {
		return err
	}
	for i := range claim.Changes {
		change := &claim.Changes[i]
		row := string(change.Key)
		lastKey := observedKey(n, "last/") + strings.TrimPrefix(row, observedKey(n, "row/"))
		value, found, err := x.getInt(ctx, row)
		if err != nil {
			return err
		}
		last, _, err := x.getInt(ctx, lastKey)
		if err != nil {
			return err
		}
		sum += value - last
		if found != (change.Row != nil) {
			d.w.problem("row %s was delivered as %q, and is %d, %v at the snapshot", row, change.Row, value, found)
		}
		if found {
			err = x.putInt(lastKey, value)
		} else {
			err = x.Delete([]byte(lastKey))
		}
		if err != nil {
			return err
		}
		if err := x.putInt(fmt.Sprintf("%s%s@%d/%d", observedKey(n, "mark/"), row, change.CommitTS, x.a.startTS), 1); err != nil {
			return err
		}
	}
	if err := x.putInt(sumKey, sum); err != nil {
		return err
	}
	return claim.Acknowledge(x.Txn)
}

// settle delivers what is pending when no client writes any more.
func (d *derived) settle(c *client) {
	find := func(c *client, n int) ([]kv.NotifyCell, error) {
		cells, _, err := d.observer(c, n).Pending(context.Background(), observedRows, nil)
		return cells, err
	}
	if d.w.plan.bug == onlyHints {
		return
	}
	for n := range observedTables {
		for rounds := 0; ; rounds++ {
			if err := c.connect(); err != nil {
				d.w.problem("connect: %v", err)
				return
			}
			now, err := c.db.Timestamp(context.Background())
			if err == nil {
				err = c.db.Observers().Settle(context.Background(), kv.Span{}, now)
			}
			if err == nil && !d.deliver(c, n, find) {
				break
			}
			if rounds == 100 {
				d.w.problem("table %d: changes stay pending, %v", n, err)
				return
			}
		}
	}
}

func (d *derived) finish(rows map[string]string, _, _ int64) { d.rows = rows }

// check compares the derived data with a recomputation, and counts the deliveries of each change.
func (d *derived) check() (found []history.Anomaly) {
	report := func(class history.Class, format string, args ...any) {
		found = append(found, history.Anomaly{Class: class, Story: fmt.Sprintf(format, args...)})
	}
	marks := map[string]int{}
	for n := range observedTables {
		rows, lasts := d.below(observedKey(n, "row/")), d.below(observedKey(n, "last/"))
		sum := int64(0)
		for key, value := range rows {
			if sum += value; lasts[key] != value {
				report("stale derivation", "row %s of table %d is %d, its last contribution %d", key, n, value, lasts[key])
			}
		}
		if len(lasts) != len(rows) {
			report("stale derivation", "table %d has rows %v and contributions %v", n, rows, lasts)
		}
		if derived := numbers(d.rows, "")[observedKey(n, "sum")]; derived != sum {
			report("stale derivation", "the sum of table %d is %d and should be %d", n, derived, sum)
		}
		for mark := range d.below(observedKey(n, "mark/")) {
			marks[mark[:strings.LastIndexByte(mark, '/')]]++
		}
	}
	for change, n := range marks {
		if n > 1 {
			report("change delivered twice", "%s: %d deliveries committed", change, n)
		}
	}
	return found
}

// below returns the numbers of the keys with a prefix, without it.
func (d *derived) below(prefix string) map[string]int64 {
	out := map[string]int64{}
	for key, value := range numbers(d.rows, "") {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			out[rest] = value
		}
	}
	return out
}
