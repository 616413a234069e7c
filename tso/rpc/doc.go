// Package rpc puts a timestamp oracle on the network: a server over a tso.Source, and a client that
// is a tso.Oracle again. Many callers share one request (tso.Batched), so that the network costs
// little per timestamp.
//
//	callers ─▶ Client ═ tso.Batched ─▶ Take(count) ─gRPC─▶ Server ─▶ tso.Local
//
// Invariants:
//
//	I1 A request is repeated only by asking for other timestamps; an answer that was lost is a gap.
//	I2 A client has one request in flight, and a caller joins none that has been sent.
//	I3 Errors of package tso come back as the same Go types.
//
// It also holds what every gRPC connection of the product has in common (conn.go). Connections are
// neither encrypted nor authenticated: they belong on a loopback or a private network.
package rpc
