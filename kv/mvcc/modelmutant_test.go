package mvcc

import (
	"bytes"

	"github.com/percodb/percodb/tso"
)

// smMutant is a rule of the protocol that is switched off.
type smMutant uint8

const (
	mutNone smMutant = iota
	mutIteratorFirst
	mutMaxTSBeforeInsert
	mutReadWithoutFence
	mutLockLeavesBeforeSync
	mutLatestIgnoresLocks
	mutLatestUnsynced
	mutLatestWithoutFloor
	mutLatestWithoutFence
	mutCollapseRollbacks
	mutStatusWithoutRecord
	mutStatusNotDurable
	mutRaiseSecondaries
	mutPushForgotten
	mutNoMinCommitCheck
	mutBypassWithoutPush
	mutBypassKept
	mutSkipOwnCommit
	mutDuplicateRaises
	mutOnePCOverOwnLock
	mutSettleUnasked
	mutSplitForgetsMaxTS
	mutNoFloor
	mutParallelAbort
	mutGiveWayIsRefusal
	mutResolverRollsBack
	mutAsyncIsPlain
	mutLockAtSnapshot
	mutNoSnapshotMove
	mutNoRefresh
	mutRefreshTooEarly
	mutRefreshIgnoresLocks
	mutAmendUnchecked
	mutStaleLockAccepted
	mutPessimisticCommitted
	mutExistsBeforeConflict
	mutLocalClock
	mutRollsBackEarly
	mutTakenForEnded
	mutGCBeforeResolve
	mutNoFence
	mutGCAllRollbacks
	mutTrustsCollected
	mutNoSyncLog
	mutSyncAnyRun
	mutScanWithoutFence
	mutLockCommitsForgotten
	mutAsyncPushed
	mutNoSubticks
	mutSharedUnchecked
	mutSharedCheckedEarly
	mutLockOnlyUnrecorded
	mutUseUnrecorded
	mutReadsElsewhere
	mutNoLockBound
	mutBackUnfenced
	mutNothingProtected
	mutClearedUnseen
	mutLeftUnprotected
	mutLargeReadersPass
	mutLargeWritersPass
	mutLargeBoundEarly
	mutLargeFileByFile
	mutLargeLeavesFirst
	mutGCPassesLarge
	mutLargeAheadPassed
	mutLargeAheadEarly
	mutLargeAheadIssued
	mutClearUnconditional
	mutClearBeforeCommit
	mutAckBeforeSnapshot
	mutResolverQuiet
	mutHintOnly
	mutClearPassesLarge
	mutCellNotReadAgain
	mutForgetUnsynced
	mutEnd
)

// prewrite is decidePrewrite, or what a mutant makes of it.
func (mut smMutant) prewrite(start, read tso.Timestamp, m *Mutation, v *keyView) prewriteVerdict {
	switch mut {
	case mutSharedUnchecked:
		if m.Op == OpCheckShared {
			return prewriteCheck
		}
	case mutSkipOwnCommit:
		v.ownCommitTS = 0
	case mutLockCommitsForgotten:
		v.lockCommitTS = 0
	case mutAmendUnchecked:
		if m.LockedAt != 0 && v.other == nil && !v.ownLock(start) {
			v.newest, v.lockCommitTS = writeRecord{}, 0
		}
	case mutStaleLockAccepted:
		if v.ownPess(start) && m.LockedAt != 0 {
			v.lock.ForUpdateTS = m.LockedAt
		}
	case mutExistsBeforeConflict:
		if m.MustBeNew && v.newest.op == OpPut && v.newest.commitTS > read && v.ownCommitTS == 0 && !v.ownLock(start) {
			return prewriteExists
		}
	}
	return decidePrewrite(start, read, m, v)
}

// commit is decideCommit, or what a mutant makes of it.
func (mut smMutant) commit(key []byte, start, commit tso.Timestamp, primary bool, v *keyView) (finish, error) {
	switch {
	case mut == mutNoMinCommitCheck && v.ownLock(start):
		v.lock.MinCommitTS = 0
	case mut == mutPessimisticCommitted && v.ownPess(start):
		return finishCommit, nil
	}
	return decideCommit(key, start, commit, primary, v)
}

// status is decideStatus, or what a mutant makes of it.
func (mut smMutant) status(primary []byte, q *statusQuery, v *keyView) (TxnStatus, finish, tso.Timestamp, error) {
	if mut == mutAsyncIsPlain && v.ownLock(q.startTS) {
		q.forceSync = true
	}
	if mut == mutAsyncPushed && v.ownLock(q.startTS) && !expired(v.lock, q.nowTS, 0) {
		v.lock.Async = false
	}
	return decideStatus(primary, q, v)
}

// read is decideRead, or what a mutant makes of it.
func (mut smMutant) read(key []byte, l *Lock, state entryState, onePC bool, o *ReadOptions) readVerdict {
	if mut == mutLatestIgnoresLocks && o.ReadTS == tso.MaxTimestamp && !bytes.Equal(l.Primary, key) && state == stateDurable {
		return readPass
	}
	return decideRead(key, l, state, onePC, o)
}
