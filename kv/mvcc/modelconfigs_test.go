package mvcc

// smConfigs returns the worlds to search. small are those of every run of the tests; the others are the
// same with wider bounds.
func smConfigs(full bool) []smConfig {
	extra := uint8(0)
	if full {
		extra = 1
	}
	apart := [smKeys]uint8{0, 1, 0}
	return []smConfig{
		{
			name: "one-phase", what: "two increments on one shard that computes commit_ts, and a reader",
			keys: 2, initial: 3, dups: 1 + extra, losses: 1, splits: 1,
			txns: []smTxnSpec{smIncrement(smOnePC, 0, 1), smIncrement(smOnePC, 1), smReader(0, 1)},
		},
		{
			name: "two-phase", what: "two writers across two shards, and a reader that resolves",
			keys: 2, at: apart, initial: 3, dups: extra, losses: extra, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smWriter(smTwoPC, 0, 1).mortal(), smWriter(smTwoPC, 1), smReader(1, 0)},
		},
		{
			name: "async", what: "an async writer across two shards, and two readers that resolve",
			keys: 2, at: apart, initial: 3, dups: 1, losses: 1, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smWriter(smAsync, 0, 1).mortal(), smReader(1), smReader(0)},
		},
	}
}
