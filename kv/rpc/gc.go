package rpc

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/rpc/kvpb"
	"github.com/percodb/percodb/tso"
)

// collectorServer serves the part of a shard for garbage collection.
type collectorServer struct {
	kvpb.UnimplementedCollectorServer
	shard kv.Collector
}

// registerCollector is RegisterShard's part for garbage collection.
func registerCollector(r grpc.ServiceRegistrar, shard kv.Collector) {
	kvpb.RegisterCollectorServer(r, &collectorServer{shard: shard})
}

// SetSafePoint implements the service.
func (s *collectorServer) SetSafePoint(ctx context.Context, req *kvpb.SetSafePointRequest) (*kvpb.SetSafePointResponse, error) {
	inForce, err := s.shard.SetSafePoint(ctx, tso.Timestamp(req.Ts))
	return serve(ctx, err, &kvpb.SetSafePointResponse{InForce: uint64(inForce)},
		func(e *kvpb.Error) *kvpb.SetSafePointResponse { return &kvpb.SetSafePointResponse{Error: e} })
}

// SyncLog implements the service.
func (s *collectorServer) SyncLog(ctx context.Context, _ *kvpb.SyncLogRequest) (*kvpb.SyncLogResponse, error) {
	run, err := s.shard.SyncLog(ctx)
	return serve(ctx, err, &kvpb.SyncLogResponse{Run: run},
		func(e *kvpb.Error) *kvpb.SyncLogResponse { return &kvpb.SyncLogResponse{Error: e} })
}

// CollectGarbage implements the service.
func (s *collectorServer) CollectGarbage(ctx context.Context, req *kvpb.CollectGarbageRequest) (*kvpb.CollectGarbageResponse, error) {
	res, err := s.shard.CollectGarbage(ctx, &kv.CollectGarbageRequest{
		SafePoint: tso.Timestamp(req.SafePoint), From: tso.Timestamp(req.From), Protected: decodeTSSpans(req.Protected), Budget: time.Duration(req.BudgetMillis) * time.Millisecond})
	return serve(ctx, err, &kvpb.CollectGarbageResponse{
		Done: res.Done, Keys: uint64(res.Keys), Versions: uint64(res.Versions), Statuses: uint64(res.Statuses), Kept: uint64(res.Kept)},
		func(e *kvpb.Error) *kvpb.CollectGarbageResponse { return &kvpb.CollectGarbageResponse{Error: e} })
}

// DropSpan implements the service.
func (s *collectorServer) DropSpan(ctx context.Context, req *kvpb.DropSpanRequest) (*kvpb.DropSpanResponse, error) {
	dropped, err := s.shard.DropSpan(ctx, &kv.DropSpanRequest{Span: decodeSpan(req.Span), SafePoint: tso.Timestamp(req.SafePoint),
		Protected: decodeTSSpans(req.Protected)})
	return serve(ctx, err, &kvpb.DropSpanResponse{Dropped: dropped},
		func(e *kvpb.Error) *kvpb.DropSpanResponse { return &kvpb.DropSpanResponse{Error: e} })
}

// SetSafePoint implements kv.Collector.
func (s *Shard) SetSafePoint(ctx context.Context, ts tso.Timestamp) (tso.Timestamp, error) {
	res, err := call(ctx, s.name, s.opts, s.collector.SetSafePoint, &kvpb.SetSafePointRequest{Ts: uint64(ts)})
	if err != nil {
		return 0, err
	}
	return tso.Timestamp(res.InForce), nil
}

// SyncLog implements kv.Collector.
func (s *Shard) SyncLog(ctx context.Context) (run uint64, err error) {
	res, err := call(ctx, s.name, s.opts, s.collector.SyncLog, &kvpb.SyncLogRequest{})
	if err != nil {
		return 0, err
	}
	return res.Run, nil
}

// CollectGarbage implements kv.Collector. The budget ends well before the request's timeout.
func (s *Shard) CollectGarbage(ctx context.Context, req *kv.CollectGarbageRequest) (kv.CollectGarbageResponse, error) {
	budget := min(req.Budget, s.opts.Timeout/2)
	res, err := call(ctx, s.name, s.opts, s.collector.CollectGarbage, &kvpb.CollectGarbageRequest{
		SafePoint: uint64(req.SafePoint), From: uint64(req.From), Protected: encodeTSSpans(req.Protected), BudgetMillis: uint64(budget.Milliseconds())})
	if err != nil {
		return kv.CollectGarbageResponse{}, err
	}
	return kv.CollectGarbageResponse{
		Done: res.Done, Keys: int(res.Keys), Versions: int(res.Versions), Statuses: int(res.Statuses), Kept: int(res.Kept)}, nil
}

// DropSpan implements kv.Collector.
func (s *Shard) DropSpan(ctx context.Context, req *kv.DropSpanRequest) (bool, error) {
	res, err := call(ctx, s.name, s.opts, s.collector.DropSpan,
		&kvpb.DropSpanRequest{Span: encodeSpan(req.Span), SafePoint: uint64(req.SafePoint), Protected: encodeTSSpans(req.Protected)})
	if err != nil {
		return false, err
	}
	return res.Dropped, nil
}

func encodeTSSpans(spans []kv.TSSpan) []*kvpb.TSSpan {
	out := make([]*kvpb.TSSpan, len(spans))
	for i, s := range spans {
		out[i] = &kvpb.TSSpan{After: uint64(s.After), Through: uint64(s.Through)}
	}
	return out
}

func decodeTSSpans(spans []*kvpb.TSSpan) []kv.TSSpan {
	out := make([]kv.TSSpan, len(spans))
	for i, s := range spans {
		out[i] = kv.TSSpan{After: tso.Timestamp(s.GetAfter()), Through: tso.Timestamp(s.GetThrough())}
	}
	return out
}
