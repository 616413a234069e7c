package catalog

import (
	"bytes"
	"context"
	"crypto/rand"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// member is this process among those that commit under leases. It is there before its first look, so that
// a schema change, after it has set its marker at M, finds every process that can have looked before M.
//
//	process A   register ── look P ────── look Q: sees M; commits that P allowed end; acknowledge Q
//	change                      M (marker) ─── all members have acknowledged M or later ── T
//
// A member that does not answer until M+lease is taken away. If it is alive it misses itself at its next
// look, and registers before it trusts another.
type member struct {
	catalog *Catalog
	key     []byte
}

// memberRecord is the value of a member's key: it knows all markers committed up to Seen.
type memberRecord struct{ Seen tso.Timestamp }

func newMember(c *Catalog) member {
	return member{catalog: c, key: []byte(keySpace + wordMember + "/" + rand.Text() + "\x00")}
}

// register adds the process.
func (m *member) register(ctx context.Context) error {
	return m.catalog.retry(ctx, func(txn *percolator.Txn) error { return txn.Put(m.key, encode(memberRecord{})) })
}

// acknowledge says that the process knows all markers committed up to at. One that was taken away does not
// come back by that.
func (m *member) acknowledge(ctx context.Context, at tso.Timestamp) error {
	return m.catalog.retry(ctx, func(txn *percolator.Txn) error {
		value, err := txn.Get(ctx, m.key)
		if err != nil || value == nil {
			return err
		}
		return txn.Put(m.key, encode(memberRecord{Seen: at}))
	})
}

// leave takes the process away, so that nobody waits for it.
func (m *member) leave(ctx context.Context) {
	err := m.catalog.retry(ctx, func(txn *percolator.Txn) error { return txn.Delete(m.key) })
	if err != nil {
		m.catalog.opts.Logger.Warn("process not taken from the schema's members", "err", err)
	}
}

// behind returns the keys of the members that have not acknowledged what was committed at ts.
func (c *Catalog) behind(ctx context.Context, txn *percolator.Txn, ts tso.Timestamp) (keys [][]byte, err error) {
	err = scan(ctx, txn, wordMember, func(key, value []byte) error {
		var m memberRecord
		if err := decode(key, value, &m); err != nil {
			return err
		}
		if m.Seen < ts {
			keys = append(keys, bytes.Clone(key))
		}
		return nil
	})
	return keys, err
}
