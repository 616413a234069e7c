package session

import (
	"context"
	"sync/atomic"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/tso"
)

// shown is what other sessions may see of this one's transaction (percodb.transactions). The session's
// goroutine stores, any may load; the parts may be of slightly different moments.
type shown struct {
	startTS, readTS atomic.Uint64 // 0: none is open
	modes           atomic.Uint32 // isolation, and pessimisticBit
	failed          atomic.Bool   // the block waits for its end
	// As of the end of the block's last statement.
	reads, locks, writes atomic.Int64
}

const pessimisticBit = 1 << 8

// begin notes a transaction that has begun.
func (v *shown) begin(txn *percolator.Txn, level isolation) {
	bits := uint32(level)
	if txn.Pessimistic() {
		bits |= pessimisticBit
	}
	v.modes.Store(bits)
	v.note(percolator.Counts{})
	v.readTS.Store(uint64(txn.ReadTS()))
	v.startTS.Store(uint64(txn.StartTS()))
}

func (v *shown) note(c percolator.Counts) {
	v.reads.Store(int64(c.Reads))
	v.locks.Store(int64(c.Locks))
	v.writes.Store(int64(c.Writes))
}

// end notes that no transaction is open.
func (v *shown) end() { v.startTS.Store(0) }

// beginMessage makes the context of what a message asks for.
func (s *Session) beginMessage() {
	s.ctx = s.interrupts.begin(s.settings.statementTimeout)
	s.env.Ctx = s.ctx
}

// endMessage ends that context, and notes where a block stands between its statements.
func (s *Session) endMessage() {
	s.interrupts.end()
	if s.tx.txn == nil {
		return
	}
	s.shown.failed.Store(s.tx.phase == failed)
	s.shown.note(s.tx.txn.Counts())
	s.shown.readTS.Store(uint64(s.tx.txn.ReadTS()))
}

// transaction returns what is shown of the session's transaction, if one is open. Safe from any
// goroutine.
func (s *Session) transaction() (catalog.Transaction, bool) {
	start := tso.Timestamp(s.shown.startTS.Load())
	if start == 0 {
		return catalog.Transaction{}, false
	}
	bits := s.shown.modes.Load()
	t := catalog.Transaction{
		PID: s.key.PID, User: s.user, Isolation: isolation(bits &^ pessimisticBit).String(), Pessimistic: bits&pessimisticBit != 0,
		StartTS: start, ReadTS: tso.Timestamp(s.shown.readTS.Load()),
		Reads: s.shown.reads.Load(), Locks: s.shown.locks.Load(), Writes: s.shown.writes.Load(),
	}
	t.State = s.state()
	return t, true
}

// state is what the session does, as pg_stat_activity says it. Safe from any goroutine.
func (s *Session) state() string {
	switch {
	case s.interrupts.running():
		return "active"
	case s.shown.startTS.Load() == 0:
		return "idle"
	case s.shown.failed.Load():
		return "idle in transaction (aborted)"
	}
	return "idle in transaction"
}

// Transactions implements catalog.SystemView.
func (v systemView) Transactions() (all []catalog.Transaction) {
	v.s.deps.Sessions(func(other *Session) {
		if t, ok := other.transaction(); ok {
			all = append(all, t)
		}
	})
	return all
}

// Locks implements catalog.SystemView.
func (v systemView) Locks(ctx context.Context, yield func(*kv.RangeDescriptor, *mvcc.LockInfo) error) error {
	missing, err := kv.ListLocks(ctx, v.s.deps.Router, yield)
	for _, shard := range missing {
		v.s.warn(pgerror.New(pgerror.Warning, "the locks of store %s are missing: it does not answer", shard))
	}
	return err
}

// Ranges implements catalog.SystemView.
func (v systemView) Ranges(ctx context.Context) ([]catalog.Range, error) {
	all, err := v.s.deps.Router.Ranges(ctx)
	if err != nil {
		return nil, err
	}
	sizes, err := v.s.deps.Router.RangeSizes(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]catalog.Range, len(all))
	for i := range all {
		list[i] = catalog.Range{RangeDescriptor: all[i], SizeBytes: -1}
		if size, ok := sizes[all[i].ID]; ok {
			list[i].SizeBytes = size
		}
	}
	return list, nil
}

// Oracle implements catalog.SystemView.
func (v systemView) Oracle(ctx context.Context) (o catalog.Oracle, err error) {
	if o.Now, err = v.s.deps.Oracle.Now(ctx); err != nil {
		return o, err
	}
	if local, ok := v.s.deps.Oracle.(*tso.Local); ok {
		o.WindowEnd = local.WindowEnd()
	}
	if o.SafePoint, err = kv.InForce(ctx, v.s.deps.Router); err != nil {
		return o, err
	}
	o.OldestActive, err = v.s.deps.DB.OldestActive(ctx)
	return o, err
}
