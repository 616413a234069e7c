package mvcc

// smConfigs returns the worlds to search; full has the wide bounds.
func smConfigs(full bool) []smConfig {
	wide := uint8(0)
	if full {
		wide = 1
	}
	var all []smConfig
	all = append(all, smPlainConfigs(wide)...)
	all = append(all, smAsyncConfigs(wide)...)
	all = append(all, smLockConfigs(wide)...)
	all = append(all, smSerialConfigs(wide)...)
	all = append(all, smOrderConfigs(wide)...)
	all = append(all, smLargeConfigs(wide)...)
	all = append(all, smObserverConfigs(wide)...)
	return append(all, smCollectorConfigs(wide)...)
}

// smApart puts keys on two shards.
var smApart = [smKeys]uint8{0, 1, 0}

func smPlainConfigs(wide uint8) []smConfig {
	insert := smWriter(smOnePC, 0)
	insert.mustBeNew = 1
	insert2 := smWriter(smTwoPC, 0, 1)
	insert2.mustBeNew = 1
	remove := smWriter(smOnePC, 0)
	remove.writes[0] = OpDelete
	plainOnePC := smWriter(smOnePC, 0, 1)
	plainOnePC.fallback = 3
	locker := smWriter(smTwoPC, 0, 1)
	locker.writes[0] = OpLock
	return []smConfig{
		{
			name: "one-phase", what: "two increments on one shard that computes commit_ts, a reader, a split",
			keys: 2, initial: 3, dups: 1, losses: wide, splits: 1,
			txns: []smTxnSpec{smIncrement(smOnePC, 0, 1), smIncrement(smOnePC, 1), smReader(0, 1)},
		},
		{
			name: "embedded", what: "the same with the oracle beside the shard",
			keys: 2, initial: 3, dups: 1 + wide, losses: 1 + wide, embedded: true,
			txns: []smTxnSpec{smIncrement(smOnePC, 0, 1), smIncrement(smOnePC, 0), smReader(0, 1)},
		},
		{
			name: "two-phase", what: "two writers across two shards, a reader that resolves, a dying client",
			keys: 2, at: smApart, initial: 3, dups: wide, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smIncrement(smTwoPC, 0, 1).mortal(), smWriter(smTwoPC, 1, 0), smReader(1, 0)},
		},
		{
			name: "late", what: "a writer whose requests come late and twice, and another that resolves it",
			keys: 2, at: smApart, initial: 3, dups: 1 + wide, losses: 1, deaths: wide, jumps: 1,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1).mortal(), smWriter(smOnePC, 1)},
		},
		{
			name: "rollbacks", what: "three writers of one key that roll each other back",
			keys: 2, at: smApart, dups: wide, jumps: 1,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1), smWriter(smTwoPC, 0, 1), smReader(1)},
		},
		{
			name: "restart", what: "a shard restarts under a writer across two shards and a reader that pushes",
			keys: 2, at: smApart, initial: 3, crashes: 1, jumps: wide,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1), smReader(1, 0), smReader(1)},
		},
		{
			name: "three-keys", what: "writers of three keys on two shards, one of which only locks",
			keys: 3, at: smApart, initial: 7, jumps: wide,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1, 2), locker, smReader(2, 1)},
		},
		{
			name: "inserts", what: "two insertions of one key, and its removal",
			keys: 2, at: smApart, initial: 0, dups: wide, losses: wide,
			txns: []smTxnSpec{insert, insert2, remove},
		},
		{
			name: "no-timestamp", what: "a one-phase writer whose shard has no timestamp to give at first, a reader",
			keys: 2, initial: 3, dups: 1, losses: 1, deaths: wide, jumps: 1,
			txns: []smTxnSpec{plainOnePC.mortal(), smReader(0, 1)},
		},
		{
			name: "latest", what: "writers in one and two phases, and a reader of the latest values",
			keys: 2, at: smApart, initial: 3, dups: wide, jumps: wide,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1), smWriter(smOnePC, 1), {ops: smReads(1, 0), latest: true}},
		},
		{
			name: "latest-order", what: "a writer in two phases and one in one phase, of a key each, and who reads the latest of both",
			keys: 2, at: smApart, initial: 3, dups: wide, jumps: 1,
			txns: []smTxnSpec{smWriter(smTwoPC, 0), smWriter(smOnePC, 1), {ops: smReads(1, 0), latest: true}},
		},
		{
			name: "latest-fence", what: "an async writer and one in two phases, of a key each, and who reads the latest of both",
			keys: 2, at: smApart, initial: 3, dups: wide, jumps: 1,
			txns: []smTxnSpec{smWriter(smAsync, 0), smWriter(smTwoPC, 1), {ops: smReads(1, 0), latest: true}},
		},
	}
}

func smAsyncConfigs(wide uint8) []smConfig {
	primaryPlain := smWriter(smAsync, 0, 1)
	primaryPlain.fallback = 1
	secondaryPlain := smWriter(smAsync, 0, 1)
	secondaryPlain.fallback = 2
	return []smConfig{
		{
			name: "async", what: "an async writer across two shards, and two readers that resolve",
			keys: 2, at: smApart, initial: 3, dups: wide, losses: 1, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smWriter(smAsync, 0, 1).mortal(), smReader(1), smReader(0)},
		},
		{
			name: "async-abort", what: "an async writer in whose way another is, and a reader that resolves",
			keys: 2, at: smApart, initial: 3, losses: 1, jumps: wide,
			txns: []smTxnSpec{smWriter(smAsync, 0, 1), smWriter(smTwoPC, 1), smReader(0)},
		},
		{
			name: "async-late", what: "an async writer in whose way another is, and whose requests come twice",
			keys: 2, at: smApart, initial: 3, dups: 1 + wide, losses: wide,
			txns: []smTxnSpec{smWriter(smAsync, 0, 1), smWriter(smTwoPC, 1, 0)},
		},
		{
			name: "async-move", what: "a range moves under an async writer and a reader",
			keys: 2, initial: 3, dups: wide, losses: wide, splits: 1,
			txns: []smTxnSpec{smWriter(smAsync, 1), smReader(1), smReader(1)},
		},
		{
			name: "async-pair", what: "two async writers of the same keys, one of whom may die",
			keys: 2, at: smApart, initial: 3, dups: wide, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smIncrement(smAsync, 0, 1).mortal(), smIncrement(smAsync, 1, 0)},
		},
		{
			name: "async-order", what: "a commit that is asked for after another one elsewhere was acknowledged",
			keys: 2, at: smApart, initial: 3, dups: wide,
			txns: []smTxnSpec{smWriter(smOnePC, 0), smWriter(smAsync, 1), smReader(0, 1)},
		},
		{
			name: "fallback", what: "an async writer whose primary falls back to two phases",
			keys: 2, at: smApart, initial: 3, dups: wide, losses: 1, deaths: 1, jumps: 1,
			txns: []smTxnSpec{primaryPlain.mortal(), smReader(1), smReader(0)},
		},
		{
			name: "fallback-2", what: "the same for its secondary",
			keys: 2, at: smApart, initial: 3, dups: wide, losses: 1, deaths: 1, jumps: 1,
			txns: []smTxnSpec{secondaryPlain.mortal(), smReader(1), smReader(0)},
		},
		{
			name: "async-restart", what: "a shard restarts under an async writer and readers",
			keys: 2, at: smApart, initial: 3, crashes: 1, losses: wide, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smWriter(smAsync, 0, 1).mortal(), smReader(1, 0)},
		},
		{
			name: "async-three", what: "an async writer of three keys on two shards",
			keys: 3, at: smApart, initial: 7, losses: wide, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smWriter(smAsync, 0, 1, 2).mortal(), smReader(1, 2), smReader(0)},
		},
	}
}

func smLockConfigs(wide uint8) []smConfig {
	forUpdate := smPessimistic(smOnePC, 0)
	forUpdate.ops = append(smLocking(1), smLocking(0)...)
	forUpdate.writes = [smKeys]Op{OpPut, OpLock}
	forUpdate.primary = 1
	parent := smPessimistic(smOnePC, 0)
	parent.ops = append(parent.ops, smReads(1)...)
	moving := smPessimistic(smTwoPC, 1)
	moving.ops = append(smReads(0), smLocking(1)...)
	return []smConfig{
		{
			name: "hot", what: "two pessimistic increments of one key, and a third that is optimistic",
			keys: 1, initial: 1, dups: 1, losses: wide,
			txns: []smTxnSpec{smPessimistic(smOnePC, 0), smPessimistic(smOnePC, 0), smIncrement(smOnePC, 0)},
		},
		{
			name: "locks-lost", what: "pessimistic increments whose locks a restart loses",
			keys: 1, initial: 1, crashes: 1, dups: 1, losses: 1, jumps: wide,
			txns: []smTxnSpec{smPessimistic(smOnePC, 0), smPessimistic(smOnePC, 0)},
		},
		{
			name: "locks-async", what: "pessimistic increments of two keys in opposite order, across shards",
			keys: 2, at: smApart, initial: 3, dups: wide, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smPessimistic(smAsync, 0, 1).mortal(), smPessimistic(smTwoPC, 1, 0)},
		},
		{
			name: "locks-new", what: "insertions of a key that its lock has told to be new, and a restart that loses locks",
			keys: 2, at: smApart, initial: 0, crashes: 1, dups: 1, losses: wide, jumps: wide,
			txns: []smTxnSpec{smInserting(smOnePC, 0), smInserting(smTwoPC, 0, 1)},
		},
		{
			name: "for-update", what: "locks on keys that are not written, and a range that moves",
			keys: 2, initial: 3, dups: wide, losses: 1, splits: 1,
			txns: []smTxnSpec{forUpdate, smPessimistic(smTwoPC, 1)},
		},
		{
			name: "guarded", what: "a lock on a key that is not written keeps two others consistent, until a restart loses it",
			keys: 3, initial: 7, crashes: 1, losses: wide, jumps: wide,
			txns: []smTxnSpec{smGuarded(smOnePC, 0, 1, 2), smGuarded(smOnePC, 0, 2, 1)},
		},
		{
			name: "shared", what: "a key that two share and a third changes, and a restart that loses locks",
			keys: 3, initial: 7, crashes: 1, losses: wide,
			txns: []smTxnSpec{smSharing(smOnePC, 0, 1), smSharing(smOnePC, 0, 2), smPessimistic(smOnePC, 0)},
		},
		{
			name: "shared-2pc", what: "a key that one shares who writes on another shard, and that another changes who reads what is written there",
			keys: 2, at: smApart, initial: 3, crashes: 1, losses: wide, jumps: wide, deaths: wide,
			txns: []smTxnSpec{smSharing(smTwoPC, 0, 1).mortal(), parent},
		},
		{
			name: "ended", what: "two-phase, where others know at once that the client has crashed",
			keys: 2, at: smApart, initial: 3, dups: wide, deaths: 1, known: true,
			txns: []smTxnSpec{smIncrement(smTwoPC, 0, 1).mortal(), smWriter(smTwoPC, 1, 0), smReader(1, 0)},
		},
		{
			name: "ended-async", what: "async, where others know at once that the client has crashed",
			keys: 2, at: smApart, initial: 3, dups: wide, deaths: 1, known: true,
			txns: []smTxnSpec{smWriter(smAsync, 0, 1).mortal(), smReader(1), smReader(0)},
		},
		{
			name: "ended-locks", what: "locks-async, where others know at once that the client has crashed",
			keys: 2, at: smApart, initial: 3, dups: wide, deaths: 1, known: true,
			txns: []smTxnSpec{smPessimistic(smAsync, 0, 1).mortal(), smPessimistic(smTwoPC, 1, 0)},
		},
		{
			name: "moving", what: "a snapshot that moves up under earlier reads, while others write",
			keys: 2, at: smApart, initial: 3, deaths: wide, jumps: wide,
			txns: []smTxnSpec{moving, smWriter(smTwoPC, 1, 0).mortal(), smWriter(smOnePC, 0)},
		},
	}
}

func smSerialConfigs(wide uint8) []smConfig {
	report := smReader(0, 1)
	report.serializable = true
	return []smConfig{
		{
			name: "skew", what: "two serializable transactions, each of which writes what the other reads",
			keys: 2, at: smApart, initial: 3, dups: wide, losses: wide, deaths: wide, jumps: wide,
			txns: []smTxnSpec{smSkew(smTwoPC, 0, 1).mortal(), smSkew(smTwoPC, 1, 0)},
		},
		{
			name: "skew-1pc", what: "the same in one phase on one shard, and a report",
			keys: 2, initial: 3, dups: 1, losses: wide,
			txns: []smTxnSpec{smSkew(smOnePC, 0, 1), smSkew(smOnePC, 1, 0), report},
		},
		{
			name: "skew-move", what: "two in one phase, and what they read moves to another shard",
			keys: 2, initial: 3, dups: wide, losses: wide, splits: 1,
			txns: []smTxnSpec{smSkew(smOnePC, 0, 1), smSkew(smOnePC, 1, 0)},
		},
		{
			name: "skew-3", what: "three serializable transactions in a circle",
			keys: 3, at: smApart, initial: 7,
			txns: []smTxnSpec{smSkew(smTwoPC, 0, 1), smSkew(smTwoPC, 1, 2), smSkew(smTwoPC, 2, 0)},
		},
	}
}

func smOrderConfigs(wide uint8) []smConfig {
	return []smConfig{
		{
			name: "order", what: "step by step: a one-phase commit, a reader, a reader of the latest value",
			keys: 2, initial: 3, fine: true, losses: 1, crashes: 1,
			txns: []smTxnSpec{smWriter(smOnePC, 0, 1), smReader(0, 1), {ops: smReads(0), latest: true}},
		},
		{
			name: "order-2pc", what: "step by step: a two-phase commit, a reader, a reader of the latest value",
			keys: 2, at: smApart, initial: 3, fine: true, crashes: wide,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1), smReader(0, 1), {ops: smReads(1), latest: true}},
		},
		{
			name: "order-async", what: "step by step: an async commit and two readers",
			keys: 2, at: smApart, initial: 3, fine: true, losses: wide,
			txns: []smTxnSpec{smWriter(smAsync, 0, 1), smReader(0, 1), {ops: smReads(1), latest: true}},
		},
		{
			name: "order-pair", what: "step by step: two one-phase commits on two shards in turn, and a reader",
			keys: 2, initial: 3, fine: true, losses: wide, dups: wide, embedded: true,
			txns: []smTxnSpec{smIncrement(smOnePC, 0), smIncrement(smOnePC, 0, 1), smReader(1, 0)},
		},
	}
}

func smCollectorConfigs(wide uint8) []smConfig {
	remove := smWriter(smOnePC, 0)
	remove.writes[0] = OpDelete
	return []smConfig{
		{
			name: "gc", what: "garbage collection under a writer that may die, late requests, and a reader",
			keys: 2, at: smApart, initial: 3, collector: smCollects, dups: 1, losses: wide, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1).mortal(), smReader(1)},
		},
		{
			name: "gc-versions", what: "collection of versions and a deletion under readers",
			keys: 2, initial: 3, collector: smCollects, dups: wide,
			txns: []smTxnSpec{smWriter(smOnePC, 0, 1), remove, smReader(0, 1)},
		},
		{
			name: "gc-answers", what: "a writer whose answer is lost, and whose record garbage collection takes",
			keys: 2, at: smApart, initial: 3, collector: smCollects, dups: wide, losses: 1,
			txns: []smTxnSpec{remove, smWriter(smTwoPC, 0, 1)},
		},
		{
			name: "gc-locks", what: "pessimistic locks that garbage collection overtakes, of a transaction that may die",
			keys: 2, at: smApart, initial: 3, collector: smCollects, deaths: wide, jumps: 1,
			txns: []smTxnSpec{smPessimistic(smTwoPC, 0, 1).mortal(), smPessimistic(smOnePC, 1)},
		},
		{
			name: "gc-restart", what: "garbage collection, and a shard that restarts",
			keys: 2, at: smApart, initial: 3, collector: smCollects, crashes: 1, deaths: wide, jumps: 1,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1).mortal(), smReader(1)},
		},
		{
			name: "gc-away", what: "garbage collection that does not reach a shard for a while, under a writer that may die, late requests, and a deletion",
			keys: 2, at: smApart, initial: 3, collector: smCollects, rounds: 2, aways: 1, dups: wide, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1).mortal(), remove},
		},
		{
			name: "gc-away-twice", what: "two rounds without a shard whose locks are left, and one with it",
			keys: 2, at: smApart, initial: 3, collector: smCollects, rounds: 3, aways: 1, deaths: wide, jumps: wide,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1).mortal(), remove},
		},
		{
			name: "gc-away-async", what: "the same for an async commit, whose primary is on the shard that is away",
			keys: 2, at: smApart, initial: 3, collector: smCollects, rounds: 2, aways: 1, deaths: wide, jumps: wide,
			txns: []smTxnSpec{smWriter(smAsync, 1, 0).mortal(), remove},
		},
		{
			name: "scan-locks", what: "a scan for locks up to a timestamp, under async and one-phase commits",
			keys: 2, at: smApart, initial: 3, collector: smScanner, losses: wide, jumps: 1,
			txns: []smTxnSpec{smWriter(smAsync, 0, 1), smWriter(smOnePC, 1)},
		},
	}
}
