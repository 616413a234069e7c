package mvcc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// smRule is the failure without a rule of the protocol, and the world in which the model finds it.
type smRule struct {
	mut   smMutant
	about string
	off   string // what happens instead
	world string // the cheapest that shows it
	// spare is the reason why the world shows no failure: another rule has the same effect.
	spare string
}

// smRules lists every rule that the model can switch off.
var smRules = []smRule{
	{mutIteratorFirst, "order", "a read opens its iterator before it looks at the locks", "order-pair", ""},
	{mutMaxTSBeforeInsert, "order", "a prewrite reads max_ts before its locks are in the table", "order-async", ""},
	{mutReadWithoutFence, "order", "a read does not raise max_ts", "async-order", ""},
	{mutSplitForgetsMaxTS, "order", "a range that moves leaves max_ts behind", "async-move", ""},
	{mutScanWithoutFence, "order", "a scan for locks does not raise max_ts", "scan-locks", ""},

	{mutLockLeavesBeforeSync, "durability", "a lock leaves the table when the batch is applied, before it is synced", "order", ""},
	{mutLatestUnsynced, "durability", "a read of the latest value does not wait for what it saw to be synced", "order", ""},
	{mutStatusNotDurable, "durability", "what a status check has decided is not synced", "restart", ""},

	{mutLatestIgnoresLocks, "reads", "a read of the latest value passes the locks of secondaries", "latest", ""},
	{mutLatestWithoutFloor, "reads", "a read of the latest value passes a primary that may commit below what the one before has seen", "latest-order", ""},
	{mutLatestWithoutFence, "reads", "a read of the latest value does not raise max_ts to what the one before has seen", "latest-fence", ""},
	{mutBypassWithoutPush, "reads", "a reader passes a live lock that it has not pushed", "async-pair", ""},
	{mutBypassKept, "reads", "what was passed at one snapshot is passed at the next", "moving", ""},
	{mutNoMinCommitCheck, "reads", "the primary commits below its min_commit_ts", "skew", ""},
	{mutPushForgotten, "reads", "after a restart a primary may commit below what it was pushed to", "restart", ""},
	{mutRaiseSecondaries, "reads", "after a restart secondaries are pushed as well", "async-restart", ""},

	{mutNoSubticks, "timestamps", "a computed commit_ts may leave the tick of what was issued", "async-order", ""},
	{mutNoFloor, "timestamps", "a computed commit_ts need not lie above what was issued when the commit was asked for", "async-order", ""},
	{mutDuplicateRaises, "timestamps", "a duplicate of a prewrite raises min_commit_ts", "one-phase", ""},
	{mutAsyncPushed, "timestamps", "a reader pushes the primary of an async commit", "async-move", ""},

	{mutCollapseRollbacks, "outcome", "of the rollback records on a key only the newest is kept", "late", ""},
	{mutStatusWithoutRecord, "outcome", "who rolls a primary back leaves no record", "async-pair", ""},
	{mutSkipOwnCommit, "outcome", "a prewrite does not look whether its transaction is committed", "async-abort", ""},
	{mutOnePCOverOwnLock, "outcome", "a one-phase request commits over locks of its own two phases", "no-timestamp", ""},
	{mutSettleUnasked, "outcome", "a one-phase commit whose answer was lost is reported as failed", "late", ""},
	{mutParallelAbort, "outcome", "the owner of an async commit rolls all keys back at once, undecided", "async-abort", ""},
	{mutGiveWayIsRefusal, "outcome", "an owner that gives way takes its own decision for the shard's refusal", "async-late", ""},
	{mutResolverRollsBack, "outcome", "a resolver rolls back an async commit whose locks are all there", "async-pair", ""},
	{mutAsyncIsPlain, "outcome", "a resolver judges an async commit by its primary alone", "async-pair", ""},
	{mutLocalClock, "outcome", "whether a lock has expired is judged by a clock that is ahead", "skew", ""},
	{mutTakenForEnded, "outcome", "a client that has not crashed is taken for ended", "ended", ""},
	{mutRollsBackEarly, "outcome", "a missing primary is rolled back before its time", "latest", ""},

	{mutLockAtSnapshot, "pessimistic locks", "a lock is granted as of the snapshot, whatever was committed since", "hot", ""},
	{mutNoSnapshotMove, "pessimistic locks", "a snapshot does not move up to what a lock was granted as of", "hot", ""},
	{mutNoRefresh, "pessimistic locks", "a snapshot moves up without a look at what was read", "moving", ""},
	{mutAmendUnchecked, "pessimistic locks", "a lost lock is made good whatever was committed since", "locks-async", ""},
	{mutStaleLockAccepted, "pessimistic locks", "a lock taken again by a late request is as good as the first", "locks-lost", ""},
	{mutLockCommitsForgotten, "pessimistic locks", "a commit that only locked a key is no change of it", "for-update", ""},
	{mutLockOnlyUnrecorded, "pessimistic locks", "a one-phase commit leaves no record on a key that it has only locked", "guarded", ""},
	{mutSharedUnchecked, "pessimistic locks", "a shared lock is not looked at when its transaction commits", "shared", ""},
	{mutSharedCheckedEarly, "pessimistic locks", "a shared lock is checked before the commit_ts is taken", "shared-2pc", ""},
	{mutUseUnrecorded, "pessimistic locks", "the use of a shared lock leaves no record where locks may have been lost", "shared", ""},
	{mutExistsBeforeConflict, "pessimistic locks", "whether a key exists is judged before conflicts are", "inserts", ""},
	{mutPessimisticCommitted, "pessimistic locks", "a commit makes a version of a pessimistic lock", "locks-async",
		"a lock request that comes after the prewrite, the commit or the rollback is refused, so that no commit meets such a lock"},

	{mutLargeReadersPass, "large commits", "readers pass the lock of a large commit that has its commit_ts", "large", ""},
	{mutLargeWritersPass, "large commits", "writers pass the lock of a large commit that checks its keys", "large", ""},
	{mutLargeBoundEarly, "large commits", "a large commit takes its commit_ts before readers wait for it", "large", ""},
	{mutLargeFileByFile, "large commits", "the files of a large commit become the store's one by one", "large", ""},
	{mutLargeLeavesFirst, "large commits", "the lock of a large commit goes before its files are the store's", "large", ""},
	{mutGCPassesLarge, "large commits", "garbage collection does not wait for the large commits below its fence", "large-gc",
		"each batch of keys is checked against the fence under its latches, so that no key is looked at once what it conflicts with is gone"},
	{mutLargeAheadPassed, "large commits", "readers pass a large commit whose commit_ts was chosen ahead of the oracle, when the oracle has passed it", "large-ahead", ""},
	{mutLargeAheadEarly, "large commits", "a large commit is acknowledged before the oracle has passed its commit_ts", "large-ahead", ""},
	{mutLargeAheadIssued, "large commits", "a commit_ts that is chosen ahead of the oracle has no subtick", "large-ahead", ""},

	{mutClearUnconditional, "observers", "a notification is cleared whatever its timestamp", "observe", ""},
	{mutClearBeforeCommit, "observers", "a notification is cleared before its observer is committed", "observe", ""},
	{mutAckBeforeSnapshot, "observers", "the acknowledgement is not read in the observer's snapshot, but before", "observe", ""},
	{mutResolverQuiet, "observers", "who resolves a lock does not write its notifications", "observe", ""},
	{mutHintOnly, "observers", "observers look only when a hint tells them to", "observe", ""},
	{mutClearPassesLarge, "observers", "a clear does not look for large commits", "observe-large", ""},
	{mutCellNotReadAgain, "observers", "an observer that finds no acknowledgement does not look at the cell again", "observe-gone", ""},
	{mutForgetUnsynced, "observers", "an acknowledgement is deleted before the removal of the cell is synced", "observe-gone", ""},

	{mutReadsElsewhere, "serializable", "a one-phase commit validates reads that have moved to another shard", "skew-move", ""},
	{mutRefreshTooEarly, "serializable", "reads are looked at again at one timestamp, and the commit is at a later one", "skew", ""},
	{mutRefreshIgnoresLocks, "serializable", "locks on what was read do not matter", "skew", ""},

	{mutNoFence, "garbage", "reads and prewrites below the safe point are let in", "gc-versions", ""},
	{mutGCBeforeResolve, "garbage", "versions go before the locks below the safe point are resolved", "gc", ""},
	{mutGCAllRollbacks, "garbage", "rollback records above the safe point go as well", "gc-answers", ""},
	{mutTrustsCollected, "garbage", "of a transaction whose records may be gone it is said that it was rolled back", "gc-answers", ""},
	{mutNoSyncLog, "garbage", "versions go before what resolved their secondaries is synced", "gc-restart", ""},
	{mutSyncAnyRun, "garbage", "that sync counts although the shard was restarted in between", "gc-restart", ""},

	{mutNoLockBound, "absence", "a shard that is away takes locks of transactions above its bound", "gc-away", ""},
	{mutBackUnfenced, "absence", "a shard comes back without learning the safe point", "gc-away", ""},
	{mutNothingProtected, "absence", "nothing is kept for a shard that is away", "gc-away", ""},
	{mutClearedUnseen, "absence", "a shard counts as cleared up to a safe point in whose round it took no part", "gc-away-twice", ""},
	{mutLeftUnprotected, "absence", "a lock whose outcome only an unavailable shard knows protects nothing", "gc-away", "the outcome is told by that shard, or it has refused the transaction"},
}

// Goal: every rule of the protocol is needed, and the model finds what fails without it: it could find a mistake in it.
// Method: switch the rules off one at a time, and search a world for the failure; where there can be none the whole
// world shows that.
func TestModelMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("searches by one goroutine, of half a minute")
	}
	worlds := map[string]smConfig{}
	for _, cfg := range smConfigs(false) {
		worlds[cfg.name] = cfg
	}
	listed := map[smMutant]bool{}
	rows := make([]string, len(smRules))
	t.Run("rules", func(t *testing.T) {
		for i := range smRules {
			rule := &smRules[i]
			listed[rule.mut] = true
			t.Run(rule.off, func(t *testing.T) {
				t.Parallel()
				cfg, ok := worlds[rule.world]
				if !ok {
					t.Fatalf("there is no world %s", rule.world)
				}
				m := smModel{cfg: &cfg, mut: rule.mut}
				r := m.search(0)
				switch {
				case rule.spare != "" && r.violation != "":
					t.Errorf("after %d steps: %s; it was said that %s", len(r.trace), r.violation, rule.spare)
				case rule.spare != "":
					t.Logf("nothing breaks in %d states: %s", r.states, rule.spare)
					rows[i] = fmt.Sprintf("| %s | %s | – | nothing: %s |\n", rule.off, rule.world, rule.spare)
				case r.violation == "":
					t.Errorf("%s: nothing breaks in %d states", rule.world, r.states)
				default:
					t.Logf("%s: after %d steps, in %d states and %v: %s", rule.world, len(r.trace), r.states, r.took, r.violation)
					rows[i] = fmt.Sprintf("| %s | %s | %d | %s |\n", rule.off, rule.world, len(r.trace), r.violation)
				}
			})
		}
	})
	for mut := mutNone + 1; mut < mutEnd; mut++ {
		if !listed[mut] {
			t.Errorf("mutant %d has no rule", mut)
		}
	}
	var page strings.Builder
	for i := range smRules {
		if i == 0 || smRules[i-1].about != smRules[i].about {
			fmt.Fprintf(&page, "| **%s** | | | |\n", smRules[i].about)
		}
		page.WriteString(rows[i])
	}
	if !t.Failed() && !slices.Contains(rows, "") { // all were run
		smCheckPage(t, "rules", page.String())
	}
}
