package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/percodb/percodb/internal/errkind"
)

// A data directory can be copied, and both copies be started: they would serve one shard's ranges, each with half of the
// commits. Every opening of a shard's directory therefore has its own number, its incarnation, and the directory of
// ranges records the last one it has accepted. A registering shard states its previous incarnation; it is refused if
// that is not the recorded one (another copy was started, or this directory is older than the shard's state), or if the
// former incarnation still answers elsewhere.

// Registration is the message of a starting shard.
type Registration struct {
	ShardInfo
	// Incarnation identifies this opening of the shard's data directory. Former are those of which one must be recorded:
	// the last that was accepted, and Incarnation itself, whose acceptance may not have reached the shard.
	Incarnation uint64
	Former      []uint64
	// Owned are the ranges that the shard owns.
	Owned []RangeDescriptor
}

// ShardReplacedError: a shard's data directory is not the one that the cluster has recorded for its id: a copy of it is,
// or was, served by another process.
type ShardReplacedError struct {
	Shard string
	Addr  string // of the other process
}

// Kind implements errkind.Error.
func (e *ShardReplacedError) Kind() errkind.Kind { return errkind.Excluded }

func (e *ShardReplacedError) Error() string {
	return fmt.Sprintf("store %s has been served from another data directory by a process at %s: this one is a copy, or older", e.Shard, e.Addr)
}

// An incarnation is the number of previous ones (32 bits), and random bits that copies do not share.
const incarnationBits = 32

// newIncarnation returns the number of an opening after the accepted one.
func newIncarnation(accepted uint64) uint64 {
	return (accepted>>incarnationBits+1)<<incarnationBits | uint64(mathrand.Uint32()) | 1
}

// loadIncarnation makes the number of this opening durable next to the accepted one. It reuses a number that an earlier
// opening made durable and perhaps registered without receiving the answer.
func (s *Store) loadIncarnation() error {
	value, found, err := s.engine.Get(nil, metaKey(metaIncarnation))
	if err != nil {
		return err
	}
	accepted, pending := uint64(0), uint64(0)
	if found {
		if len(value) != 16 {
			return &CorruptionError{Key: metaKey(metaIncarnation), Detail: "not two numbers"}
		}
		accepted, pending = binary.BigEndian.Uint64(value), binary.BigEndian.Uint64(value[8:])
	}
	if s.incarnation = pending; pending == accepted {
		s.incarnation = newIncarnation(accepted)
	}
	s.accepted = accepted
	return s.saveIncarnation(accepted)
}

// saveIncarnation stores the accepted incarnation and this one.
func (s *Store) saveIncarnation(accepted uint64) error {
	b := s.engine.NewBatch(0)
	defer b.Close()
	value := binary.BigEndian.AppendUint64(nil, accepted)
	b.Put(metaKey(metaIncarnation), binary.BigEndian.AppendUint64(value, s.incarnation))
	return s.engine.applySync(b)
}

// registration describes the store to the directory.
func (s *Store) registration() *Registration {
	return &Registration{
		ShardInfo: ShardInfo{ID: s.shardID, Addr: s.opts.Addr}, Incarnation: s.incarnation,
		Former: []uint64{s.accepted, s.incarnation}, Owned: s.ownedRanges(),
	}
}

// askFormer is how long the former process of a shard may take to answer.
const askFormer = 3 * time.Second

// checkFormer refuses a shard that another process still serves elsewhere. If there is no answer, or another shard
// answers, the former process has ended. A process at the same address is this one, or was.
func (d *LocalDirectory) checkFormer(ctx context.Context, reg *Registration) error {
	d.mu.RLock()
	former, known := d.mu.shards[reg.ID]
	d.mu.RUnlock()
	if !known || former.Addr == reg.Addr {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askFormer)
	defer cancel()
	owner, err := d.opts.Dial(ctx, former)
	if err != nil {
		return nil
	}
	status, err := owner.Status(ctx)
	if err != nil || status.Shard != reg.ID || status.Incarnation == reg.Incarnation {
		return nil
	}
	return &ShardReplacedError{Shard: reg.ID, Addr: former.Addr}
}

// checkIncarnationLocked refuses a shard that does not descend from the recorded incarnation; accepted is the last that
// the shard has been told of. A shard that was registered before there were incarnations has none recorded. older
// reports that a later one was once recorded: the directory is older than the shard.
func (d *LocalDirectory) checkIncarnationLocked(shard string, accepted uint64, others ...uint64) (older bool, _ error) {
	recorded := d.mu.incarnations[shard]
	switch {
	case recorded == 0 || accepted == recorded || slices.Contains(others, recorded):
		return false, nil
	case accepted>>incarnationBits > recorded>>incarnationBits:
		return true, nil
	}
	return false, &ShardReplacedError{Shard: shard, Addr: d.mu.shards[shard].Addr}
}
