package catalog

import (
	"bytes"
	"context"
	"crypto/rand"
	"time"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// member is this process's membership among those that commit under leases (protocol in doc.go).
//
//	process A   register ── look P ────── look Q: sees M; commits that P allowed end; acknowledge Q
//	change                      M (marker) ─── all members have acknowledged M or later ── T
//
// A member that does not answer until M+lease is struck out, so that the next change does not wait for it too:
//
//	process A   look P ──── look Q ──────────────────────── Q+lease  a look sees Out: register
//	change      M ───────────── M+lease  strike at D, Out ≥ D ───────── Out+lease  the key is deleted
//
// It may be alive, with a commit that has been in flight for too long to acknowledge. It may then have looks
// after M, which do not affect this change, and which the next change must wait for: they are
// before D, because from D on every look shows that the process is not a member.
type member struct {
	catalog *Catalog
	key     []byte
}

// memberRecord is the value of a member's key.
type memberRecord struct {
	// Seen: the process has seen all markers committed up to it, and every commit that its looks before it allowed is
	// decided.
	Seen tso.Timestamp
	// Out, unless 0: the process has been struck out, by a commit not above Out; it has to register before it relies on
	// a look that shows this.
	Out tso.Timestamp `json:",omitempty"`
}

// over is the timestamp above which the process commits nothing that a look before marker allowed.
func (r memberRecord) over(marker tso.Timestamp, lease time.Duration) tso.Timestamp {
	switch {
	case r.Seen >= marker:
		return 0
	case r.Out != 0:
		return min(marker, r.Out) + span(lease)
	}
	return marker + span(lease)
}

// gone reports whether, as of at, the process has no valid look from before it was struck out.
func (r memberRecord) gone(at tso.Timestamp, lease time.Duration) bool {
	return r.Out != 0 && at > r.Out+span(lease)
}

func newMember(c *Catalog) member {
	return member{catalog: c, key: []byte(keySpace + wordMember + "/" + rand.Text() + "\x00")}
}

// record reads the process's own record, nil where there is none.
func (m *member) record(ctx context.Context, r percolator.Reader) (*memberRecord, error) {
	return readMember(ctx, r, m.key)
}

// register adds the process, or takes back that it was struck out.
func (m *member) register(ctx context.Context) error {
	return m.catalog.retry(ctx, func(txn *percolator.Txn) error { return txn.Put(m.key, encode(memberRecord{})) })
}

// acknowledge records that the process has seen all markers committed up to at, and that every commit that its looks
// before at allowed is decided. A process that was struck out does not become a member again by it.
func (m *member) acknowledge(ctx context.Context, at tso.Timestamp) error {
	return m.catalog.retry(ctx, func(txn *percolator.Txn) error {
		r, err := m.record(ctx, txn)
		if err != nil || r == nil || r.Out != 0 {
			return err
		}
		return txn.Put(m.key, encode(memberRecord{Seen: at}))
	})
}

// leave deletes the process's key, so that no schema change waits for it. The process must not commit any more, and all
// its commits must be decided, except those with a commit_ts of at most doubt.
func (m *member) leave(ctx context.Context, doubt tso.Timestamp) (left bool, err error) {
	err = m.catalog.retry(ctx, func(txn *percolator.Txn) error {
		if left = txn.StartTS() > doubt; !left {
			return nil
		}
		return txn.Delete(m.key)
	})
	return left && err == nil, err
}

func readMember(ctx context.Context, r percolator.Reader, key []byte) (*memberRecord, error) {
	value, err := r.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return decodeMember(key, value)
}

func decodeMember(key, value []byte) (*memberRecord, error) {
	if value == nil {
		return nil, nil
	}
	m := new(memberRecord)
	return m, decode(key, value, m)
}

// census is the state of the members as a change reads it.
type census struct {
	// waiting is the number of members that may still commit what a look before the marker allowed.
	waiting int
	// overdue are the keys of members that no longer may, but have not acknowledged the marker, or have ended.
	overdue [][]byte
}

// census reads the members through txn, for a change whose last marker was committed at marker.
func (c *Catalog) census(ctx context.Context, txn *percolator.Txn, marker tso.Timestamp) (s census, err error) {
	err = scan(ctx, txn, wordMember, func(key, value []byte) error {
		var r memberRecord
		if err := decode(key, value, &r); err != nil {
			return err
		}
		switch {
		case r.over(marker, c.opts.Lease) >= txn.StartTS():
			s.waiting++
		case r.Out == 0 && r.Seen < marker, r.gone(txn.StartTS(), c.opts.Lease):
			s.overdue = append(s.overdue, bytes.Clone(key))
		}
		return nil
	})
	return s, err
}

// strike strikes members out that have not acknowledged the marker although their leases are over, and
// deletes the keys of those that were struck out long ago. When it fails, the next change waits for them.
func (c *Catalog) strike(ctx context.Context, keys [][]byte, marker tso.Timestamp) error {
	return c.retry(ctx, func(txn *percolator.Txn) error {
		// The commit is bounded, so that Out is known before.
		out := txn.StartTS() + span(c.opts.Lease/4)
		txn.SetCommitPermit(until(out))
		for _, key := range keys {
			r, err := readMember(ctx, txn, key)
			switch {
			case err != nil:
				return err
			case r == nil:
			case r.gone(txn.StartTS(), c.opts.Lease):
				err = txn.Delete(key)
			case r.Out == 0 && r.Seen < marker:
				err = txn.Put(key, encode(memberRecord{Seen: r.Seen, Out: out}))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
