// Package rpc serves a timestamp oracle over gRPC: a server over a tso.Source, and a client that
// is a tso.Oracle again. Many callers share one request (tso.Batched), so that the network costs
// little per timestamp.
//
//	callers ─▶ Client ═ tso.Batched ─▶ Take(count) ─gRPC─▶ Server ─▶ tso.Local
//
// Invariants:
//
//	I1 A request is repeated only by asking for other timestamps; an answer that was lost is a gap.
//	I2 A client has one request in flight, and a caller joins none that has been sent.
//	I3 Errors of package tso are returned as the same Go types.
//
// It also contains the settings of all gRPC connections of percodb (conn.go), mutual TLS between the processes of a cluster
// (security.go), and the table of the roles that may call a service (access.go).
package rpc
