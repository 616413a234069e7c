package percolator

import (
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// snapshot is the common state of reads at one timestamp. Not safe for concurrent use, except by the parallel requests of
// batchFetch, which read it.
type snapshot struct {
	db     *DB
	readTS tso.Timestamp

	// The known outcomes of transactions whose locks were encountered: those to be ignored by reads at readTS, and those
	// to be read through. Valid for this timestamp only.
	bypass   []tso.Timestamp
	resolved []kv.CommittedTxn

	requests *Requests // nil: nobody counts them
}

// move makes it the snapshot at ts, without known outcomes.
func (s *snapshot) move(ts tso.Timestamp) {
	s.readTS, s.bypass, s.resolved = ts, nil, nil
}

// readOptions are the options of a read at the snapshot.
func (s *snapshot) readOptions() kv.ReadOptions {
	return kv.ReadOptions{ReadTS: s.readTS, Bypass: s.bypass, Resolved: s.resolved}
}

// maxKnownTxns bounds bypass and resolved, which shards search for every lock they encounter. A removed transaction's
// status is checked again.
const maxKnownTxns = 256

func (s *snapshot) rememberBypass(startTS tso.Timestamp) {
	if len(s.bypass) >= maxKnownTxns {
		s.bypass = append(s.bypass[:0:0], s.bypass[maxKnownTxns/2:]...)
	}
	s.bypass = append(s.bypass, startTS)
}

func (s *snapshot) rememberCommitted(startTS, commitTS tso.Timestamp) {
	if len(s.resolved) >= maxKnownTxns {
		s.resolved = append(s.resolved[:0:0], s.resolved[maxKnownTxns/2:]...)
	}
	s.resolved = append(s.resolved, kv.CommittedTxn{StartTS: startTS, CommitTS: commitTS})
}
