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

// A data directory can be copied, and both copies be started: they would serve one shard's ranges, each with
// half of the commits. So every opening of a shard's directory has a number of its own, its incarnation, and
// the directory of ranges records the last one it has accepted. A shard that registers shows which one it
// had before; it is refused if that is not the recorded one (another copy was started meanwhile, or this
// directory is older than what the shard had), or if the former incarnation still answers elsewhere.

// Registration is what a shard tells when it starts.
type Registration struct {
	ShardInfo
	// Incarnation names this opening of the shard's data directory. Former are those of which one must be
	// recorded: the last that was accepted, and Incarnation itself, whose acceptance may not have been
	// heard of.
	Incarnation uint64
	Former      []uint64
	// Owned are the ranges that the shard owns.
	Owned []RangeDescriptor
}

// ShardReplacedError: a shard's data directory is not the one that the cluster knows by its id: a copy of
// it is, or was, served by another process.
type ShardReplacedError struct {
	Shard string
	Addr  string // of the other process
}

// Kind implements errkind.Error.
func (e *ShardReplacedError) Kind() errkind.Kind { return errkind.Excluded }

func (e *ShardReplacedError) Error() string {
	return fmt.Sprintf("store %s has been served from another data directory by a process at %s: this one is a copy, or older", e.Shard, e.Addr)
}

// An incarnation is how many there were before(32 bits), and random bits that copies do not share.
const incarnationBits = 32

// newIncarnation returns the number of an opening after the accepted one.
func newIncarnation(accepted uint64) uint64 {
	return (accepted>>incarnationBits+1)<<incarnationBits | uint64(mathrand.Uint32()) | 1
}

// loadIncarnation makes the number of this opening durable beside the accepted one. One that was made
// durable and perhaps registered by an earlier opening, which did not hear of it, is taken up.
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

// askFormer is how long the former process of a shard has to answer.
const askFormer = 3 * time.Second

// checkFormer refuses a shard that another process still serves elsewhere. Where nobody answers, or another
// shard does, the former process is gone. One at the same address is this one, or was.
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

// checkIncarnationLocked refuses a shard that does not go back to the recorded incarnation; accepted is the last that
// it was told of. A shard that was registered before there were incarnations has none recorded. older says that the
// directory has once recorded a later one: it is older than the shard.
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
