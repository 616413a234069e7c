// Package rpc puts shards, their owners' side and the directory on the network. Servers and clients
// implement the interfaces of package kv on both ends, so that percolator cannot tell a shard in its
// own process from one elsewhere.
//
//	percolator ─▶ kv.Shard = Shard ═gRPC═ RegisterShard ─▶ kv.Store
//	kv.Store ─▶ kv.Directory = Directory ═gRPC═ RegisterDirectory ─▶ kv.LocalDirectory
//	kv.LocalDirectory ─▶ kv.RangeOwner = Owner ═gRPC═ RegisterOwner ─▶ kv.Store
//
// Invariants:
//
//	I1 An error that the other side returned comes back as the same Go type with the same fields.
//	   It travels in the response, so that no status code can be taken for it.
//	I2 No answer is *kv.UnavailableError, whatever the reason: the request may have been carried out,
//	   or may yet be. Nothing here sends a request twice.
//	I3 A caller's deadline and cancellation travel with the request.
//	I4 nil and empty values stay apart.
//
// Not here: retrying, which percolator does, and finding shards, which kv.CachingRouter does.
// Connections are made and configured in tso/rpc, which all processes share.
package rpc
