package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/rpc/kvpb"
	"github.com/percodb/percodb/tso"
)

func encodeInfo(i kv.ShardInfo) *kvpb.ShardInfo { return &kvpb.ShardInfo{Id: i.ID, Addr: i.Addr} }

func decodeInfo(i *kvpb.ShardInfo) kv.ShardInfo {
	return kv.ShardInfo{ID: i.GetId(), Addr: i.GetAddr()}
}

// directoryServer answers for a directory.
type directoryServer struct {
	kvpb.UnimplementedDirectoryServer
	directory kv.Directory
}

// RegisterDirectory has r serve a directory, which stays the caller's.
func RegisterDirectory(r grpc.ServiceRegistrar, d kv.Directory) {
	kvpb.RegisterDirectoryServer(r, &directoryServer{directory: d})
}

// Lookup implements the service.
func (s *directoryServer) Lookup(ctx context.Context, req *kvpb.LookupRequest) (*kvpb.LookupResponse, error) {
	lookup := s.directory.Lookup
	if req.Before {
		lookup = s.directory.LookupEnd
	}
	desc, info, err := lookup(ctx, req.Key)
	return serve(ctx, err, &kvpb.LookupResponse{Range: encodeDescriptor(&desc), Shard: encodeInfo(info)},
		func(e *kvpb.Error) *kvpb.LookupResponse { return &kvpb.LookupResponse{Error: e} })
}

func rangesFailed(e *kvpb.Error) *kvpb.RangesResponse { return &kvpb.RangesResponse{Error: e} }

// Ranges implements the service.
func (s *directoryServer) Ranges(ctx context.Context, _ *kvpb.RangesRequest) (*kvpb.RangesResponse, error) {
	descs, err := s.directory.Ranges(ctx)
	return serve(ctx, err, &kvpb.RangesResponse{Ranges: encodeDescriptors(descs)}, rangesFailed)
}

// Shards implements the service.
func (s *directoryServer) Shards(ctx context.Context, _ *kvpb.ShardsRequest) (*kvpb.ShardsResponse, error) {
	infos, err := s.directory.Shards(ctx)
	out := &kvpb.ShardsResponse{}
	for _, i := range infos {
		out.Shards = append(out.Shards, encodeInfo(i))
	}
	return serve(ctx, err, out, func(e *kvpb.Error) *kvpb.ShardsResponse { return &kvpb.ShardsResponse{Error: e} })
}

// RegisterShard implements the service.
func (s *directoryServer) RegisterShard(ctx context.Context, req *kvpb.RegisterShardRequest) (*kvpb.RangesResponse, error) {
	adopt, err := s.directory.RegisterShard(ctx, &kv.Registration{ShardInfo: decodeInfo(req.Shard), Incarnation: req.Incarnation,
		Former: req.Former, Owned: decodeDescriptors(req.Owned)})
	return serve(ctx, err, &kvpb.RangesResponse{Ranges: encodeDescriptors(adopt)}, rangesFailed)
}

// ReportRanges implements the service.
func (s *directoryServer) ReportRanges(ctx context.Context, req *kvpb.ReportRangesRequest) (*kvpb.EmptyResponse, error) {
	err := s.directory.ReportRanges(ctx, req.Shard, req.Incarnation, decodeDescriptors(req.Owned))
	return serve(ctx, err, &kvpb.EmptyResponse{}, empty)
}

// AllocateRangeID implements the service.
func (s *directoryServer) AllocateRangeID(ctx context.Context, _ *kvpb.AllocateRangeIDRequest) (*kvpb.AllocateRangeIDResponse, error) {
	id, err := s.directory.AllocateRangeID(ctx)
	return serve(ctx, err, &kvpb.AllocateRangeIDResponse{Id: id},
		func(e *kvpb.Error) *kvpb.AllocateRangeIDResponse { return &kvpb.AllocateRangeIDResponse{Error: e} })
}

// CreateRange implements the service.
func (s *directoryServer) CreateRange(ctx context.Context, req *kvpb.CreateRangeRequest) (*kvpb.EmptyResponse, error) {
	err := s.directory.CreateRange(ctx, decodeSpan(req.Span))
	return serve(ctx, err, &kvpb.EmptyResponse{}, empty)
}

// Announce implements the service.
func (s *directoryServer) Announce(ctx context.Context, req *kvpb.AnnounceRequest) (*kvpb.AnnounceResponse, error) {
	out := &kvpb.AnnounceResponse{}
	m, err := s.directory.Announce(ctx, &kv.Announcement{ShardInfo: decodeInfo(req.Shard), Cluster: req.Cluster, Accepted: req.Accepted,
		Newest: tso.Timestamp(req.Newest), Peers: req.Peers, LockBound: tso.Timestamp(req.LockBound), Bounded: req.Bounded})
	if err == nil {
		out.Cluster, out.Peers, out.Held, out.Registered, out.Forgotten = m.Cluster, m.Peers, m.Held, m.Registered, m.Forgotten
		out.LockBound, out.SafePoint = uint64(m.LockBound), uint64(m.SafePoint)
	}
	return serve(ctx, err, out, func(e *kvpb.Error) *kvpb.AnnounceResponse { return &kvpb.AnnounceResponse{Error: e} })
}

// ForgetShard implements the service.
func (s *directoryServer) ForgetShard(ctx context.Context, req *kvpb.ForgetShardRequest) (*kvpb.ForgetShardResponse, error) {
	res, err := s.directory.ForgetShard(ctx, req.Shard, req.DryRun)
	return serve(ctx, err, &kvpb.ForgetShardResponse{Addr: res.Addr, Ranges: uint64(res.Ranges), Registered: res.Registered},
		func(e *kvpb.Error) *kvpb.ForgetShardResponse { return &kvpb.ForgetShardResponse{Error: e} })
}

// Directory is a kv.Directory on the other end of a connection. Safe for concurrent use.
type Directory struct {
	client kvpb.DirectoryClient
	opts   ClientOptions
}

var _ kv.Directory = (*Directory)(nil)

// directoryName is the name of the directory in *kv.UnavailableError.
const directoryName = "directory"

// NewDirectory returns a client over conn, which stays the caller's.
func NewDirectory(conn grpc.ClientConnInterface, opts ClientOptions) *Directory {
	return &Directory{client: kvpb.NewDirectoryClient(conn), opts: opts.ensureDefaults()}
}

// Lookup implements kv.Directory.
func (d *Directory) Lookup(ctx context.Context, key []byte) (kv.RangeDescriptor, kv.ShardInfo, error) {
	return d.lookup(ctx, &kvpb.LookupRequest{Key: key})
}

// LookupEnd implements kv.Directory.
func (d *Directory) LookupEnd(ctx context.Context, end []byte) (kv.RangeDescriptor, kv.ShardInfo, error) {
	return d.lookup(ctx, &kvpb.LookupRequest{Key: end, Before: true})
}

func (d *Directory) lookup(ctx context.Context, req *kvpb.LookupRequest) (kv.RangeDescriptor, kv.ShardInfo, error) {
	res, err := call(ctx, directoryName, d.opts, d.client.Lookup, req)
	if err != nil {
		return kv.RangeDescriptor{}, kv.ShardInfo{}, err
	}
	return decodeDescriptor(res.Range), decodeInfo(res.Shard), nil
}

// Ranges implements kv.Directory.
func (d *Directory) Ranges(ctx context.Context) ([]kv.RangeDescriptor, error) {
	res, err := call(ctx, directoryName, d.opts, d.client.Ranges, &kvpb.RangesRequest{})
	if err != nil {
		return nil, err
	}
	return decodeDescriptors(res.Ranges), nil
}

// Shards implements kv.Directory.
func (d *Directory) Shards(ctx context.Context) ([]kv.ShardInfo, error) {
	res, err := call(ctx, directoryName, d.opts, d.client.Shards, &kvpb.ShardsRequest{})
	if err != nil {
		return nil, err
	}
	var infos []kv.ShardInfo
	for _, i := range res.Shards {
		infos = append(infos, decodeInfo(i))
	}
	return infos, nil
}

// RegisterShard implements kv.Directory.
func (d *Directory) RegisterShard(ctx context.Context, reg *kv.Registration) ([]kv.RangeDescriptor, error) {
	res, err := call(ctx, directoryName, d.opts, d.client.RegisterShard, &kvpb.RegisterShardRequest{
		Shard: encodeInfo(reg.ShardInfo), Owned: encodeDescriptors(reg.Owned), Incarnation: reg.Incarnation, Former: reg.Former})
	if err != nil {
		return nil, err
	}
	return decodeDescriptors(res.Ranges), nil
}

// ReportRanges implements kv.Directory.
func (d *Directory) ReportRanges(ctx context.Context, shard string, incarnation uint64, owned []kv.RangeDescriptor) error {
	_, err := call(ctx, directoryName, d.opts, d.client.ReportRanges,
		&kvpb.ReportRangesRequest{Shard: shard, Incarnation: incarnation, Owned: encodeDescriptors(owned)})
	return err
}

// AllocateRangeID implements kv.Directory.
func (d *Directory) AllocateRangeID(ctx context.Context) (uint64, error) {
	res, err := call(ctx, directoryName, d.opts, d.client.AllocateRangeID, &kvpb.AllocateRangeIDRequest{})
	if err != nil {
		return 0, err
	}
	return res.Id, nil
}

// CreateRange implements kv.Directory.
func (d *Directory) CreateRange(ctx context.Context, span kv.Span) error {
	_, err := call(ctx, directoryName, d.opts, d.client.CreateRange, &kvpb.CreateRangeRequest{Span: encodeSpan(span)})
	return err
}

// Announce implements kv.Directory.
func (d *Directory) Announce(ctx context.Context, a *kv.Announcement) (*kv.Membership, error) {
	res, err := call(ctx, directoryName, d.opts, d.client.Announce, &kvpb.AnnounceRequest{Shard: encodeInfo(a.ShardInfo), Cluster: a.Cluster,
		Accepted: a.Accepted, Newest: uint64(a.Newest), Peers: a.Peers, LockBound: uint64(a.LockBound), Bounded: a.Bounded})
	if err != nil {
		return nil, err
	}
	return &kv.Membership{Cluster: res.Cluster, Peers: res.Peers, Held: res.Held, Registered: res.Registered, Forgotten: res.Forgotten,
		LockBound: tso.Timestamp(res.LockBound), SafePoint: tso.Timestamp(res.SafePoint)}, nil
}

// ForgetShard implements kv.Directory.
func (d *Directory) ForgetShard(ctx context.Context, shard string, dryRun bool) (kv.ForgetResponse, error) {
	res, err := call(ctx, directoryName, d.opts, d.client.ForgetShard, &kvpb.ForgetShardRequest{Shard: shard, DryRun: dryRun})
	if err != nil {
		return kv.ForgetResponse{}, err
	}
	return kv.ForgetResponse{Addr: res.Addr, Ranges: int(res.Ranges), Registered: res.Registered}, nil
}

// ownerServer answers a directory for a shard.
type ownerServer struct {
	kvpb.UnimplementedRangeOwnerServer
	owner kv.RangeOwner
}

// RegisterOwner has r serve the side of a shard that its directory talks to.
func RegisterOwner(r grpc.ServiceRegistrar, owner kv.RangeOwner) {
	kvpb.RegisterRangeOwnerServer(r, &ownerServer{owner: owner})
}

// NumRanges implements the service.
func (s *ownerServer) NumRanges(ctx context.Context, _ *kvpb.NumRangesRequest) (*kvpb.NumRangesResponse, error) {
	n, err := s.owner.NumRanges(ctx)
	return serve(ctx, err, &kvpb.NumRangesResponse{NumRanges: uint64(n)},
		func(e *kvpb.Error) *kvpb.NumRangesResponse { return &kvpb.NumRangesResponse{Error: e} })
}

// ReleaseSpan implements the service.
func (s *ownerServer) ReleaseSpan(ctx context.Context, req *kvpb.ReleaseSpanRequest) (*kvpb.ReleaseSpanResponse, error) {
	out := &kvpb.ReleaseSpanResponse{}
	res, err := s.owner.ReleaseSpan(ctx, &kv.ReleaseSpanRequest{Plan: req.Plan, Span: decodeSpan(req.Span), RemainderID: req.RemainderId})
	if err == nil {
		out.Released, out.MaxTs, out.Owned = res.Released, uint64(res.MaxTS), encodeDescriptors(res.Owned)
	}
	return serve(ctx, err, out, func(e *kvpb.Error) *kvpb.ReleaseSpanResponse { return &kvpb.ReleaseSpanResponse{Error: e} })
}

// AdoptRange implements the service.
func (s *ownerServer) AdoptRange(ctx context.Context, req *kvpb.AdoptRangeRequest) (*kvpb.EmptyResponse, error) {
	err := s.owner.AdoptRange(ctx, &kv.AdoptRangeRequest{Desc: decodeDescriptor(req.Desc), MaxTS: tso.Timestamp(req.MaxTs)})
	return serve(ctx, err, &kvpb.EmptyResponse{}, empty)
}

// Owner is a kv.RangeOwner on the other end of a connection. Safe for concurrent use.
type Owner struct {
	client kvpb.RangeOwnerClient
	shard  kvpb.ShardClient
	name   string
	opts   ClientOptions
}

var _ kv.RangeOwner = (*Owner)(nil)

// NewOwner returns a client over conn, which stays the caller's. name is the shard's, for errors.
func NewOwner(conn grpc.ClientConnInterface, name string, opts ClientOptions) *Owner {
	return &Owner{client: kvpb.NewRangeOwnerClient(conn), shard: kvpb.NewShardClient(conn), name: name, opts: opts.ensureDefaults()}
}

// NumRanges implements kv.RangeOwner.
func (o *Owner) NumRanges(ctx context.Context) (int, error) {
	res, err := call(ctx, o.name, o.opts, o.client.NumRanges, &kvpb.NumRangesRequest{})
	if err != nil {
		return 0, err
	}
	return int(res.NumRanges), nil
}

// ReleaseSpan implements kv.RangeOwner.
func (o *Owner) ReleaseSpan(ctx context.Context, req *kv.ReleaseSpanRequest) (*kv.ReleaseSpanResponse, error) {
	res, err := call(ctx, o.name, o.opts, o.client.ReleaseSpan,
		&kvpb.ReleaseSpanRequest{Plan: req.Plan, Span: encodeSpan(req.Span), RemainderId: req.RemainderID})
	if err != nil {
		return nil, err
	}
	return &kv.ReleaseSpanResponse{Released: res.Released, MaxTS: tso.Timestamp(res.MaxTs), Owned: decodeDescriptors(res.Owned)}, nil
}

// AdoptRange implements kv.RangeOwner.
func (o *Owner) AdoptRange(ctx context.Context, req *kv.AdoptRangeRequest) error {
	_, err := call(ctx, o.name, o.opts, o.client.AdoptRange,
		&kvpb.AdoptRangeRequest{Desc: encodeDescriptor(&req.Desc), MaxTs: uint64(req.MaxTS)})
	return err
}

// Status implements kv.RangeOwner.
func (o *Owner) Status(ctx context.Context) (kv.ShardStatus, error) {
	res, err := call(ctx, o.name, o.opts, o.shard.Status, &kvpb.StatusRequest{})
	if err != nil {
		return kv.ShardStatus{}, err
	}
	return decodeStatus(res), nil
}
