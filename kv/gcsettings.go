package kv

import (
	"encoding/binary"
	"time"

	"github.com/percodb/percodb/tso"
)

// GCSettings is what the controller of garbage collection stores in its process's engine.
type GCSettings struct {
	Life      time.Duration // how long history is kept, in milliseconds when stored; 0: never set
	SafePoint tso.Timestamp // the highest ever announced
}

// LoadGC returns the settings last stored by SaveGC, zeros if there are none.
func (e *Engine) LoadGC() (GCSettings, error) {
	value, found, err := e.Get(nil, metaKey(metaGC))
	if err != nil || !found {
		return GCSettings{}, err
	}
	if len(value) != 16 {
		return GCSettings{}, &CorruptionError{Key: metaKey(metaGC), Detail: "settings of garbage collection", Err: errMalformedMeta}
	}
	return GCSettings{
		Life:      time.Duration(binary.BigEndian.Uint64(value)) * time.Millisecond,
		SafePoint: tso.Timestamp(binary.BigEndian.Uint64(value[8:])),
	}, nil
}

// SaveGC returns once the settings are durable.
func (e *Engine) SaveGC(s GCSettings) error {
	b := e.NewBatch(0)
	defer b.Close()
	value := binary.BigEndian.AppendUint64(nil, uint64(s.Life.Milliseconds()))
	b.Put(metaKey(metaGC), binary.BigEndian.AppendUint64(value, uint64(s.SafePoint)))
	return e.applySync(b)
}

// LoadCleared returns the timestamps stored by SaveCleared.
func (e *Engine) LoadCleared() (map[string]tso.Timestamp, error) {
	cleared := map[string]tso.Timestamp{}
	return cleared, e.scanMeta(metaGCCleared, func(id, value []byte) error {
		if len(value) != 8 {
			return errMalformedMeta
		}
		cleared[string(id)] = tso.Timestamp(binary.BigEndian.Uint64(value))
		return nil
	})
}

// SaveCleared stores, for some shards, the timestamp at or below which no transaction has a lock on the shard, and
// returns once that is durable.
func (e *Engine) SaveCleared(cleared map[string]tso.Timestamp) error {
	b := e.NewBatch(0)
	defer b.Close()
	for id, ts := range cleared {
		b.Put(metaKey(metaGCCleared+id), binary.BigEndian.AppendUint64(nil, uint64(ts)))
	}
	return e.applySync(b)
}
