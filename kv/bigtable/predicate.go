package bigtable

import (
	"slices"

	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// A change of a row is conditional on what it was decided by. There are two forms of it:
//
//	unless   the transaction has no prewritten lock on the row: the change is made unless the row has a lock in its way, a
//	         newer version or status than the decision knows, the transaction's rollback record, or a fence above it
//	only if  the transaction has a lock there: the change is made only if the lock's cell has the value that was read
//
// The second needs no other condition: while the lock is there nobody else changes what the decision depends on (I3).

// locksBut matches the locks of a row except those of one transaction.
func locksBut(startTS tso.Timestamp) []widerow.Filter {
	own := plainTS(startTS)
	return append(otherColumns(string(rune(exclusiveLock)), own), otherColumns(string(rune(sharedLock)), own)...)
}

// otherColumns matches the lock columns of a kind but one.
func otherColumns(kind, own string) []widerow.Filter {
	next := string(rune(kind[0] + 1))
	return []widerow.Filter{
		widerow.ColumnRangeFilter(familyLock, kind, kind+own),
		widerow.ColumnRangeFilter(familyLock, kind+own+"\x00", next),
	}
}

// newerVersions matches write cells with a commit_ts above ts.
func newerVersions(ts tso.Timestamp) widerow.Filter {
	return widerow.ChainFilters(newerWrites(ts), widerow.FirstOfRowFilter())
}

func newerWrites(ts tso.Timestamp) widerow.Filter {
	return widerow.ColumnRangeFilter(familyWrite, inverted(tso.MaxTimestamp), inverted(ts))
}

// newerStatuses matches records of committed locks above ts.
func newerStatuses(ts tso.Timestamp) widerow.Filter {
	return widerow.ColumnRangeFilter(familyStatus, string(rune(statusCommit))+inverted(tso.MaxTimestamp), string(rune(statusCommit))+inverted(ts))
}

func rollbackColumn(startTS tso.Timestamp) string {
	return string(rune(statusRollback)) + plainTS(startTS)
}

func commitColumn(commitTS tso.Timestamp) string {
	return string(rune(statusCommit)) + inverted(commitTS)
}

func fenceColumn(ts tso.Timestamp) string { return string(rune(statusFence)) + inverted(ts) }

// wholeFamily matches a family. A range of columns is cheaper than a filter by name, which is a regular expression.
func wholeFamily(family string) widerow.Filter { return widerow.ColumnRangeFilter(family, "", "") }

// column matches one column.
func column(family, qualifier string) widerow.Filter {
	return widerow.ColumnRangeFilter(family, qualifier, qualifier+"\x00")
}

// fenced matches fences at or above ts.
func fenced(ts tso.Timestamp) widerow.Filter {
	return widerow.ColumnRangeFilter(familyStatus, fenceColumn(tso.MaxTimestamp), fenceColumn(ts)+"\x00")
}

// hasPut matches a newest version that is a value.
func hasPut() widerow.Filter {
	return widerow.ChainFilters(
		wholeFamily(familyWrite),
		widerow.FirstOfRowFilter(),
		widerow.ValueRangeFilter([]byte{byte(mvcc.OpPut)}, []byte{byte(mvcc.OpPut) + 1}))
}

// unchanged are the records that a decision about a row without a prewritten lock of its transaction depends on.
type unchanged struct {
	startTS tso.Timestamp
	// Nothing above these may have been committed.
	version, status tso.Timestamp
	// locks says which locks are in the way.
	locks    inTheWay
	mustMiss bool // the key must have no value
}

type inTheWay uint8

const (
	anyLock              inTheWay = iota // every lock, the transaction's own too
	othersOrOwnExclusive                 // those of other transactions, and an exclusive one of the transaction
	exclusiveOrOwnLock                   // exclusive ones, and the transaction's own shared one
	ownLock                              // those of the transaction
)

// violated matches unless the records are as the decision knows them.
func (u *unchanged) violated() widerow.Filter {
	own := plainTS(u.startTS)
	filters := []widerow.Filter{newerVersions(u.version), newerStatuses(u.status), column(familyStatus, rollbackColumn(u.startTS)), fenced(u.startTS)}
	switch u.locks {
	case anyLock:
		filters = append(filters, wholeFamily(familyLock))
	case othersOrOwnExclusive:
		filters = append(filters, append(locksBut(u.startTS), column(familyLock, string(rune(exclusiveLock))+own))...)
	case exclusiveOrOwnLock:
		filters = append(filters, widerow.ColumnRangeFilter(familyLock, string(rune(exclusiveLock)), string(rune(exclusiveLock+1))),
			column(familyLock, string(rune(sharedLock))+own))
	case ownLock:
		filters = append(filters, column(familyLock, string(rune(exclusiveLock))+own), column(familyLock, string(rune(sharedLock))+own))
	}
	if u.mustMiss {
		filters = append(filters, hasPut())
	}
	return widerow.InterleaveFilters(filters...)
}

// lockIs matches a lock cell with a value.
func lockIs(column string, value []byte) widerow.Filter {
	return widerow.ChainFilters(
		widerow.ColumnRangeFilter(familyLock, column, column+"\x00"),
		widerow.ValueRangeFilter(value, append(append([]byte{}, value...), 0)))
}

// visibleAt reads a row as of a snapshot: its locks, its fence, the newest version, and the newest data, which is usually that
// version's.
func visibleAt(ts tso.Timestamp, values bool) widerow.Filter { return visibleBetween(ts, ts, values) }

// visibleBetween reads a row as of the newest of several snapshots, with the fences of the oldest.
func visibleBetween(oldest, newest tso.Timestamp, values bool) widerow.Filter {
	filters := []widerow.Filter{
		wholeFamily(familyLock),
		fenced(oldest),
		widerow.ChainFilters(widerow.ColumnRangeFilter(familyWrite, inverted(newest), ""), widerow.FirstOfRowFilter()),
	}
	if values {
		filters = append(filters, widerow.ChainFilters(widerow.ColumnRangeFilter(familyData, inverted(newest), ""), widerow.FirstOfRowFilter()))
	}
	return widerow.InterleaveFilters(filters...)
}

// dataOf reads the data of transactions.
func dataOf(startTS []tso.Timestamp) widerow.Filter {
	startTS = slices.Compact(slices.Sorted(slices.Values(startTS)))
	columns := make([]widerow.Filter, len(startTS))
	for i, ts := range startTS {
		columns[i] = column(familyData, inverted(ts))
	}
	if len(columns) == 1 {
		return columns[0]
	}
	return widerow.InterleaveFilters(columns...)
}

// recordsOf reads what a decision about a transaction depends on.
func recordsOf(startTS tso.Timestamp) widerow.Filter {
	return widerow.InterleaveFilters(
		wholeFamily(familyLock),
		column(familyStatus, rollbackColumn(startTS)),
		newerStatuses(startTS),
		fenced(startTS),
		newerWrites(startTS),
		widerow.ChainFilters(wholeFamily(familyWrite), widerow.FirstOfRowFilter()))
}
