package micro

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/cockroachdb/pebble/v2"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	kvrpc "github.com/percodb/percodb/kv/rpc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// RawShard is a bare Pebble behind the interface of a shard: no versions, no locks, no timestamps. Put
// behind kv/rpc it is what a key-value store alone costs over the same path.
type RawShard struct {
	kv.Shard // the methods not used here
	DB       *pebble.DB
}

// Get reads key.
func (s RawShard) Get(_ context.Context, _ kv.RangeRef, key []byte, _ kv.ReadOptions) ([]byte, error) {
	it, err := s.DB.NewIter(nil)
	if err != nil {
		return nil, err
	}
	var value []byte
	if it.SeekPrefixGE(key) {
		value = append(value, it.Value()...)
	}
	return value, it.Close()
}

// GetLatest reads key.
func (s RawShard) GetLatest(ctx context.Context, r kv.RangeRef, key []byte, _ tso.Timestamp) (kv.LatestValue, error) {
	value, err := s.Get(ctx, r, key, kv.ReadOptions{})
	return kv.LatestValue{Value: value}, err
}

// Prewrite writes the mutations durably.
func (s RawShard) Prewrite(_ context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	batch := s.DB.NewBatch()
	for i := range req.Mutations {
		if err := batch.Set(req.Mutations[i].Key, req.Mutations[i].Value, nil); err != nil {
			return kv.PrewriteResponse{}, err
		}
	}
	return kv.PrewriteResponse{}, errors.Join(batch.Commit(pebble.Sync), batch.Close())
}

// remoteRouter routes to a shard's other side of the network by the store's own table.
type remoteRouter struct {
	kv.Router
	shard *kvrpc.Shard
}

func (r remoteRouter) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	desc, _, err := r.Router.Locate(ctx, key)
	return desc, r.shard, err
}

func (r remoteRouter) LocateEnd(ctx context.Context, end []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	desc, _, err := r.Router.LocateEnd(ctx, end)
	return desc, r.shard, err
}

// Serve has a gRPC server on loopback answer until stop is called.
func Serve(register func(*tsorpc.Server)) (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	g := tsorpc.NewGRPCServer()
	register(g)
	go g.Serve(l)
	return l.Addr().String(), g.Stop, nil
}

// DialOracle reaches the oracle of a tso process. stop ends the connection.
func DialOracle(addr string) (oracle tso.Oracle, stop func(), err error) {
	conn, err := tsorpc.Dial(addr)
	if err != nil {
		return nil, nil, err
	}
	client := tsorpc.NewClient(conn, tsorpc.ClientOptions{})
	return client, func() {
		client.Close()
		conn.Close()
	}, nil
}

// Layer is a way to reach two stores with the same rows: a bare one, and one with transactions.
type Layer struct {
	Name    string
	Raw     kv.Shard // bare Pebble
	Plain   kv.Shard // percodb's store
	Desc    *kv.RangeDescriptor
	DB      *percolator.DB
	Clients int // how many readers it takes to keep it busy
}

// Layers are a bare store and percodb's in this process, and the same two over gRPC on loopback, in
// which case timestamps come over it, too. Both must be loaded with the same number of rows. stop ends
// what was started for them, and leaves the stores open.
func Layers(ctx context.Context, raw *Raw, shard *Shard) (layers []Layer, stop func(), err error) {
	var stops []func()
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	bare := RawShard{DB: raw.DB}
	desc, plain, err := shard.Store.Router().Locate(ctx, Key(nil, 0))
	if err != nil {
		return nil, nil, err
	}
	local := percolator.New(shard.Store.Router(), shard.Oracle, percolator.Options{})
	stops = append(stops, func() { local.Close() })

	// Each has a connection of its own, as it would between processes.
	var conns [3]*tsorpc.Conn
	for i, register := range []func(*tsorpc.Server){
		func(g *tsorpc.Server) { kvrpc.RegisterShard(g, bare) },
		func(g *tsorpc.Server) { kvrpc.RegisterShard(g, shard.Store) },
		func(g *tsorpc.Server) { tsorpc.RegisterOracle(g, shard.Oracle) },
	} {
		addr, end, err := Serve(register)
		if err != nil {
			return nil, nil, err
		}
		stops = append(stops, end)
		if conns[i], err = tsorpc.Dial(addr); err != nil {
			return nil, nil, err
		}
		stops = append(stops, func() { conns[i].Close() })
	}
	remoteRaw := kvrpc.NewShard(conns[0], "raw", kvrpc.ClientOptions{})
	remote := kvrpc.NewShard(conns[1], "remote", kvrpc.ClientOptions{})
	oracle := tsorpc.NewClient(conns[2], tsorpc.ClientOptions{})
	db := percolator.New(remoteRouter{shard.Store.Router(), remote}, oracle, percolator.Options{})
	stops = append(stops, func() { oracle.Close() }, func() { db.Close() })
	return []Layer{
		{"process", bare, plain, desc, local, 8},
		{"grpc", remoteRaw, remote, desc, db, 64},
	}, stop, nil
}

// ReadWays are the ways to read one of rows over the layer's path:
//
//	raw       a read of a bare Pebble behind the interface of a shard
//	kv        the shard's own read of the latest value, of versions and past the lock table
//	get       percolator's read of the latest value: routed, locks dealt with, no timestamp
//	snapshot  a transaction that takes a timestamp and reads the row as of it
func (l *Layer) ReadWays(ctx context.Context, rows uint64) []Way {
	reads := func(get func(key []byte) ([]byte, error)) func(*rand.Rand) error {
		return func(r *rand.Rand) error {
			value, err := get(Key(nil, r.Uint64N(rows)))
			if err == nil && len(value) != ValueBytes {
				err = fmt.Errorf("a row of %d bytes, not %d", len(value), ValueBytes)
			}
			return err
		}
	}
	from := func(s kv.Shard) func(*rand.Rand) error {
		return reads(func(key []byte) ([]byte, error) {
			latest, err := s.GetLatest(ctx, l.Desc.Ref(), key, 0)
			return latest.Value, err
		})
	}
	return []Way{
		{"raw", from(l.Raw)},
		{"kv", from(l.Plain)},
		{"get", reads(func(key []byte) ([]byte, error) { return l.DB.Get(ctx, key) })},
		{"snapshot", reads(func(key []byte) ([]byte, error) {
			txn, err := l.DB.Begin(ctx)
			if err != nil {
				return nil, err
			}
			defer txn.Close()
			return txn.Get(ctx, key)
		})},
	}
}

// WriteWays are the ways to overwrite one of rows durably over the layer's path: into a bare Pebble behind
// the interface of a shard (raw), and by a transaction (txn).
func (l *Layer) WriteWays(ctx context.Context, rows uint64) []Way {
	return []Way{
		{"raw", func(r *rand.Rand) error {
			row := r.Uint64N(rows)
			_, err := l.Raw.Prewrite(ctx, &kv.PrewriteRequest{
				Ranges: []kv.RangeRef{l.Desc.Ref()}, Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: Key(nil, row), Value: Value(nil, row)}}})
			return err
		}},
		{"txn", func(r *rand.Rand) error {
			row := r.Uint64N(rows)
			txn, err := l.DB.Begin(ctx)
			if err != nil {
				return err
			}
			if err := txn.Put(Key(nil, row), Value(nil, row)); err != nil {
				return err
			}
			_, err = txn.Commit(ctx)
			if errkind.Of(err) == errkind.WriteConflict {
				return nil // two writers have met; as much work as a write
			}
			return err
		}},
	}
}
