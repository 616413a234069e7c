package mvcc

import (
	"testing"

	"github.com/percodb/percodb/tso"
)

// Goal: others may roll back a lock once both clocks have expired: its TTL by the oracle's, its owner's lease by the
// shard's. Method: the decision over both values.
func TestBothClocksJudgeALock(t *testing.T) {
	const start, ttl, lease = 1_000_000, 3000, 3000
	for _, tc := range []struct {
		name             string
		age              int64
		lease, silent    uint64
		expired          bool
		ttlInForceMillis uint64
	}{
		{"young", 100, lease, 100, false, ttl},
		{"silent for long, and young by the oracle, which stood still", 100, lease, 10_000, false, ttl},
		{"old by both", 3001, lease, 3001, true, ttl},
		{"old by the oracle, which jumped", 60_000, lease, 1000, false, 62_000},
		{"the lease has just run out", 60_000, lease, 3000, true, ttl},
		{"no lease was asked for", 3001, 0, 0, true, ttl},
		{"the oracle that judges is behind", -500, lease, 0, false, ttl},
	} {
		l := Lock{StartTS: tso.FromPhysical(start), TTLMillis: ttl, LeaseMillis: tc.lease}
		now := tso.FromPhysical(start + tc.age)
		if got := expired(&l, now, tc.silent); got != tc.expired {
			t.Errorf("%s: expired %v", tc.name, got)
		}
		if got := ttlInForce(&l, now, tc.silent); got != tc.ttlInForceMillis {
			t.Errorf("%s: TTL in force %d, want %d", tc.name, got, tc.ttlInForceMillis)
		}
		// Every other decision depends on the same two values.
		v := keyView{lock: &Lock{Op: OpPut, StartTS: l.StartTS, Primary: []byte("k"), TTLMillis: ttl, LeaseMillis: tc.lease}}
		q := statusQuery{startTS: l.StartTS, nowTS: now, silentMillis: tc.silent}
		for _, op := range []Op{OpPut, OpPessimistic} {
			v.lock.Op = op
			if st, _, _, err := decideStatus([]byte("k"), &q, &v); err != nil || st.RolledBack != tc.expired {
				t.Errorf("%s, op %d: %+v, %v", tc.name, op, st, err)
			}
		}
	}
}
