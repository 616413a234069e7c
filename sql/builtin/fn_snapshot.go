package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Transactions are numbered by the timestamps of their begin.

// snapshotFuncs declares the functions on transaction numbers and snapshots: pg_current_snapshot and its kin, and the older ones of txid.
func snapshotFuncs() []decl {
	current := session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
		next := uint64(s.TxnID(false))
		return types.NewSnapshot(types.Snapshot{Min: next, Max: next}), nil
	})
	out := []decl{
		{sig: "pg_current_snapshot() pg_snapshot", flags: stable, fn: current},
		{sig: "txid_current_snapshot() txid_snapshot", flags: stable, fn: current},
		{sig: "pg_current_xact_id_if_assigned() xid8", flags: stable, fn: assignedID(xid8)},
		{sig: "txid_current_if_assigned() int8", flags: stable, fn: assignedID(txid)},
		{sig: "pg_xact_status(xid8) text", flags: volatile, fn: transactionStatus(types.Datum.Uint64)},
		{sig: "txid_status(int8) text", flags: volatile, fn: transactionStatus(func(d types.Datum) uint64 { return uint64(d.Int()) })},
		{sig: "pg_xact_commit_timestamp(xid) timestamptz", flags: volatile, fn: func(*Env, []types.Datum) (types.Datum, error) {
			return types.Null, pgerror.New(pgerror.ObjectNotInPrerequisite, "could not get commit timestamp data").
				WithHint("Make sure the configuration parameter \"track_commit_timestamp\" is set.")
		}},
	}
	for _, f := range []struct {
		prefix, snapshot, number string
		from                     func(types.Datum) uint64
		to                       func(uint64) types.Datum
	}{
		{"pg_", "pg_snapshot", "xid8", types.Datum.Uint64, xid8},
		{"txid_", "txid_snapshot", "int8", func(d types.Datum) uint64 { return uint64(d.Int()) }, txid},
	} {
		out = append(out,
			decl{sig: f.prefix + "snapshot_xmin(" + f.snapshot + ") " + f.number, fn: fn1(func(a types.Datum) (types.Datum, error) {
				return f.to(a.Snapshot().Min), nil
			})},
			decl{sig: f.prefix + "snapshot_xmax(" + f.snapshot + ") " + f.number, fn: fn1(func(a types.Datum) (types.Datum, error) {
				return f.to(a.Snapshot().Max), nil
			})},
			decl{sig: f.prefix + "visible_in_snapshot(" + f.number + "," + f.snapshot + ") bool", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
				s := b.Snapshot()
				return types.Bool(s.Visible(f.from(a))), nil
			})},
		)
	}
	return out
}

func xid8(n uint64) types.Datum { return types.Uint64(n) }
func txid(n uint64) types.Datum { return types.Int(int64(n)) }

// snapshotSetFuncs declares the functions that list the running transactions of a snapshot.
func snapshotSetFuncs() []setDecl {
	running := func(to func(uint64) types.Datum) func(*Overload) func(*Env, []types.Datum) (SetRows, error) {
		return opens(func(_ *Env, a []types.Datum) (SetRows, error) {
			var rows []types.Datum
			for _, x := range a[0].Snapshot().Running {
				rows = append(rows, to(x))
			}
			return &sliceRows{rows}, nil
		})
	}
	return []setDecl{
		{sig: "pg_snapshot_xip(pg_snapshot) xid8", estimate: 50, open: running(xid8)},
		{sig: "txid_snapshot_xip(txid_snapshot) int8", estimate: 50, open: running(txid)},
	}
}

// assignedID returns the number of the transaction, NULL as long as it has written nothing.
func assignedID(to func(uint64) types.Datum) Func {
	return session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
		if !s.TxnAssigned() {
			return types.Null, nil
		}
		return to(uint64(s.TxnID(false))), nil
	})
}

// transactionStatus tells of the own transaction that it is in progress. What became of others is not kept, which NULL says; the first two
// numbers are those of PostgreSQL's own transactions.
func transactionStatus(number func(types.Datum) uint64) Func {
	const lastBootstrap = 2
	return session(func(s SessionInfo, a []types.Datum) (types.Datum, error) {
		x, own := number(a[0]), uint64(s.TxnID(false))
		switch {
		case x > own:
			return types.Null, pgerror.New(pgerror.InvalidParameterValue, "transaction ID \"%d\" is in the future", x)
		case x == own:
			return types.Text("in progress"), nil
		case x >= 1 && x <= lastBootstrap:
			return types.Text("committed"), nil
		}
		return types.Null, nil
	})
}
