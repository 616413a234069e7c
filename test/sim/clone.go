package sim

import (
	"bytes"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// The copies of requests, as a network makes them.

func cloneKeys(keys [][]byte) [][]byte {
	if keys == nil {
		return nil
	}
	out := make([][]byte, len(keys))
	for i := range keys {
		out[i] = bytes.Clone(keys[i])
	}
	return out
}

func cloneSpan(s kv.Span) kv.Span {
	return kv.Span{Start: bytes.Clone(s.Start), End: bytes.Clone(s.End)}
}

func cloneSpans(spans []kv.Span) []kv.Span {
	out := slices.Clone(spans)
	for i := range out {
		out[i] = cloneSpan(out[i])
	}
	return out
}

func cloneRead(o kv.ReadOptions) kv.ReadOptions {
	o.Bypass, o.Resolved = slices.Clone(o.Bypass), slices.Clone(o.Resolved)
	return o
}

func cloneBatchGet(r *kv.BatchGetRequest) *kv.BatchGetRequest {
	return &kv.BatchGetRequest{Ranges: slices.Clone(r.Ranges), Keys: cloneKeys(r.Keys), ReadOptions: cloneRead(r.ReadOptions)}
}

func cloneScan(r *kv.ScanRequest) *kv.ScanRequest {
	c := *r
	c.ReadOptions, c.Reuse = cloneRead(r.ReadOptions), nil
	c.Ranges, c.Spans = slices.Clone(r.Ranges), cloneSpans(r.Spans)
	return &c
}

func clonePrewrite(r *kv.PrewriteRequest) *kv.PrewriteRequest {
	c := *r
	c.Ranges, c.Primary, c.Secondaries, c.Reads = slices.Clone(r.Ranges), bytes.Clone(r.Primary), cloneKeys(r.Secondaries), cloneSpans(r.Reads)
	c.Mutations = make([]mvcc.Mutation, len(r.Mutations))
	for i, m := range r.Mutations {
		m.Key, m.Value = bytes.Clone(m.Key), bytes.Clone(m.Value)
		c.Mutations[i] = m
	}
	return &c
}

func cloneCommit(r *kv.CommitRequest) *kv.CommitRequest {
	c := *r
	c.Ranges, c.Keys = slices.Clone(r.Ranges), cloneKeys(r.Keys)
	return &c
}

func cloneRollback(r *kv.RollbackRequest) *kv.RollbackRequest {
	c := *r
	c.Ranges, c.Keys = slices.Clone(r.Ranges), cloneKeys(r.Keys)
	return &c
}

func cloneStatus(r *kv.CheckTxnStatusRequest) *kv.CheckTxnStatusRequest {
	c := *r
	c.Primary = bytes.Clone(r.Primary)
	return &c
}

func cloneResolve(r *kv.ResolveLockRequest) *kv.ResolveLockRequest {
	c := *r
	c.Ranges, c.Keys = slices.Clone(r.Ranges), cloneKeys(r.Keys)
	return &c
}

func cloneHeartbeat(r *kv.HeartbeatRequest) *kv.HeartbeatRequest {
	c := *r
	c.Primary = bytes.Clone(r.Primary)
	return &c
}

func cloneScanLock(r *kv.ScanLockRequest) *kv.ScanLockRequest {
	c := *r
	c.Span = cloneSpan(r.Span)
	return &c
}

func cloneAcquire(r *kv.AcquireLocksRequest) *kv.AcquireLocksRequest {
	c := *r
	c.Ranges, c.Keys, c.Primary = slices.Clone(r.Ranges), cloneKeys(r.Keys), bytes.Clone(r.Primary)
	return &c
}

func cloneRelease(r *kv.ReleaseLocksRequest) *kv.ReleaseLocksRequest {
	c := *r
	c.Ranges, c.Keys = slices.Clone(r.Ranges), cloneKeys(r.Keys)
	return &c
}

func cloneSecondaries(r *kv.CheckSecondaryLocksRequest) *kv.CheckSecondaryLocksRequest {
	c := *r
	c.Ranges, c.Keys = slices.Clone(r.Ranges), cloneKeys(r.Keys)
	return &c
}

func cloneRefresh(r *kv.RefreshRequest) *kv.RefreshRequest {
	c := *r
	c.Ranges, c.Spans = slices.Clone(r.Ranges), cloneSpans(r.Spans)
	return &c
}
