// Package rpc serves shards, range owners and the directory over gRPC. Servers and clients implement the interfaces of
// package kv on both ends, so that percolator uses local and remote shards alike.
//
//	percolator ─▶ kv.Shard = Shard ═gRPC═ RegisterShard ─▶ kv.Store
//	kv.Store ─▶ kv.Directory = Directory ═gRPC═ RegisterDirectory ─▶ kv.LocalDirectory
//	kv.LocalDirectory ─▶ kv.RangeOwner = Owner ═gRPC═ RegisterOwner ─▶ kv.Store
//
// Invariants:
//
//	I1 An error that the server returned is returned as the same Go type with the same fields. It is sent in the
//	   response, so that no status code can be taken for it.
//	I2 A missing answer is *kv.UnavailableError, whatever the reason: the request may have been executed, or may yet
//	   be. No request is sent twice here.
//	I3 A caller's deadline and cancellation are sent with the request.
//	I4 nil and empty values remain distinct.
//
// Package percolator retries requests, and kv.CachingRouter finds shards. Package tso/rpc makes and configures
// connections.
package rpc
