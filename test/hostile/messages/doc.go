// Package messages sends mutated messages of PostgreSQL's protocol to a server: before, during and after a client's introduction,
// in the clear and over TLS. Each connection may end with an error, and nothing else may happen: no panic, no internal
// error, no connection that hangs, no goroutine or memory that stays behind, and other clients are served.
package messages
