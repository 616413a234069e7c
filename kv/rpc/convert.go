package rpc

import (
	"math"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/rpc/kvpb"
	"github.com/percodb/percodb/tso"
)

func encodeRef(r kv.RangeRef) *kvpb.RangeRef { return &kvpb.RangeRef{Id: r.ID, Epoch: r.Epoch} }

func decodeRef(r *kvpb.RangeRef) kv.RangeRef { return kv.RangeRef{ID: r.GetId(), Epoch: r.GetEpoch()} }

func encodeRefs(refs []kv.RangeRef) []*kvpb.RangeRef {
	out := make([]*kvpb.RangeRef, len(refs))
	for i, r := range refs {
		out[i] = encodeRef(r)
	}
	return out
}

func decodeRefs(refs []*kvpb.RangeRef) []kv.RangeRef {
	if len(refs) == 0 {
		return nil
	}
	out := make([]kv.RangeRef, len(refs))
	for i, r := range refs {
		out[i] = decodeRef(r)
	}
	return out
}

func encodeSpan(s kv.Span) *kvpb.Span { return &kvpb.Span{Start: s.Start, End: s.End} }

func decodeSpan(s *kvpb.Span) kv.Span { return kv.Span{Start: s.GetStart(), End: s.GetEnd()} }

func encodeDescriptor(d *kv.RangeDescriptor) *kvpb.RangeDescriptor {
	return &kvpb.RangeDescriptor{Id: d.ID, Epoch: d.Epoch, Span: encodeSpan(d.Span), Shard: d.Shard}
}

func decodeDescriptor(d *kvpb.RangeDescriptor) kv.RangeDescriptor {
	return kv.RangeDescriptor{ID: d.GetId(), Epoch: d.GetEpoch(), Span: decodeSpan(d.GetSpan()), Shard: d.GetShard()}
}

func encodeDescriptors(ds []kv.RangeDescriptor) []*kvpb.RangeDescriptor {
	out := make([]*kvpb.RangeDescriptor, len(ds))
	for i := range ds {
		out[i] = encodeDescriptor(&ds[i])
	}
	return out
}

func decodeDescriptors(ds []*kvpb.RangeDescriptor) []kv.RangeDescriptor {
	if len(ds) == 0 {
		return nil
	}
	out := make([]kv.RangeDescriptor, len(ds))
	for i, d := range ds {
		out[i] = decodeDescriptor(d)
	}
	return out
}

func encodeOptions(o kv.ReadOptions) *kvpb.ReadOptions {
	out := &kvpb.ReadOptions{ReadTs: uint64(o.ReadTS), FloorTs: uint64(o.FloorTS)}
	for _, ts := range o.Bypass {
		out.Bypass = append(out.Bypass, uint64(ts))
	}
	for _, c := range o.Resolved {
		out.Resolved = append(out.Resolved, &kvpb.CommittedTxn{StartTs: uint64(c.StartTS), CommitTs: uint64(c.CommitTS)})
	}
	return out
}

func decodeOptions(o *kvpb.ReadOptions) kv.ReadOptions {
	out := kv.ReadOptions{ReadTS: tso.Timestamp(o.GetReadTs()), FloorTS: tso.Timestamp(o.GetFloorTs())}
	for _, ts := range o.GetBypass() {
		out.Bypass = append(out.Bypass, tso.Timestamp(ts))
	}
	for _, c := range o.GetResolved() {
		out.Resolved = append(out.Resolved, kv.CommittedTxn{StartTS: tso.Timestamp(c.StartTs), CommitTS: tso.Timestamp(c.CommitTs)})
	}
	return out
}

func encodeLock(l *mvcc.Lock) *kvpb.Lock {
	return &kvpb.Lock{Op: uint32(l.Op), StartTs: uint64(l.StartTS), Primary: l.Primary, TtlMillis: l.TTLMillis,
		MinCommitTs: uint64(l.MinCommitTS), TxnSize: l.TxnSize, Value: l.Value, ForUpdateTs: uint64(l.ForUpdateTS),
		Async: l.Async, Secondaries: l.Secondaries, Shared: l.Shared, Notify: encodeNotifySet(l.Notify)}
}

func decodeLock(l *kvpb.Lock) mvcc.Lock {
	return mvcc.Lock{Op: mvcc.Op(l.GetOp()), StartTS: tso.Timestamp(l.GetStartTs()), Primary: l.GetPrimary(),
		TTLMillis: l.GetTtlMillis(), MinCommitTS: tso.Timestamp(l.GetMinCommitTs()), TxnSize: l.GetTxnSize(), Value: l.GetValue(),
		ForUpdateTS: tso.Timestamp(l.GetForUpdateTs()), Async: l.GetAsync(), Secondaries: l.GetSecondaries(), Shared: l.GetShared(),
		Notify: decodeNotifySet(l.GetNotify())}
}

func encodeLocked(e *mvcc.KeyLockedError) *kvpb.KeyLocked {
	return &kvpb.KeyLocked{Key: e.Key, Lock: encodeLock(&e.Lock)}
}

func decodeLocked(e *kvpb.KeyLocked) mvcc.KeyLockedError {
	return mvcc.KeyLockedError{Key: e.GetKey(), Lock: decodeLock(e.GetLock())}
}

func encodeLocks(es []mvcc.KeyLockedError) []*kvpb.KeyLocked {
	var out []*kvpb.KeyLocked
	for i := range es {
		out = append(out, encodeLocked(&es[i]))
	}
	return out
}

func decodeLocks(es []*kvpb.KeyLocked) []mvcc.KeyLockedError {
	var out []mvcc.KeyLockedError
	for _, e := range es {
		out = append(out, decodeLocked(e))
	}
	return out
}

func encodeLockInfos(locks []mvcc.LockInfo) []*kvpb.LockInfo {
	out := make([]*kvpb.LockInfo, len(locks))
	for i := range locks {
		l := &locks[i]
		out[i] = &kvpb.LockInfo{Key: l.Key, Lock: encodeLock(&l.Lock), Waiters: encodeTimestamps(l.Waiters)}
	}
	return out
}

func decodeLockInfos(locks []*kvpb.LockInfo) []mvcc.LockInfo {
	if len(locks) == 0 {
		return nil
	}
	out := make([]mvcc.LockInfo, len(locks))
	for i, l := range locks {
		out[i] = mvcc.LockInfo{Key: l.GetKey(), Lock: decodeLock(l.GetLock()), Waiters: decodeTimestamps(l.GetWaiters())}
	}
	return out
}

func encodeTimestamps(in []tso.Timestamp) []uint64 {
	if len(in) == 0 {
		return nil
	}
	out := make([]uint64, len(in))
	for i, ts := range in {
		out[i] = uint64(ts)
	}
	return out
}

func decodeTimestamps(in []uint64) []tso.Timestamp {
	if len(in) == 0 {
		return nil
	}
	out := make([]tso.Timestamp, len(in))
	for i, ts := range in {
		out[i] = tso.Timestamp(ts)
	}
	return out
}

func encodeSpans(spans []kv.Span) []*kvpb.Span {
	if len(spans) == 0 {
		return nil
	}
	out := make([]*kvpb.Span, len(spans))
	for i := range spans {
		out[i] = encodeSpan(spans[i])
	}
	return out
}

func decodeSpans(spans []*kvpb.Span) []kv.Span {
	if len(spans) == 0 {
		return nil
	}
	out := make([]kv.Span, len(spans))
	for i, s := range spans {
		out[i] = decodeSpan(s)
	}
	return out
}

// encodeRows lays the rows of a page out in one piece, so that the receiver allocates once.
func encodeRows(rows []kv.KeyValue) (data []byte, lengths []uint32) {
	size := 0
	for i := range rows {
		size += len(rows[i].Key) + len(rows[i].Value)
	}
	data = make([]byte, 0, size)
	lengths = make([]uint32, 0, 2*len(rows))
	for i := range rows {
		data = append(append(data, rows[i].Key...), rows[i].Value...)
		lengths = append(lengths, uint32(len(rows[i].Key)), uint32(len(rows[i].Value)))
	}
	return data, lengths
}

// decodeRows cuts a page into rows; ok is false when the lengths do not fit the data.
func decodeRows(data []byte, lengths []uint32) (rows []kv.KeyValue, ok bool) {
	if len(lengths)%2 != 0 {
		return nil, false
	}
	rows = make([]kv.KeyValue, len(lengths)/2)
	if data == nil {
		data = []byte{} // a row's value is never nil
	}
	for i := range rows {
		for half := range 2 {
			n := uint64(lengths[2*i+half])
			if n > uint64(len(data)) {
				return nil, false
			}
			piece := data[:n:n]
			data = data[n:]
			if half == 0 {
				rows[i].Key = piece
			} else {
				rows[i].Value = piece
			}
		}
	}
	return rows, len(data) == 0
}

func encodeMutations(ms []mvcc.Mutation) []*kvpb.Mutation {
	messages := make([]kvpb.Mutation, len(ms))
	out := make([]*kvpb.Mutation, len(ms))
	for i := range ms {
		m := &messages[i]
		m.Op, m.MustBeNew, m.Key, m.Value = uint32(ms[i].Op), ms[i].MustBeNew, ms[i].Key, ms[i].Value
		m.LockedAt, m.Notify = uint64(ms[i].LockedAt), uint32(ms[i].Notify)
		out[i] = m
	}
	return out
}

func decodeMutations(ms []*kvpb.Mutation) []mvcc.Mutation {
	out := make([]mvcc.Mutation, len(ms))
	for i, m := range ms {
		out[i] = mvcc.Mutation{Op: mvcc.Op(m.GetOp()), MustBeNew: m.GetMustBeNew(), Key: m.GetKey(), Value: m.GetValue(), LockedAt: tso.Timestamp(m.GetLockedAt()),
			Notify: uint16(min(m.GetNotify(), math.MaxUint16))}
	}
	return out
}

func encodeStatus(s *kv.ShardStatus) *kvpb.StatusResponse {
	out := &kvpb.StatusResponse{Shard: s.Shard, Incarnation: s.Incarnation, Newest: uint64(s.Newest)}
	for id, size := range s.RangeSizes {
		out.RangeSizes = append(out.RangeSizes, &kvpb.RangeSize{Id: id, Bytes: uint64(max(0, size))})
	}
	return out
}

func decodeStatus(r *kvpb.StatusResponse) kv.ShardStatus {
	s := kv.ShardStatus{Shard: r.GetShard(), Incarnation: r.GetIncarnation(), Newest: tso.Timestamp(r.GetNewest()), RangeSizes: make(map[uint64]int64, len(r.GetRangeSizes()))}
	for _, size := range r.GetRangeSizes() {
		s.RangeSizes[size.GetId()] = int64(size.GetBytes())
	}
	return s
}
