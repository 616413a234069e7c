package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// A store whose oracle has lost its data directory, or has an older one, and whose clock is behind as well, would
// receive timestamps below those of its versions, and its commits would be invisible. A store therefore stores, about
// once a second, a timestamp that has been issued, and does not open under an oracle that is behind it. While it runs
// max_ts has the same effect: nothing commits at or below it.

// seenInterval is the interval at which a store in use stores what it has seen; behindMillis how far the oracle may be
// behind that: shards accept a fraction of it from clients.
const (
	seenInterval = time.Second
	behindMillis = 1000
)

// aboveMargin bounds what a store may have seen since it last stored it.
const aboveMargin = 10 * time.Second

// OracleBehindError: the oracle gives timestamps below those that the store has seen.
type OracleBehindError struct {
	Shard     string
	Seen, Now tso.Timestamp
}

func (e *OracleBehindError) Error() string {
	return fmt.Sprintf("the oracle is at %v, store %s has seen timestamps of %v: the oracle's data directory is older than the store, or was lost",
		time.UnixMilli(e.Now.Physical()).UTC(), e.Shard, time.UnixMilli(e.Seen.Physical()).UTC())
}

// Above is a timestamp that the store's data is certainly below.
func (e *OracleBehindError) Above() tso.Timestamp {
	return tso.FromPhysical(e.Seen.Physical() + aboveMargin.Milliseconds())
}

// checkSeen refuses an oracle that is behind what the store has seen, or waits for one that is slightly behind. now has
// just been issued.
func (s *Store) checkSeen(ctx context.Context, now tso.Timestamp) error {
	stored, err := s.engine.getMetaU64(metaSeen)
	if err != nil {
		return err
	}
	s.seen = tso.Timestamp(stored)
	if s.seen.Physical() > now.Physical()+behindMillis {
		return &OracleBehindError{Shard: s.shardID, Seen: s.seen, Now: now}
	}
	for now < s.seen {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(s.seen.Physical()-now.Physical()+1) * time.Millisecond):
		}
		if now, err = s.opts.Oracle.Now(ctx); err != nil {
			return err
		}
	}
	return nil
}

// seenLoop stores what the store has seen. The record is made durable by the next commit.
func (s *Store) seenLoop() {
	tick := time.NewTicker(seenInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.stopped.Done():
			s.saveSeen()
			return
		case <-tick.C:
			s.saveSeen()
		}
	}
}

func (s *Store) saveSeen() {
	seen := s.mvcc.NewestTS()
	if seen.Physical() <= s.seen.Physical() {
		return
	}
	b := s.engine.NewBatch(0)
	defer b.Close()
	b.Put(metaKey(metaSeen), binary.BigEndian.AppendUint64(nil, uint64(seen)))
	if err := s.engine.Apply(b, storage.NoSync); err != nil {
		s.opts.Logger.Warn("the newest timestamp was not kept", "err", err)
		return
	}
	s.seen = seen
}
