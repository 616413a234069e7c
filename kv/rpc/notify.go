package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/rpc/kvpb"
	"github.com/percodb/percodb/tso"
)

// notifierServer serves the part of a shard for observers.
type notifierServer struct {
	kvpb.UnimplementedNotifierServer
	shard kv.Notifier
}

// registerNotifier is RegisterShard's part for observers.
func registerNotifier(r grpc.ServiceRegistrar, shard kv.Notifier) {
	kvpb.RegisterNotifierServer(r, &notifierServer{shard: shard})
}

// NotifyScan implements the service.
func (s *notifierServer) NotifyScan(ctx context.Context, req *kvpb.NotifyScanRequest) (*kvpb.NotifyScanResponse, error) {
	out := &kvpb.NotifyScanResponse{}
	res, err := s.shard.NotifyScan(ctx, &kv.NotifyScanRequest{Range: decodeRef(req.Range), Span: decodeSpan(req.Span),
		Observer: req.Observer, Limit: int(req.Limit)})
	if err == nil {
		out.Cells, out.ResumeKey, out.More = encodeCells(res.Cells), res.ResumeKey, res.ResumeKey != nil
	}
	return serve(ctx, err, out, func(e *kvpb.Error) *kvpb.NotifyScanResponse { return &kvpb.NotifyScanResponse{Error: e} })
}

// NotifyClear implements the service.
func (s *notifierServer) NotifyClear(ctx context.Context, req *kvpb.NotifyClearRequest) (*kvpb.NotifyClearResponse, error) {
	cells := make([]kv.NotifyUpTo, len(req.Cells))
	for i, c := range req.Cells {
		cells[i] = kv.NotifyUpTo{Key: c.GetKey(), UpTo: tso.Timestamp(c.GetUpTo())}
	}
	cleared, err := s.shard.NotifyClear(ctx, &kv.NotifyClearRequest{Ranges: decodeRefs(req.Ranges), Observer: req.Observer, Cells: cells})
	return serve(ctx, err, &kvpb.NotifyClearResponse{Cleared: uint64(cleared)},
		func(e *kvpb.Error) *kvpb.NotifyClearResponse { return &kvpb.NotifyClearResponse{Error: e} })
}

// NotifyPut implements the service.
func (s *notifierServer) NotifyPut(ctx context.Context, req *kvpb.NotifyPutRequest) (*kvpb.EmptyResponse, error) {
	err := s.shard.NotifyPut(ctx, &kv.NotifyPutRequest{Ranges: decodeRefs(req.Ranges), Observer: req.Observer, Keys: req.Keys,
		TS: tso.Timestamp(req.Ts), Hop: uint8(req.Hop)})
	return serve(ctx, err, &kvpb.EmptyResponse{}, empty)
}

// NotifyDrop implements the service.
func (s *notifierServer) NotifyDrop(ctx context.Context, req *kvpb.NotifyDropRequest) (*kvpb.EmptyResponse, error) {
	err := s.shard.NotifyDrop(ctx, &kv.NotifyDropRequest{Range: decodeRef(req.Range), Span: decodeSpan(req.Span), Observer: req.Observer})
	return serve(ctx, err, &kvpb.EmptyResponse{}, empty)
}

// WatchNotify implements the service.
func (s *notifierServer) WatchNotify(_ *kvpb.WatchNotifyRequest, stream grpc.ServerStreamingServer[kvpb.WatchNotifyResponse]) error {
	ctx := stream.Context()
	err := s.shard.WatchNotify(ctx, func(hints []kv.NotifyHint) error {
		return stream.Send(&kvpb.WatchNotifyResponse{Hints: encodeHints(hints)})
	})
	last, err := serve(ctx, err, nil, func(e *kvpb.Error) *kvpb.WatchNotifyResponse { return &kvpb.WatchNotifyResponse{Error: e} })
	if err != nil {
		return err
	}
	return stream.Send(last)
}

// NotifyScan implements kv.Notifier.
func (s *Shard) NotifyScan(ctx context.Context, req *kv.NotifyScanRequest) (*kv.NotifyScanResponse, error) {
	res, err := call(ctx, s.name, s.opts, s.notifier.NotifyScan, &kvpb.NotifyScanRequest{Range: encodeRef(req.Range),
		Span: encodeSpan(req.Span), Observer: req.Observer, Limit: uint64(max(0, req.Limit))})
	if err != nil {
		return nil, err
	}
	out := &kv.NotifyScanResponse{Cells: decodeCells(res.Cells)}
	if res.More {
		out.ResumeKey = append([]byte{}, res.ResumeKey...)
	}
	return out, nil
}

// NotifyClear implements kv.Notifier.
func (s *Shard) NotifyClear(ctx context.Context, req *kv.NotifyClearRequest) (cleared int, err error) {
	messages := make([]kvpb.NotifyUpTo, len(req.Cells))
	cells := make([]*kvpb.NotifyUpTo, len(req.Cells))
	for i := range req.Cells {
		cells[i] = &messages[i]
		cells[i].Key, cells[i].UpTo = req.Cells[i].Key, uint64(req.Cells[i].UpTo)
	}
	res, err := call(ctx, s.name, s.opts, s.notifier.NotifyClear,
		&kvpb.NotifyClearRequest{Ranges: encodeRefs(req.Ranges), Observer: req.Observer, Cells: cells})
	if err != nil {
		return 0, err
	}
	return int(res.Cleared), nil
}

// NotifyPut implements kv.Notifier.
func (s *Shard) NotifyPut(ctx context.Context, req *kv.NotifyPutRequest) error {
	_, err := call(ctx, s.name, s.opts, s.notifier.NotifyPut, &kvpb.NotifyPutRequest{Ranges: encodeRefs(req.Ranges),
		Observer: req.Observer, Keys: req.Keys, Ts: uint64(req.TS), Hop: uint32(req.Hop)})
	return err
}

// NotifyDrop implements kv.Notifier.
func (s *Shard) NotifyDrop(ctx context.Context, req *kv.NotifyDropRequest) error {
	_, err := call(ctx, s.name, s.opts, s.notifier.NotifyDrop,
		&kvpb.NotifyDropRequest{Range: encodeRef(req.Range), Span: encodeSpan(req.Span), Observer: req.Observer})
	return err
}

// WatchNotify implements kv.Notifier. It has no timeout: the connection's pings find out if the shard is gone.
func (s *Shard) WatchNotify(ctx context.Context, f func([]kv.NotifyHint) error) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.notifier.WatchNotify(watching, &kvpb.WatchNotifyRequest{})
	for err == nil {
		var res *kvpb.WatchNotifyResponse
		if res, err = stream.Recv(); err != nil {
			break
		}
		switch ended := decodeError(res.GetError()); {
		case errors.Is(ended, kv.ErrClosed):
			return &kv.UnavailableError{Shard: s.name, Err: ended}
		case ended != nil:
			return ended
		}
		if err := f(decodeHints(res.Hints)); err != nil {
			return err
		}
	}
	return transportError(ctx, ctx, s.name, err)
}

func encodeCells(cells []kv.NotifyCell) []*kvpb.NotifyCell {
	messages := make([]kvpb.NotifyCell, len(cells))
	out := make([]*kvpb.NotifyCell, len(cells))
	for i := range cells {
		out[i] = &messages[i]
		out[i].Key, out[i].Latest, out[i].Hop = cells[i].Key, uint64(cells[i].Latest), uint32(cells[i].Hop)
	}
	return out
}

func decodeCells(cells []*kvpb.NotifyCell) []kv.NotifyCell {
	if len(cells) == 0 {
		return nil
	}
	out := make([]kv.NotifyCell, len(cells))
	for i, c := range cells {
		out[i] = kv.NotifyCell{Key: c.GetKey(), Latest: tso.Timestamp(c.GetLatest()), Hop: uint8(c.GetHop())}
	}
	return out
}

func encodeHints(hints []kv.NotifyHint) []*kvpb.NotifyHint {
	messages := make([]kvpb.NotifyHint, len(hints))
	out := make([]*kvpb.NotifyHint, len(hints))
	for i := range hints {
		out[i] = &messages[i]
		out[i].Observer, out[i].Key, out[i].CommitTs, out[i].AtMicros = hints[i].Observer, hints[i].Key, uint64(hints[i].CommitTS), hints[i].AtMicros
	}
	return out
}

func decodeHints(hints []*kvpb.NotifyHint) []kv.NotifyHint {
	out := make([]kv.NotifyHint, len(hints))
	for i, h := range hints {
		out[i] = kv.NotifyHint{Observer: h.GetObserver(), Key: h.GetKey(), CommitTS: tso.Timestamp(h.GetCommitTs()), AtMicros: h.GetAtMicros()}
	}
	return out
}

func encodeNotifySet(n *mvcc.NotifySet) *kvpb.NotifySet {
	if n == nil {
		return nil
	}
	return &kvpb.NotifySet{Hop: uint32(n.Hop), Observers: n.Observers}
}

func decodeNotifySet(n *kvpb.NotifySet) *mvcc.NotifySet {
	if n == nil {
		return nil
	}
	return &mvcc.NotifySet{Hop: uint8(n.GetHop()), Observers: n.GetObservers()}
}

func encodeNotifySets(sets []mvcc.NotifySet) (out []*kvpb.NotifySet) {
	for i := range sets {
		out = append(out, encodeNotifySet(&sets[i]))
	}
	return out
}

func decodeNotifySets(sets []*kvpb.NotifySet) (out []mvcc.NotifySet) {
	for _, n := range sets {
		out = append(out, mvcc.NotifySet{Hop: uint8(n.GetHop()), Observers: n.GetObservers()})
	}
	return out
}
